/** IPv6 addresses as bytes. */

/** Loaded where it is needed: most threads of runs never see an IPv6 address. */
const ipaddr = (): typeof import('ipaddr.js') =>
  process.getBuiltinModule('node:module').createRequire(import.meta.url)('ipaddr.js')

/** The 16 bytes of an IPv6 address that `net.isIPv6` accepts; a zone (`%eth0`) is none of them. Throws for other text. */
export function ipv6Bytes(text: string): Uint8Array {
  return Uint8Array.from(ipaddr().IPv6.parse(text.replace(/%.*/, '')).toByteArray())
}
