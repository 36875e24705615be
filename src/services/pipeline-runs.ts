/** The runs of a pipeline that are remembered, and the last of them with their logs. */
import type { ServiceError } from '../contract/errors.ts'
import type { RunRecord } from '../store/runs.ts'
import type { HostedRun } from './hosted-run.ts'

/** Runs of a pipeline that are remembered. */
export const MAX_RUNS = 100

export interface PipelineRunsOptions {
  /** Those of an earlier life of the node, oldest first. */
  readonly ids: readonly string[]
  /** How many of the last runs have their logs kept. */
  readonly logs: number
  /** A run of an earlier life of the node; undefined when nothing is known of it. */
  earlier(id: string): HostedRun | undefined
  /** A log could not be taken off the disk. */
  onError(error: unknown): void
}

export class PipelineRuns {
  readonly #options: PipelineRunsOptions
  /** Those that have been asked for or were on in this life of the node, of the last with logs. */
  readonly #kept = new Map<string, HostedRun>()
  /** Oldest first, at most MAX_RUNS. */
  readonly #ids: string[]
  /** Logs being taken off the disk. */
  readonly #removals = new Set<Promise<void>>()

  constructor(options: PipelineRunsOptions) {
    this.#options = options
    this.#ids = [...options.ids]
  }

  /** Of all remembered runs, oldest first. */
  get ids(): readonly string[] {
    return this.#ids
  }

  /** Of those whose logs are kept, oldest first. */
  get logged(): readonly string[] {
    return this.#ids.slice(-this.#options.logs)
  }

  /** A run whose log is kept. */
  get(id: string): HostedRun | undefined {
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept
    if (!this.logged.includes(id)) return undefined
    const run = this.#options.earlier(id)
    if (run !== undefined) this.#kept.set(id, run)
    return run
  }

  /**
   * Keeps a run, the newest there is, at the cost of the oldest; returns the ids of those that are not remembered any more. One whose end is not
   * told yet, as that of a run which this one replaces, is kept until it is.
   */
  add(run: HostedRun): readonly string[] {
    const { logs } = this.#options
    this.#ids.push(run.id)
    this.#kept.set(run.id, run)
    const oldest = this.#ids.at(-1 - logs)
    const isOn = oldest !== undefined && this.#kept.has(oldest) && this.#kept.get(oldest)?.record === undefined
    if (oldest !== undefined && !isOn) this.#forget(oldest, this.#whyForgotten)
    return this.#ids.splice(0, Math.max(0, this.#ids.length - MAX_RUNS))
  }

  /** A run is over. */
  end(record: RunRecord): void {
    const { id } = record
    this.#kept.get(id)?.end(record)
    if (!this.logged.includes(id)) this.#forget(id, this.#whyForgotten)
  }

  /** The pipeline is gone, and its logs with it: their followers' streams end. Resolves once they are off the disk. */
  async forget(): Promise<void> {
    for (const id of this.logged) this.#forget(id, 'its pipeline was deleted')
    await Promise.all(this.#removals)
  }

  /** The node goes: all streams end with `error`. Resolves once all that was logged is on disk. */
  async abandon(error: ServiceError): Promise<void> {
    await Promise.all([...this.#removals, ...[...this.#kept.values()].map((run) => run.abandon(error))])
  }

  get #whyForgotten(): string {
    return `those of the last ${this.#options.logs} runs are`
  }

  #forget(id: string, why: string): void {
    const run = this.#kept.get(id) ?? this.#options.earlier(id)
    this.#kept.delete(id)
    if (run === undefined) return
    const removal = run.forget(why).catch(this.#options.onError)
    this.#removals.add(removal)
    void removal.finally(() => this.#removals.delete(removal))
  }
}
