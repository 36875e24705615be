/** loss_constant: drops each packet of several flows with the same probability. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { intendedDrop } from '../../engine/metrics.ts'
import { Optional, Probability, Seed } from '../../engine/schema.ts'
import { Flows, lossyFlows } from './flows.ts'
import { UniformLoss } from './loss-models.ts'

export const lossConstant = defineComponent({
  key: 'loss_constant',
  family: 'emulation',
  summary: 'Drops each packet of its flows with the same probability.',
  config: Type.Object({
    flows: Flows(),
    loss_probability: Probability('Loss probability of each packet.'),
    seed: Optional(Seed()),
  }),
  metrics: { emulated_loss: intendedDrop('Packets dropped by the model.') },
  live: ['loss_probability'],
  passes: true,
  create(config, { outlets, metrics, random }) {
    const model = new UniformLoss(config.loss_probability, random(config.seed))
    return {
      flows: lossyFlows(outlets.flows, model, metrics.emulated_loss),
      reconfigure(next) {
        model.probability = next.loss_probability
      },
    }
  },
})
