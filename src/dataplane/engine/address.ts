/** Socket addresses as text and as the 32-byte remote records that packets carry. */
import { isIPv4, isIPv6 } from '../../text/ip-family.ts'
import { ipv6Bytes } from '../../text/ipv6-bytes.ts'
import { REMOTE_BYTES } from '../native/native.ts'
import type { SocketAddress } from './io.ts'

/** Reads `ip:port` or `[ip6]:port`; null when it is neither. */
export function parseSocketAddress(text: string): SocketAddress | null {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (!match) return null
  const port = Number(match[3])
  if (port > 65535) return null
  if (match[1] !== undefined) return isIPv6(match[1]) ? { address: match[1], port, family: 6 } : null
  const address = match[2] as string
  return isIPv4(address) ? { address, port, family: 4 } : null
}

/**
 * Whether `text` can be the name of a host (RFC 1123, section 2.1): labels of 1 to 63 letters, digits and hyphens, 253 characters in all, the
 * last label not of digits alone, as no address is a name. A full stop at the end marks a whole name, as resolvers take it.
 */
function isHostName(text: string): boolean {
  const labels = text.replace(/\.$/, '').split('.')
  return (
    labels.join('.').length <= 253 &&
    labels.every((label) => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i.test(label)) &&
    !/^\d+$/.test(labels.at(-1) as string)
  )
}

/** Reads `name:port`; null when it is none, also when it is an address. */
export function parseHostAddress(text: string): { host: string; port: number } | null {
  const [, host = '', digits = ''] = /^([^:]+):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return isHostName(host) && port <= 65535 ? { host, port } : null
}

/** The port of an address, or of a host name with a port; undefined when it is neither. */
export function portOfAddress(text: string): number | undefined {
  return (parseSocketAddress(text) ?? parseHostAddress(text))?.port
}

/** `socketAddress` for text that has been validated. */
export function socketAddress(text: string): SocketAddress {
  const address = parseSocketAddress(text)
  if (!address) throw new Error(`"${text}" is not an address: write 192.0.2.1:5000 or [2001:db8::1]:5000`)
  return address
}

/** An address and port as text; the same address always gives the same text. */
export function formatSocketAddress({ address, port }: { address: string; port: number }): string {
  if (!address.includes(':')) return `${address}:${port}`
  const zone = address.indexOf('%')
  return `[${formatIpv6(ipv6Bytes(address), 0)}${zone < 0 ? '' : address.slice(zone)}]:${port}`
}

/** The text of the IPv6 address in `bytes[at..at+16)`, as RFC 5952 has it. */
function formatIpv6(bytes: Uint8Array, at: number): string {
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[at + i * 2] << 8) | bytes[at + i * 2 + 1])
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${bytes.subarray(at + 12, at + 16).join('.')}`
  }
  // The longest run of two or more zero groups, the first of equals, becomes "::".
  let [start, length] = [-1, 1]
  for (let i = 0; i < 8; i++) {
    let end = i
    while (end < 8 && groups[end] === 0) end++
    if (end - i > length) [start, length] = [i, end - i]
  }
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':')
  return start < 0 ? text(groups) : `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`
}

/** Whether an address is 0.0.0.0 or ::, however it is written. */
export function isAnyAddress(address: string): boolean {
  if (!address.includes(':')) return address === '0.0.0.0'
  return address === '::' || ipv6Bytes(address).every((byte) => byte === 0)
}

/** Whether an IPv6 address is of fe80::/10; false also for one of IPv4. */
export function isLinkLocal(address: string): boolean {
  return address.includes(':') && (Number.parseInt(address, 16) & 0xffc0) === 0xfe80
}

/** The zone of an IPv6 address: `eth0` of `fe80::1%eth0`, '' where it names none. */
export function zoneOf(address: string): string {
  const percent = address.indexOf('%')
  return percent < 0 ? '' : address.slice(percent + 1)
}

/** The remote record of an address, as `REMOTE_BYTES / 4` words; `scope` is the kernel's number of its zone, 0 for none. */
export function remoteRecord({ address, port, family }: SocketAddress, scope = 0): Int32Array {
  const words = new Int32Array(REMOTE_BYTES / 4)
  const bytes = new Uint8Array(words.buffer)
  bytes[0] = family
  new Uint16Array(words.buffer)[1] = port
  words[1] = scope
  if (family === 4) bytes.set(address.split('.').map(Number), 8)
  else bytes.set(ipv6Bytes(address), 8)
  return words
}

/** Puts the kernel's number of another zone into a remote record. */
export function setScope(words: Int32Array, scope: number): void {
  words[1] = scope
}

/** The text of a remote record, '' where there is none. */
export function formatRemote(words: Int32Array): string {
  const bytes = new Uint8Array(words.buffer, words.byteOffset, REMOTE_BYTES)
  const port = new Uint16Array(words.buffer, words.byteOffset, 2)[1]
  if (bytes[0] === 4) return `${bytes.subarray(8, 12).join('.')}:${port}`
  if (bytes[0] !== 6) return ''
  return `[${formatIpv6(bytes, 8)}]:${port}`
}
