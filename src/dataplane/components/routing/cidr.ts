/** Networks as configurations write them: `10.0.0.0/8`, `2001:db8::/32`, or one address. */
import { isIPv4, isIPv6 } from 'node:net'
import { ipv6Bytes } from '../../../text/ipv6-bytes.ts'
import type { Prefix } from '../../codes/prefix-table.ts'

/** The prefix that `text` writes, of one word for IPv4 and four for IPv6; null when it is none. Bits after the prefix are as written. */
export function parseCidr(text: string): Prefix | null {
  const [, address = '', length] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const isV4 = isIPv4(address)
  if (!isV4 && !isIPv6(address)) return null
  const most = isV4 ? 32 : 128
  const bits = length === undefined ? most : Number(length)
  if (bits > most) return null
  const bytes = isV4 ? Uint8Array.from(address.split('.').map(Number)) : ipv6Bytes(address)
  const view = new DataView(bytes.buffer)
  return { address: Uint32Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(i * 4)), bits }
}

/** Whether it is one of IPv4. */
export function isV4({ address }: Prefix): boolean {
  return address.length === 1
}
