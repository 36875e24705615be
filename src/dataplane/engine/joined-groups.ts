/** Which multicast groups are joined on an interface, by the kernel's own lists: it forgets them with an interface that goes, and tells no socket. */
import { readFileSync } from 'node:fs'
import { isIPv4 } from '../../text/ip-family.ts'
import { ipv6Bytes } from '../../text/ipv6-bytes.ts'

/**
 * Whether a socket of the machine has joined `group` on the interface of the number `index`. True also where the kernel does not say, as in a sandbox
 * without /proc.
 */
export function isJoined(group: string, index: number): boolean {
  try {
    return isIPv4(group) ? isJoinedV4(group, index) : isJoinedV6(group, index)
  } catch {
    return true
  }
}

/** Line for line an interface, its number first, and, indented, its groups: the four bytes as one number of this machine's byte order, in hexadecimal. */
function isJoinedV4(group: string, index: number): boolean {
  const [word] = new Uint32Array(Uint8Array.from(group.split('.').map(Number)).buffer)
  const listed = word.toString(16).toUpperCase().padStart(8, '0')
  let at = 0
  for (const line of readFileSync('/proc/net/igmp', 'latin1').split('\n').slice(1)) {
    if (!line.startsWith('\t')) at = Number.parseInt(line, 10)
    else if (at === index && line.trimStart().startsWith(listed)) return true
  }
  return false
}

/** A line has the interface's number, its name and a group, in hexadecimal. */
function isJoinedV6(group: string, index: number): boolean {
  const listed = Buffer.from(ipv6Bytes(group)).toString('hex')
  return readFileSync('/proc/net/igmp6', 'latin1')
    .split('\n')
    .some((line) => {
      const [number, , address] = line.split(/\s+/)
      return Number(number) === index && address === listed
    })
}
