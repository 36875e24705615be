/** delay: how late delay_constant lets packets out, idle, in performance mode and beside an overloaded source, against a C program that only delays. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openRunPool } from '../src/dataplane/product.ts'
import { type Bench, type BenchRow, median, nativeProgram, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const DELAY_MS = 10
const PACKETS = 1000
const INTERVAL_US = 1000
const ROUNDS = 9
const PROBE_CPU = 0
const DELAY_CPU = 1
let nextPort = 19_300

/** Times beyond the delay, ns. */
interface Errors {
  packets: number
  early: number
  p50: number
  p99: number
}

interface Delayer {
  measure(): Promise<Errors>
  close(): Promise<void>
}

async function probe(from: number, to: number): Promise<Errors> {
  const values = [from, to, PACKETS, INTERVAL_US, DELAY_MS * 1000, PROBE_CPU]
  const child = spawn(nativeProgram('probe'), values.map(String), { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return JSON.parse(output) as Errors
}

function cDelayer(spin: boolean): Delayer {
  const [from, to] = [nextPort++, nextPort++]
  const values = [from, to, DELAY_MS * 1000, spin ? 'spin' : 'sleep'].map(String)
  let child = null as ReturnType<typeof spawn> | null
  const close = async () => {
    child?.kill('SIGKILL')
    if (child) await once(child, 'close')
    child = null
  }
  return {
    async measure() {
      // One that spins is there for its own measurement only.
      child = spawn('taskset', ['-c', String(DELAY_CPU), nativeProgram('delay'), ...values], { stdio: 'inherit' })
      await new Promise((resolve) => setTimeout(resolve, 100))
      const errors = await probe(from, to)
      await close()
      return errors
    },
    close,
  }
}

function penstockDelayer(performanceMode: boolean, overloaded: boolean): Delayer {
  const [from, to] = [nextPort++, nextPort++]
  const config = checked({
    in: { udp_local: { address: `127.0.0.1:${from}`, output: 'a' } },
    delay: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: DELAY_MS } },
    out: { udp: { remote_address: `127.0.0.1:${to}`, input: 'b' } },
    ...(overloaded && {
      source: { throughput_traffic_source: { output: 'l', throughput_mbit: 400_000, payload_size: 1000 } },
      sink: { traffic_sink: { input: 'l' } },
    }),
  })
  const pool = openRunPool({ warm: 1 })
  return {
    async measure() {
      const run = pool.start({ runId: 'bench', config, cpu: DELAY_CPU, performanceMode, level: 'WARN' }, () => {})
      await run.running
      await probe(from, to) // what the compiler takes while it warms up
      const errors = await probe(from, to)
      run.stop()
      await run.ended
      return errors
    },
    close: () => pool.close(),
  }
}

/** Measures in turn, `ROUNDS` times each. */
async function race<K extends string>(delayers: Record<K, Delayer>): Promise<Record<K, Errors[]>> {
  const all = Object.entries(delayers) as [K, Delayer][]
  const seen = Object.fromEntries(all.map(([name]) => [name, [] as Errors[]])) as Record<K, Errors[]>
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, delayer] of all) seen[name].push(await delayer.measure())
    }
  } finally {
    for (const [, delayer] of all) await delayer.close()
  }
  return seen
}

const microseconds = (errors: Errors[], part: 'p50' | 'p99'): number => median(errors.map((one) => one[part])) / 1000

/** Rows of one mode: penstock against C, and C against itself, which says what the machine allows. */
function rowsOf(label: string, c: Errors[], again: Errors[], penstock: Errors[]): BenchRow[] {
  return (['p50', 'p99'] as const).flatMap((part) => {
    const [one, other, own] = [c, again, penstock].map((errors) => microseconds(errors, part))
    const spread = Math.max(one, other) / Math.min(one, other)
    const limit = part === 'p50' ? 1.3 : Math.max(1.3, spread)
    const goal = `≤ ${limit.toPrecision(3)}`
    return [
      { label: `${label}: C, ${part}`, value: one, unit: 'µs late' },
      { label: `${label}: C against itself, ${part}`, value: other, unit: 'µs late', ratio: other / one },
      { label: `${label}: penstock, ${part}`, value: own, unit: 'µs late', ratio: own / one, goal },
    ]
  })
}

export const bench: Bench = async () => {
  const seen = await race({
    c: cDelayer(false),
    again: cDelayer(false),
    penstock: penstockDelayer(false, false),
    overloaded: penstockDelayer(false, true),
    cSpinning: cDelayer(true),
    spinningAgain: cDelayer(true),
    spinning: penstockDelayer(true, false),
  })
  const { penstock, overloaded, spinning } = seen
  const early = [...penstock, ...overloaded, ...spinning].reduce((sum, one) => sum + one.early, 0)
  return {
    name: `delay: what ${DELAY_MS} ms of delay_constant are late by, 1,000 packets/s, kernel receive stamps`,
    rows: [
      ...rowsOf('idle', seen.c, seen.again, penstock),
      ...rowsOf('performance mode', seen.cSpinning, seen.spinningAgain, spinning),
      { label: 'beside an overloaded source, p50', value: microseconds(overloaded, 'p50'), unit: 'µs late' },
      { label: 'beside an overloaded source, p99', value: microseconds(overloaded, 'p99'), unit: 'µs late' },
      { label: 'packets that left early', value: early, unit: 'packets', goal: '≤ 0' },
    ],
  }
}

await runAlone(import.meta.url, bench)
