/** The runs of the node's pipelines on disk: how each began and ended, and which pipeline it belongs to. */
import type { Database, RootDatabase } from 'lmdb'
import type { Outcome } from '../dataplane/engine/run.ts'
import { durable } from './durable.ts'

type RunState = 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED'

export interface RunRecord {
  id: string
  pipelineId: string
  state: RunState
  /** Milliseconds since the epoch. */
  startedAt: number
  /** Milliseconds since the epoch. */
  endedAt?: number
  /** CPU thread the run is pinned to. */
  cpu?: number
  /** How it ended. */
  outcome?: Outcome
  /** Why it failed. */
  error?: string
}

export class RunCollection {
  readonly #root: RootDatabase
  readonly #records: Database<RunRecord, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<RunRecord, string>({ name: 'runs', encoding: 'msgpack' })
  }

  all(): RunRecord[] {
    return [...this.#records.getRange()].map(({ value }) => value)
  }

  get(id: string): RunRecord | undefined {
    return this.#records.get(id)
  }

  /** Resolves once the record is on disk. */
  async put(record: RunRecord): Promise<void> {
    await durable(this.#root, this.#records.put(record.id, record))
  }

  /** Resolves once none of the runs is on disk any more. */
  async remove(ids: readonly string[]): Promise<void> {
    await durable(this.#root, ...ids.map((id) => this.#records.remove(id)))
  }
}
