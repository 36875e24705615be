/** constant_auth_verify: drops packets that do not end with the constant, and strips it from the others. */
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { CONSTANT_BYTES, constantConfig, constantWords } from './constant.ts'

export const constantAuthVerify = defineComponent({
  key: 'constant_auth_verify',
  family: 'crypto',
  summary: 'Drops packets that do not end with the constant of constant_auth_sign, and strips it from the others.',
  details:
    'The same constant as the constant_auth_sign whose packets come in. It does not show that a packet is as it was sent, or was not ' +
    'sent before: see constant_auth_sign.',
  config: constantConfig,
  metrics: {
    verified_packets: counter('Packets that ended with the constant.', 'packets'),
    verify_failures: drop('Packets that ended with something else.'),
    malformed_packets: drop('Packets too short for the constant.'),
  },
  live: ['constant'],
  alters: true,
  create(config, { packets, outlets, metrics }) {
    let [high, low] = constantWords(config.constant)
    return {
      input(batch) {
        const { handles, length } = batch
        const { view } = packets
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] < CONSTANT_BYTES) {
            packets.release(packet)
            metrics.malformed_packets.add(1)
            continue
          }
          const at = packets.trimBack(packet, CONSTANT_BYTES)
          // Both halves whatever the first says: the time taken tells nothing of where they differ.
          if (((view.getInt32(at) ^ high) | (view.getInt32(at + 4) ^ low)) !== 0) {
            packets.release(packet)
            metrics.verify_failures.add(1)
            continue
          }
          handles[kept++] = packet
        }
        batch.length = kept
        metrics.verified_packets.add(kept)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        ;[high, low] = constantWords(next.constant)
      },
    }
  },
})
