/** delay_fixed_sequencer: holds every packet for a delay that changes by a list of intervals. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge } from '../../engine/metrics.ts'
import { Input, Int32Milliseconds, List, Output } from '../../engine/schema.ts'
import { delayMetrics } from './delay-line.ts'
import { type DelayPhase, PhasedDelay } from './phased-delay.ts'
import { Intervals, Repeat, SEQUENCE_DETAILS, unequalLists } from './phases.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  delays: List(
    Int32Milliseconds('Time that a packet which comes in this interval is held.'),
    'Delays, one for each interval.',
    { unit: 'ms' },
  ),
  intervals: Intervals(),
  repeat: Repeat(),
})

const phasesOf = ({ delays, intervals }: Static<typeof config>): DelayPhase[] =>
  intervals.map((interval, i) => ({ duration: interval * NS_PER_MS, delay: delays[i] * NS_PER_MS, jitter: 0 }))

export const delayFixedSequencer = defineComponent({
  key: 'delay_fixed_sequencer',
  family: 'emulation',
  summary: 'Holds every packet for a delay that changes by a list of intervals.',
  details:
    `${SEQUENCE_DETAILS} A packet is held for the delay of the interval in which it comes. Order is kept, also when the delay ` +
    'falls. Packets held take slots of the run.',
  config,
  fromArrival: true,
  metrics: { ...delayMetrics, phase: gauge('Index of the interval that holds, from 0.') },
  live: ['delays', 'intervals', 'repeat'],
  check: (given) => unequalLists(given, ['delays']),
  create(given, context) {
    const { outlets, metrics } = context
    const options = { random: null, lag: metrics.lag, reorder: false }
    const delay = new PhasedDelay(context, phasesOf(given), given.repeat, [outlets.output], options)
    return {
      input: (batch) => delay.take(batch, 0),
      notify: (notification) => delay.notify(notification, 0),
      observe() {
        metrics.held_packets.set(delay.lines.held)
        metrics.phase.set(delay.index)
      },
      reconfigure: (next) => delay.change(phasesOf(next), next.repeat),
      stop: () => metrics.held_at_end_packets.add(delay.lines.stop()),
    }
  },
})
