/** random_burst_loss: drops bursts of packets that start at random. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { intendedDrop } from '../../engine/metrics.ts'
import { Input, Int32, Optional, Output, Probability, Seed } from '../../engine/schema.ts'
import { applyLoss, RandomBursts } from './loss-models.ts'

export const randomBurstLoss = defineComponent({
  key: 'random_burst_loss',
  family: 'emulation',
  summary: 'Drops bursts of packets that start at random.',
  details:
    'Every packet outside a burst is the first of one with loss_prob, so bursts may follow each other at once. With p for ' +
    'loss_prob and b for burst, a share of pb / (1 - p + pb) of the packets is lost.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    loss_prob: Probability('Chance, of each packet outside a burst, that one starts with it.'),
    burst: Int32('Packets dropped in a row; 0: none.', { minimum: 0, unit: 'packets' }),
    seed: Optional(Seed()),
  }),
  metrics: { emulated_loss: intendedDrop('Packets dropped by the model.') },
  live: ['loss_prob', 'burst'],
  passes: true,
  create(config, { outlets, metrics, random }) {
    const model = new RandomBursts(config.loss_prob, config.burst, random(config.seed))
    return {
      input(batch) {
        applyLoss(batch, model, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        model.probability = next.loss_prob
        model.burst = next.burst
      },
    }
  },
})
