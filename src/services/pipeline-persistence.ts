/** What of a pipeline goes to disk, and when: its settings before a change of them is answered, its runs as its machine tells of them. */
import type { ActorRefFrom } from 'xstate'
import type { pipeline } from '../actors/pipeline.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import type { Store } from '../store/store.ts'

export class PipelinePersistence {
  readonly #store: Pick<Store, 'pipelines' | 'runs'>
  readonly #failed: (error: unknown) => void
  /** Resolves, with nothing, once all that was begun is on disk or has failed. */
  #written: Promise<void> = Promise.resolve()
  /** How many wait for the disk before they answer. */
  #awaiting = 0
  /** Run id → why its record as it is now is not on disk. */
  readonly #unwritten = new Map<string, unknown>()

  /** `failed` gets the error of a write that nobody waits for. */
  constructor(store: Pick<Store, 'pipelines' | 'runs'>, failed: (error: unknown) => void) {
    this.#store = store
    this.#failed = failed
  }

  /** An operation has only the disk to wait for before it is answered. */
  get isAwaited(): boolean {
    return this.#awaiting > 0
  }

  /** Writes the record of each run at each change of its state. Call before the machine is started. */
  follow(machine: ActorRefFrom<typeof pipeline>): void {
    for (const type of ['runChanged', 'runEnded'] as const) {
      machine.on(type, ({ record }) => this.#begin(this.#putRun(record)))
    }
  }

  /** Resolves once the settings are on disk; rejects when they cannot be written. */
  async putSettings(record: PipelineRecord): Promise<void> {
    const write = this.#store.pipelines.put(record)
    this.#join(write)
    await this.#await(write)
  }

  /** The runs are not remembered any more. */
  forgetRuns(ids: readonly string[]): void {
    for (const id of ids) this.#unwritten.delete(id)
    this.#begin(this.#store.runs.remove(ids))
  }

  /** Resolves once all that was begun is on disk, or has failed: an answer that tells of a run waits for this. */
  async written(): Promise<void> {
    await this.#await(this.#written)
  }

  /** Why the record of a run as it is now could not be written; undefined when it is on disk, or on its way there: see `written`. */
  whyUnwritten(runId: string): unknown {
    return this.#unwritten.get(runId)
  }

  /** Resolves once the pipeline and its runs are not on disk any more; rejects when they cannot be removed. */
  async remove(id: string, runIds: readonly string[]): Promise<void> {
    const removal = async () => {
      await this.#written
      await Promise.all([this.#store.pipelines.remove(id), this.#store.runs.remove(runIds)])
    }
    await this.#await(removal())
  }

  async #await(write: Promise<unknown>): Promise<void> {
    this.#awaiting++
    try {
      await write
    } finally {
      this.#awaiting--
    }
  }

  async #putRun(record: RunRecord): Promise<void> {
    try {
      await this.#store.runs.put(record)
      this.#unwritten.delete(record.id)
    } catch (error) {
      this.#unwritten.set(record.id, error)
      throw error
    }
  }

  #begin(write: Promise<void>): void {
    this.#join(write.catch(this.#failed))
  }

  /** With the outcomes themselves each promise would hold those of all before it. */
  #join(write: Promise<void>): void {
    this.#written = Promise.allSettled([this.#written, write]).then(() => undefined)
  }
}
