/** delay_dynamic: holds every packet for a delay that changes in phases. */
import { type Static, Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge } from '../../engine/metrics.ts'
import { Bool, List, Milliseconds, Optional, Seed } from '../../engine/schema.ts'
import { delayMetrics } from './delay-line.ts'
import { Flows } from './flows.ts'
import { type DelayPhase, PhasedDelay } from './phased-delay.ts'

const config = Type.Object({
  flows: Flows(),
  phases: List(
    Type.Object({
      duration: Milliseconds('How long the phase lasts.', { minimum: 1 }),
      delay: Milliseconds('Time that a packet which comes in this phase is held.'),
      jitter: Milliseconds('Largest deviation from the delay, either way.', { default: 0 }),
    }),
    'Phases, in a loop.',
  ),
  allow_reordering: Bool('Let a packet overtake one that is held longer.', { default: false }),
  seed: Optional(Seed()),
})

const phasesOf = (given: Static<typeof config>): DelayPhase[] =>
  given.phases.map(({ duration, delay, jitter }) => ({
    duration: duration * NS_PER_MS,
    delay: delay * NS_PER_MS,
    jitter: jitter * NS_PER_MS,
  }))

export const delayDynamic = defineComponent({
  key: 'delay_dynamic',
  family: 'emulation',
  summary: 'Holds every packet for a delay, give or take a jitter, that changes in phases.',
  details:
    'The first phase begins when the run does, and after the last comes the first again; changed phases begin at the first. A ' +
    'packet is held for the delay of the phase in which it comes. Jitter is uniform in ± its value, the sum never below zero. ' +
    'Within a flow order is kept, also when the delay falls, unless allow_reordering is set. Packets held take slots of the run.',
  config,
  fromArrival: true,
  metrics: { ...delayMetrics, phase: gauge('Index of the phase that holds, from 0.') },
  live: ['phases', 'allow_reordering'],
  create(given, context) {
    const { outlets, metrics, random } = context
    const options = { random: random(given.seed), lag: metrics.lag, reorder: given.allow_reordering }
    const outputs = outlets.flows.map(({ output }) => output)
    const delay = new PhasedDelay(context, phasesOf(given), true, outputs, options)
    return {
      flows: given.flows.map((_, flow) => ({ input: (batch: Batch) => delay.take(batch, flow) })),
      notify: (notification, input) => delay.notify(notification, input[1] as number),
      observe() {
        metrics.held_packets.set(delay.lines.held)
        metrics.phase.set(delay.index)
      },
      reconfigure(next) {
        delay.change(phasesOf(next), true)
        delay.lines.reorder = next.allow_reordering
      },
      stop: () => metrics.held_at_end_packets.add(delay.lines.stop()),
    }
  },
})
