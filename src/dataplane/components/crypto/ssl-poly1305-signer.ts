/** ssl_poly1305_signer: sends the payload in clear, with a tag that shows whether it is genuine. */
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { aeadSealing } from './sealing.ts'
import { AEAD_HEADER_BYTES, signingConfig, signingSuite, TAG_BYTES } from './suites.ts'

export const sslPoly1305Signer = defineComponent({
  key: 'ssl_poly1305_signer',
  family: 'crypto',
  summary: 'Signs packets with Poly1305 and leaves them in clear.',
  details:
    'Everybody on the way can read the payload, nobody without the secret can alter or make one. The tag is that of ' +
    'AEAD_CHACHA20_POLY1305 (RFC 8439) with header and payload as associated data and nothing to encrypt. Every run draws a salt of ' +
    '8 bytes and derives its own key from the secret, so a restart never repeats a nonce. Packets grow by 32 bytes: salt, counter and ' +
    'tag. Keep payloads at least 32 bytes below the MTU of what follows. Use a secret for each direction: whoever answers with the same ' +
    'one can be sent his own packets back (see ssl_poly1305_checker).',
  config: signingConfig,
  metrics: {
    signed_packets: counter('Packets signed.', 'packets'),
    no_room_packets: drop('Packets that had no room for header and tag.'),
  },
  alters: true,
  room: () => ({ front: AEAD_HEADER_BYTES, back: TAG_BYTES }),
  create(config, context) {
    const { outlets, metrics } = context
    const suite = signingSuite(config)
    return aeadSealing(context, suite, outlets.output, metrics.signed_packets, metrics.no_room_packets)
  },
})
