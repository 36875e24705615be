/**
 * live-link: what is lost end to end, and how late the rest is, over real sockets and a path of 25 ms and 5 % loss each way: rely, raft over two
 * such paths, and SRT at three latencies (Debian: apt-get install srt-tools). All at the same time, 1,000 packets/s of 1,316 bytes each.
 * `node dist/bench/live-link.js --seconds 300` takes that long; a minute otherwise.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { openRunPool } from '../src/dataplane/product.ts'
import { type BenchResult, type BenchRow, nativeProgram, runAlone } from './measure.ts'
import { type Carrying, DELAY_MS, LivePaths, LOSS } from './support/live-path.ts'

const BYTES = 1316
const INTERVAL_US = 1000
const SECONDS = 60
const RATE = 0.15
const RAFT_PATHS = 2
const RAFT_TIMEOUT_MS = 100
const SRT_LATENCIES = [60, 120, 250]
/** Packets before and after those that are counted, while connections are made and the last repairs come. */
const EXTRA = 5000

/** What `bench/native/stream.c` says, times in ns. */
interface Stream {
  sent: number
  lost: number
  repeated: number
  reordered: number
  p50: number
  p99: number
  p999: number
}

async function stream({ from, to }: Carrying, seconds: number): Promise<Stream> {
  const packets = (seconds * 1e6) / INTERVAL_US
  const values = [from, to, packets, INTERVAL_US, BYTES, EXTRA]
  const child = spawn(nativeProgram('stream'), values.map(String), { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return JSON.parse(output) as Stream
}

function rowsOf(label: string, seen: Stream, hasGoal: boolean): BenchRow[] {
  return [
    { label: `${label}: lost`, value: (seen.lost / seen.sent) * 100, unit: '%', ...(hasGoal && { goal: '≤ 0.001' }) },
    { label: `${label}: p50`, value: seen.p50 / 1e6, unit: 'ms' },
    { label: `${label}: p99`, value: seen.p99 / 1e6, unit: 'ms', ...(hasGoal && { goal: '≤ 55' }) },
    { label: `${label}: p99.9`, value: seen.p999 / 1e6, unit: 'ms' },
    ...(seen.repeated + seen.reordered > 0
      ? [{ label: `${label}: twice or out of order`, value: seen.repeated + seen.reordered, unit: 'packets' }]
      : []),
  ]
}

export async function bench(): Promise<BenchResult> {
  const { values } = parseArgs({ options: { seconds: { type: 'string' } }, strict: false })
  const seconds = Number(values.seconds ?? SECONDS)
  if (!(seconds >= 1)) throw new Error(`--seconds is ${values.seconds}: give a number, 1 or more`)
  const pool = openRunPool({ warm: 1 })
  const paths = new LivePaths(pool)
  const carrying: { label: string; over: Carrying; hasGoal: boolean }[] = []
  try {
    carrying.push({ label: `rely, ${RATE * 100} % repair`, over: await paths.rely(RATE), hasGoal: true })
    const raft = await paths.raft(RAFT_PATHS, RAFT_TIMEOUT_MS)
    carrying.push({ label: `raft, ${RAFT_PATHS} paths, timeout ${RAFT_TIMEOUT_MS} ms`, over: raft, hasGoal: true })
    if (spawnSync('srt-live-transmit', ['-version']).error) {
      console.error('live-link: SRT IS NOT MEASURED, srt-live-transmit is missing: apt-get install srt-tools')
    } else {
      for (const latency of SRT_LATENCIES) {
        const over = await paths.srt(latency, BYTES)
        carrying.push({ label: `SRT, latency ${latency} ms`, over, hasGoal: false })
      }
    }
    const seen = await Promise.all(carrying.map(({ over }) => stream(over, seconds)))
    const rows = carrying.flatMap(({ label, hasGoal }, i) => rowsOf(label, seen[i] as Stream, hasGoal))
    const packets = ((seconds * 1e6) / INTERVAL_US).toLocaleString('en-US')
    const path = `${DELAY_MS} ms and ${LOSS * 100} % loss each way`
    return { name: `live-link: ${packets} packets of ${BYTES} B, 1,000/s, real sockets, ${path}`, rows }
  } finally {
    for (const { over } of carrying) await over.close()
    await pool.close()
  }
}

await runAlone(import.meta.url, bench)
