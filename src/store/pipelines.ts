/** The pipelines of the node on disk: the settings as they were last answered, nothing about runs. */
import type { Database, RootDatabase } from 'lmdb'
import type { LogLevel } from '../dataplane/engine/component.ts'
import { durable } from './durable.ts'
import { roomFor } from './room.ts'

/** What follows a run that ended by itself; at most one key. `maxRestarts` counts restarts in a row, 0 is no limit. */
export interface RestartPolicy {
  never?: Record<string, never>
  always?: { maxRestarts: number }
  onFailure?: { maxRestarts: number }
}

/** Whether the pipeline starts with the node; at most one key. */
export interface StartupPolicy {
  manual?: Record<string, never>
  auto?: Record<string, never>
}

/** Everything a caller sets on a pipeline, defaults filled in. */
export interface PipelineSettings {
  name: string
  /** As it was given. */
  jsonConfig: string
  restartPolicy: RestartPolicy
  startupPolicy: StartupPolicy
  defaultLoggingLevel: LogLevel
  nodeReferenceId?: string
  /** Seconds, above 0. */
  instructionsTimeout: number
  /** CPU thread as the kernel numbers them; absent: the node chooses. */
  cpuPin?: number
  performanceMode: boolean
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
