/** Where the IP packet is in a captured frame, by the frame's link type (https://www.tcpdump.org/linktypes.html). */

/** Link types whose frames can hold IP packets. */
const LINK_NULL = 0
const LINK_ETHERNET = 1
const LINK_RAW = 101
const LINK_SLL = 113
const LINK_IPV4 = 228
const LINK_IPV6 = 229
const LINK_SLL2 = 276

/** The frame holds no IP packet. */
export const NO_IP = -1
/** What was captured ends before one can tell. */
export const TOO_SHORT = -2

const ETHERTYPE_IPV4 = 0x0800
const ETHERTYPE_IPV6 = 0x86dd
/** IEEE 802.1Q, 802.1ad, and what was in use before it. */
const isVlanTag = (type: number) => type === 0x8100 || type === 0x88a8 || type === 0x9100

const ETHERNET_TYPE_AT = 12
const ETHERNET_BYTES = 14
const SLL_TYPE_AT = 14
const SLL_BYTES = 16
const SLL2_BYTES = 20
const NULL_BYTES = 4
const VLAN_BYTES = 4
const IPV4_BYTES = 20
const IPV6_BYTES = 40

/** Address families of IPv6 in BSD's loopback header, where each system has its own: NetBSD and OpenBSD, FreeBSD, macOS; and Linux'. */
const FAMILY_IPV4 = 2
const isFamilyIpv6 = (family: number) => family === 24 || family === 28 || family === 30 || family === 10

/**
 * Where the IP packet of the frame in `view` from `from` to `end` (exclusive) begins, VLAN tags and all other headers passed over; NO_IP or
 * TOO_SHORT where there is none. The byte found has the version that the header in front of it says.
 */
export function ipPacketAt(view: DataView, from: number, end: number, linkType: number): number {
  switch (linkType) {
    case LINK_ETHERNET:
      return behindType(view, from + ETHERNET_TYPE_AT, from + ETHERNET_BYTES, end)
    case LINK_SLL:
      return behindType(view, from + SLL_TYPE_AT, from + SLL_BYTES, end)
    case LINK_SLL2:
      return behindType(view, from, from + SLL2_BYTES, end)
    case LINK_NULL:
      return behindFamily(view, from, end)
    case LINK_RAW:
      return ofVersion(view, from, end, 0)
    case LINK_IPV4:
      return ofVersion(view, from, end, 4)
    case LINK_IPV6:
      return ofVersion(view, from, end, 6)
    default:
      return NO_IP
  }
}

/** Behind an EtherType at `typeAt` of a header that ends at `headerEnd`, and behind the VLAN tags that follow it. */
function behindType(view: DataView, typeAt: number, headerEnd: number, end: number): number {
  if (headerEnd > end) return TOO_SHORT
  let type = view.getUint16(typeAt)
  let at = headerEnd
  for (; isVlanTag(type); at += VLAN_BYTES) {
    if (at + VLAN_BYTES > end) return TOO_SHORT
    type = view.getUint16(at + 2)
  }
  if (type === ETHERTYPE_IPV4) return ofVersion(view, at, end, 4)
  return type === ETHERTYPE_IPV6 ? ofVersion(view, at, end, 6) : NO_IP
}

/** Behind the address family of a loopback frame, which is in the byte order of the machine that captured it. */
function behindFamily(view: DataView, from: number, end: number): number {
  const at = from + NULL_BYTES
  if (at > end) return TOO_SHORT
  const big = view.getUint32(from)
  const family = big > 0xffff ? view.getUint32(from, true) : big
  if (family === FAMILY_IPV4) return ofVersion(view, at, end, 4)
  return isFamilyIpv6(family) ? ofVersion(view, at, end, 6) : NO_IP
}

/** `at` where a packet of IP version `version` begins there, 0 for either. */
function ofVersion(view: DataView, at: number, end: number, version: number): number {
  if (at >= end) return TOO_SHORT
  const found = view.getUint8(at) >>> 4
  const isWanted = version === 0 ? found === 4 || found === 6 : found === version
  return isWanted ? at : NO_IP
}

/**
 * Bytes of the IP packet at `at` as it says itself, which may be more than there are; NO_IP when they cannot be right, TOO_SHORT
 * when its header does not end before `end`.
 */
export function ipLength(view: DataView, at: number, end: number): number {
  if (view.getUint8(at) >>> 4 === 6) {
    return at + IPV6_BYTES > end ? TOO_SHORT : IPV6_BYTES + view.getUint16(at + 4)
  }
  const header = (view.getUint8(at) & 15) * 4
  if (header < IPV4_BYTES) return NO_IP
  if (at + header > end) return TOO_SHORT
  const length = view.getUint16(at + 2)
  return length < header ? NO_IP : length
}
