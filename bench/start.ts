/**
 * start: a run from its start to RUNNING in a thread that is ready and in one that is not, beside a thread that runs nothing; from its stop to
 * ENDED; and 200 starts at once through the API.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
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
    {
      label: 'start to RUNNING, worst once both threads have run',
      value: Math.max(...starts.slice(2)),
      unit: 'ms',
      goal: '≤ 20',
    },
    { label: 'stop to ENDED, median', value: median(stops), unit: 'ms', goal: '≤ 1' },
  ]
}

async function coldRows(): Promise<BenchRow[]> {
  const pool = openRunPool({ warm: 1 })
  const start = (round: number) => pool.start(startOptions(`bench-${round}`), () => {}).running
  await start(0)
  const bareThreads: Worker[] = []
  const bare: [number, number][] = []
  const cold: [number, number][] = []
  for (let pair = 1; pair <= PAIRS; pair++) {
    bare.push(
      await grown(async () => {
        const worker = new Worker("require('node:worker_threads').parentPort.on('message', () => {}).postMessage(0)", {
          eval: true,
        })
        bareThreads.push(worker)
        await new Promise((resolve) => worker.once('message', resolve))
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

async function crowdRows(): Promise<BenchRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
  const { config } = loadConfig({ flags: { 'data-dir': directory, http: '127.0.0.1:0', grpc: 'none' } })
  const node = await startNode(config, { log: createLog({ level: 'silent', format: 'text' }) })
  const pipelines = `http://${node.http}/v1/nodes/${node.id}/pipelines`
  const post = async (path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${pipelines}${path}`, {
      method: 'POST',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return response.ok ? await response.json() : null
  }
  const jsonConfig = JSON.stringify({ engine_config: { pipeline } })
  const ids: string[] = []
  for (let i = 0; i < AT_ONCE; i++) {
    const made = (await post('', { name: `bench-${i}`, jsonConfig })) as { pipeline: { id: string } }
    ids.push(made.pipeline.id)
  }
  const begun = performance.now()
  const answers = await Promise.all(ids.map((id) => post(`/${id}/start`)))
  const whole = performance.now() - begun
  await node.close()
  rmSync(directory, { recursive: true, force: true })
  const running = answers.filter((answer) => answer !== null).length
  return [
    { label: `${AT_ONCE} starts at once through the API, RUNNING`, value: running, unit: 'runs', goal: `≥ ${AT_ONCE}` },
    { label: `${AT_ONCE} starts at once through the API, the last`, value: whole, unit: 'ms', goal: '≤ 5000' },
  ]
}

export const bench: Bench = async () => ({
  name: 'start: a UDP pipeline',
  rows: [...(await warmRows()), ...(await coldRows()), ...(await crowdRows())],
})

await runAlone(import.meta.url, bench)
