/** Writes packets as pcapng (draft-ietf-opsawg-pcapng): one section, one interface for each link and kind of packet, times in nanoseconds. */

const SECTION_HEADER = 0x0a0d0d0a
const INTERFACE_DESCRIPTION = 1
const ENHANCED_PACKET = 6
const BYTE_ORDER_MAGIC = 0x1a2b3c4d
/** Link types of libpcap: Ethernet, IP without a link header, and whatever it may be. */
export const LINK_TYPES = { ethernet: 1, raw: 101, user: 147 } as const
export type LinkType = keyof typeof LINK_TYPES

const OPTION_NAME = 2
const OPTION_RESOLUTION = 9
const NANOSECONDS = 9
const OPTION_APPLICATION = 4

export interface WrittenPacket {
  /** Nanoseconds since 1970. */
  readonly time: bigint
  /** Bytes of the whole packet. */
  readonly length: number
  readonly data: Uint8Array
}

/** What IPv4 and IPv6 headers at the beginning say: whole datagrams, as they travel through a TUN device. */
export function looksLikeIp(data: Uint8Array, length: number): boolean {
  const version = (data[0] ?? 0) >> 4
  if (version === 4) return data.length >= 20 && ((data[2] as number) << 8) + (data[3] as number) === length
  return version === 6 && data.length >= 40 && ((data[4] as number) << 8) + (data[5] as number) + 40 === length
}

/** Gives the bytes of a file piece by piece: `header` first, then an interface before its first packet. */
export class PcapngWriter {
  readonly #interfaces = new Map<string, number>()

  header(): Buffer {
    const body = Buffer.alloc(16)
    body.writeUInt32LE(BYTE_ORDER_MAGIC, 0)
    body.writeUInt16LE(1, 4)
    body.writeBigInt64LE(-1n, 8)
    return block(SECTION_HEADER, [body, option(OPTION_APPLICATION, Buffer.from('penstock')), endOfOptions()])
  }

  /** The packet, behind its interface when that is new: `name` as its name, of link type `type`. */
  packet({ time, length, data }: WrittenPacket, name: string, type: LinkType): Buffer {
    const key = `${type} ${name}`
    let index = this.#interfaces.get(key)
    const blocks: Buffer[] = []
    if (index === undefined) {
      index = this.#interfaces.size
      this.#interfaces.set(key, index)
      const body = Buffer.alloc(8)
      body.writeUInt16LE(LINK_TYPES[type], 0)
      const options = [option(OPTION_NAME, Buffer.from(name)), option(OPTION_RESOLUTION, Buffer.of(NANOSECONDS))]
      blocks.push(block(INTERFACE_DESCRIPTION, [body, ...options, endOfOptions()]))
    }
    const head = Buffer.alloc(20)
    head.writeUInt32LE(index, 0)
    head.writeUInt32LE(Number(time >> 32n), 4)
    head.writeUInt32LE(Number(time & 0xffffffffn), 8)
    head.writeUInt32LE(data.length, 12)
    head.writeUInt32LE(length, 16)
    blocks.push(block(ENHANCED_PACKET, [head, padded(data)]))
    return Buffer.concat(blocks)
  }
}

function block(type: number, parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const length = body.length + 12
  const ends = Buffer.alloc(8)
  ends.writeUInt32LE(type, 0)
  ends.writeUInt32LE(length, 4)
  return Buffer.concat([ends, body, ends.subarray(4)])
}

function option(code: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16LE(code, 0)
  head.writeUInt16LE(value.length, 2)
  return Buffer.concat([head, padded(value)])
}

const endOfOptions = (): Buffer => Buffer.alloc(4)

/** Up to a multiple of four bytes. */
function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}
