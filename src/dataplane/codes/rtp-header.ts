/** What an RTP header (RFC 3550, section 5.1) says, read without allocating. */

const RTP_BYTES = 12
const RTP_VERSION = 2
const EXTENSION_BIT = 0x10
/** Payload types that are the packet types of RTCP, 200 to 204, with the marker bit set. */
const FIRST_RTCP = 72
const LAST_RTCP = 76

/** The header read last; one object serves any number of packets. */
export class RtpHeader {
  /** Bytes in front of the payload: the fixed header, the contributing sources and the extension. */
  headerBytes = 0
  payloadType = 0
  /** 16 bits. */
  sequence = 0
  /** The 32 bits as a signed number, so that differences are those of serial arithmetic. */
  timestamp = 0
  /** The 32 bits as a signed number. */
  ssrc = 0

  /**
   * Reads the header at `at`, of a packet of `length` bytes from there, which `view` has. False when it is none: another version, RTCP, or
   * contributing sources and an extension that do not fit. The padding is not looked at, for SRTP encrypts it.
   */
  read(view: DataView, at: number, length: number): boolean {
    if (length < RTP_BYTES) return false
    const first = view.getUint8(at)
    if (first >> 6 !== RTP_VERSION) return false
    this.payloadType = view.getUint8(at + 1) & 0x7f
    if (this.payloadType >= FIRST_RTCP && this.payloadType <= LAST_RTCP) return false
    let headerBytes = RTP_BYTES + (first & 15) * 4
    if ((first & EXTENSION_BIT) !== 0) {
      if (headerBytes + 4 > length) return false
      headerBytes += 4 + view.getUint16(at + headerBytes + 2) * 4
    }
    if (headerBytes > length) return false
    this.headerBytes = headerBytes
    this.sequence = view.getUint16(at + 2)
    this.timestamp = view.getInt32(at + 4)
    this.ssrc = view.getInt32(at + 8)
    return true
  }
}
