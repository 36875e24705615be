/** ended: what a process keeps of 700 short runs of random chains, eight at a time, once their threads have been idle. */
import { readFileSync } from 'node:fs'
import { Random } from '../src/dataplane/engine/random.ts'
import type { RunPool } from '../src/dataplane/engine/run.ts'
import { openRunPool } from '../src/dataplane/product.ts'
import { type Bench, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const RUNS = 700
const AT_ONCE = 8
/** Longer than threads wait for their next run. */
const IDLE_MS = 15_000
const PACKETS = 20_000

/** Parts of a chain, each of one or two components between `a` and `b`. */
const PARTS: ((a: string, b: string) => Record<string, unknown>)[] = [
  (a, b) => ({ uniform_loss: { input: a, output: b, loss_prob: 0.05, seed: 1 } }),
  (a, b) => ({ delay_constant: { flows: [{ input: a, output: b }], delay: 20 } }),
  (a, b) => ({ throughput_tracker: { input: a, output: b } }),
  (a, b) => ({
    fragmentizer: { input: a, output: `${b}x`, fragment_size: 600 },
    defragmentizer: { input: `${b}x`, output: b },
  }),
  (a, b) => ({
    reed_solomon_encoder: { input: a, output: `${b}x`, symbols: 10, repair: 4 },
    reed_solomon_decoder: { input: `${b}x`, output: b },
  }),
  (a, b) => ({
    rlnc_encoder: { input: a, output: `${b}x`, symbols: 16, repair: 4 },
    rlnc_decoder: { input: `${b}x`, output: b },
  }),
  (a, b) => ({
    rely_encoder: { input: a, output: `${b}x`, repair_target_rate: 0.2 },
    rely_decoder: { input: `${b}x`, output: b },
  }),
]

function chain(random: Random): Record<string, Record<string, unknown>> {
  const parts = 1 + random.below(4)
  const pipeline: Record<string, Record<string, unknown>> = {
    source: { uniform_traffic_source: { output: 'c0', total_packets: 1 + random.below(PACKETS), seed: 1 } },
    sink: { traffic_sink: { input: `c${parts}` } },
  }
  for (let i = 0; i < parts; i++) {
    const made = PARTS[random.below(PARTS.length)]?.(`c${i}`, `c${i + 1}`) ?? {}
    for (const [key, config] of Object.entries(made)) pipeline[`${key}_${i}`] = { [key]: config }
  }
  return pipeline
}

/** MiB of the process: all that is in memory. */
function resident(): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) as RegExpExecArray
  return Number(kilobytes) / 1024
}

async function runAll(pool: RunPool): Promise<number> {
  const random = new Random(7)
  let next = 0
  let failed = 0
  const lane = async (): Promise<void> => {
    while (next < RUNS) {
      const options = { runId: `bench-${next++}`, config: checked(chain(random)) }
      const run = pool.start({ ...options, performanceMode: false, level: 'ERROR' }, () => {})
      const limit = setTimeout(() => run.stop(), 300)
      const { outcome } = await run.ended
      clearTimeout(limit)
      if (outcome === 'FAILED') failed++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  return failed
}

export const bench: Bench = async () => {
  const pool = openRunPool()
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const fresh = resident()
  const failed = await runAll(pool)
  const after = resident()
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  const idle = resident()
  await pool.close()
  return {
    name: `ended: ${RUNS} short runs of random chains`,
    rows: [
      { label: 'runs that failed', value: failed, unit: 'runs', goal: '≤ 0' },
      { label: 'a process that has run nothing', value: fresh, unit: 'MiB' },
      { label: 'more right after the runs', value: after - fresh, unit: 'MiB' },
      { label: 'more once their threads were idle', value: idle - fresh, unit: 'MiB', goal: '≤ 60' },
    ],
  }
}

await runAlone(import.meta.url, bench)
