/** The pipelines operations on the pipelines of this node: create, read, update, delete, start, stop, follow. */
import { randomUUID } from 'node:crypto'
import { pipeline as pipelineMachine } from '../actors/pipeline.ts'
import { pooledRun } from '../actors/pipeline-run.ts'
import { Announcements } from '../contract/announcements.ts'
import { systemClock, type Timers } from '../contract/clock.ts'
import { answerable, ServiceError } from '../contract/errors.ts'
import type { Handlers, Sink } from '../contract/handlers.ts'
import { type LocalNode, requireLocal } from '../contract/local-node.ts'
import type { LogStreamMessages, Pipeline, StreamPipelinesEvent, TelemetrySample } from '../contract/types.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { RunPool } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import type { Store } from '../store/store.ts'
import { ProcessMeter } from '../telemetry/process-meter.ts'
import { prometheusText } from '../telemetry/prometheus.ts'
import type { RunLogs } from '../telemetry/run-logs.ts'
import { HostedPipeline } from './hosted-pipeline.ts'
import { type HostedRun, lastLine } from './hosted-run.ts'
import type { PipelineFact } from './pipeline-facts.ts'
import type { PipelineHost } from './pipeline-host.ts'
import { MAX_RUNS } from './pipeline-runs.ts'
import { settingsOfCreate, settingsOfUpdate, verdictOnCreate } from './pipelines-settings.ts'
import { runView } from './pipelines-view.ts'
import { endProcesses } from './processes.ts'
import { authorOf, type Trust } from './trust.ts'

/** How long getPipelineByRunId waits for an unknown run to appear. */
export const RUN_LOOKUP_MS = 2_000
/** Events that wait for a slow subscriber of streamPipelines before its stream ends. */
export const MAX_EVENT_BACKLOG = 256
/** Why a run failed that was on when the process died. */
const NODE_RESTARTED = 'node was restarted'

export interface PipelinesOptions {
  node: LocalNode
  store: Store
  pool: RunPool
  /** Milliseconds between telemetry samples. */
  telemetryInterval: number
  /** Hears of what the disk did not do and nobody waits for; `message` says what. */
  onError(message: string, error: unknown): void
  /** Hears how many processes of commands there still were of runs that a crash of the node had cut off; they are ended. */
  onLeftovers?(processes: number): void
  /** Hears of each start, end, failure, restart and giving up. */
  onFact?(fact: PipelineFact): void
  /** Drives every deadline; absent: the system's timers. */
  clock?: Timers
  /** Makes the ids of pipelines and runs; absent: random UUIDs. */
  newId?: () => string
  /** The components there are; absent: the product's own. */
  registry: Registry
  /** Who may name which files in a configuration. */
  trust: Trust
  /** Where the logs of runs are kept. */
  runLogs: RunLogs
}

export type PipelinesHandlers = Pick<
  Handlers,
  | 'getPipelines'
  | 'getPipelineById'
  | 'getPipelineByName'
  | 'getPipelineByRunId'
  | 'createPipeline'
  | 'updatePipeline'
  | 'validatePipeline'
  | 'explainUpdate'
  | 'deletePipeline'
  | 'startPipeline'
  | 'stopPipeline'
  | 'streamPipelines'
  | 'openLogStream'
  | 'openTelemetryStream'
  | 'openCaptureStream'
>

export class PipelinesService implements PipelineHost {
  readonly store: Store
  readonly machine: typeof pipelineMachine
  readonly clock: Timers
  readonly runLogs: RunLogs
  readonly newId: () => string
  readonly cpus: readonly number[]
  readonly registry: Registry
  readonly trust: Trust
  readonly telemetryInterval: number
  readonly processMeter = new ProcessMeter()
  readonly #node: LocalNode
  readonly #onError: PipelinesOptions['onError']
  readonly #onLeftovers: (processes: number) => void
  readonly noted: (fact: PipelineFact) => void
  readonly usableCpus: () => readonly number[]
  readonly noThread: () => string | undefined
  readonly keepPlace: (runId: string) => () => void
  readonly #pipelines = new Map<string, HostedPipeline>()
  /** Run id → pipeline, for every remembered run. */
  readonly #pipelineOfRun = new Map<string, HostedPipeline>()
  /** Run id → lookups that wait for it. */
  readonly #awaitedRuns = new Map<string, Set<() => void>>()
  readonly #events = new Announcements<StreamPipelinesEvent>({ kind: 'bounded', limit: MAX_EVENT_BACKLOG })
  #closing = false

  /** Await `open` before use. */
  constructor(options: PipelinesOptions) {
    this.store = options.store
    this.cpus = options.pool.cpus
    this.usableCpus = () => options.pool.usableCpus()
    this.noThread = () => options.pool.full()
    this.keepPlace = (runId) => options.pool.keep(runId)
    this.telemetryInterval = options.telemetryInterval
    this.machine = pipelineMachine.provide({ actors: { run: pooledRun(options.pool) } })
    this.clock = options.clock ?? systemClock
    this.runLogs = options.runLogs
    this.newId = options.newId ?? randomUUID
    this.registry = options.registry
    this.trust = options.trust
    this.#node = options.node
    this.#onError = options.onError
    this.#onLeftovers = (processes) => options.onLeftovers?.(processes)
    this.noted = (fact) => options.onFact?.(fact)
  }

  /** Loads what is stored; runs that a crash cut off are marked FAILED, and what their commands have left is ended first. */
  async open(): Promise<void> {
    const runs = new Map<string, RunRecord[]>()
    const cutOff = new Set(
      this.store.runs
        .all()
        .filter(({ state }) => state !== 'ENDED')
        .map(({ id }) => id),
    )
    const left = cutOff.size > 0 ? await endProcesses(cutOff) : 0
    if (left > 0) this.#onLeftovers(left)
    for (const run of await this.#recoverRuns()) {
      const siblings = runs.get(run.pipelineId)
      if (siblings === undefined) runs.set(run.pipelineId, [run])
      else siblings.push(run)
    }
    for (const record of this.store.pipelines.all()) {
      const own = (runs.get(record.id) ?? []).slice(-MAX_RUNS)
      for (const { id } of own.filter((run) => cutOff.has(run.id))) {
        const about = { pipelineId: record.id, name: record.settings.name, runId: id }
        this.noted({ ...about, kind: 'ended', outcome: 'FAILED', error: NODE_RESTARTED })
      }
      const hosted = this.#host(record, own)
      for (const id of hosted.runIds) this.#pipelineOfRun.set(id, hosted)
    }
    // Where fewer are kept than before, some are of runs that are remembered.
    const logged = [...this.#pipelines.values()].flatMap(({ loggedRunIds }) => loggedRunIds)
    await this.runLogs
      .removeOthers(new Set(logged))
      .catch((error: unknown) =>
        this.#onError('logs of runs that are not kept could not be removed from the disk', error),
      )
  }

  /** Starts the pipelines whose startup policy says so. */
  startWithNode(): void {
    for (const hosted of this.#pipelines.values()) void hosted.nodeUp()
  }

  /** Refuses further operations, stops every run and waits for its end. */
  async close(): Promise<void> {
    this.#closing = true
    this.#events.end(closing())
    await Promise.all([...this.#pipelines.values()].map((hosted) => hosted.close()))
  }

  /** The operations, for the dispatcher. */
  readonly handlers: PipelinesHandlers = {
    getPipelines: async ({ nodeId }) => {
      this.#check(nodeId)
      return { pipelines: [...this.#pipelines.values()].map((hosted) => hosted.view()) }
    },
    getPipelineById: ({ nodeId, id }) => {
      this.#check(nodeId)
      return this.#byId(id).answer()
    },
    getPipelineByName: async ({ nodeId, name }) => {
      this.#check(nodeId)
      return { pipeline: this.#byName(name, 'NOT_FOUND').view() }
    },
    getPipelineByRunId: async ({ nodeId, id }, call) => {
      this.#check(nodeId)
      if (!this.#pipelineOfRun.has(id)) await this.#runAppears(id, call.signal)
      const hosted = this.#pipelineOfRun.get(id)
      if (hosted === undefined) {
        throw new ServiceError('DEADLINE_EXCEEDED', `no run ${id} appeared within ${RUN_LOOKUP_MS / 1000} s`)
      }
      const run = hosted.runRecord(id)
      return { pipeline: hosted.view(), ...(run === undefined ? {} : { run: runView(run) }) }
    },
    createPipeline: async (request, call) => {
      this.#check(request.nodeId)
      const { settings, authorship, config } = settingsOfCreate(request, this, authorOf(call))
      const record = { id: this.newId(), settings, createdAt: Date.now(), ...authorship }
      await this.store.pipelines.put(record)
      const pipeline = this.#host(record, [], config).view()
      this.#events.announce({ create: { pipeline } })
      return { pipeline }
    },
    updatePipeline: async (request, call) => {
      this.#check(request.nodeId)
      const hosted = this.#byId(request.id)
      const pipeline = await hosted.update(call, settingsOfUpdate(request, this, authorOf(call)), request.forceRestart)
      return { pipeline }
    },
    validatePipeline: async (request, call) => {
      this.#check(request.nodeId)
      const { problems, refusals, warnings } = verdictOnCreate(request, this, authorOf(call))
      const told = answerable([...problems, ...refusals])
      return { valid: told.length === 0, problems: told, warnings: answerable(warnings) }
    },
    explainUpdate: async (request, call) => {
      this.#check(request.nodeId)
      return this.#byId(request.id).explainUpdate(settingsOfUpdate(request, this, authorOf(call)))
    },
    deletePipeline: async ({ nodeId, id }, call) => {
      this.#check(nodeId)
      const hosted = this.#byId(id)
      const pipeline = await hosted.delete(call)
      this.#pipelines.delete(id)
      this.#events.announce({ delete: { pipeline } })
      return {}
    },
    startPipeline: async ({ nodeId, id, name }, call) => {
      this.#check(nodeId)
      return { runId: await this.#identified({ id, name }, 'by id or name').start(call) }
    },
    stopPipeline: async ({ nodeId, id, name, runId }, call) => {
      this.#check(nodeId)
      await this.#identified({ id, name, runId }, 'by id, name or run id').stop(call, runId)
      return {}
    },
    streamPipelines: async ({ nodeId }, _call, sink) => {
      this.#check(nodeId)
      await this.#events.add(sink)
    },
    openLogStream: async ({ nodeId, runId, options }, _call, sink: Sink<LogStreamMessages>) => {
      this.#check(nodeId)
      const lines = options?.lines
      await this.#run(runId, 'log').followLog(sink, lines === undefined ? 0 : Number(lines), options?.pastOnly)
    },
    openTelemetryStream: async ({ nodeId, runId, options }, _call, sink: Sink<TelemetrySample>) => {
      this.#check(nodeId)
      this.#run(runId, 'telemetry').followTelemetry(sink, options)
    },
    openCaptureStream: async (request, _call, sink) => {
      this.#check(request.nodeId)
      const hosted = this.#pipelineOfRun.get(request.runId)
      if (hosted === undefined) throw new ServiceError('NOT_FOUND', `no pipeline has a run ${request.runId}`)
      hosted.capture(request, sink)
    },
  }

  /** The metrics of all runs that are on, and of the process, as Prometheus reads them. */
  prometheus(): string {
    const runs = [...this.#pipelines.values()].flatMap(({ name, currentRun }) => {
      const numbers = currentRun?.numbers()
      return currentRun === undefined || numbers === undefined
        ? []
        : [{ pipeline: name, run: currentRun.id, ...numbers }]
    })
    const process = { entries: this.processMeter.entries, values: this.processMeter.read() }
    return prometheusText(runs, process, this.processMeter.startedAt)
  }

  // What hosted pipelines need of their node.

  /** The CPU thread with the fewest runs of other pipelines; of several the highest, as the lowest has the machine's own work more often. */
  leastLoadedCpu(pipelineId: string, usable: readonly number[]): number | undefined {
    const load = usable.map(() => 0)
    for (const { id, cpu } of this.#pipelines.values()) {
      const index = cpu === undefined || id === pipelineId ? -1 : usable.indexOf(cpu)
      if (index >= 0) load[index]!++
    }
    return usable[load.lastIndexOf(Math.min(...load))]
  }

  changed(pipeline: Pipeline): void {
    this.#events.announce({ update: { pipeline } })
  }

  runPlanned(run: HostedRun): void {
    const hosted = this.#pipelines.get(run.pipelineId)
    if (hosted !== undefined) this.#pipelineOfRun.set(run.id, hosted)
    for (const appear of this.#awaitedRuns.get(run.id) ?? []) appear()
  }

  runForgotten(runId: string): void {
    this.#pipelineOfRun.delete(runId)
  }

  failed(message: string, error: unknown): void {
    this.#onError(message, error)
  }

  #host(record: PipelineRecord, runs: readonly RunRecord[], config?: PipelineConfig) {
    const hosted = new HostedPipeline(this, record, runs, config)
    this.#pipelines.set(record.id, hosted)
    return hosted
  }

  async #recoverRuns(): Promise<RunRecord[]> {
    return Promise.all(
      this.store.runs.all().map(async (run) => {
        if (run.state === 'ENDED') return run
        const ended: RunRecord = {
          ...run,
          state: 'ENDED',
          // The clock may have been set back since.
          endedAt: Math.max(run.startedAt, Date.now()),
          outcome: 'FAILED',
          error: NODE_RESTARTED,
        }
        await this.store.runs.put(ended)
        await this.#endLog(ended).catch((error: unknown) =>
          this.#onError('the log of a run that was cut off could not be ended', error),
        )
        return ended
      }),
    )
  }

  /** A run that was cut off could not say how it ended. */
  async #endLog(ended: RunRecord): Promise<void> {
    const log = this.runLogs.stored(ended.id)
    await log.opened
    log.append([lastLine(ended)])
    await log.written()
  }

  #check(nodeId: string): void {
    if (this.#closing) throw closing()
    requireLocal(this.#node, nodeId)
  }

  #byId(id: string): HostedPipeline {
    const hosted = this.#pipelines.get(id)
    if (hosted === undefined) throw new ServiceError('NOT_FOUND', `no pipeline has the id ${id}`)
    return hosted
  }

  #byName(name: string, severalCode: 'NOT_FOUND' | 'FAILED_PRECONDITION'): HostedPipeline {
    const named = [...this.#pipelines.values()].filter((hosted) => hosted.name === name)
    if (named.length === 0) throw new ServiceError('NOT_FOUND', `no pipeline has the name "${name}"`)
    if (named.length > 1) {
      const ids = named.map(({ id }) => id).join(', ')
      throw new ServiceError(severalCode, `${named.length} pipelines have the name "${name}" (${ids}): use the id`)
    }
    return named[0] as HostedPipeline
  }

  /** `ways` says how the operation lets its caller name a pipeline. */
  #identified(
    which: { id?: string | undefined; name?: string | undefined; runId?: string | undefined },
    ways: string,
  ): HostedPipeline {
    if (which.id !== undefined) return this.#byId(which.id)
    if (which.name !== undefined) return this.#byName(which.name, 'FAILED_PRECONDITION')
    if (which.runId !== undefined) {
      const hosted = this.#pipelineOfRun.get(which.runId)
      if (hosted === undefined) throw new ServiceError('NOT_FOUND', `no pipeline has a run ${which.runId}`)
      return hosted
    }
    throw new ServiceError('INVALID_ARGUMENT', `say which pipeline: ${ways}`)
  }

  #run(runId: string, what: string): HostedRun {
    const hosted = this.#pipelineOfRun.get(runId)
    if (hosted === undefined) throw new ServiceError('NOT_FOUND', `no pipeline has a run ${runId}`)
    const run = hosted.run(runId)
    if (run === undefined) throw new ServiceError('NOT_FOUND', `the ${what} of run ${runId} is not kept any longer`)
    return run
  }

  #runAppears(runId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#awaitedRuns.get(runId) ?? new Set()
      this.#awaitedRuns.set(runId, waiting)
      const done = () => {
        this.clock.clearTimeout(timer)
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        if (waiting.size === 0) this.#awaitedRuns.delete(runId)
        resolve()
      }
      const timer = this.clock.setTimeout(done, RUN_LOOKUP_MS)
      waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }
}

function closing(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the node is closing')
}
