/** ssl_encrypt: encrypts and authenticates every packet with an AEAD suite of TLS 1.3. */

import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { aeadSealing } from './sealing.ts'
import { AEAD_HEADER_BYTES, aeadConfig, checkSuite, suiteOf, TAG_BYTES } from './suites.ts'

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
  moves: true,
  create(config, context) {
    const { outlets, metrics } = context
    return aeadSealing(context, suiteOf(config), outlets.output, metrics.encrypted_packets, metrics.no_room_packets)
  },
})
