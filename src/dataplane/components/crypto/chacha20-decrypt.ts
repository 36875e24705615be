/** chacha20_decrypt: decrypts the packets of chacha20_encrypt, and whatever else looks like one. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { native } from '../../native/native.ts'
import { ChachaRuns, MAX_KEPT_RUNS, MIN_PACKETS_TO_STAY } from './chacha-runs.ts'
import { CHACHA_HEADER_BYTES, chachaConfig, checkRounds, openChacha } from './chacha20.ts'
import { ownSalts } from './own-salts.ts'
import { type OpenRun, saltedRuns } from './salted-runs.ts'

export const chacha20Decrypt = defineComponent({
  key: 'chacha20_decrypt',
  family: 'crypto',
  summary: 'Decrypts packets of chacha20_encrypt, without authentication.',
  details:
    'The same key, nonce, constant and rounds as the chacha20_encrypt whose packets come in. Not authenticated: with another key, and for ' +
    'packets that were altered or made up, what comes out is other bytes, and nothing shows it. What was recorded and is sent again is ' +
    'decrypted again: a counter that nothing vouches for can keep no window against replays. See chacha20_encrypt.\n\n' +
    `Keys of ${MAX_KEPT_RUNS} runs are kept; beyond, a run takes the place of the one silent longest with its ${MIN_PACKETS_TO_STAY}th packet, and until ` +
    'then one that newcomers share. At most 1,000 packets of unknown runs a second have their key derived, so that spraying them costs little.',
  config: chachaConfig,
  metrics: {
    decrypted_packets: counter('Packets decrypted, whether or not they were genuine.', 'packets'),
    reflected_packets: drop('Packets that this run has sent itself, sent back by somebody.'),
    untried_packets: drop('Packets of runs not heard before, of which too many came at once to derive their keys.'),
    malformed_packets: drop('Packets too short for the header, or with a counter that no chacha20_encrypt reaches.'),
    known_runs: gauge('Runs of senders whose keys are kept.', 'runs'),
  },
  live: ['magic_constant', 'rounds'],
  check: checkRounds,
  alters: true,
  create(config, context) {
    const { packets, outlets, metrics, clock, follows } = context
    const slab = context.memory()
    const owner = context.owner()
    const own = ownSalts(context)
    const failed = new Int32Array(BATCH_CAPACITY)
    let wanted = config
    const runs = new ChachaRuns(clock, (salt) => openChacha(owner, wanted, salt))

    const open: OpenRun = (run, count, high, low) => {
      const reflected = own.reflects(high, low, follows)
      const chacha = reflected ? -1 : runs.find(high, low, count)
      if (chacha < 0) {
        for (let i = 0; i < count; i++) packets.release(run[i])
        if (reflected) metrics.reflected_packets.add(count)
        else metrics.untried_packets.add(count)
        return 0
      }
      const failures = native.chachaDecrypt(chacha, slab, run, count, failed)
      let kept = 0
      let next = 0
      for (let i = 0; i < count; i++) {
        if (next < failures && failed[next] === i) {
          next++
          packets.release(run[i])
        } else run[kept++] = run[i]
      }
      metrics.malformed_packets.add(failures)
      metrics.decrypted_packets.add(kept)
      return kept
    }

    return {
      input: saltedRuns(context, outlets.output, CHACHA_HEADER_BYTES, metrics.malformed_packets, open),
      reconfigure(next) {
        wanted = next
        runs.renew()
      },
      observe: () => metrics.known_runs.set(runs.known),
      stop: () => runs.close(),
    }
  },
})
