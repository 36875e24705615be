/** uniform_loss: drops each packet with the same probability. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { intendedDrop } from '../../engine/metrics.ts'
import { Input, Optional, Output, Probability, Seed } from '../../engine/schema.ts'
import { applyLoss, UniformLoss } from './loss-models.ts'

export const uniformLoss = defineComponent({
  key: 'uniform_loss',
  family: 'emulation',
  summary: 'Drops each packet with the same probability.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    loss_prob: Probability('Loss probability of each packet.'),
    seed: Optional(Seed()),
  }),
  metrics: { emulated_loss: intendedDrop('Packets dropped by the model.') },
  live: ['loss_prob'],
  passes: true,
  create(config, { outlets, metrics, random }) {
    const model = new UniformLoss(config.loss_prob, random(config.seed))
    return {
      input(batch) {
        applyLoss(batch, model, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        model.probability = next.loss_prob
      },
    }
  },
})
