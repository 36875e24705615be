/** A run's metrics in a file that other programs map into their memory: written at an interval, read at any time. */
import { close, closeSync, fstat, ftruncateSync, openSync, rmSync, write, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type MetricEntry, type MetricSnapshot, RegionReader } from '../dataplane/engine/metrics.ts'
import {
  METRICS_FILE_HEADER_BYTES,
  type MetricsFileLayout,
  metricsFileLayout,
  type ShmConfig,
} from '../dataplane/engine/shm-config.ts'
import { makeDirectory } from '../make-directory.ts'

const MAGIC = 'PENSHMEM'
const VERSION = 1
/** What of the file has room on the disk from the start: more than the metrics of a large pipeline take. What lies behind is never written. */
const RESERVED_BYTES = 1 << 20
// Where in the header what is.
const SEQUENCE_AT = 12
const STATE_AT = 16
const TIME_AT = 24

/** What the run does, for readers. */
const STATES = { RUNNING: 1, ENDED: 2 } as const

/**
 * The file is written with write(2), which on Linux is coherent with every mapping of it. The sequence is odd while values are being
 * written; each write is made once the one before it has returned, so that a reader sees them in order.
 */
export class MetricsFile {
  readonly #descriptor: number
  readonly #config: ShmConfig
  readonly #onError: (error: Error) => void
  #layout: MetricsFileLayout | undefined
  /** What stands before the values, while it is not in the file. */
  #head: Buffer | undefined
  #reader: RegionReader | undefined
  #timer: NodeJS.Timeout | undefined
  #sequence = 0
  #turn: Promise<void> = Promise.resolve()
  #isWriting = false
  #isFailing = false
  #ended: Promise<void> | undefined

  /**
   * Makes the file, in the place of one that is there: who has that one mapped keeps it as it was left. Throws what the system says, also
   * where the disk has no room for it. `onError` hears of a write that failed, or a close, once until a write succeeds, and of a file that has lost its name.
   */
  constructor(config: ShmConfig, onError: (error: Error) => void) {
    this.#config = config
    this.#onError = onError
    makeDirectory(dirname(config.file_path))
    rmSync(config.file_path, { force: true })
    this.#descriptor = openSync(config.file_path, 'wx', 0o644)
    try {
      ftruncateSync(this.#descriptor, config.bytes)
      writeAll(this.#descriptor, Buffer.alloc(Math.min(config.bytes, RESERVED_BYTES)))
    } catch (error) {
      closeSync(this.#descriptor)
      rmSync(config.file_path, { force: true })
      throw error
    }
  }

  /** Writes what stands in `region` from now on, at once and then at every interval. */
  follow(region: SharedArrayBuffer): void {
    const reader = new RegionReader(region)
    this.#reader = reader
    const layout = metricsFileLayout(reader.entries)
    this.#layout = layout
    const head = Buffer.alloc(layout.valuesAt)
    head.write(MAGIC, 'latin1')
    head.writeUInt32LE(VERSION, 8)
    head.writeUInt32LE(layout.directory.length, 32)
    head.writeUInt32LE(layout.valuesAt, 36)
    head.writeUInt32LE(reader.entries.length, 40)
    layout.directory.copy(head, METRICS_FILE_HEADER_BYTES)
    this.#head = head
    this.#tick()
    this.#timer = setInterval(() => this.#tick(), this.#config.interval_ms)
    this.#timer.unref()
  }

  /** The run is over: writes what its metrics were at the end, says so in the file, and lets go of it. Once, however often it is asked; never rejects. */
  end(): Promise<void> {
    clearInterval(this.#timer)
    this.#ended ??= this.#turn.then(() => this.#write(STATES.ENDED)).then(() => this.#close())
    return this.#ended
  }

  /** A disk that takes longer than the interval misses writes: it is not asked for several at once. */
  #tick(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#turn = this.#write(STATES.RUNNING).finally(() => {
      this.#isWriting = false
    })
  }

  async #write(state: number): Promise<void> {
    const [reader, layout] = [this.#reader, this.#layout]
    if (reader === undefined || layout === undefined) return
    const snapshot = reader.snapshot()
    try {
      if (this.#head !== undefined) {
        writeAll(this.#descriptor, this.#head)
        this.#head = undefined
      }
      // Odd from here on, and still odd after a write that failed half-way.
      this.#sequence |= 1
      await this.#put(wordOf(this.#sequence), SEQUENCE_AT)
      if (snapshot !== undefined) await this.#put(valuesOf(reader.entries, snapshot, layout), layout.valuesAt)
      await this.#put(wordOf(state), STATE_AT)
      if (snapshot !== undefined) await this.#put(timeOf(snapshot), TIME_AT)
      this.#sequence = (this.#sequence + 1) >>> 0
      await this.#put(wordOf(this.#sequence), SEQUENCE_AT)
      await this.#requireName()
      this.#isFailing = false
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** Rejects where nobody can open the file any more, for as long as its run is on: after that the name is the next run's. */
  #requireName(): Promise<void> {
    return new Promise((resolve, reject) => {
      fstat(this.#descriptor, (error, stats) => {
        if (error !== null) reject(error)
        else if (this.#ended !== undefined || stats.nlink > 0) resolve()
        else
          reject(new Error('somebody has removed it, or another run has one of that name: the next run makes it again'))
      })
    })
  }

  /** Never rejects. What a disk elsewhere (NFS) has no room for it may refuse only now: see close(2). */
  #close(): Promise<void> {
    return new Promise((resolve) => {
      close(this.#descriptor, (error) => {
        if (error !== null && error !== undefined) this.#failed(error)
        resolve()
      })
    })
  }

  #failed(error: Error): void {
    if (!this.#isFailing) this.#onError(error)
    this.#isFailing = true
  }

  async #put(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) done += await this.#putPart(bytes.subarray(done), at + done)
  }

  /** How many of the bytes are in the file: fewer than all where the disk has room for a part of them. */
  #putPart(bytes: Buffer, at: number): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#descriptor, bytes, 0, bytes.length, at, (error, written) =>
        error === null ? resolve(written) : reject(error),
      )
    })
  }
}

/** At the file's beginning; a disk that has room for a part of it fails the write of the rest. */
function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, at)
}

function wordOf(value: number): Buffer {
  const word = Buffer.alloc(4)
  word.writeUInt32LE(value >>> 0)
  return word
}

function timeOf({ time }: MetricSnapshot): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(time)
  return bytes
}

/** In the order of the directory. */
function valuesOf(entries: readonly MetricEntry[], { values }: MetricSnapshot, layout: MetricsFileLayout): Buffer {
  const bytes = Buffer.alloc(layout.bytes - layout.valuesAt)
  entries.forEach(({ index }, i) => {
    bytes.writeDoubleLE(values[index] as number, i * 8)
  })
  return bytes
}
