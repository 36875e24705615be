/** How many requests to join may be open at a time. */

/** In all. */
const MAX_PENDING = 1_000
/** From one remote address; an IPv6 /64 counts as one. */
export const MAX_PENDING_PER_ADDRESS = 20
/** Of one node. */
const MAX_PENDING_PER_NODE = 20

/** As many requests are open as may be. */
export class RequestsExhausted extends Error {
  override readonly name = 'RequestsExhausted'
}

/** Whose request it is, and what its address is counted as (`networkOf`). */
export interface Asking {
  readonly nodeId: string
  readonly network: string
}

/** Why a node may not ask while those `open` wait; undefined: it may. */
export function tooMany(nodeId: string, network: string, open: Iterable<Asking>): string | undefined {
  let inAll = 0
  let ofNode = 0
  let fromNetwork = 0
  for (const asking of open) {
    inAll++
    if (asking.nodeId === nodeId) ofNode++
    if (asking.network === network) fromNetwork++
  }
  if (inAll >= MAX_PENDING) return `${MAX_PENDING} requests are pending on this hub`
  if (fromNetwork >= MAX_PENDING_PER_ADDRESS) {
    return `${MAX_PENDING_PER_ADDRESS} requests from ${network} are pending on this hub`
  }
  return ofNode < MAX_PENDING_PER_NODE ? undefined : `${MAX_PENDING_PER_NODE} requests of this node are pending`
}
