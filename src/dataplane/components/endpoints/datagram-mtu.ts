/** The longest datagram of a socket without an MTU of its own. */

/** Ethernet's 1500 bytes less the headers of IP and UDP. */
export const PAYLOAD_V4 = 1472
const PAYLOAD_V6 = 1452

/** Longest datagram a socket brings in, bytes; `family` 0 for one that speaks both. */
export function datagramMtu(mtu: number | undefined, family: 0 | 4 | 6): number {
  return mtu ?? (family === 6 ? PAYLOAD_V6 : PAYLOAD_V4)
}
