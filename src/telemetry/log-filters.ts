/** What becomes of a run's lines: the filters of its configuration in their order, and its level for what no filter is about. */

import type { LogLevel } from '../dataplane/engine/log.ts'
import type { LogFilter } from '../dataplane/engine/log-filters.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { LineFile } from './line-file.ts'

const LEVELS: readonly LogLevel[] = ['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** Files that a run has written to and no filter names any more, whose names are kept: a filter that names one again does not empty it. */
const MAX_PAST_FILES = 1_000

export interface LineSelectionOptions {
  readonly level: LogLevel
  readonly filters: readonly LogFilter[]
  /** A filter with action `stop` has taken `line`. */
  onStop(line: LogLine): void
  /** Lines for the file of a filter could not be written. */
  onLost(path: string, lines: number, error: Error): void
}

/** Those of one run. */
export class LineSelection {
  readonly #options: LineSelectionOptions
  #threshold: number
  #filters: readonly LogFilter[]
  /** The files that filters name, by path, and others until the last line is in them. */
  readonly #files = new Map<string, LineFile>()
  /** The last files that were written to and are named no more. */
  readonly #past = new Set<string>()

  constructor(options: LineSelectionOptions) {
    this.#options = options
    this.#threshold = LEVELS.indexOf(options.level)
    this.#filters = options.filters
  }

  /** The lowest level of what no filter is about, from now on. */
  set level(level: LogLevel) {
    this.#threshold = LEVELS.indexOf(level)
  }

  /** The filters from now on. */
  set filters(filters: readonly LogFilter[]) {
    this.#filters = filters
    for (const [path, file] of this.#files) if (!this.#names(path)) void this.#letGo(path, file)
  }

  /** The lines that go into the run's log; what else the filters want is done. */
  select(lines: readonly LogLine[]): LogLine[] {
    return lines.filter((line) => this.#keeps(line))
  }

  /** Resolves once every line for a file is in it, or was lost. */
  async written(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.written()))
  }

  #keeps(line: LogLine): boolean {
    const rank = LEVELS.indexOf(line.level)
    let isMatched = false
    let isKept = false
    let isDiscarded = false
    for (const filter of this.#filters) {
      if (rank < LEVELS.indexOf(filter.level)) continue
      if (filter.path_filter !== undefined && !matches(filter.path_filter, line.component)) continue
      isMatched = true
      for (const action of filter.actions.actions) {
        if (action === 'log') isKept = true
        else if (action === 'file') this.#fileOf(filter).append(textOf(line))
        else if (action === 'stop') this.#options.onStop(line)
        // STATE lines tell what becomes of the run: only a filter that names its components takes them away.
        else if (line.level !== 'STATE' || filter.path_filter !== undefined) isDiscarded = true
      }
      if (isDiscarded) return isKept
    }
    if (isKept || line.level === 'STATE') return true
    return !isMatched && rank >= this.#threshold
  }

  #fileOf({ file = '', mode }: LogFilter): LineFile {
    let opened = this.#files.get(file)
    if (opened === undefined) {
      const onLost = (lines: number, error: Error) => this.#options.onLost(file, lines, error)
      // The run has emptied it before, or written to it.
      const truncate = mode === 'TRUNCATE' && !this.#past.has(file)
      opened = new LineFile({ path: file, truncate, onLost })
      this.#files.set(file, opened)
    }
    return opened
  }

  #names(path: string): boolean {
    return this.#filters.some(({ file }) => file === path)
  }

  /** Keeps the name alone of a file that no filter names any more, once every line for it is in it: a run may last for months, its filters not. */
  async #letGo(path: string, file: LineFile): Promise<void> {
    await file.written()
    // Meanwhile a filter may name it again, or have named it: the change that took it away waits for its lines; or another change may have let go of it.
    if (this.#names(path) || !file.isSettled || this.#files.get(path) !== file) return
    this.#files.delete(path)
    const wasBegun = this.#past.delete(path)
    if (!wasBegun && !file.isBegun) return
    this.#past.add(path)
    if (this.#past.size <= MAX_PAST_FILES) return
    const [oldest = ''] = this.#past
    this.#past.delete(oldest)
  }
}

function textOf({ timestamp, level, component, message, fields }: LogLine): string {
  return JSON.stringify({ timestamp: new Date(timestamp).toISOString(), level, component, message, fields })
}

/**
 * Whether `name` is what the pattern says, `*` standing for any characters and `?` for one. In time that grows with the product of the
 * lengths at most, whatever the pattern: it may come from anybody.
 */
export function matches(pattern: string, name: string): boolean {
  let at = 0
  let next = 0
  /** Where to go on when what follows the last * does not fit. */
  let star = -1
  let after = 0
  while (at < name.length) {
    if (pattern[next] === '*') {
      star = next++
      after = at
    } else if (next < pattern.length && (pattern[next] === '?' || pattern[next] === name[at])) {
      at++
      next++
    } else if (star >= 0) {
      next = star + 1
      at = ++after
    } else return false
  }
  while (pattern[next] === '*') next++
  return next === pattern.length
}
