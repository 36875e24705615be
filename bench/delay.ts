/**
 * delay: how late delay_constant lets packets out, idle, in performance mode and beside an overloaded source, against a C program that only delays,
 * and the kernel's netem where it is there (which takes root).
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openRunPool } from '../src/dataplane/product.ts'
import { type Bench, type BenchRow, median, nativeProgram, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const DELAY_MS = 10
const ROUNDS = 9
const PROBE_CPU = 0
const DELAY_CPU = 1
let nextPort = 19_300

/** What is sent at a steady pace. */
interface Load {
  packets: number
  intervalUs: number
}

const SLOW: Load = { packets: 1000, intervalUs: 1000 }
const FAST: Load = { packets: 3000, intervalUs: 100 }

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

/** Sends to `from`, receives at `to`; `around` are a command and its words that the probe runs under. */
async function probe(from: number, to: number, load: Load, around: readonly string[] = []): Promise<Errors> {
  const values = [from, to, load.packets, load.intervalUs, DELAY_MS * 1000, PROBE_CPU].map(String)
  const [command, ...words] = [...around, nativeProgram('probe'), ...values]
  const child = spawn(command as string, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return JSON.parse(output) as Errors
}

function cDelayer(load: Load, spin: boolean): Delayer {
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
      const errors = await probe(from, to, load)
      await close()
      return errors
    },
    close,
  }
}

function penstockDelayer(load: Load, { performanceMode = false, overloaded = false } = {}): Delayer {
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
      await probe(from, to, load) // what the compiler takes while it warms up
      const errors = await probe(from, to, load)
      run.stop()
      await run.ended
      return errors
    },
    close: () => pool.close(),
  }
}

/** A loopback of its own that netem delays. */
const NETEM = [
  'unshare',
  '-n',
  'sh',
  '-c',
  `ip link set lo up && tc qdisc add dev lo root netem delay ${DELAY_MS}ms && exec "$@"`,
  'netem',
]

/** The kernel's netem, where there is one; a word otherwise. */
function netemDelayer(load: Load): { netem: Delayer } | null {
  const [command, ...words] = [...NETEM, 'true']
  const { status, stderr, error } = spawnSync(command as string, words, { encoding: 'utf8' })
  if (status !== 0) {
    console.error(
      `delay: NETEM IS NOT MEASURED (it takes root, iproute2 and sch_netem): ${error?.message ?? stderr.trim()}`,
    )
    return null
  }
  const port = nextPort++
  return { netem: { measure: () => probe(port, port, load, NETEM), close: async () => {} } }
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

/** All modes at one pace, and how many packets left early. */
async function rowsAt(load: Load, pace: string): Promise<{ rows: BenchRow[]; early: number }> {
  const netem = netemDelayer(load)
  const seen = await race<string>({
    c: cDelayer(load, false),
    again: cDelayer(load, false),
    penstock: penstockDelayer(load),
    overloaded: penstockDelayer(load, { overloaded: true }),
    cSpinning: cDelayer(load, true),
    spinningAgain: cDelayer(load, true),
    spinning: penstockDelayer(load, { performanceMode: true }),
    ...netem,
  })
  const of = (name: string) => seen[name] as Errors[]
  const own = [of('penstock'), of('overloaded'), of('spinning')]
  const spinning = microseconds(of('spinning'), 'p50')
  const plain = (label: string, name: string): BenchRow[] =>
    (['p50', 'p99'] as const).map((part) => ({
      label: `${pace}, ${label}, ${part}`,
      value: microseconds(of(name), part),
      unit: 'µs late',
    }))
  return {
    rows: [
      ...rowsOf(`${pace}, idle`, of('c'), of('again'), of('penstock')),
      ...rowsOf(`${pace}, performance mode`, of('cSpinning'), of('spinningAgain'), of('spinning')),
      { label: `${pace}, performance mode: penstock, p50 itself`, value: spinning, unit: 'µs late', goal: '≤ 10' },
      ...plain('beside an overloaded source', 'overloaded'),
      ...(netem ? plain("the kernel's netem", 'netem') : []),
    ],
    early: own.flat().reduce((sum, one) => sum + one.early, 0),
  }
}

export const bench: Bench = async () => {
  const slow = await rowsAt(SLOW, '1,000/s')
  const fast = await rowsAt(FAST, '10,000/s')
  const early = { label: 'packets that left early', value: slow.early + fast.early, unit: 'packets', goal: '≤ 0' }
  return {
    name: `delay: what ${DELAY_MS} ms of delay_constant are late by, kernel receive stamps, ${ROUNDS} rounds in turn`,
    rows: [...slow.rows, ...fast.rows, early],
  }
}

await runAlone(import.meta.url, bench)
