/** Captures as bytes, made by hand: pcap and pcapng of any order and unit, frames of every link type, IP packets. */

/** Writes numbers one after the other. */
export class Bytes {
  private readonly parts: Buffer[] = []
  private readonly little: boolean

  constructor(little = false) {
    this.little = little
  }

  u16(...numbers: number[]): this {
    return this.numbers(numbers, 2)
  }

  u32(...numbers: number[]): this {
    return this.numbers(numbers, 4)
  }

  u64(number: bigint): this {
    const part = Buffer.alloc(8)
    if (this.little) part.writeBigUInt64LE(number)
    else part.writeBigUInt64BE(number)
    return this.raw(part)
  }

  raw(...parts: Uint8Array[]): this {
    this.parts.push(...parts.map((part) => Buffer.from(part)))
    return this
  }

  get made(): Buffer {
    return Buffer.concat(this.parts)
  }

  private numbers(numbers: readonly number[], bytes: 2 | 4): this {
    for (const number of numbers) {
      const part = Buffer.alloc(bytes)
      if (this.little) part.writeUIntLE(number, 0, bytes)
      else part.writeUIntBE(number, 0, bytes)
      this.parts.push(part)
    }
    return this
  }
}

/** An IPv4 packet of `bytes` bytes, all behind its header `tag`; `says` is the length in the header. */
export function ipv4(bytes: number, tag = 0, says = bytes): Buffer {
  const made = Buffer.alloc(bytes, tag)
  made[0] = 0x45
  made.writeUInt16BE(says, 2)
  return made
}

/** An IPv6 packet of `bytes` bytes, all behind its header `tag`. */
export function ipv6(bytes: number, tag = 0, says = bytes - 40): Buffer {
  const made = Buffer.alloc(bytes, tag)
  made.writeUInt32BE(0x60000000)
  made.writeUInt16BE(says, 4)
  return made
}

/** An Ethernet frame of EtherType `type`, behind VLAN tags of the types `tags`. */
export function ethernet(type: number, packet: Uint8Array, tags: readonly number[] = []): Buffer {
  const frame = new Bytes().raw(Buffer.alloc(12, 2))
  for (const tag of tags) frame.u16(tag, 7)
  return frame.u16(type).raw(packet).made
}

export interface Frame {
  /** Seconds since the epoch, and the fraction in the file's unit. */
  time: [seconds: number, fraction: number]
  bytes: Uint8Array
  /** Bytes that it had on the wire; default: all are there. */
  original?: number
}

export interface PcapOptions {
  little?: boolean
  unit?: 'us' | 'ns'
  linkType?: number
}

export function pcap(frames: readonly Frame[], { little = true, unit = 'us', linkType = 1 }: PcapOptions = {}): Buffer {
  const made = new Bytes(little)
    .u32(unit === 'us' ? 0xa1b2c3d4 : 0xa1b23c4d)
    .u16(2, 4)
    .u32(0, 0, 262_144, linkType)
  for (const { time, bytes, original = bytes.length } of frames) made.u32(...time, bytes.length, original).raw(bytes)
  return made.made
}

/** Blocks of a pcapng section, to be put one behind the other. */
export class Section {
  readonly little: boolean
  readonly #blocks: Buffer[] = []

  constructor(little = true) {
    this.little = little
    this.block(0x0a0d0d0a, this.bytes.u32(0x1a2b3c4d).u16(1, 0).u64(0xffffffffffffffffn).made)
  }

  get bytes(): Bytes {
    return new Bytes(this.little)
  }

  block(type: number, body: Uint8Array): this {
    const padding = Buffer.alloc(-body.length & 3)
    const length = body.length + padding.length + 12
    this.#blocks.push(this.bytes.u32(type, length).raw(body, padding).u32(length).made)
    return this
  }

  /** `options` are codes and values. */
  interface(linkType: number, snapLength = 0, options: readonly [code: number, value: Uint8Array][] = []): this {
    const body = this.bytes.u16(linkType, 0).u32(snapLength)
    for (const [code, value] of options) body.u16(code, value.length).raw(value, Buffer.alloc(-value.length & 3))
    if (options.length > 0) body.u32(0)
    return this.block(1, body.made)
  }

  enhanced(number: number, time: bigint, bytes: Uint8Array, original = bytes.length): this {
    const halves = [Number(time >> 32n), Number(time & 0xffffffffn)]
    const padding = Buffer.alloc(-bytes.length & 3)
    const body = this.bytes.u32(number, ...halves, bytes.length, original).raw(bytes, padding)
    return this.block(6, body.made)
  }

  simple(bytes: Uint8Array, original = bytes.length): this {
    return this.block(3, this.bytes.u32(original).raw(bytes).made)
  }

  get made(): Buffer {
    return Buffer.concat(this.#blocks)
  }
}
