/** What happens on a hub, or between a node and its hub, told as facts with fields for whoever keeps a log of them. */

import type { CallContext } from '../contract/handlers.ts'

/** How a link between a node and its hub went down. */
export interface LinkEnd {
  readonly reason: string
  readonly message: string
  readonly byPeer: boolean
}

/** Who called: a token's name, a node's id, or somebody who needed neither. */
export interface FactCaller {
  readonly by: string
  readonly transport: CallContext['transport']
  readonly address: string
}

/** Something on a hub, about one node. */
export type HubFact = { readonly nodeId: string; readonly name: string } /** It asks to join. */ & (
  | { readonly kind: 'asked'; readonly requestId: bigint; readonly address: string }
  | ({ readonly requestId: bigint; readonly accept: boolean; readonly caller: FactCaller } & (
      | { readonly kind: 'answered' }
      /** The answer was not written, or that is not known. */
      | { readonly kind: 'not answered'; readonly error: unknown }
    ))
  | { readonly kind: 'withdrawn' | 'timed out'; readonly requestId: bigint }
  | { readonly kind: 'joined' }
  | { readonly kind: 'link up'; readonly address: string }
  | { readonly kind: 'link down'; readonly address: string; readonly end: LinkEnd }
  /** It is off the hub by its own doing. */
  | { readonly kind: 'left' }
  /** It left or was removed at another server of the hub, which knows. */
  | { readonly kind: 'gone elsewhere' }
  | { readonly kind: 'removed'; readonly caller: FactCaller }
)

/** Something between two servers of a hub. */
export type ServerFact = { readonly server: string } & (
  | { readonly kind: 'server link up'; readonly address: string }
  | { readonly kind: 'server link down'; readonly address: string; readonly end: LinkEnd }
  | { readonly kind: 'server link failed'; readonly address: string; readonly error: unknown }
  /** Its lease stands from now on, or has ended. */
  | { readonly kind: 'server up' | 'server gone' }
)

/** Something between this node and the hub it is on. */
export type MembershipFact = { readonly hub: string } & (
  | { readonly kind: 'signed in' | 'signed out' }
  | { readonly kind: 'link up' }
  | { readonly kind: 'link down'; readonly end: LinkEnd }
  | { readonly kind: 'link failed'; readonly error: unknown }
  /** The hub says that this node is not on it any more: it is signed out. */
  | { readonly kind: 'removed' }
  /** The hub has taken another connection with this node's key in place of this one. */
  | { readonly kind: 'replaced' }
  | { readonly kind: 'sign-in not deleted'; readonly error: unknown }
  /** The hub shows a new certificate with the key that was pinned: the new one is pinned now. */
  | { readonly kind: 'certificate renewed'; readonly fingerprint: string }
  /** That could not be written to the disk. */
  | { readonly kind: 'certificate not pinned'; readonly error: unknown }
  /** Where the hub's servers are could not be written to the disk. */
  | { readonly kind: 'servers not kept'; readonly error: unknown }
)

/** The caller as a log names it; never the secret of a token. */
export function factCaller({ identity, transport, remoteAddress, isLoopback }: CallContext): FactCaller {
  const proven = identity === undefined ? undefined : `${transport === 'link' ? 'node' : 'token'} ${identity}`
  return { by: proven ?? (isLoopback ? 'this machine' : 'anybody'), transport, address: remoteAddress }
}
