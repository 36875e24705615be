/** start: a run from its start to RUNNING in a warm pool, and from its stop to ENDED. */
import { openRunPool } from '../src/dataplane/product.ts'
import { type Bench, median, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const ROUNDS = 30

export const bench: Bench = async () => {
  const pool = openRunPool()
  const config = checked({
    in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.01, seed: 1 } },
    out: { udp: { remote_address: '127.0.0.1:9', input: 'b', lock_to_first_peer: false } },
  })
  const starts: number[] = []
  const stops: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    const run = pool.start({ runId: `bench-${round}`, config, performanceMode: false, level: 'WARN' }, () => {})
    await run.running
    starts.push(performance.now() - begun)
    const asked = performance.now()
    run.stop()
    await run.ended
    stops.push(performance.now() - asked)
  }
  await pool.close()
  return {
    name: 'start: a UDP pipeline in a warm pool',
    rows: [
      { label: 'start to RUNNING, median', value: median(starts), unit: 'ms', goal: '≤ 50' },
      { label: 'start to RUNNING, worst', value: Math.max(...starts), unit: 'ms' },
      { label: 'stop to ENDED, median', value: median(stops), unit: 'ms', goal: '≤ 20' },
    ],
  }
}

await runAlone(import.meta.url, bench)
