/** `penstock demo-operate`: the life of a run as an operator sees it: its commands, KPIs, log, shared memory, live changes, failures and restarts. */
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, type LogMessage, PenstockError, type TelemetrySample } from '@penstock/client'
import type { Command } from 'commander'
import { packageRoot } from '../package-root.ts'
import { clientOf } from './client.ts'
import { Failure, Interrupted } from './failure.ts'
import { NodeProcess } from './node-process.ts'
import { interruption } from './options.ts'
import { settingsOf } from './pipelines-options.ts'
import { standing, untilAborted } from './streams.ts'
import { paint, print } from './terminal.ts'
import { setVariables } from './variables.ts'

const EXAMPLE = 'examples/operate.json'
/** The whole demonstration gives up after this long, ms. */
const PATIENCE_MS = 60_000
const HOOKS = ['on_setup', 'pre_start', 'post_start', 'pre_stop', 'post_stop'] as const

const step = (who: string, text: string) => print(`${paint(who.padEnd(9), 'cyan')} ${text}`)

const failing = JSON.stringify({
  engine_config: {
    lifecycle_handler: { pre_start: [{ cmd: 'echo "the licence has run out" >&2; exit 3' }] },
    pipeline: {
      router: { observer: { input: 'a', output: 'b' } },
      source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
      sink: { traffic_sink: { input: 'b' } },
    },
  },
})

const breaking = JSON.stringify({
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 1 } },
      sink: { traffic_sink: { input: 'a' } },
      fault: { bomb: { delay: 300, poison: 'THROW_EXCEPTION' } },
    },
  },
})

/** The value of the KPI `loss`, percent; undefined while it has none. */
function lossOf({ kpis }: TelemetrySample): number | undefined {
  const loss = kpis.find(({ id }) => id === 'loss')?.valueOverTime
  return loss === undefined ? undefined : Number(loss.value)
}

/** Follows the log of a run; what it has said so far, and waits for more. */
class RunLog {
  readonly lines: LogMessage[] = []
  readonly #signal: AbortSignal
  readonly #stream: AsyncGenerator<{ messages: LogMessage[] }>

  constructor(client: Client, node: string, run: string, signal: AbortSignal) {
    this.#signal = signal
    const request = { nodeId: node, runId: run, options: { lines: '1000' } }
    this.#stream = untilAborted(client.openLogStream(request, { signal }), signal)
  }

  /** The first line, of those there are and those to come, that `wanted` says. */
  async find(what: string, wanted: (line: LogMessage) => boolean): Promise<LogMessage> {
    for (;;) {
      const found = this.lines.find(wanted)
      if (found !== undefined) return found
      const { value, done } = await this.#stream.next()
      if (done === true || this.#signal.aborted) throw new Failure(`the log ended without ${what}`)
      this.lines.push(...value.messages)
    }
  }
}

/** Everything after the node is up. */
async function play(node: NodeProcess, over: AbortSignal): Promise<void> {
  const client = clientOf(`http://${node.http}`)
  const jsonConfig = await readFile(join(packageRoot(), EXAMPLE), 'utf8')
  const created = await client.createPipeline({ nodeId: node.id, name: 'operate', jsonConfig })
  const own = { nodeId: node.id, id: created.pipeline!.id }
  const { runId: run } = await client.startPipeline(own)
  step('start', `${EXAMPLE} runs: run ${run}`)
  const log = new RunLog(client, node.id, run, over)
  const told = async (hook: string) => {
    const line = await log.find(
      `the command of ${hook}`,
      ({ fields }) => fields?.hook === hook && fields.stream === 'stdout',
    )
    step('hook', `${hook.padEnd(10)} ${line.message}`)
  }
  for (const hook of HOOKS.slice(0, 3)) await told(hook)

  const losses = async (what: string, enough: (loss: number) => boolean) => {
    const samples = client.openTelemetryStream({ nodeId: node.id, runId: run }, { signal: over })
    for await (const sample of untilAborted(samples, over)) {
      const loss = lossOf(sample)
      if (loss === undefined) continue
      step('kpi', `loss ${loss.toFixed(1).padStart(5)} %`)
      if (enough(loss)) return
    }
    throw new Failure(`the telemetry ended before ${what}`)
  }
  await losses('the loss was seen', (loss) => loss > 0 && loss < 5)
  step('update', 'sets variable loss=0.2: 20 % from now on, in the same run')
  const settings = settingsOf((await client.getPipelineById(own)).pipeline!)
  settings.jsonConfig = setVariables(settings.jsonConfig, ['loss=0.2'])
  const { pipeline: changed } = await client.updatePipeline({ ...settings, ...own })
  if (changed?.currentRun?.id !== run) throw new Failure('the update took another run')
  await losses('the loss rose', (loss) => loss > 15 && loss < 25)

  const files = join(node.directory, 'files')
  const lines = (await readFile(join(files, 'operate.log'), 'utf8')).trim().split('\n')
  step(
    'log file',
    `${lines.length} lines in files/operate.log, the first: ${(JSON.parse(lines[0] as string) as LogMessage).message}`,
  )
  step('memory', `${await readShared(join(files, 'operate.shm'))} metrics in files/operate.shm, the run is on`)

  await client.stopPipeline(own)
  for (const hook of HOOKS.slice(3)) await told(hook)
  const end = await log.find('its end', ({ component, fields }) => component === '' && fields?.outcome !== undefined)
  step('stop', end.message)

  const faulty = await client.createPipeline({ nodeId: node.id, name: 'no licence', jsonConfig: failing })
  const refused = await client.startPipeline({ nodeId: node.id, id: faulty.pipeline!.id }).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(refused instanceof PenstockError)) throw new Failure('a start whose pre_start fails succeeded')
  step('refused', `${refused.code}: ${refused.message}`)

  await breakAndRestart(client, node.id, over)
}

async function breakAndRestart(client: Client, node: string, over: AbortSignal): Promise<void> {
  const changes = await standing(client.streamPipelines({ nodeId: node }, { signal: over }), over)
  const created = await client.createPipeline({
    nodeId: node,
    name: 'breaks',
    jsonConfig: breaking,
    restartPolicy: { onFailure: { maxRestarts: 2 } },
  })
  const { id } = created.pipeline!
  await client.startPipeline({ nodeId: node, id })
  step('start', 'a pipeline that breaks 0.3 s after its start, to be restarted twice')
  const runs = new Set<string>()
  for await (const { update } of changes) {
    const pipeline = update?.pipeline
    if (pipeline?.id !== id) continue
    const { currentRun, restarts, started } = pipeline
    if (currentRun?.state === 'RUNNING' && !runs.has(currentRun.id)) {
      runs.add(currentRun.id)
      step('run', `${runs.size}. run, ${restarts?.count ?? 0} restarts so far`)
    } else if (restarts?.nextAt !== undefined) {
      const wait = (Date.parse(restarts.nextAt) - Date.now()) / 1000
      step('broken', `${currentRun?.error ?? ''}; started again in ${Math.max(wait, 0).toFixed(1)} s`)
    } else if (started !== true && currentRun?.state === 'ENDED') {
      step('given up', `${currentRun.error ?? ''}; no restart is left`)
      break
    }
  }
  if (runs.size !== 3) throw new Failure(`${runs.size} runs instead of three`)
}

/** How many metrics a shared-memory file has (docs/shared-memory.md). */
async function readShared(path: string): Promise<number> {
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(64), 0, 64, 0)
    if (buffer.toString('latin1', 0, 8) !== 'PENSHMEM' || buffer.readUInt32LE(16) !== 1)
      throw new Failure(`${path} does not say that the run is on`)
    return buffer.readUInt32LE(40)
  } finally {
    await file.close()
  }
}

async function demo(): Promise<void> {
  const stop = interruption()
  const begun = performance.now()
  const patience = AbortSignal.any([stop, AbortSignal.timeout(PATIENCE_MS)])
  const node = await NodeProcess.start(['--telemetry-interval', '500ms'])
  try {
    const ended = new Promise<never>((_, reject) => {
      const end = () => {
        const late = () => new Failure(`not done after ${PATIENCE_MS / 1000} s`)
        reject(stop.aborted ? new Interrupted('interrupted', stop.reason) : late())
      }
      if (patience.aborted) end()
      else patience.addEventListener('abort', end)
    })
    await Promise.race([play(node, patience), ended])
    print(`\nall of it was seen, in ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  } finally {
    await node.stop()
  }
}

export function addDemoOperate(program: Command): void {
  program
    .command('demo-operate')
    .summary('a run with commands, KPIs, log file and shared memory, changed and broken')
    .description(
      `Starts a node of its own and runs ${EXAMPLE} on it: commands around the run, a KPI that follows a loss raised while it runs, its log in a file, ` +
        'its metrics in shared memory; then a start that its command refuses, and a run that breaks and is restarted. Exits 0 only if all of it was seen.',
    )
    .action(demo)
}
