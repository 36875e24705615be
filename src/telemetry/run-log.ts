/** The log of one run: the last lines kept in a ring, and who follows it. */
import type { LogLevel } from '../dataplane/engine/log.ts'
import type { LogLine } from '../dataplane/engine/run.ts'

/** Lines kept of each run. */
const MAX_LOG_LINES = 2_000

const levels: readonly LogLevel[] = ['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

export type LogListener = (lines: readonly LogLine[]) => void

export class RunLog {
  readonly #capacity: number
  readonly #ring: LogLine[] = []
  /** Where the next line goes once the ring is full. */
  #next = 0
  #threshold: number
  readonly #listeners = new Set<LogListener>()

  /** Keeps `capacity` lines of `level` and above, and STATE lines, which tell what the run does, at any level. */
  constructor(level: LogLevel, capacity = MAX_LOG_LINES) {
    this.#threshold = levels.indexOf(level)
    this.#capacity = capacity
  }

  /** The lowest level that is kept and told from now on. */
  set level(level: LogLevel) {
    this.#threshold = levels.indexOf(level)
  }

  /** Takes lines in order; those below the level are dropped, STATE lines never. */
  append(lines: readonly LogLine[]): void {
    const kept = lines.filter(({ level }) => level === 'STATE' || levels.indexOf(level) >= this.#threshold)
    if (kept.length === 0) return
    for (const line of kept) {
      if (this.#ring.length < this.#capacity) this.#ring.push(line)
      else {
        this.#ring[this.#next] = line
        this.#next = (this.#next + 1) % this.#capacity
      }
    }
    for (const listener of this.#listeners) listener(kept)
  }

  /** The last `count` lines, oldest first; fewer when fewer are kept. */
  past(count: number): LogLine[] {
    const all = [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)]
    return count >= all.length ? all : all.slice(all.length - count)
  }

  /** Calls `listener` with lines appended from now on; returns what ends that. */
  follow(listener: LogListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
