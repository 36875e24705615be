/** Copies of packets on their way through a run, from its thread to the main thread: a ring in shared memory that is full rather than slow. */
import { native } from '../native/native.ts'
import type { Batch } from './batch.ts'
import type { Packets } from './packets.ts'

/** Bytes of packets and their heads that wait to be read. */
const MAX_CAPTURE_BYTES = 4 << 20
/** Words of the header: bytes written, bytes read, packets dropped, writers so far; the first two as they have come to be, modulo 2^32. */
const HEADER_WORDS = 4
const WRITTEN = 0
const READ = 1
const DROPPED = 2
const WRITERS = 3
/** Time (f64), captured and original length, link (u32 each), and four bytes that round it up. */
const RECORD_BYTES = 24
/** Captured length of a record that only says: go on at the beginning. */
const WRAP = 0xffffffff

/** What a capture is asked for. */
export interface CaptureOptions {
  readonly component: string
  /** Packets that come to the component, or those that leave it. */
  readonly side: 'input' | 'output'
  /** Bytes kept of each packet, at most. */
  readonly length: number
}

/** A copy of a packet. */
export interface CapturedPacket {
  /** Nanoseconds since the epoch when the breath began in which it was handed over. */
  readonly time: number
  /** Bytes of the whole packet. */
  readonly length: number
  /** The first bytes of it, the caller's own. */
  readonly data: Uint8Array
  /** Which of the links that are captured, in the order that they were told in. */
  readonly link: number
}

export function createCapture(): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER_WORDS * 4 + MAX_CAPTURE_BYTES)
}

/** Nobody reads `ring` any more: its memory goes back to the system, and is had again as it is written. What it counts stays. */
export function giveBackCapture(ring: SharedArrayBuffer): void {
  native.giveBackPages(new Uint8Array(ring, HEADER_WORDS * 4))
}

function views(ring: SharedArrayBuffer) {
  const at = HEADER_WORDS * 4
  return {
    header: new Int32Array(ring, 0, HEADER_WORDS),
    bytes: Buffer.from(ring, at, MAX_CAPTURE_BYTES),
    view: new DataView(ring, at, MAX_CAPTURE_BYTES),
  }
}

/** Room that a record of `length` bytes takes. */
const roomOf = (length: number): number => (RECORD_BYTES + length + 7) & ~7

/** The end in the run's thread. What finds no room is dropped and counted: the run does not wait. */
export class CaptureWriter {
  readonly #header: Int32Array
  readonly #bytes: Buffer
  readonly #view: DataView
  readonly #most: number
  readonly #source: Buffer
  readonly #packets: Packets
  #written: number

  constructor(ring: SharedArrayBuffer, most: number, packets: Packets) {
    const { header, bytes, view } = views(ring)
    this.#header = header
    this.#bytes = bytes
    this.#view = view
    this.#most = most
    this.#packets = packets
    const { buffer, byteOffset, byteLength } = packets.data
    this.#source = Buffer.from(buffer as SharedArrayBuffer, byteOffset, byteLength)
    this.#written = header[WRITTEN]
    // What a writer before it has left is nobody's.
    Atomics.store(header, READ, this.#written)
    Atomics.store(header, DROPPED, 0)
    Atomics.add(header, WRITERS, 1)
  }

  /** Copies the packets of a batch that travels over `link`. `time` in ns since the epoch. */
  take({ handles, length }: Batch, link: number, time: number): void {
    const written = this.#written
    for (let i = 0; i < length; i++) this.#put(handles[i], link, time)
    if (this.#written !== written) Atomics.store(this.#header, WRITTEN, this.#written)
  }

  #put(packet: number, link: number, time: number): void {
    const { offset, length } = this.#packets
    const whole = length[packet]
    const kept = Math.min(whole, this.#most)
    const room = roomOf(kept)
    let at = (this.#written >>> 0) % MAX_CAPTURE_BYTES
    const toEnd = MAX_CAPTURE_BYTES - at
    const skipped = room > toEnd ? toEnd : 0
    const waiting = (this.#written - Atomics.load(this.#header, READ)) >>> 0
    if (waiting + skipped + room > MAX_CAPTURE_BYTES) {
      Atomics.add(this.#header, DROPPED, 1)
      return
    }
    const view = this.#view
    if (skipped > 0) {
      // Records are multiples of eight bytes: there is room for the one word of this one.
      view.setUint32(at, WRAP, true)
      at = 0
    }
    view.setUint32(at, kept, true)
    view.setUint32(at + 4, whole, true)
    view.setFloat64(at + 8, time, true)
    view.setUint32(at + 16, link, true)
    this.#source.copy(this.#bytes, at + RECORD_BYTES, offset[packet], offset[packet] + kept)
    this.#written = (this.#written + skipped + room) | 0
  }
}

/** The end in the main thread. */
export class CaptureReader {
  readonly #header: Int32Array
  readonly #bytes: Buffer
  readonly #view: DataView
  readonly #writer: number
  /** Bytes read, once its writer has begun. */
  #at: number | undefined

  /** `writer`: which of those that write into `ring`, one after the other, it reads from; the first is 1. */
  constructor(ring: SharedArrayBuffer, writer = 1) {
    const { header, bytes, view } = views(ring)
    this.#writer = writer
    this.#header = header
    this.#bytes = bytes
    this.#view = view
  }

  /** Packets that found no room so far. */
  get dropped(): number {
    return this.#hasBegun() ? Atomics.load(this.#header, DROPPED) >>> 0 : 0
  }

  #hasBegun(): boolean {
    return Atomics.load(this.#header, WRITERS) === this.#writer
  }

  /** Takes out what has come since, in order: packets of `most` bytes together at most, one at least if there is one. */
  read(most: number): CapturedPacket[] {
    if (!this.#hasBegun()) return []
    const written = Atomics.load(this.#header, WRITTEN)
    const packets: CapturedPacket[] = []
    let read = this.#at ?? Atomics.load(this.#header, READ)
    for (let bytes = 0; read !== written && bytes < most; ) {
      const at = (read >>> 0) % MAX_CAPTURE_BYTES
      const kept = this.#view.getUint32(at, true)
      if (kept === WRAP) {
        read = (read + MAX_CAPTURE_BYTES - at) | 0
        continue
      }
      const from = at + RECORD_BYTES
      packets.push({
        time: this.#view.getFloat64(at + 8, true),
        length: this.#view.getUint32(at + 4, true),
        link: this.#view.getUint32(at + 16, true),
        data: Uint8Array.from(this.#bytes.subarray(from, from + kept)),
      })
      bytes += kept
      read = (read + roomOf(kept)) | 0
    }
    this.#at = read
    Atomics.store(this.#header, READ, read)
    return packets
  }
}
