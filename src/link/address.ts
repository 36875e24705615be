/** IP addresses of peers: what counts as one peer when connections are limited. */
import ipaddr from 'ipaddr.js'

/**
 * What an address is counted as: an IPv4 address for itself, an IPv6 address for its /64, since whoever has one has the whole of it
 * (RFC 6177). What is no address (inside the process) comes back as it is.
 */
export function networkOf(text: string): string {
  if (!ipaddr.isValid(text)) return text
  const address = ipaddr.process(text)
  if (address.kind() === 'ipv4' || address.range() === 'loopback') return address.toString()
  const bytes = address.toByteArray().fill(0, 8)
  return `${ipaddr.fromByteArray(bytes).toString()}/64`
}

export function isLoopback(text: string): boolean {
  return ipaddr.isValid(text) && ipaddr.process(text).range() === 'loopback'
}

/** The 16 bytes of an IPv6 address. */
export function ipv6Bytes(text: string): Buffer {
  return Buffer.from(ipaddr.IPv6.parse(text).toByteArray())
}
