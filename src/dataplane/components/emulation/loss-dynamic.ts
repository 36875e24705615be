/** loss_dynamic: drops each packet with a probability that changes in phases. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge, intendedDrop } from '../../engine/metrics.ts'
import { List, Milliseconds, Optional, Probability, Seed } from '../../engine/schema.ts'
import { Flows, lossyFlows } from './flows.ts'
import { type LossPhase, PhasedLoss } from './phased-loss.ts'

const config = Type.Object({
  flows: Flows(),
  phases: List(
    Type.Object({
      duration: Milliseconds('How long the phase lasts.', { minimum: 1 }),
      loss_probability: Probability('Loss probability of each packet in this phase.'),
    }),
    'Phases, in a loop.',
  ),
  seed: Optional(Seed()),
})

const phasesOf = (given: Static<typeof config>): LossPhase[] =>
  given.phases.map(({ duration, loss_probability }) => ({
    duration: duration * NS_PER_MS,
    probability: loss_probability,
  }))

export const lossDynamic = defineComponent({
  key: 'loss_dynamic',
  family: 'emulation',
  summary: 'Drops each packet of its flows with a probability that changes in phases.',
  details:
    'The first phase begins when the run does, and after the last comes the first again; changed phases begin at the first.',
  config,
  metrics: {
    emulated_loss: intendedDrop('Packets dropped by the model.'),
    phase: gauge('Index of the phase that holds, from 0.'),
  },
  live: ['phases'],
  passes: true,
  create(given, context) {
    const { outlets, metrics } = context
    const model = new PhasedLoss(context, phasesOf(given), true, context.random(given.seed))
    return {
      flows: lossyFlows(outlets.flows, model, metrics.emulated_loss),
      observe: () => metrics.phase.set(model.index),
      reconfigure: (next) => model.change(phasesOf(next), true),
    }
  },
})
