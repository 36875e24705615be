/** ssl_decrypt: opens the packets of ssl_encrypt, and drops what is forged, altered or replayed. */
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { aeadOpening, openingMetrics, WINDOW } from './aead-opening.ts'
import { aeadConfig, checkSuite, suiteOf } from './suites.ts'

export const sslDecrypt = defineComponent({
  key: 'ssl_decrypt',
  family: 'crypto',
  summary: 'Decrypts packets of ssl_encrypt; drops forged, altered, replayed and reflected ones.',
  details:
    'The same suite and key as the ssl_encrypt whose packets come in. Packets may come out of order, within the window of the newest ' +
    `${WINDOW} packets of their sender's run. A run is known from its first authentic packet; keys and windows of 64 runs are kept. Beyond, a ` +
    'run takes the place of the one silent longest when 8 of its packets were opened and nothing has come of that one meanwhile; until then ' +
    'it has one of 64 places that newcomers share, so that single packets recorded of earlier runs cost nobody the window. At most 1,000 ' +
    'packets of unknown runs a second are tried, so that spraying them costs little. The run log tells of a sender of which nothing ' +
    'opens, as with another key: of each run of it once, of one a minute at most, with how many others there are; while much junk comes, one that sends little may go untold.\n\n' +
    'What an ssl_encrypt of the same run has sealed and does not come from it inside the graph was sent back by somebody, and is dropped ' +
    '(reflected_packets). Nothing is kept over a restart: what was recorded of an earlier run, of the peer or of this end, is authentic to a ' +
    'decrypter that has forgotten or never heard that run. A key for each direction keeps what this end has sealed out for good; what the ' +
    'peer has sealed can be replayed until the key is changed.',
  config: aeadConfig,
  metrics: { decrypted_packets: counter('Packets decrypted.', 'packets'), ...openingMetrics },
  alters: true,
  check: checkSuite,
  create(config, context) {
    const { outlets, metrics } = context
    return aeadOpening(context, suiteOf(config), outlets.output, metrics, metrics.decrypted_packets)
  },
})
