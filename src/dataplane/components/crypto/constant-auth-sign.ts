/** constant_auth_sign: appends a constant to every packet. */
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { CONSTANT_BYTES, constantConfig, constantWords } from './constant.ts'

export const constantAuthSign = defineComponent({
  key: 'constant_auth_sign',
  family: 'crypto',
  summary: 'Appends a constant of 64 bits to every packet, by which constant_auth_verify knows it.',
  details:
    'Packets grow by 8 bytes. The constant travels in clear and is the same in every packet: it keeps strays apart from what was meant ' +
    'to come, and nobody out who sees one packet. For that there are ssl_encrypt and ssl_poly1305_signer.',
  config: constantConfig,
  metrics: {
    signed_packets: counter('Packets with the constant appended.', 'packets'),
    no_room_packets: drop('Packets that had no room for the constant.'),
  },
  live: ['constant'],
  alters: true,
  room: () => ({ front: 0, back: CONSTANT_BYTES }),
  create(config, { packets, outlets, metrics }) {
    let [high, low] = constantWords(config.constant)
    return {
      input(batch) {
        const { handles, length } = batch
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const at = packets.append(packet, CONSTANT_BYTES)
          if (at < 0) {
            packets.release(packet)
            metrics.no_room_packets.add(1)
            continue
          }
          packets.view.setInt32(at, high)
          packets.view.setInt32(at + 4, low)
          handles[kept++] = packet
        }
        batch.length = kept
        metrics.signed_packets.add(kept)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        ;[high, low] = constantWords(next.constant)
      },
    }
  },
})
