/** ssl_decrypt: opens the packets of ssl_encrypt, and drops what is forged, altered or replayed. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { AeadReceiver, OPENED, REPLAYED, UNTRIED } from './aead-receiver.ts'
import { AEAD_HEADER_BYTES, aeadConfig, checkSuite, suiteOf, TAG_BYTES } from './suites.ts'

export const sslDecrypt = defineComponent({
  key: 'ssl_decrypt',
  family: 'crypto',
  summary: 'Decrypts packets of ssl_encrypt; drops forged, altered and replayed ones.',
  details:
    'The same suite and key as the ssl_encrypt whose packets come in. Packets may come out of order, up to 1,024 behind the newest of their ' +
    "sender's run. A run is admitted by its first authentic packet; 64 runs are remembered, the longest unheard giving way, and at most " +
    '1,000 unknown salts a second are tried, so that spraying them costs little. What was recorded of an earlier run can be replayed to a ' +
    'decrypter that has forgotten or never heard it, since nothing is kept over a restart: change the key where that matters.',
  config: aeadConfig,
  metrics: {
    decrypted_packets: counter('Packets decrypted.', 'packets'),
    authentication_failures: drop('Packets that were not authentic: another key, forged, or altered.'),
    replayed_packets: drop('Packets seen before, or more than 1,024 behind the newest of their run.'),
    untried_packets: drop('Packets of unknown runs, of which too many came at once to try them all.'),
    malformed_packets: drop('Packets too short for header and tag.'),
    known_runs: gauge('Runs of senders admitted.', 'runs'),
  },
  check: checkSuite,
  create(config, { packets, outlets, metrics, memory, owner, clock }) {
    const receiver = new AeadReceiver(packets, memory(), owner(), suiteOf(config), clock)
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
