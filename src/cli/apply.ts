/** Brings the pipelines of a node to what files ask for, by their names; done again, it goes on where it was cut off. */
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Client, type ExplainUpdateResponse, PenstockError, type Pipeline } from '@penstock/client'
import { Interrupted } from './failure.ts'
import type { PipelineSettings, WantedPipeline } from './pipeline-files.ts'
import { settingsOf } from './pipelines-options.ts'
import type { PlacedProblem } from './problems.ts'

/** What became of one pipeline; in a dry run, what would. */
export interface Applied {
  readonly name: string
  /** Absent: the pipeline is not there. */
  id?: string
  result: 'created' | 'updated' | 'unchanged' | 'deleted' | 'refused'
  /** Whether it was started, with the id of its run; in a dry run without. */
  started: boolean
  runId?: string
  /** What an update changes, as explainUpdate tells it. */
  changes?: ExplainUpdateResponse
  /** Why it was refused, or not started. */
  error?: string
  /** The same, place by place in the file. */
  problems?: PlacedProblem[]
  readonly file?: string
}

export interface ApplyOptions {
  readonly start?: boolean
  readonly dryRun?: boolean
  readonly forceRestart?: boolean
  /** Pipelines to delete once nothing was refused. */
  readonly remove: readonly Pipeline[]
  /** Ends it between two steps. */
  readonly signal: AbortSignal
  /** Told of each step once it is done: what it did, or that it could not. */
  readonly report: (applied: Applied, step: 'settings' | 'start' | 'delete') => void
}

/** How long other commands have to leave one of the pipelines that they have created at the same time, ms; and how often it is looked. */
const LEAVING_MS = 3_000
const LOOK_MS = 100

/** Failures that are about all pipelines, not about one. */
const OF_ALL = new Set(['UNAUTHENTICATED', 'UNAVAILABLE'])

/** One pass over the pipelines of a node. */
export class Application {
  readonly applied: Applied[] = []
  readonly #client: Client
  readonly #node: string
  /** As they were before, by their names: there may be thousands. */
  #before: ReadonlyMap<string, readonly Pipeline[]>
  readonly #options: ApplyOptions
  /** What was done with settings and is not told yet: of what is created it may turn out that another's is left, and lines keep their order. */
  #untold: Applied[] = []

  constructor(client: Client, node: string, before: readonly Pipeline[], options: ApplyOptions) {
    this.#client = client
    this.#node = node
    this.#before = byName(before)
    this.#options = options
  }

  get isRefused(): boolean {
    return this.applied.some(({ error }) => error !== undefined)
  }

  /** Settings first, then what is to go, since that may hold what the others need, then the starts. */
  async run(wanted: readonly WantedPipeline[]): Promise<void> {
    const stopped: Applied[] = []
    const created = new Map<Applied, PipelineSettings>()
    await this.#untilOneIsLeft(wanted)
    try {
      for (const each of wanted) {
        const isStarted = await this.#step({ name: each.settings.name, file: each.file }, 'settings', (applied) =>
          this.#settings(each, applied),
        )
        const applied = this.applied.at(-1) as Applied
        if (applied.result !== 'refused' && !isStarted) stopped.push(applied)
        if (applied.result === 'created' && !this.#options.dryRun) created.set(applied, each.settings)
        if (created.size === 0) this.#tell()
      }
      if (created.size > 0) await this.#leaveOne(created)
    } finally {
      this.#tell()
    }
    if (!this.isRefused) for (const pipeline of this.#options.remove) await this.#remove(pipeline)
    if (this.#options.start) for (const applied of stopped) await this.#start(applied)
  }

  /** What one step does to a pipeline; what is refused there stops no other. */
  async #step<R>(
    about: { name: string; file?: string; id?: string },
    step: 'settings' | 'delete',
    work: (applied: Applied) => Promise<R>,
  ): Promise<R | undefined> {
    this.#check()
    const applied: Applied = { ...about, result: 'refused', started: false }
    const result = await this.#attempt(applied, () => work(applied))
    this.applied.push(applied)
    if (step === 'settings') this.#untold.push(applied)
    else this.#options.report(applied, step)
    return result
  }

  #tell(): void {
    for (const applied of this.#untold) this.#options.report(applied, 'settings')
    this.#untold = []
  }

  async #attempt<R>(applied: Applied, work: () => Promise<R>): Promise<R | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof PenstockError) || OF_ALL.has(error.code)) throw error
      applied.error = error.message
      return undefined
    }
  }

  /** Several of a name that are as the file asks may be what other commands have just made of the same file: they leave one (`#leaveOne`). */
  async #untilOneIsLeft(wanted: readonly WantedPipeline[]): Promise<void> {
    const { signal } = this.#options
    const isLeaving = ({ settings }: WantedPipeline): boolean => {
      const same = this.#before.get(settings.name) ?? []
      return same.length > 1 && same.every((each) => isSame(each, settings))
    }
    for (const end = performance.now() + LEAVING_MS; wanted.some(isLeaving) && performance.now() < end; ) {
      await pause(LOOK_MS, undefined, { signal }).catch(() => {})
      this.#check()
      this.#before = byName((await this.#client.getPipelines({ nodeId: this.#node })).pipelines)
    }
  }

  #check(): void {
    const { signal } = this.#options
    if (!signal.aborted) return
    const done = `interrupted after ${this.applied.length} pipelines`
    throw new Interrupted(`${done}: the same command does the rest`, signal.reason)
  }

  /** Creates or updates one; tells whether it is started. */
  async #settings({ settings, placed }: WantedPipeline, applied: Applied): Promise<boolean> {
    const same = this.#before.get(settings.name) ?? []
    const [before] = same
    if (same.length > 1) {
      const ids = same.map(({ id }) => id).join(', ')
      applied.error = `${same.length} pipelines of the node have this name: ${ids}; rename or delete all but one`
      return false
    }
    try {
      if (before === undefined) {
        await this.#create(settings, placed, applied)
        return false
      }
      applied.id = before.id
      if (isSame(before, settings)) {
        applied.result = 'unchanged'
        return before.started
      }
      return await this.#update(before, settings, applied)
    } catch (error) {
      if (error instanceof PenstockError && error.problems.length > 0) applied.problems = placed(error.problems)
      throw error
    }
  }

  async #create(settings: PipelineSettings, placed: WantedPipeline['placed'], applied: Applied): Promise<void> {
    if (!this.#options.dryRun) {
      applied.id = (await this.#client.createPipeline({ ...settings, nodeId: this.#node })).pipeline!.id
    } else {
      const { problems } = await this.#client.validatePipeline({ ...settings, nodeId: this.#node })
      if (problems.length > 0) {
        applied.error = 'the node would not take it'
        applied.problems = placed(problems)
        return
      }
    }
    applied.result = 'created'
  }

  async #update({ id, started }: Pipeline, settings: PipelineSettings, applied: Applied): Promise<boolean> {
    const { forceRestart = false, dryRun } = this.#options
    const request = { ...settings, forceRestart, nodeId: this.#node, id }
    const changes = await this.#client.explainUpdate(request)
    applied.changes = changes
    if (changes.running && changes.restart.length > 0 && !forceRestart) {
      applied.error = `its run cannot take over ${changes.restart.map(({ pointer }) => pointer).join(', ')}: --force-restart replaces the run`
      return started
    }
    const after = dryRun ? { started } : (await this.#client.updatePipeline(request)).pipeline!
    applied.result = 'updated'
    return after.started
  }

  /**
   * Where the same file was applied at the same time, or a creation was still on its way from one that was cut off, a name may have come twice:
   * all leave the same one of those that are alike, the one that is started, else the first, which its creator has found by itself if it has looked
   * already; a node lists them in the order in which they came.
   */
  async #leaveOne(created: ReadonlyMap<Applied, PipelineSettings>): Promise<void> {
    const known = new Set([...this.#before.values()].flat().map(({ id }) => id))
    const { pipelines } = await this.#client.getPipelines({ nodeId: this.#node })
    const come = byName(pipelines.filter(({ id }) => !known.has(id)))
    for (const [applied, settings] of created) {
      const alike = (come.get(settings.name) ?? []).filter((each) => isSame(each, settings))
      alike.sort((a, b) => Number(b.started) - Number(a.started))
      const [left, ...others] = alike
      if (left === undefined) continue
      // Another has made the one that is left.
      if (left.id !== applied.id) applied.result = 'unchanged'
      applied.id = left.id
      for (const { id, started } of others) if (!started) await this.#delete(id)
    }
  }

  async #remove({ id, name }: Pipeline): Promise<void> {
    await this.#step({ name, id }, 'delete', async (applied) => {
      if (!this.#options.dryRun) await this.#delete(id)
      applied.result = 'deleted'
    })
  }

  /** Who has deleted it before has done the same. */
  async #delete(id: string): Promise<void> {
    try {
      await this.#client.deletePipeline({ nodeId: this.#node, id })
    } catch (error) {
      if (!(error instanceof PenstockError) || error.code !== 'NOT_FOUND') throw error
    }
  }

  async #start(applied: Applied): Promise<void> {
    this.#check()
    await this.#attempt(applied, async () => {
      const { id } = applied
      if (id !== undefined && !this.#options.dryRun) {
        try {
          applied.runId = (await this.#client.startPipeline({ nodeId: this.#node, id })).runId
        } catch (error) {
          if (!(await this.#client.getPipelineById({ nodeId: this.#node, id })).pipeline!.started) throw error
          // Somebody else has started it meanwhile.
          return
        }
      }
      applied.started = true
    })
    if (applied.started || applied.error !== undefined) this.#options.report(applied, 'start')
  }
}

/** The pipelines of each name, in their order. */
function byName(pipelines: readonly Pipeline[]): Map<string, Pipeline[]> {
  const named = new Map<string, Pipeline[]>()
  for (const pipeline of pipelines) {
    const same = named.get(pipeline.name)
    if (same === undefined) named.set(pipeline.name, [pipeline])
    else same.push(pipeline)
  }
  return named
}

/** Whether a pipeline has these settings already; how the text of its configuration is laid out does not count. */
function isSame(pipeline: Pipeline, { jsonConfig, ...settings }: PipelineSettings): boolean {
  const { forceRestart, jsonConfig: before, ...others } = settingsOf(pipeline)
  const { forceRestart: _, ...wanted } = { forceRestart: false, ...settings }
  return isDeepStrictEqual(others, wanted) && isDeepStrictEqual(valueFrom(before), valueFrom(jsonConfig))
}

/** What a configuration says, as JSON writes it; a text that is none, itself. */
function valueFrom(jsonConfig: string): unknown {
  try {
    // -0 is written 0.
    return JSON.parse(JSON.stringify(JSON.parse(jsonConfig)))
  } catch {
    return jsonConfig
  }
}
