/** What happens on a node without anybody having asked at that moment: told as facts with fields, for whoever keeps a log of them. */

import type { CallContext } from '../contract/handlers.ts'
import type { Outcome } from '../dataplane/engine/run.ts'

/** Something in the life of a pipeline. `runId` is the run it is about. */
export type PipelineFact = { readonly pipelineId: string; readonly name: string; readonly runId: string } & (
  | {
      /** Packets flow; `attempt`: which restart in a row this is, absent for a first run. */
      readonly kind: 'started'
      readonly cpu: number | undefined
      readonly attempt: number | undefined
    }
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly error: string | undefined }
  | {
      /** The restart policy makes another run in `delayMs`: number `attempt` of a row of at most `most` (0: no limit). */
      readonly kind: 'restart planned'
      readonly attempt: number
      readonly most: number
      readonly delayMs: number
    }
  /** The restart policy has no restart left after `restarts` in a row. */
  | { readonly kind: 'given up'; readonly restarts: number; readonly error: string | undefined }
  /** It was stopped while its next run was waited for. */
  | { readonly kind: 'restart cancelled' }
)

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
  | { readonly kind: 'answered'; readonly requestId: bigint; readonly accept: boolean; readonly caller: FactCaller }
  | { readonly kind: 'withdrawn' | 'timed out'; readonly requestId: bigint }
  | { readonly kind: 'joined' }
  | { readonly kind: 'link up'; readonly address: string }
  | { readonly kind: 'link down'; readonly address: string; readonly end: LinkEnd }
  /** It is off the hub by its own doing. */
  | { readonly kind: 'left' }
  | { readonly kind: 'removed'; readonly caller: FactCaller }
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
)

/** The caller as a log names it; never the secret of a token. */
export function factCaller({ identity, transport, remoteAddress, isLoopback }: CallContext): FactCaller {
  const proven = identity === undefined ? undefined : `${transport === 'link' ? 'node' : 'token'} ${identity}`
  return { by: proven ?? (isLoopback ? 'this machine' : 'anybody'), transport, address: remoteAddress }
}
