/** Metrics of a run: declared by components as data, laid out by the engine, counted as plain numbers, published to shared memory. */
import {
  bucketsAt,
  HISTOGRAM_NUMBERS,
  HISTOGRAM_PARTS,
  Histogram,
  type HistogramBuckets,
  type HistogramPart,
} from './histogram.ts'

type MetricKind = 'counter' | 'gauge'
/**
 * What a counter says about packets, so that in + created = out + dropped + consumed + held can be checked:
 * `created` brought into being here, `consumed` ended here as meant, `drop` lost here, `intended` lost on purpose, `overflow`
 * lost because a queue that is emulated was full.
 */
export type PacketRole = 'created' | 'consumed' | 'drop' | 'intended' | 'overflow' | 'held'

export interface MetricDeclaration {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly unit: string
  readonly help: string
  readonly role?: PacketRole
  /** Of a drop: the packets never came into the run, so that the sum over the roles is without them. */
  readonly unread?: boolean
  /** Of a place that is somebody's at times: the metric of the component that is 0 while nobody has it. */
  readonly occupancy?: string
  readonly each?: OneOfMany
}

/** One of several metrics that say the same of different things: the name all of them have, what those things are, and which one it is. */
interface OneOfMany {
  readonly name: string
  readonly label: string
  readonly value: string
}

export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>

export const counter = (help: string, unit = '') => ({ type: 'counter', unit, help }) as const
export const gauge = (help: string, unit = '') => ({ type: 'gauge', unit, help }) as const
/** Appears as `<name>_count`, `_min`, `_max`, `_mean`, `_p50`, `_p90` and `_p99`. Values ≥ 0, 1/32 resolution. */
export const histogram = (help: string, unit = '') => ({ type: 'histogram', unit, help }) as const
/** Packets lost here though nobody asked for it. */
export const drop = (help: string) => ({ type: 'counter', unit: 'packets', help, role: 'drop' }) as const
/** Packets lost before the run had them: they are lost as those are, and no part of the sum above. */
export const unreadDrop = (help: string) => ({ ...drop(help), unread: true }) as const
/** Packets lost here because that is what the component emulates. */
export const intendedDrop = (help: string) => ({ type: 'counter', unit: 'packets', help, role: 'intended' }) as const
/** Packets lost here because the queue of an emulated link was full. */
export const queueDrop = (help: string) => ({ type: 'counter', unit: 'packets', help, role: 'overflow' }) as const
/** Packets that this component brought into being. */
export const created = (help: string) => ({ type: 'counter', unit: 'packets', help, role: 'created' }) as const
/** Packets that ended here as they should. */
export const consumed = (help: string) => ({ type: 'counter', unit: 'packets', help, role: 'consumed' }) as const
/** What every component that holds packets has, as `held_at_end_packets`: what it still held at its stop is lost there. */
export const heldAtEnd = () => drop('Packets still held when the run ended.')
/** Packets that this component holds now. */
export const held = (help: string) => ({ type: 'gauge', unit: 'packets', help, role: 'held' }) as const

/** One published number. */
export interface MetricEntry {
  /** Component name. */
  path: string
  name: string
  kind: MetricKind
  unit: string
  description: string
  /** Counters are whole numbers; gauges may be fractions. */
  integer: boolean
  role?: PacketRole
  /** Of a place that is somebody's at times: the metric of the same path that is 0 while nobody has it. */
  occupancy?: string
  each?: OneOfMany
  /** Of the engine's own counters of a port: its name, and which way its packets go. The unit tells packets from bytes. */
  port?: { readonly name: string; readonly side: 'input' | 'output' }
  /** Of a number of a histogram: which histogram, and which number of it; of the count, where the buckets are among the region's values. */
  histogram?: { readonly name: string; readonly part: HistogramPart; readonly buckets?: HistogramBuckets }
  /** Index into the region's values. Two entries may share one (both ends of a connection). */
  index: number
}

/** A number that only rises. */
export class Counter {
  private readonly values: Float64Array
  private readonly index: number
  constructor(values: Float64Array, index: number) {
    this.values = values
    this.index = index
  }
  add(amount: number): void {
    this.values[this.index] += amount
  }
  get value(): number {
    return this.values[this.index]
  }
}

/** A number that is set. */
export class Gauge {
  private readonly values: Float64Array
  private readonly index: number
  constructor(values: Float64Array, index: number) {
    this.values = values
    this.index = index
  }
  set(value: number): void {
    this.values[this.index] = value
  }
  add(amount: number): void {
    this.values[this.index] += amount
  }
  get value(): number {
    return this.values[this.index]
  }
}

type MetricOf<D> = D extends { type: 'counter' } ? Counter : D extends { type: 'gauge' } ? Gauge : Histogram
export type Metrics<M extends MetricDeclarations> = { readonly [K in keyof M]: MetricOf<M[K]> }

/** Assigns every declared metric its place; the same calls in the same order give the same layout in every thread. */
export class MetricLayout {
  readonly entries: MetricEntry[] = []
  private size = 0

  /** Places one number; `shareWith` puts it where an earlier one is. */
  number(entry: Omit<MetricEntry, 'index'>, shareWith?: number): number {
    const index = shareWith ?? this.size++
    this.entries.push({ ...entry, index })
    return index
  }

  /** Places a component's declared metrics; returns the index of each. */
  declare(path: string, declarations: MetricDeclarations): Map<string, number> {
    const places = new Map<string, number>()
    for (const [name, { type, unit, help, role, occupancy, each }] of Object.entries(declarations)) {
      if (type !== 'histogram') {
        const entry: Omit<MetricEntry, 'index'> = {
          path,
          name,
          kind: type,
          unit,
          description: help,
          integer: type === 'counter',
        }
        if (role !== undefined) entry.role = role
        if (occupancy !== undefined) entry.occupancy = occupancy
        if (each !== undefined) entry.each = each
        places.set(name, this.number(entry))
        continue
      }
      HISTOGRAM_PARTS.forEach((part, i) => {
        const index = this.number({
          path,
          name: `${name}_${part}`,
          kind: i === 0 ? 'counter' : 'gauge',
          unit: i === 0 ? '' : unit,
          description: `${help} (${part})`,
          integer: i === 0,
          histogram: { name, part, ...(i === 0 ? { buckets: bucketsAt(this.size, unit, help) } : {}) },
        })
        if (i === 0) places.set(name, index)
      })
      this.size += HISTOGRAM_NUMBERS - HISTOGRAM_PARTS.length
    }
    return places
  }

  /** How many numbers a region of this layout holds. */
  get values(): number {
    return this.size
  }
}

/** Makes the objects a component counts with, over the run's private values. */
export function bindMetrics(
  declarations: MetricDeclarations,
  places: Map<string, number>,
  values: Float64Array,
  histograms: Histogram[],
): Record<string, Counter | Gauge | Histogram> {
  const bound: Record<string, Counter | Gauge | Histogram> = {}
  for (const [name, { type, unit }] of Object.entries(declarations)) {
    const index = places.get(name) as number
    if (type === 'counter') bound[name] = new Counter(values, index)
    else if (type === 'gauge') bound[name] = new Gauge(values, index)
    else {
      const made = new Histogram(values, index, unit)
      histograms.push(made)
      bound[name] = made
    }
  }
  return bound
}

const MAGIC = 0x50454e53 // 'PENS'
const HEADER_BYTES = 64

/**
 * The region in shared memory: header of 64 bytes (u32 magic, u32 version 1, u32 sequence, u32 directory bytes, u32 values
 * offset, u32 value count, 8 reserved, f64 time of the last publication as ns since the epoch), the directory as JSON, the
 * values as f64. The sequence is odd while the writer writes (a seqlock).
 *
 * Time and values are stored and loaded with Atomics, as 32-bit words, and not only the sequence. Atomics are sequentially
 * consistent: all threads see them in one order, which keeps the order of each thread's own. A reader that has loaded a word
 * of a later publication finds another sequence at its second look, for that word was stored after the sequence had become
 * odd. It loads no word of an earlier publication, for all words were stored before the sequence of its first look was. Plain
 * accesses have no such order ("unordered" in the ECMAScript memory model): a CPU like ARM's may carry out a reader's loads
 * after its second look, and a writer's stores before the first change of the sequence or after the second.
 */
export function createRegion(layout: MetricLayout): SharedArrayBuffer {
  const directory = new TextEncoder().encode(JSON.stringify(layout.entries))
  const valuesAt = (HEADER_BYTES + directory.length + 7) & ~7
  const region = new SharedArrayBuffer(valuesAt + layout.values * 8)
  const header = new Uint32Array(region, 0, 6)
  header.set([MAGIC, 1, 0, directory.length, valuesAt, layout.values])
  new Uint8Array(region, HEADER_BYTES, directory.length).set(directory)
  return region
}

/** The writing side, in the run's thread. */
export class RegionWriter {
  private readonly sequence: Int32Array
  private readonly sharedTime: Int32Array
  private readonly sharedValues: Int32Array
  private readonly time = new Float64Array(1)
  private readonly timeWords = new Int32Array(this.time.buffer)
  /** The words of the values that were published last: those of one run are always the same array. */
  private words: Int32Array = new Int32Array(0)

  constructor(region: SharedArrayBuffer) {
    ;[this.sequence, this.sharedTime, this.sharedValues] = wordsOf(region)
  }

  get values(): number {
    return this.sharedValues.length / 2
  }

  /** Copies the private values into the region. `time` in ns since the epoch. */
  publish(values: Float64Array, time: number): void {
    if (values.buffer !== this.words.buffer || values.byteOffset !== this.words.byteOffset) {
      this.words = new Int32Array(values.buffer, values.byteOffset, values.length * 2)
    }
    this.time[0] = time
    Atomics.add(this.sequence, 0, 1)
    storeChanged(this.sharedValues, this.words)
    storeChanged(this.sharedTime, this.timeWords)
    Atomics.add(this.sequence, 0, 1)
  }
}

/** The sequence, the time and the values of a region, as words that Atomics take. */
function wordsOf(region: SharedArrayBuffer): [sequence: Int32Array, time: Int32Array, values: Int32Array] {
  const header = new Uint32Array(region, 0, 6)
  return [new Int32Array(region, 8, 1), new Int32Array(region, 32, 2), new Int32Array(region, header[4], header[5] * 2)]
}

/** Stores the words that are not there yet; the one writer may look at its own stores without Atomics. */
function storeChanged(shared: Int32Array, words: Int32Array): void {
  for (let i = 0; i < shared.length; i++) if (shared[i] !== words[i]) Atomics.store(shared, i, words[i])
}

function loadAll(shared: Int32Array, words: Int32Array): void {
  for (let i = 0; i < shared.length; i++) words[i] = Atomics.load(shared, i)
}

/** One consistent copy of a region's numbers. */
export interface MetricSnapshot {
  /** Nanoseconds since the epoch when the run last published; 0 before the first time. */
  time: number
  /** By `MetricEntry.index`. */
  values: Float64Array
}

/** The reading side: any thread, any number of them; never disturbs the writer. */
export class RegionReader {
  readonly entries: readonly MetricEntry[]
  private readonly sequence: Int32Array
  private readonly sharedTime: Int32Array
  private readonly sharedValues: Int32Array

  constructor(region: SharedArrayBuffer) {
    const header = new Uint32Array(region, 0, 6)
    if (header[0] !== MAGIC || header[1] !== 1) throw new Error('not a penstock metrics region of version 1')
    const directory = new Uint8Array(header[3])
    directory.set(new Uint8Array(region, HEADER_BYTES, header[3]))
    this.entries = JSON.parse(new TextDecoder().decode(directory))
    ;[this.sequence, this.sharedTime, this.sharedValues] = wordsOf(region)
  }

  /** What a region holds before its first publication. */
  get blank(): MetricSnapshot {
    return { time: 0, values: new Float64Array(this.sharedValues.length / 2) }
  }

  /**
   * Copies the numbers; undefined when that could not be done within one publication: the writer stands still within a write,
   * because it waits for a CPU or because it died there. Whoever asks keeps what it had, and asks again later.
   */
  snapshot(): MetricSnapshot | undefined {
    const { values } = this.blank
    const time = new Float64Array(1)
    const words = new Int32Array(values.buffer)
    const timeWords = new Int32Array(time.buffer)
    for (let attempt = 0; attempt < 1000; attempt++) {
      const before = Atomics.load(this.sequence, 0)
      if ((before & 1) === 1) continue
      loadAll(this.sharedValues, words)
      loadAll(this.sharedTime, timeWords)
      if (Atomics.load(this.sequence, 0) === before) return { time: time[0], values }
    }
    return undefined
  }
}

/** Values by the name of their component, then by that of the metric; a component may have the name of anything that objects inherit. */
export function byComponent(
  values: Iterable<{ path: string; name: string; value: number }>,
): Record<string, Record<string, number>> {
  const result: Record<string, Record<string, number>> = Object.create(null)
  for (const { path, name, value } of values) {
    result[path] ??= {}
    result[path][name] = value
  }
  return result
}
