/** IP addresses as every layer reads and writes them: which are this machine's own, their text, what counts as one peer. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether an IP address, as text, is of this machine's loopback interface; IPv4 in IPv6 counts as IPv4. Asked with every call. */
export function isLoopbackAddress(text: string): boolean {
  if (text === '127.0.0.1' || text === '::1') return true
  const version = isIP(text)
  if (version === 4) return text.startsWith('127.')
  // Those of other machines, which are to be told fast, nearly all begin with another digit.
  return version === 6 && /^[0:]/.test(text) && ipaddr.process(text).range() === 'loopback'
}

/** Whether a host, as it stands in a URL, is this machine by a loopback name or address. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(withoutBrackets(host))
}

/** An IP address as text, from its 4 or 16 bytes: `127.0.0.1`, `::1` (RFC 5952); IPv4 in IPv6 reads as IPv4. Empty for other lengths. */
export function addressText(bytes: Uint8Array): string {
  // A request to a listener on all addresses has its peer's written: IPv4 without a detour.
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
  if (bytes.length !== 16) return ''
  if (isMapped(bytes)) return `${bytes[12]}.${bytes[13]}.${bytes[14]}.${bytes[15]}`
  return ipaddr.fromByteArray(Array.from(bytes)).toString()
}

/** Whether the 16 bytes are an IPv4 address in IPv6 (RFC 4291, section 2.5.5.2). */
function isMapped(bytes: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** An address with its port: `127.0.0.1:8769`, `[::1]:8769`. */
export function socketAddressText(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** A host as it stands in a URL or before a port, without the brackets that an IPv6 address has there. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

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
