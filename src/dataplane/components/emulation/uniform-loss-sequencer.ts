/** uniform_loss_sequencer: drops each packet with a probability that changes by a list of intervals. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge, intendedDrop } from '../../engine/metrics.ts'
import { Input, List, Optional, Output, Probability, Seed } from '../../engine/schema.ts'
import { applyLoss } from './loss-models.ts'
import { type LossPhase, PhasedLoss } from './phased-loss.ts'
import { Intervals, Repeat, SEQUENCE_DETAILS, unequalLists } from './phases.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  loss_probs: List(
    Probability('Loss probability of each packet in this interval.'),
    'Loss probabilities, one for each interval.',
    { unit: 'probability' },
  ),
  intervals: Intervals(),
  repeat: Repeat(),
  seed: Optional(Seed()),
})

const phasesOf = ({ loss_probs, intervals }: Static<typeof config>): LossPhase[] =>
  intervals.map((interval, i) => ({ duration: interval * NS_PER_MS, probability: loss_probs[i] }))

export const uniformLossSequencer = defineComponent({
  key: 'uniform_loss_sequencer',
  family: 'emulation',
  summary: 'Drops each packet with a probability that changes by a list of intervals.',
  details: SEQUENCE_DETAILS,
  config,
  metrics: {
    emulated_loss: intendedDrop('Packets dropped by the model.'),
    phase: gauge('Index of the interval that holds, from 0.'),
  },
  live: ['loss_probs', 'intervals', 'repeat'],
  passes: true,
  check: (given) => unequalLists(given, ['loss_probs']),
  create(given, context) {
    const { outlets, metrics } = context
    const model = new PhasedLoss(context, phasesOf(given), given.repeat, context.random(given.seed))
    return {
      input(batch) {
        applyLoss(batch, model, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      observe: () => metrics.phase.set(model.index),
      reconfigure: (next) => model.change(phasesOf(next), next.repeat),
    }
  },
})
