/** A file of lines that grows at its end: written in batches behind the caller's back, in order, bounded in memory and on disk. */
import { constants } from 'node:fs'
import { open, rename, rm, stat, truncate } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SerialQueue } from '../contract/serial-queue.ts'
import { makeDirectoryAsync } from '../make-directory.ts'

/** Bytes of lines that wait for the disk, at most: further ones are dropped and counted. */
const MAX_UNWRITTEN_BYTES = 4 << 20
/** Bytes written at once, at most. */
const MAX_BATCH_BYTES = 256 << 10
/** Bytes of a file that are read at once, more where they have no whole line. */
const PIECE_BYTES = 256 << 10

export interface LineFileOptions {
  readonly path: string
  /** Bytes after which the file is put aside as `path.1` and a new one begun; absent: never. */
  readonly rotateAt?: number
  /** Files put aside that are kept: `path.1` is the newest. */
  readonly keep?: number
  /** Cuts the file to nothing before the first line. */
  readonly truncate?: boolean
  /** Nobody can have written it before: it is not looked for. */
  readonly isNew?: boolean
  /** Lines were lost: `error` says why, once for all until a write succeeds again. */
  onLost(lines: number, error: Error): void
}

/** Whole lines of a file, one after the other. */
export interface Piece {
  readonly lines: string[]
  /** Where the line behind them begins, bytes. */
  readonly end: number
}

/** The file that grows, 0, and those put aside, 1 being the newest. */
export interface WrittenFiles {
  /** 0 when there is no such file. */
  bytes(index: number): Promise<number>
  /**
   * Those of its lines that begin at byte `from` or behind it, as many as there are in the `bytes` from there, one at least; none where no
   * whole line follows.
   */
  piece(index: number, from: number, bytes?: number): Promise<Piece>
}

/** What a file ends with. */
interface FileEnd {
  readonly bytes: number
  /** Its last line has no end: whoever wrote it was killed. */
  readonly isTorn: boolean
}

const NOTHING: FileEnd = { bytes: 0, isTorn: false }

/** A line without its end, and the bytes of it with that. */
interface Waiting {
  readonly text: string
  readonly bytes: number
}

export class LineFile {
  readonly path: string
  readonly #options: LineFileOptions
  readonly #queue = new SerialQueue()
  #waiting: Waiting[] = []
  #waitingBytes = 0
  /** Lines taken so far to be written, and those of them that are in the file or were lost. */
  #taken = 0
  #done = 0
  /** Lines dropped since the last batch, for want of room. */
  #dropped = 0
  #isScheduled = false
  /** Undefined before the file was looked at, and after a write that failed. */
  #end: FileEnd | undefined
  #isTruncated = false
  #isBegun = false
  #isFailing = false

  /** Touches nothing before the first line. */
  constructor(options: LineFileOptions) {
    this.path = options.path
    this.#options = options
    if (options.isNew === true) this.#end = NOTHING
  }

  /** Whether the first line has found the file as it was to be: emptied, if that was asked for. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  /** Whether every line taken so far is in the file, or was lost. */
  get isSettled(): boolean {
    return this.#done === this.#taken
  }

  /** Takes a line, without its end; it is in the file once `written` resolves. */
  append(text: string): void {
    const bytes = Buffer.byteLength(text) + 1
    if (this.#waitingBytes + bytes > MAX_UNWRITTEN_BYTES) {
      this.#dropped++
      return
    }
    this.#waiting.push({ text, bytes })
    this.#waitingBytes += bytes
    this.#taken++
    this.#schedule()
  }

  /** Resolves once every line taken so far is in the file, or was lost. */
  async written(): Promise<void> {
    const taken = this.#taken
    // Behind the batch that is written next, which need not be the last of them.
    do await this.#queue.run(() => {})
    while (this.#done < taken)
  }

  /** Runs `step` once every line taken so far is in the file, or was lost; nothing is written or put aside meanwhile. */
  async read<T>(step: (files: WrittenFiles) => Promise<T>): Promise<T> {
    await this.written()
    return await this.#queue.run(() =>
      step({
        bytes: (index) => this.#bytes(index),
        piece: (index, from, bytes = PIECE_BYTES) => this.#piece(index, from, bytes),
      }),
    )
  }

  /** Removes the file and those put aside; no line may be appended any more. */
  async remove(): Promise<void> {
    await this.written()
    await this.#queue.run(async () => {
      for (let index = 0; index <= (this.#options.keep ?? 0); index++) await rm(this.#name(index), { force: true })
    })
  }

  async #bytes(index: number): Promise<number> {
    return (await stat(this.#name(index)).catch(whenMissing(undefined)))?.size ?? 0
  }

  async #piece(index: number, from: number, bytes: number): Promise<Piece> {
    const file = await open(this.#name(index)).catch(whenMissing(undefined))
    if (file === undefined) return { lines: [], end: from }
    try {
      // Where the byte before ends a line, one begins at `from` itself.
      const at = Math.max(0, from - 1)
      for (let length = bytes + 1; ; length *= 2) {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
        const read = buffer.subarray(0, bytesRead)
        const start = from === 0 ? 0 : read.indexOf('\n') + 1
        const end = read.lastIndexOf('\n') + 1
        if (end > start && (from === 0 || start > 0)) {
          return { lines: read.toString('utf8', start, end - 1).split('\n'), end: at + end }
        }
        if (bytesRead < length) return { lines: [], end: from }
      }
    } finally {
      await file.close()
    }
  }

  /** Has the next batch written, behind who waits for a turn: readers get theirs however fast lines come. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    void this.#queue.run(() => this.#write())
  }

  async #write(): Promise<void> {
    // Before the batch is taken, so that what comes meanwhile goes along.
    const end = this.#end ?? (await this.#begin().catch((error: Error) => error))
    this.#isBegun ||= !(end instanceof Error)
    const batch = this.#take(end instanceof Error ? NOTHING : end)
    const dropped = this.#dropped
    this.#dropped = 0
    if (dropped > 0) this.#lost(dropped, new Error(`the disk did not keep up with ${this.path}`))
    try {
      if (end instanceof Error) throw end
      this.#end = await this.#writeBatch(batch, end)
      this.#isFailing = dropped > 0
    } catch (error) {
      this.#end = undefined
      this.#lost(batch.length, error as Error)
    }
    this.#done += batch.length
    this.#isScheduled = false
    if (this.#waiting.length > 0) this.#schedule()
  }

  /** Takes the lines of a batch, one at least: as many as fit behind `end`, or into a new file where none does. */
  #take(end: FileEnd): Waiting[] {
    const { rotateAt = Number.POSITIVE_INFINITY } = this.#options
    const room = rotateAt - bytesBehind(end)
    const first = this.#waiting[0] as Waiting
    const most = Math.min(MAX_BATCH_BYTES, first.bytes > room ? rotateAt : room)
    let count = 0
    let bytes = 0
    for (const line of this.#waiting) {
      if (count > 0 && bytes + line.bytes > most) break
      count++
      bytes += line.bytes
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  /** What the file ends with once `batch` is in it. */
  async #writeBatch(batch: readonly Waiting[], end: FileEnd): Promise<FileEnd> {
    const { rotateAt = Number.POSITIVE_INFINITY } = this.#options
    const lines = batch.map((line) => `${line.text}\n`).join('')
    const isFull = end.bytes > 0 && bytesBehind(end) + Buffer.byteLength(lines) > rotateAt
    if (isFull) await this.#putAside()
    const { bytes, isTorn } = isFull ? NOTHING : end
    const text = isTorn ? `\n${lines}` : lines
    await this.#append(text)
    return { bytes: bytes + Buffer.byteLength(text), isTorn: false }
  }

  async #append(text: string): Promise<void> {
    try {
      await appendTo(this.path, text)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      await makeDirectoryAsync(dirname(this.path))
      await appendTo(this.path, text)
    }
  }

  /** What is in the file before the first batch of this process. */
  async #begin(): Promise<FileEnd> {
    const found = await stat(this.path).catch(whenMissing(undefined))
    if (found?.isFIFO()) throw refused(this.path)
    const isCut = this.#options.truncate === true && !this.#isTruncated
    if (isCut) await truncate(this.path).catch(whenMissing(undefined))
    this.#isTruncated ||= isCut
    const size = isCut ? 0 : (found?.size ?? 0)
    if (size === 0) return NOTHING
    const file = await open(this.path)
    try {
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
      return { bytes: size, isTorn: buffer[0] !== 10 }
    } finally {
      await file.close()
    }
  }

  async #putAside(): Promise<void> {
    const { keep = 0 } = this.#options
    await rm(this.#name(keep), { force: true })
    for (let index = keep - 1; index >= 0; index--) {
      await rename(this.#name(index), this.#name(index + 1)).catch(whenMissing(undefined))
    }
  }

  #lost(lines: number, error: Error): void {
    if (!this.#isFailing) this.#options.onLost(lines, error)
    this.#isFailing = true
  }

  #name(index: number): string {
    return index === 0 ? this.path : `${this.path}.${index}`
  }
}

/** Where the next line begins. */
const bytesBehind = ({ bytes, isTorn }: FileEnd): number => bytes + (isTorn ? 1 : 0)

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants

/** Throws what the system says. Opening a pipe that nobody reads, or writing to a full one, would hold a thread of the process for as long: a pipe is refused. */
async function appendTo(path: string, text: string): Promise<void> {
  const file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, 0o600).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === 'ENXIO' ? refused(path) : error
    },
  )
  try {
    if ((await file.stat()).isFIFO()) throw refused(path)
    await file.appendFile(text)
  } finally {
    await file.close()
  }
}

const refused = (path: string): Error =>
  new Error(`${path} is a named pipe, a socket or a device that is not there: lines are written to files`)

/** For `catch`: `instead` when the file does not exist; any other failure stays one. */
function whenMissing<T>(instead: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return instead
    throw error
  }
}
