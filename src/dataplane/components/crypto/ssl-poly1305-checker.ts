/** ssl_poly1305_checker: passes on what ssl_poly1305_signer has signed, and drops what is forged, altered or replayed. */
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { aeadOpening, openingMetrics, WINDOW } from './aead-opening.ts'
import { signingConfig, signingSuite } from './suites.ts'

export const sslPoly1305Checker = defineComponent({
  key: 'ssl_poly1305_checker',
  family: 'crypto',
  summary: 'Checks and strips the tags of ssl_poly1305_signer; drops forged, altered, replayed and reflected packets.',
  details:
    'The same secret as the ssl_poly1305_signer whose packets come in. Packets may come out of order, within the window of the newest ' +
    `${WINDOW} packets of their sender's run. Runs of senders, what is tried of unknown ones, and what is told of a sender with another ` +
    'secret are as with ssl_decrypt; so is what replays and reflections can and cannot do, and why each direction should have a secret ' +
    'of its own.',
  config: signingConfig,
  metrics: { verified_packets: counter('Packets that were authentic.', 'packets'), ...openingMetrics },
  alters: true,
  create(config, context) {
    const { outlets, metrics } = context
    return aeadOpening(context, signingSuite(config), outlets.output, metrics, metrics.verified_packets)
  },
})
