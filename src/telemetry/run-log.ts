/** The log of one run: all of it in a file, its last lines in memory as well, and who follows it. */
import type { LogLine } from '../dataplane/engine/run.ts'
import { LineFile, type WrittenFiles } from './line-file.ts'

/** Lines kept in memory of a run that is on. */
const MAX_LOG_LINES = 2_000
/** Files that a log is in, the one that grows included: the oldest of them goes when a new one is begun. */
const LOG_FILES = 4
/** What of a file is read without looking for the place in it where to begin. */
const SEARCHED_BYTES = 256 << 10
/** Bytes that are read to find out which lines are at a place. */
const PROBE_BYTES = 4 << 10

export type LogListener = (lines: readonly LogLine[]) => void

export interface RunLogOptions {
  /** Where the log is kept. */
  readonly path: string
  /** Bytes of it that are kept, at most. */
  readonly bytes: number
  /** Lines kept in memory. */
  readonly capacity?: number
  /** Lines could not be written. */
  onLost(lines: number, error: Error): void
}

/** A line as it stands in the file. */
export interface NumberedLine extends LogLine {
  /** Its number in the log of the run, from 0. */
  readonly n: number
}

/** Lines are numbered from 0; a number once given stays, whatever is dropped. */
export class RunLog {
  readonly #capacity: number
  readonly #file: LineFile
  /** The last lines, oldest first from `#start` on, in turn. */
  #ring: LogLine[] = []
  #start = 0
  #next = 0
  #hasLost = false
  #opened: Promise<void> = Promise.resolve()
  readonly #listeners = new Set<LogListener>()

  /** `isNew`: of a run that has just begun. */
  constructor({ path, bytes, capacity = MAX_LOG_LINES, onLost }: RunLogOptions, isNew = true) {
    this.#capacity = capacity
    this.#file = new LineFile({
      path,
      rotateAt: Math.ceil(bytes / LOG_FILES),
      keep: LOG_FILES - 1,
      isNew,
      onLost: (lines, error) => {
        this.#hasLost = true
        onLost(lines, error)
      },
    })
  }

  /** The log of a run that an earlier process has written: await `opened` before anything else. */
  static stored(options: RunLogOptions): RunLog {
    const log = new RunLog(options, false)
    log.#opened = log.#open()
    // Whoever reads it is told; nobody has to.
    log.#opened.catch(() => {})
    return log
  }

  /** Resolves once the log can be read and appended to. */
  get opened(): Promise<void> {
    return this.#opened
  }

  /** The number of the line that comes next. */
  get next(): number {
    return this.#next
  }

  get #firstInMemory(): number {
    return this.#next - this.#ring.length
  }

  /** Takes lines in order and tells them. */
  append(lines: readonly LogLine[]): void {
    if (lines.length === 0) return
    for (const line of lines) {
      const { timestamp, level, component, message, fields } = line
      this.#file.append(JSON.stringify({ n: this.#next++, timestamp, level, component, message, fields }))
      if (this.#ring.length < this.#capacity) this.#ring.push(line)
      else {
        this.#ring[this.#start] = line
        this.#start = (this.#start + 1) % this.#capacity
      }
    }
    for (const listener of this.#listeners) listener(lines)
  }

  /** The lines from number `from` on, when all that come then are in memory; undefined when the file has to be asked. */
  inMemory(from: number): LogLine[] | undefined {
    const first = this.#firstInMemory
    if (from < first) return undefined
    return [...this.#ring.slice(this.#start), ...this.#ring.slice(0, this.#start)].slice(from - first)
  }

  /**
   * Some of the lines from number `from` on, the first that are in the files, and the number after the last of them: the files may have fewer
   * than were logged. What is in memory is left out, as that is whole. Read on until `inMemory` has the rest.
   */
  async stored(from: number): Promise<{ lines: NumberedLine[]; next: number }> {
    const before = this.#firstInMemory
    return await this.#file.read(async (files) => {
      for (let index = LOG_FILES - 1; index >= 0; index--) {
        // Where the next file begins at the number wanted or before it, this one has nothing.
        const after = index === 0 ? undefined : await firstLine(files, index - 1)
        if (after !== undefined && after.n <= from) continue
        const found = await linesFrom(files, index, from)
        if (found.length === 0) continue
        const inMemory = this.#firstInMemory
        const lines = found.filter(({ n }) => n < inMemory)
        const last = lines.at(-1)
        return { lines, next: last === undefined ? Math.max(inMemory, from) : last.n + 1 }
      }
      return { lines: [], next: Math.max(before, from) }
    })
  }

  /** Whether no file of it has been removed yet: what is missing then, the disk did not take. */
  hasAllFiles(): Promise<boolean> {
    return this.#file.read(async (files) => (await files.bytes(LOG_FILES - 1)) === 0)
  }

  /** Calls `listener` with lines appended from now on; returns what ends that. */
  follow(listener: LogListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves once every line is in the file, or was lost. */
  written(): Promise<void> {
    return this.#file.written()
  }

  /** The run is over: its lines are in the file alone once they are there. */
  async settle(): Promise<void> {
    await this.written()
    // What could not be written is here or nowhere.
    if (this.#hasLost) return
    this.#ring = []
    this.#start = 0
  }

  /** Takes the log off the disk. */
  remove(): Promise<void> {
    return this.#file.remove()
  }

  /** Finds the number that comes next. */
  #open(): Promise<void> {
    return this.#file.read(async (files) => {
      for (let index = 0; index < LOG_FILES; index++) {
        const end = await files.bytes(index)
        // Each time to the end: a line that is cut where a piece begins is in none.
        for (let at = end, bytes = SEARCHED_BYTES; at > 0; bytes *= 2) {
          at = Math.max(0, end - bytes)
          const last = numbered((await files.piece(index, at, bytes)).lines).at(-1)
          if (last === undefined) continue
          this.#next = last.n + 1
          return
        }
      }
    })
  }
}

/** Undefined when there is no file of that index, or none that is whole is near its beginning. */
async function firstLine(files: WrittenFiles, index: number): Promise<NumberedLine | undefined> {
  return numbered((await files.piece(index, 0, PROBE_BYTES)).lines)[0]
}

/** Of the lines of a file those from number `from` on, the first of them. */
async function linesFrom(files: WrittenFiles, index: number, from: number): Promise<NumberedLine[]> {
  const bytes = await files.bytes(index)
  let begin = 0
  for (let end = bytes; end - begin > SEARCHED_BYTES; ) {
    const middle = Math.floor((begin + end) / 2)
    const [line] = numbered((await files.piece(index, middle, PROBE_BYTES)).lines)
    if (line !== undefined && line.n <= from) begin = middle
    else end = middle
  }
  for (;;) {
    const piece = await files.piece(index, begin)
    const lines = numbered(piece.lines).filter(({ n }) => n >= from)
    if (lines.length > 0 || piece.lines.length === 0) return lines
    begin = piece.end
  }
}

/** The whole lines among `texts`. */
function numbered(texts: readonly string[]): NumberedLine[] {
  return texts.flatMap((text) => {
    try {
      const line = JSON.parse(text) as NumberedLine
      return typeof line.n === 'number' ? [line] : []
    } catch {
      // A process that was killed may have left half a line, and the next one began after it.
      return []
    }
  })
}
