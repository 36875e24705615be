/** The runs of a pipeline that are remembered, and the last of them with their logs. */
import type { ServiceError } from '../contract/errors.ts'
import type { HostedRun } from './hosted-run.ts'

/** Runs of a pipeline whose logs are kept. */
export const MAX_RUN_LOGS = 10
/** Runs of a pipeline that are remembered. */
export const MAX_RUNS = 100

export class PipelineRuns {
  /** Oldest first, at most MAX_RUN_LOGS. */
  readonly #kept = new Map<string, HostedRun>()
  /** Oldest first, at most MAX_RUNS. */
  readonly #ids: string[]

  /** `ids` are those of runs of an earlier life of the node, oldest first. */
  constructor(ids: readonly string[]) {
    this.#ids = [...ids]
  }

  /** Of all remembered runs, oldest first. */
  get ids(): readonly string[] {
    return this.#ids
  }

  /** A run whose log is kept. */
  get(id: string): HostedRun | undefined {
    return this.#kept.get(id)
  }

  /** Keeps a run, the newest there is, at the cost of the oldest; returns the ids of those that are not remembered any more. */
  add(run: HostedRun): readonly string[] {
    if (this.#ids.at(-1) !== run.id) this.#ids.push(run.id)
    this.#kept.set(run.id, run)
    for (const [id, oldest] of this.#kept) {
      if (this.#kept.size <= MAX_RUN_LOGS) break
      oldest.forget()
      this.#kept.delete(id)
    }
    return this.#ids.splice(0, Math.max(0, this.#ids.length - MAX_RUNS))
  }

  /** The pipeline is gone, and its logs with it: their followers' streams end. */
  forget(): void {
    for (const run of this.#kept.values()) run.forget()
  }

  /** The node goes: all streams end with `error`. */
  abandon(error: ServiceError): void {
    for (const run of this.#kept.values()) run.abandon(error)
  }
}
