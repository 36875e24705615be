/** A node's request to join a hub, which it takes up again at another server when the one that it waits at goes. */
import { orderAfter } from '../actors/hub-addresses.ts'
import { reconnectDelay } from '../actors/reconnect-delay.ts'
import { type Clock, systemClock, type Timers } from '../contract/clock.ts'
import type { PendingAt } from '../link/handshake-node.ts'
import { type Dialled, LinkRefused, LinkUnreachable, type NodeRecord } from '../link/link.ts'
import type { DialRequest } from './dial-request.ts'

/** How long a node looks for a server that takes its request up again, milliseconds. */
export const MAX_RESUMING_MS = 30_000

export interface AskingOptions {
  dial(request: DialRequest): Promise<Dialled>
  record(): NodeRecord
  readonly clock?: Clock | undefined
  random(): number
}

/** The hub has let the node in, at this address. */
export interface LetIn extends Dialled {
  readonly address: string
}

/**
 * Asks the hub at `address` and waits for its answer; aborting `signal` withdraws the request. A hub with several servers says, when it has the request, where
 * they are: should the one asked go, the node asks the others, which know it by its key. Rejects with LinkRefused, LinkUnreachable or the signal's reason.
 */
export async function askHub(address: URL, options: AskingOptions, signal: AbortSignal): Promise<LetIn> {
  const { dial, record, clock = systemClock, random } = options
  let at = address.href
  let hub: PendingAt | undefined
  /** Of the request since it waited last: when its server went, the servers in turn, how many of them have been tried. */
  let lost = 0
  let order: readonly string[] = []
  let tried = 0
  for (;;) {
    let isPending = false
    const onPending = (told: PendingAt) => {
      isPending = true
      hub = told
    }
    try {
      const request: DialRequest = { address: new URL(at), intent: 'JOIN', record: record(), signal, onPending }
      return { ...(await dial(hub === undefined ? request : { ...request, hubKey: hub.hubKey })), address: at }
    } catch (error) {
      if (!isAway(error) || signal.aborted || hub?.servers === undefined) throw error
      if (isPending) {
        lost = clock.now()
        tried = 0
        order = orderAfter({ hubAddress: address.href, servers: hub.servers }, at, random)
      } else if (clock.now() - lost >= MAX_RESUMING_MS) throw error
      await pause(reconnectDelay(tried, random()), clock, signal)
      at = order[tried++ % order.length] as string
    }
  }
}

/** The server cannot be reached, or cannot tell now; another may. */
function isAway(error: unknown): boolean {
  return error instanceof LinkUnreachable || (error instanceof LinkRefused && error.reason === 'UNAVAILABLE')
}

/** Rejects with the signal's reason as soon as it aborts. */
function pause(milliseconds: number, clock: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clock.clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = clock.setTimeout(() => {
      signal.removeEventListener('abort', aborted)
      resolve()
    }, milliseconds)
    signal.addEventListener('abort', aborted, { once: true })
  })
}
