/** ssl_encrypt: encrypts and authenticates every packet with an AEAD suite of TLS 1.3. */

import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { native } from '../../native/native.ts'
import { ownSalts } from './own-salts.ts'
import { AEAD_HEADER_BYTES, aeadConfig, checkSuite, deriveKey, SALT_BYTES, suiteOf, TAG_BYTES } from './suites.ts'

export const sslEncrypt = defineComponent({
  key: 'ssl_encrypt',
  family: 'crypto',
  summary: 'Encrypts and authenticates packets with AES-GCM or ChaCha20-Poly1305.',
  details:
    'Exactly one suite is set. Every run draws a salt of 8 bytes and derives its own key from the configured one, so a restart never ' +
    'repeats a nonce. Packets grow by 32 bytes: salt, counter and tag. Keep payloads at least 32 bytes below the MTU of what follows. ' +
    'Use a key for each direction: whoever answers with the same key can be sent his own packets back (see ssl_decrypt).',
  config: aeadConfig,
  metrics: {
    encrypted_packets: counter('Packets encrypted.', 'packets'),
    no_room_packets: drop('Packets that had no room for header and tag.'),
  },
  check: checkSuite,
  alters: true,
  room: () => ({ front: AEAD_HEADER_BYTES, back: TAG_BYTES }),
  create(config, context) {
    const { name, packets, outlets, metrics, memory, owner, entropy } = context
    const suite = suiteOf(config)
    const salt = entropy(SALT_BYTES)
    ownSalts(context).add(salt, name)
    const key = deriveKey(suite, salt)
    const aead = native.aeadOpen(owner(), suite.code, key)
    key.fill(0)
    const slab = memory()
    const count = new Float64Array(1)
    const failed = new Int32Array(BATCH_CAPACITY)
    return {
      input(batch) {
        const { handles, length } = batch
        for (let i = 0; i < length; i++) packets.settle(handles[i])
        const failures = native.aeadSeal(aead, slab, handles, length, salt, count, failed)
        if (failures > 0) {
          for (let n = 0; n < failures; n++) {
            packets.release(handles[failed[n]])
            handles[failed[n]] = -1
          }
          let kept = 0
          for (let i = 0; i < length; i++) if (handles[i] >= 0) handles[kept++] = handles[i]
          batch.length = kept
          metrics.no_room_packets.add(failures)
        }
        metrics.encrypted_packets.add(batch.length)
        outlets.output.send(batch)
      },
      stop: () => native.close(aead),
    }
  },
})
