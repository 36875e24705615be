/** What a capture holds that can be sent: packets and their times, gathered frame by frame. */
import { ipLength, ipPacketAt, NO_IP, TOO_SHORT } from './frames.ts'

/** Largest packet that is replayed, bytes: a jumbo frame's. */
export const MAX_RECORDED_PACKET = 9_216
/** Most packets of one capture: more than a pcap file of 512 MiB has room for. */
const MAX_RECORDED = 16_777_216
const FIRST_CAPACITY = 1024

/** What is wrong with a capture, and where: the byte and record, or the line. */
export class CaptureError extends Error {
  override readonly name = 'CaptureError'
}

/** Packets in the order of the file. */
export interface Recording {
  readonly packets: number
  /** When each packet leaves, ns after the first one; never falling. Like the other lists it may be longer than `packets`. */
  readonly times: Float64Array
  /** Bytes of each packet, 1 to MAX_RECORDED_PACKET. */
  readonly lengths: Uint16Array
  /** The file, and where in it each packet begins; null: their sizes are all that it tells of them. */
  readonly content: { readonly bytes: Uint8Array; readonly offsets: Uint32Array } | null
  /** Frames without an IP packet. */
  readonly skippedFrames: number
  /** IP packets that are not there in whole, or longer than MAX_RECORDED_PACKET. */
  readonly unsendablePackets: number
}

/** Makes a recording, in the order of the file. */
export class Recorder {
  private readonly bytes: Uint8Array
  private readonly view: DataView
  private packets = 0
  private capacity = FIRST_CAPACITY
  private times = new Float64Array(FIRST_CAPACITY)
  private lengths = new Uint16Array(FIRST_CAPACITY)
  private offsets = new Uint32Array(FIRST_CAPACITY)
  private skippedFrames = 0
  private unsendablePackets = 0
  /** Recorded time of the last frame and the time passed until it, ns. */
  private last = Number.POSITIVE_INFINITY
  private passed = 0
  /** Time passed until the first packet, ns. */
  private first = 0

  /** `bytes` is the file, less than 4 GiB; the recording keeps it. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** What comes next was recorded at `time`, ns from any zero; one before that of the last frame counts as no time passed. */
  at(time: number): void {
    if (time > this.last) this.passed += time - this.last
    this.last = time
  }

  /** The next frame: the bytes from `from` to `end` (exclusive), which are within the file, of `original`. */
  frame(linkType: number, from: number, end: number, original: number): void {
    const { view } = this
    const at = ipPacketAt(view, from, end, linkType)
    const length = at < 0 ? at : ipLength(view, at, end)
    // Of a frame that is cut before one can tell what it is, its being cut is what is known.
    if (length === NO_IP || (length === TOO_SHORT && end - from >= original)) this.skippedFrames++
    else if (length === TOO_SHORT || length > end - at || length > MAX_RECORDED_PACKET) this.unsendablePackets++
    else this.add(at, length)
  }

  /** The next packet, of which only its size is known. */
  size(length: number): void {
    this.add(0, length)
  }

  private add(offset: number, length: number): void {
    if (this.packets === this.capacity) this.grow()
    const i = this.packets++
    if (i === 0) this.first = this.passed
    this.times[i] = this.passed - this.first
    this.lengths[i] = length
    this.offsets[i] = offset
  }

  private grow(): void {
    if (this.capacity === MAX_RECORDED) {
      throw new CaptureError(`it has more than the ${MAX_RECORDED} packets that are taken: cut it into several files`)
    }
    this.capacity *= 2
    const { capacity, times, lengths, offsets } = this
    this.times = new Float64Array(capacity)
    this.times.set(times)
    this.lengths = new Uint16Array(capacity)
    this.lengths.set(lengths)
    this.offsets = new Uint32Array(capacity)
    this.offsets.set(offsets)
  }

  /** The recording, of what the file tells: its FRAMES, or only their SIZES. Nothing is added afterwards. */
  finish(kind: 'FRAMES' | 'SIZES'): Recording {
    const { packets, times, lengths, offsets, skippedFrames, unsendablePackets, bytes } = this
    const content = kind === 'FRAMES' ? { bytes, offsets } : null
    return { packets, times, lengths, content, skippedFrames, unsendablePackets }
  }
}
