/** periodic_burst_loss: drops a burst of packets after every so many delivered. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { intendedDrop } from '../../engine/metrics.ts'
import { Input, Int32, Output } from '../../engine/schema.ts'
import { applyLoss, PeriodicBursts } from './loss-models.ts'

export const periodicBurstLoss = defineComponent({
  key: 'periodic_burst_loss',
  family: 'emulation',
  summary: 'Drops a burst of packets after every so many delivered.',
  details: 'It begins delivering. Of packets, a share of burst / (interval + burst) is lost.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    interval: Int32('Packets delivered before each burst.', { minimum: 1, unit: 'packets' }),
    burst: Int32('Packets dropped in a row; 0: none.', { minimum: 0, unit: 'packets' }),
  }),
  metrics: { emulated_loss: intendedDrop('Packets dropped by the model.') },
  live: ['interval', 'burst'],
  passes: true,
  create(config, { outlets, metrics }) {
    const model = new PeriodicBursts(config.interval, config.burst)
    return {
      input(batch) {
        applyLoss(batch, model, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        model.interval = next.interval
        model.burst = next.burst
      },
    }
  },
})
