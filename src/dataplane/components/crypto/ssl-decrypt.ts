/** ssl_decrypt: opens the packets of ssl_encrypt, and drops what is forged, altered or replayed. */
import { formatRemote } from '../../engine/address.ts'
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { REMOTE_BYTES } from '../../native/native.ts'
import { AeadReceiver, OPENED, REFLECTED, REPLAYED, UNTRIED } from './aead-receiver.ts'
import { ownSalts } from './own-salts.ts'
import { REPLAY_WINDOW } from './replay-window.ts'
import { AEAD_HEADER_BYTES, aeadConfig, checkSuite, suiteOf, TAG_BYTES } from './suites.ts'

const WINDOW = REPLAY_WINDOW.toLocaleString('en')

export const sslDecrypt = defineComponent({
  key: 'ssl_decrypt',
  family: 'crypto',
  summary: 'Decrypts packets of ssl_encrypt; drops forged, altered, replayed and reflected ones.',
  details:
    'The same suite and key as the ssl_encrypt whose packets come in. Packets may come out of order, within the window of the newest ' +
    `${WINDOW} packets of their sender's run. A run is admitted by its first authentic packet; 64 runs are remembered, the longest unheard ` +
    'giving way, and at most 1,000 packets of unknown runs a second are tried, so that spraying them costs little. A sender of which ' +
    'nothing opens, as with another key, is told in the run log.\n\n' +
    'What an ssl_encrypt of the same run has sealed and does not come from it inside the graph was sent back by somebody, and is dropped ' +
    '(reflected_packets). Nothing is kept over a restart: what was recorded of an earlier run, of the peer or of this end, is authentic to a ' +
    'decrypter that has forgotten or never heard that run. A key for each direction keeps what this end has sealed out for good; what the ' +
    'peer has sealed can be replayed until the key is changed.',
  config: aeadConfig,
  metrics: {
    decrypted_packets: counter('Packets decrypted.', 'packets'),
    authentication_failures: drop('Packets that were not authentic: another key, forged, or altered.'),
    replayed_packets: drop(`Packets seen before, or older than the newest ${WINDOW} of their run.`),
    reflected_packets: drop('Packets that an ssl_encrypt of this run has sealed, sent back by somebody.'),
    untried_packets: drop('Packets of runs not heard before, of which too many came at once to try them all.'),
    malformed_packets: drop('Packets too short for header and tag.'),
    known_runs: gauge('Runs of senders admitted.', 'runs'),
  },
  alters: true,
  check: checkSuite,
  create(config, context) {
    const { packets, outlets, metrics, memory, owner, clock, log, follows } = context
    const receiver = new AeadReceiver({
      packets,
      memory: memory(),
      owner: owner(),
      suite: suiteOf(config),
      clock,
      own: ownSalts(context),
      follows,
      wrongKey(packet) {
        const record = new Int32Array(REMOTE_BYTES / 4)
        packets.readRemote(packet, record)
        const address = formatRemote(record)
        const sender = address === '' ? 'a sender' : `the sender at ${address}`
        const cause = 'it has another key or suite, or something on the way alters packets'
        log('WARN', `nothing that ${sender} seals can be opened: ${cause}`, { address })
      },
    })
    const run = new Int32Array(BATCH_CAPACITY)
    const outcome = new Uint8Array(BATCH_CAPACITY)

    /** Opens the first `count` of `run`, which have the same salt, and writes those to pass on to `handles[kept..)`. */
    const openRun = (count: number, high: number, low: number, handles: Int32Array, kept: number): number => {
      receiver.open(run, count, high, low, outcome)
      const before = kept
      for (let i = 0; i < count; i++) {
        const packet = run[i]
        if (outcome[i] === OPENED) handles[kept++] = packet
        else {
          packets.release(packet)
          if (outcome[i] === REPLAYED) metrics.replayed_packets.add(1)
          else if (outcome[i] === UNTRIED) metrics.untried_packets.add(1)
          else if (outcome[i] === REFLECTED) metrics.reflected_packets.add(1)
          else metrics.authentication_failures.add(1)
        }
      }
      metrics.decrypted_packets.add(kept - before)
      return kept
    }

    return {
      input(batch) {
        const { handles, length } = batch
        const { view, offset } = packets
        let kept = 0
        let count = 0
        let high = 0
        let low = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] < AEAD_HEADER_BYTES + TAG_BYTES) {
            packets.release(packet)
            metrics.malformed_packets.add(1)
            continue
          }
          const at = offset[packet]
          const packetHigh = view.getInt32(at)
          const packetLow = view.getInt32(at + 4)
          if (count > 0 && (packetHigh !== high || packetLow !== low)) {
            kept = openRun(count, high, low, handles, kept)
            count = 0
          }
          high = packetHigh
          low = packetLow
          run[count++] = packet
        }
        if (count > 0) kept = openRun(count, high, low, handles, kept)
        batch.length = kept
        outlets.output.send(batch)
      },
      observe: () => metrics.known_runs.set(receiver.admitted),
      stop: () => receiver.close(),
    }
  },
})
