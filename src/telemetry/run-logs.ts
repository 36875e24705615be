/** Where the logs of runs are kept on disk, and how much of them. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RunLog } from './run-log.ts'

/** How many lines which file did not take, and why. */
export interface LostLines {
  readonly file: string
  readonly lines: number
  readonly error: Error
}

export interface RunLogsOptions {
  /** Made when the first log is written. */
  readonly directory: string
  /** Runs of a pipeline whose logs are kept. */
  readonly runs: number
  /** Bytes kept of each, at most. */
  readonly bytes: number
  /** Lines of a run could not be written, told once until a write succeeds again. */
  onLost(runId: string, lost: LostLines): void
}

export class RunLogs {
  readonly #options: RunLogsOptions

  constructor(options: RunLogsOptions) {
    this.#options = options
  }

  /** Runs of a pipeline whose logs are kept. */
  get runs(): number {
    return this.#options.runs
  }

  /** The log of a new run. */
  begin(runId: string): RunLog {
    return new RunLog(this.#of(runId))
  }

  /** The log of a run of an earlier process. */
  stored(runId: string): RunLog {
    return RunLog.stored(this.#of(runId))
  }

  /** Takes every log off the disk that is of none of `runIds`. Rejects with the first of those that cannot be removed, once the others are. */
  async removeOthers(runIds: ReadonlySet<string>): Promise<void> {
    const { directory } = this.#options
    const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    const failures: unknown[] = []
    for (const name of names) {
      const end = name.indexOf('.jsonl')
      if (end < 0 || runIds.has(name.slice(0, end))) continue
      await rm(join(directory, name), { force: true }).catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }

  #of(runId: string) {
    const { directory, bytes, onLost } = this.#options
    const path = join(directory, `${runId}.jsonl`)
    return {
      path,
      bytes,
      onLost: (lines: number, error: Error) => onLost(runId, { file: path, lines, error }),
    }
  }
}
