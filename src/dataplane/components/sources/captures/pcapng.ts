/** Reads pcapng files (draft-ietf-opsawg-pcapng): sections in either byte order, interfaces, enhanced and simple packet blocks. */
import { CaptureError, Recorder, type Recording } from './recording.ts'

const SECTION_HEADER = 0x0a0d0d0a
const INTERFACE_DESCRIPTION = 1
const SIMPLE_PACKET = 3
const ENHANCED_PACKET = 6
const BYTE_ORDER_MAGIC = 0x1a2b3c4d
const BYTE_ORDER_SWAPPED = 0x4d3c2b1a

const OPTION_END = 0
const OPTION_TIME_RESOLUTION = 9
const OPTION_TIME_OFFSET = 14

/** Type and length in front, the length again behind. */
const BLOCK_BYTES = 12
/** What a block has at least, with those. */
const SECTION_BYTES = 28
const INTERFACE_BYTES = 20
const SIMPLE_BYTES = 16
const ENHANCED_BYTES = 32

const TWO_32 = 4294967296
const NS_PER_S = 1_000_000_000n

/** Whether a file that begins with the number `magic`, read in either order, is a pcapng file. */
export function isPcapng(magic: number): boolean {
  return magic === SECTION_HEADER
}

/** An interface of the present section. */
interface Interface {
  readonly linkType: number
  /** Most bytes captured of a frame; 0: all. */
  readonly snapLength: number
  /** Units of its times in a second, and the seconds added to them. */
  readonly unitsPerSecond: bigint
  readonly offset: bigint
  readonly nsPerUnit: number
  /** Halves of its first time, and that time in ns after the first of the file; null before it. */
  start: { high: number; low: number; time: number } | null
}

/** Powers of ten, or with the highest bit powers of two. */
function unitsPerSecondOf(resolution: number): bigint {
  return resolution < 128 ? 10n ** BigInt(resolution) : 1n << BigInt(resolution - 128)
}

/** The recording in the bytes of a pcapng file. Throws CaptureError. */
export function readPcapng(bytes: Uint8Array): Recording {
  return new Reading(bytes).read()
}

class Reading {
  private readonly bytes: Uint8Array
  private readonly view: DataView
  private readonly recorder: Recorder
  private little = false
  private interfaces: Interface[] = []
  /** First time of the file, ns since the epoch. */
  private origin: bigint | null = null
  /** The present block: where it begins, its number from 1, and where its body ends. */
  private at = 0
  private block = 0
  private end = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.recorder = new Recorder(bytes)
  }

  read(): Recording {
    const { bytes, view } = this
    while (this.at < bytes.length) {
      this.block++
      const left = bytes.length - this.at
      if (left < BLOCK_BYTES)
        throw this.wrong(`the file ends ${left} bytes after it begins, a block has ${BLOCK_BYTES} at least`)
      const type = view.getUint32(this.at, this.little)
      if (this.block === 1 && type !== SECTION_HEADER) throw new CaptureError('it is no pcapng file')
      if (type === SECTION_HEADER) this.takeByteOrder()
      this.frame()
      if (type === SECTION_HEADER) this.section()
      else if (type === INTERFACE_DESCRIPTION) this.interfaceDescription()
      else if (type === ENHANCED_PACKET) this.enhancedPacket()
      else if (type === SIMPLE_PACKET) this.simplePacket()
      this.at = this.end + 4
    }
    return this.recorder.finish('FRAMES')
  }

  /** A section says itself in which order its numbers are. */
  private takeByteOrder(): void {
    const magic = this.view.getUint32(this.at + 8)
    if (magic !== BYTE_ORDER_MAGIC && magic !== BYTE_ORDER_SWAPPED) {
      throw this.wrong(`its byte-order magic is ${hex(magic)}, not ${hex(BYTE_ORDER_MAGIC)} in either order`)
    }
    this.little = magic === BYTE_ORDER_SWAPPED
  }

  /** Finds where the block ends. */
  private frame(): void {
    const { view, at, little, bytes } = this
    const length = view.getUint32(at + 4, little)
    if (length < BLOCK_BYTES || length % 4 !== 0) {
      throw this.wrong(`its length is ${length}, which is no multiple of 4 of at least ${BLOCK_BYTES}`)
    }
    if (length > bytes.length - at) {
      throw this.wrong(
        `its length is ${length}, the file ends ${bytes.length - at} bytes after it begins: the rest is lost`,
      )
    }
    this.end = at + length - 4
    const again = view.getUint32(this.end, little)
    if (again !== length) throw this.wrong(`its length is ${length} in front and ${again} behind`)
  }

  private atLeast(bytes: number, what: string): void {
    const length = this.end + 4 - this.at
    if (length < bytes) throw this.wrong(`${what} has ${bytes} bytes at least, this one ${length}`)
  }

  private section(): void {
    this.atLeast(SECTION_BYTES, 'a section header')
    const version = this.view.getUint16(this.at + 12, this.little)
    if (version !== 1) throw this.wrong(`its section has version ${version} of the format; 1 is what is read`)
    this.interfaces = []
  }

  private interfaceDescription(): void {
    this.atLeast(INTERFACE_BYTES, 'an interface description')
    const { view, at, little } = this
    let resolution = 6
    let offset = 0n
    for (let option = at + 16; option < this.end; ) {
      if (option + 4 > this.end) throw this.wrong(`its option at byte ${option} does not end within it`)
      const code = view.getUint16(option, little)
      const length = view.getUint16(option + 2, little)
      if (code === OPTION_END) break
      const value = option + 4
      if (value + length > this.end) throw this.wrong(`its option ${code} at byte ${option} does not end within it`)
      if (code === OPTION_TIME_RESOLUTION && length === 1) resolution = view.getUint8(value)
      if (code === OPTION_TIME_OFFSET && length === 8) offset = view.getBigInt64(value, little)
      option = value + ((length + 3) & ~3)
    }
    const unitsPerSecond = unitsPerSecondOf(resolution)
    this.interfaces.push({
      linkType: view.getUint16(at + 8, little),
      snapLength: view.getUint32(at + 12, little),
      unitsPerSecond,
      offset,
      nsPerUnit: Number(NS_PER_S) / Number(unitsPerSecond),
      start: null,
    })
  }

  private interfaceOf(index: number): Interface {
    const found = this.interfaces[index]
    if (found) return found
    throw this.wrong(`its interface is number ${index}, ${this.interfaces.length} are described before it`)
  }

  private enhancedPacket(): void {
    this.atLeast(ENHANCED_BYTES, 'an enhanced packet')
    const { view, at, little } = this
    const own = this.interfaceOf(view.getUint32(at + 8, little))
    const captured = view.getUint32(at + 20, little)
    const from = at + 28
    if (captured > this.end - from) {
      throw this.wrong(`it says that ${captured} bytes were captured and has room for ${this.end - from}`)
    }
    this.recorder.at(this.timeOf(own, view.getUint32(at + 12, little), view.getUint32(at + 16, little)))
    this.recorder.frame(own.linkType, from, from + captured, view.getUint32(at + 24, little))
  }

  /** Of the first interface, without a time. */
  private simplePacket(): void {
    this.atLeast(SIMPLE_BYTES, 'a simple packet')
    const { view, at, little } = this
    const { linkType, snapLength } = this.interfaceOf(0)
    const original = view.getUint32(at + 8, little)
    const from = at + 12
    const captured = snapLength > 0 ? Math.min(original, snapLength) : original
    if (captured > this.end - from) {
      throw this.wrong(`it says that ${captured} bytes were captured and has room for ${this.end - from}`)
    }
    this.recorder.frame(linkType, from, from + captured, original)
  }

  /** ns after the first time of the file. */
  private timeOf(own: Interface, high: number, low: number): number {
    if (own.start === null) {
      const units = (BigInt(high) << 32n) | BigInt(low)
      const time = (units * NS_PER_S) / own.unitsPerSecond + own.offset * NS_PER_S
      this.origin ??= time
      own.start = { high, low, time: Number(time - this.origin) }
    }
    const { start, nsPerUnit } = own
    return start.time + ((high - start.high) * TWO_32 + (low - start.low)) * nsPerUnit
  }

  private wrong(what: string): CaptureError {
    return new CaptureError(`block ${this.block} at byte ${this.at}: ${what}`)
  }
}

function hex(number: number): string {
  return `0x${number.toString(16).padStart(8, '0')}`
}
