/**
 * start: a run from its start to RUNNING in a thread that is ready and in one that is not, beside a thread that runs nothing; from its stop to
 * ENDED; 200 starts at once through the API; and 100 that start with the node.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { openRunPool } from '../src/dataplane/product.ts'
import { loadConfig } from '../src/node/config.ts'
import { createLog } from '../src/node/log.ts'
import { startNode } from '../src/node/node.ts'
import { type Bench, type BenchRow, median, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const ROUNDS = 30
/** Of cold starts: a bare thread and a run beside it. */
const PAIRS = 9
const AT_ONCE = 200
/** Of these, those that start by themselves when the node comes back. */
const AUTO = 100
/** Of starts in a pool that is ready, runs that stay on, and how far apart they are. */
const READY = 12
const APART_MS = 400

const pipeline = {
  in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.01, seed: 1 } },
  out: { udp: { remote_address: '127.0.0.1:9', input: 'b', lock_to_first_peer: false } },
}

/** MiB of memory of the process that no file stands for. */
function memory(): number {
  const [, kilobytes] = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) as RegExpExecArray
  return Number(kilobytes) / 1024
}

/** Milliseconds that `work` takes, and by how many MiB the process grows meanwhile. */
async function grown(work: () => Promise<unknown>): Promise<[number, number]> {
  const before = memory()
  const begun = performance.now()
  await work()
  return [performance.now() - begun, memory() - before]
}

const startOptions = (runId: string) => ({
  runId,
  config: checked(pipeline),
  performanceMode: false,
  level: 'WARN' as const,
})

async function warmRows(): Promise<BenchRow[]> {
  const pool = openRunPool()
  const starts: number[] = []
  const stops: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    const run = pool.start(startOptions(`bench-${round}`), () => {})
    await run.running
    starts.push(performance.now() - begun)
    const asked = performance.now()
    run.stop()
    await run.ended
    stops.push(performance.now() - asked)
  }
  await pool.close()
  return [
    { label: 'start to RUNNING, median', value: median(starts), unit: 'ms', goal: '≤ 5' },
    { label: 'start to RUNNING, worst', value: Math.max(...starts), unit: 'ms' },
    { label: 'stop to ENDED, median', value: median(stops), unit: 'ms', goal: '≤ 1' },
  ]
}

const later = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function readyRows(): Promise<BenchRow[]> {
  const pool = openRunPool()
  const starts: number[] = []
  await later(5 * APART_MS)
  for (let round = 0; round < READY; round++) {
    const options = startOptions(`bench-${round}`)
    const [milliseconds] = await grown(() => pool.start(options, () => {}).running)
    starts.push(milliseconds)
    await later(APART_MS)
  }
  await pool.close()
  const label = `start to RUNNING of runs that stay on, ${APART_MS} ms apart`
  return [
    { label: `${label}, median`, value: median(starts), unit: 'ms', goal: '≤ 5' },
    { label: `${label}, worst`, value: Math.max(...starts), unit: 'ms', goal: '≤ 20' },
  ]
}

/** A thread that runs nothing, once it has said that it runs. */
async function bareThread(): Promise<Worker> {
  const program = "require('node:worker_threads').parentPort.on('message', () => {}).postMessage(0)"
  const worker = new Worker(program, { eval: true })
  await new Promise((resolve) => worker.once('message', resolve))
  return worker
}

async function coldRows(): Promise<BenchRow[]> {
  const pool = openRunPool({ warm: 0 })
  const start = (round: number) => pool.start(startOptions(`bench-${round}`), () => {}).running
  await start(0)
  const bareThreads: Worker[] = []
  const bare: [number, number][] = []
  const cold: [number, number][] = []
  for (let pair = 1; pair <= PAIRS; pair++) {
    bare.push(
      await grown(async () => {
        bareThreads.push(await bareThread())
      }),
    )
    cold.push(await grown(() => start(pair)))
  }
  for (const worker of bareThreads) await worker.terminate()
  await pool.close()
  const [bareTime, bareMemory] = [0, 1].map((i) => median(bare.map((pair) => pair[i] as number))) as [number, number]
  const [time, grownBy] = [0, 1].map((i) => median(cold.map((pair) => pair[i] as number))) as [number, number]
  const worst = Math.max(...cold.map(([milliseconds]) => milliseconds))
  return [
    { label: 'a thread that runs nothing', value: bareTime, unit: 'ms' },
    { label: 'cold start to RUNNING, median', value: time, unit: 'ms', ratio: time / bareTime, goal: '≤ 1.5' },
    { label: 'cold start to RUNNING, worst', value: worst, unit: 'ms' },
    { label: 'memory of a thread that runs nothing', value: bareMemory, unit: 'MiB' },
    { label: 'memory of an idle run', value: grownBy, unit: 'MiB', ratio: grownBy / bareMemory, goal: '≤ 1.4' },
  ]
}

/** Milliseconds until `AT_ONCE` threads that run nothing are there, each CPU starting one after the other. */
async function bareCrowd(): Promise<number> {
  const workers: Worker[] = []
  let left = AT_ONCE
  const startSome = async () => {
    while (left-- > 0) workers.push(await bareThread())
  }
  const [milliseconds] = await grown(() => Promise.all(Array.from({ length: availableParallelism() }, startSome)))
  await Promise.all(workers.map((worker) => worker.terminate()))
  return milliseconds
}

interface Pipelines {
  pipelines: { currentRun?: { state: string } }[]
}

async function crowdRows(): Promise<BenchRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
  const { config } = loadConfig({ flags: { 'data-dir': directory, http: '127.0.0.1:0', grpc: 'none' } })
  const open = () => startNode(config, { log: createLog({ level: 'silent', format: 'text' }) })
  const pipelinesOf = ({ http, id }: Awaited<ReturnType<typeof open>>) => `http://${http}/v1/nodes/${id}/pipelines`
  const node = await open()
  const post = async (path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${pipelinesOf(node)}${path}`, {
      method: 'POST',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return response.ok ? await response.json() : null
  }
  const jsonConfig = JSON.stringify({ engine_config: { pipeline } })
  const ids: string[] = []
  for (let i = 0; i < AT_ONCE; i++) {
    const startupPolicy = i < AUTO ? { auto: {} } : { manual: {} }
    const made = (await post('', { name: `bench-${i}`, jsonConfig, startupPolicy })) as { pipeline: { id: string } }
    ids.push(made.pipeline.id)
  }
  let running = 0
  const [whole] = await grown(async () => {
    const answers = await Promise.all(ids.map((id) => post(`/${id}/start`)))
    running = answers.filter((answer) => answer !== null).length
  })
  await node.close()
  let again = node
  const [auto] = await grown(async () => {
    again = await open()
    for (;;) {
      const { pipelines } = (await (await fetch(pipelinesOf(again))).json()) as Pipelines
      if (pipelines.filter(({ currentRun }) => currentRun?.state === 'RUNNING').length >= AUTO) return
      await later(20)
    }
  })
  await again.close()
  rmSync(directory, { recursive: true, force: true })
  // Last: what it leaves warm is nothing to those above.
  const bare = await bareCrowd()
  const label = `${AT_ONCE} starts at once through the API`
  return [
    { label: `${AT_ONCE} threads that run nothing`, value: bare, unit: 'ms' },
    { label: `${label}, RUNNING`, value: running, unit: 'runs', goal: `≥ ${AT_ONCE}` },
    { label: `${label}, the last`, value: whole, unit: 'ms', goal: '≤ 5000' },
    { label: 'the same against as many threads that run nothing', value: whole, unit: 'ms', ratio: whole / bare },
    { label: `a node with ${AUTO} that start with it, all RUNNING`, value: auto, unit: 'ms', goal: '≤ 5000' },
  ]
}

export const bench: Bench = async () => ({
  name: 'start: a UDP pipeline',
  rows: [...(await warmRows()), ...(await readyRows()), ...(await coldRows()), ...(await crowdRows())],
})

await runAlone(import.meta.url, bench)
