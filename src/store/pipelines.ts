/** The pipelines of the node on disk: the settings as they were last answered, nothing about runs. */
import type { Database, RootDatabase } from 'lmdb'
import type { Pipeline, RestartPolicy, StartupPolicy } from '../contract/types.ts'
import { durable } from './durable.ts'
import { roomFor } from './room.ts'

export type { RestartPolicy, StartupPolicy }

/** Everything a caller sets on a pipeline, defaults filled in: what callers are shown of it, without what the node adds. */
export type PipelineSettings = Omit<Pipeline, 'id' | 'started' | 'currentRun' | 'restartPolicy' | 'startupPolicy'> & {
  restartPolicy: RestartPolicy
  startupPolicy: StartupPolicy
}

export interface PipelineRecord {
  id: string
  settings: PipelineSettings
  /** Milliseconds since the epoch. */
  createdAt: number
}

export class PipelineCollection {
  readonly #root: RootDatabase
  readonly #records: Database<PipelineRecord, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<PipelineRecord, string>({ name: 'pipelines', encoding: 'msgpack' })
  }

  all(): PipelineRecord[] {
    return [...this.#records.getRange()].map(({ value }) => value)
  }

  /** Resolves once the record is on disk. */
  async put(record: PipelineRecord): Promise<void> {
    roomFor(this.#root, Buffer.byteLength(record.settings.jsonConfig))
    await durable(this.#root, this.#records.put(record.id, record))
  }

  /** Resolves once the removal is on disk. */
  async remove(id: string): Promise<void> {
    await durable(this.#root, this.#records.remove(id))
  }
}
