/** What IPv4 (RFC 791) and IPv6 (RFC 8200) headers say, read without allocating. */

export const TCP = 6
export const UDP = 17
const HOP_BY_HOP = 0
const ROUTING = 43
const FRAGMENT = 44
const AUTHENTICATION = 51
const DESTINATION_OPTIONS = 60
const MOBILITY = 135
const HOST_IDENTITY = 139
const SHIM6 = 140
const IPV4_BYTES = 20
const IPV6_BYTES = 40

/** The header read last; one object serves any number of packets. */
export class IpHeader {
  /** 4 or 6. */
  version = 0
  /** Bytes in front of the payload: IPv4 with its options, IPv6 with its extension headers. */
  headerBytes = 0
  /** Bytes of the whole IP packet: what its header says where that much is there, else what is there. */
  bytes = 0
  /** Of the payload, as IANA numbers them; of IPv6 what the last extension header names. */
  protocol = 0
  /** A fragment that does not begin the packet it is of: its payload begins with no header. */
  laterFragment = false
  /** Where source and destination port stand, 16 bits each; -1 where TCP or UDP ports are not to be had. */
  portsAt = -1
  /** Addresses as 32-bit words: one for IPv4, four for IPv6. */
  readonly source = new Uint32Array(4)
  readonly destination = new Uint32Array(4)

  /**
   * Reads the header at `at`, of a packet of at most `length` bytes from there, which `view` has. False when it is none: the rest of
   * the fields then mean nothing. Checksums are not looked at.
   */
  read(view: DataView, at: number, length: number): boolean {
    if (length < IPV4_BYTES) return false
    this.version = view.getUint8(at) >> 4
    this.laterFragment = false
    this.portsAt = -1
    if (this.version === 4) return this.readV4(view, at, length)
    return this.version === 6 && length >= IPV6_BYTES && this.readV6(view, at, length)
  }

  private readV4(view: DataView, at: number, length: number): boolean {
    const headerBytes = (view.getUint8(at) & 15) * 4
    if (headerBytes < IPV4_BYTES || headerBytes > length) return false
    const told = view.getUint16(at + 2)
    this.bytes = told >= headerBytes && told <= length ? told : length
    this.headerBytes = headerBytes
    this.protocol = view.getUint8(at + 9)
    this.laterFragment = (view.getUint16(at + 6) & 0x1fff) !== 0
    this.source[0] = view.getUint32(at + 12)
    this.destination[0] = view.getUint32(at + 16)
    this.findPorts(at)
    return true
  }

  private readV6(view: DataView, at: number, length: number): boolean {
    const told = IPV6_BYTES + view.getUint16(at + 4)
    this.bytes = told > IPV6_BYTES && told <= length ? told : length
    for (let i = 0; i < 4; i++) {
      this.source[i] = view.getUint32(at + 8 + i * 4)
      this.destination[i] = view.getUint32(at + 24 + i * 4)
    }
    let protocol = view.getUint8(at + 6)
    let headerBytes = IPV6_BYTES
    while (!this.laterFragment && headerBytes + 8 <= this.bytes) {
      const next = at + headerBytes
      const bytes = extensionBytes(protocol, view.getUint8(next + 1))
      if (bytes === 0 || headerBytes + bytes > this.bytes) break
      if (protocol === FRAGMENT) this.laterFragment = (view.getUint16(next + 2) & 0xfff8) !== 0
      protocol = view.getUint8(next)
      headerBytes += bytes
    }
    this.protocol = protocol
    this.headerBytes = headerBytes
    this.findPorts(at)
    return true
  }

  private findPorts(at: number): void {
    if (this.laterFragment || (this.protocol !== TCP && this.protocol !== UDP)) return
    if (this.headerBytes + 4 <= this.bytes) this.portsAt = at + this.headerBytes
  }
}

/** Length of an IPv6 extension header with `told` in its length field; 0 for what is none. */
function extensionBytes(protocol: number, told: number): number {
  switch (protocol) {
    case HOP_BY_HOP:
    case ROUTING:
    case DESTINATION_OPTIONS:
    case MOBILITY:
    case HOST_IDENTITY:
    case SHIM6:
      return (told + 1) * 8
    case FRAGMENT:
      return 8
    case AUTHENTICATION:
      return (told + 2) * 4
    default:
      return 0
  }
}
