/** chacha20_encrypt: encrypts every packet with the bare ChaCha stream, which shows nobody whether a packet is genuine. */
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { native } from '../../native/native.ts'
import { CHACHA_HEADER_BYTES, chachaConfig, checkRounds, openChacha } from './chacha20.ts'
import { drawSalt, type Seal, sealing } from './sealing.ts'

export const chacha20Encrypt = defineComponent({
  key: 'chacha20_encrypt',
  family: 'crypto',
  summary: 'Encrypts packets with the bare ChaCha stream cipher, without authentication.',
  details:
    'Not authenticated: whoever alters a bit of a packet on the way alters the same bit of what is decrypted, and nothing shows it, nor ' +
    'that a packet was sent before or made up. Where that matters use ssl_encrypt, whose suite chacha20_poly1305_sha_256 has the same ' +
    'cipher and a tag.\n\n' +
    'Every run draws a salt of 8 bytes and derives its own key from the configured one, so a restart never repeats a key stream; the ' +
    'nonce of a packet is the configured one with the number of the packet XORed into its last 8 bytes. Packets grow by 16 bytes: salt ' +
    'and counter. Keep payloads at least 16 bytes below the MTU of what follows. Fewer than 20 rounds are quicker and less studied; both ' +
    'ends have the same.',
  config: chachaConfig,
  metrics: {
    encrypted_packets: counter('Packets encrypted.', 'packets'),
    no_room_packets: drop('Packets that had no room for the header.'),
  },
  live: ['magic_constant', 'rounds'],
  check: checkRounds,
  alters: true,
  room: () => ({ front: CHACHA_HEADER_BYTES, back: 0 }),
  create(config, context) {
    const { outlets, metrics } = context
    const slab = context.memory()
    const owner = context.owner()
    const salt = drawSalt(context)
    let chacha = openChacha(owner, config, salt)
    const seal: Seal = (handles, count, sent, failed) =>
      native.chachaEncrypt(chacha, slab, handles, count, salt, sent, failed)
    return {
      input: sealing(
        context,
        outlets.output,
        metrics.encrypted_packets,
        metrics.no_room_packets,
        CHACHA_HEADER_BYTES,
        seal,
      ),
      reconfigure(next) {
        // The counter goes on: no packet has the key, nonce, constant and rounds of another, whatever they were in between.
        native.close(chacha)
        chacha = openChacha(owner, next, salt)
      },
      stop: () => native.close(chacha),
    }
  },
})
