/** The runs of a node as they come and go, each with what it does per second. */
import {
  type Client,
  PenstockError,
  type Pipeline,
  type Run,
  type StreamPipelinesEvent,
  type TelemetrySample,
} from '@penstock/client'
import { uptimeMs } from '../contract/clock.ts'
import { Failure } from './failure.ts'
import { type Figures, RunMeter } from './run-figures.ts'
import { standing, unlessAborted, untilAborted } from './streams.ts'

/** A pipeline that is started, and the run that it has or had last. */
export interface RunStatus extends Partial<Figures> {
  pipeline: string
  name: string
  run: string
  /** ENDED while its restart policy waits. */
  state: Run['state']
  startedAt?: string
  /** How long it has been on; absent before its first sample, and of one that has ended. */
  seconds?: number
}

interface Watched {
  pipeline: Pipeline
  readonly run: Run
  readonly over: AbortController
  samples: number
  isFollowed: boolean
  figures: Figures | undefined
  /** When it began, in milliseconds of this machine's clock that nobody sets: the clock of the node may be hours off. */
  begunAt: number | undefined
}

/** Of a run that has ended, whose last figures are of the time before: nothing passes it any more, what it has lost stays so. */
function atRest({ drops }: Figures): Figures {
  return {
    busy: 0,
    enteredPerSecond: 0,
    finishedPerSecond: 0,
    droppedPerSecond: 0,
    bitsPerSecond: 0,
    held: 0,
    drops: drops.map((drop) => ({ ...drop, perSecond: 0 })),
  }
}

/** When the run began, by `uptimeMs`; `sample` has just come. Both of its times are of the clock of its node. */
function begunAt({ startedAt }: Run, { timestamp }: TelemetrySample): number | undefined {
  const passed = Date.parse(timestamp ?? '') - Date.parse(startedAt ?? '')
  return Number.isNaN(passed) ? undefined : uptimeMs() - Math.max(0, passed)
}

/** Follows the telemetry of every run; `signal` ends it. */
export class NodeRuns {
  readonly #client: Client
  readonly #node: string
  readonly #over = new AbortController()
  readonly #signal: AbortSignal
  readonly #watched = new Map<string, Watched>()
  readonly #failed: (error: unknown) => void
  /** Rejects when the node cannot be followed any more; never fulfilled. */
  readonly failure: Promise<never>

  private constructor(client: Client, node: string, signal: AbortSignal) {
    this.#client = client
    this.#node = node
    this.#signal = AbortSignal.any([signal, this.#over.signal])
    let failed: (error: unknown) => void = () => undefined
    this.failure = new Promise((_, reject) => {
      failed = reject
    })
    this.failure.catch(() => undefined)
    this.#failed = failed
  }

  static async open(client: Client, node: string, signal: AbortSignal): Promise<NodeRuns> {
    const runs = new NodeRuns(client, node, signal)
    // The stream first: what happens after the list was read is an event, then.
    const stream = client.streamPipelines({ nodeId: node }, { signal: runs.#signal })
    const events = await standing(stream, runs.#signal)
    const found = await unlessAborted(client.getPipelines({ nodeId: node }, { signal: runs.#signal }), runs.#signal)
    for (const pipeline of found?.pipelines ?? []) runs.#set(pipeline)
    runs.#follow(events).catch(runs.#failed)
    return runs
  }

  /** What is known now. */
  get all(): RunStatus[] {
    return [...this.#watched.values()].map(({ pipeline: { id, name }, run, figures, begunAt }) => ({
      ...{ pipeline: id, name, run: run.id, state: run.state },
      ...(run.startedAt === undefined ? {} : { startedAt: run.startedAt }),
      ...(begunAt === undefined || run.state === 'ENDED' ? {} : { seconds: (uptimeMs() - begunAt) / 1000 }),
      ...(figures !== undefined && run.state === 'ENDED' ? atRest(figures) : figures),
    }))
  }

  /** Whether every run that is on has shown two samples, so that its rates are known. */
  get isMeasured(): boolean {
    return [...this.#watched.values()].every(({ run, samples }) => run.state !== 'RUNNING' || samples > 1)
  }

  /** Ends what is followed. */
  close(): void {
    this.#over.abort()
  }

  async #follow(events: AsyncIterable<StreamPipelinesEvent>): Promise<void> {
    for await (const { create, update, delete: deleted } of events) {
      const pipeline = create?.pipeline ?? update?.pipeline
      if (pipeline !== undefined) this.#set(pipeline)
      if (deleted?.pipeline !== undefined) this.#forget(deleted.pipeline.id)
    }
    if (!this.#signal.aborted) throw new Failure('the stream of pipelines ended')
  }

  #forget(id: string): void {
    this.#watched.get(id)?.over.abort()
    this.#watched.delete(id)
  }

  #set(pipeline: Pipeline): void {
    const { id, started, currentRun: run } = pipeline
    const before = this.#watched.get(id)
    if (!started || run === undefined || before?.run.id !== run.id) this.#forget(id)
    if (!started || run === undefined) return
    const same = before?.run.id === run.id ? before : undefined
    const fresh = { over: new AbortController(), samples: 0, isFollowed: false, figures: undefined, begunAt: undefined }
    const watched: Watched = Object.assign(same ?? { ...fresh, pipeline, run }, { pipeline, run })
    this.#watched.set(id, watched)
    if (run.state !== 'RUNNING' || watched.isFollowed) return
    watched.isFollowed = true
    this.#measure(watched).catch(this.#failed)
  }

  async #measure(watched: Watched): Promise<void> {
    const { pipeline, run, over } = watched
    const meter = new RunMeter(pipeline.jsonConfig)
    const signal = AbortSignal.any([this.#signal, over.signal])
    try {
      const samples = this.#client.openTelemetryStream({ nodeId: this.#node, runId: run.id }, { signal })
      for await (const sample of untilAborted(samples, signal)) {
        watched.figures = meter.take(sample)
        watched.begunAt ??= begunAt(run, sample)
        watched.samples++
      }
    } catch (error) {
      // The run has ended, which is told as a change of its pipeline.
      if (!(error instanceof PenstockError)) throw error
    }
  }
}
