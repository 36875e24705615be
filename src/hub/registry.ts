/** The hub's state behind one interface: which nodes there are, which are connected, and how a call reaches one. */
import type { Node } from '../contract/types.ts'
import type { JoiningNode, LinkSession, NodeRecord } from '../link/link.ts'
import type { MemberPlace, RequestStore } from './request-store.ts'

/** One change of one node, which is given as it is after the change. */
export interface NodeEvent {
  readonly type: 'authenticated' | 'deauthenticated' | 'connected' | 'disconnected' | 'updated'
  readonly node: Node
  /** Of `deauthenticated`: another server of the hub has made the change, which alone knows whether the node was removed or left. */
  readonly isElsewhere?: boolean
}

/** Where a call for a node goes. */
export type NodeRoute =
  | { readonly kind: 'self' }
  | { readonly kind: 'session'; readonly session: LinkSession }
  /** Its link is with another server of the hub, whose id this is. */
  | { readonly kind: 'server'; readonly server: string }
  /** On the hub, with no live link. */
  | { readonly kind: 'offline' }
  /** Not on the hub. */
  | { readonly kind: 'unknown' }

/** That a member has been noted as connected here, for a link that is about to stand: it goes to `connect`, or is given back. */
export interface Claim {
  /** Gives it back when no session comes of it; nothing where there is nothing to undo. */
  readonly release?: () => void
}

/**
 * Everything the hub server knows. The embedded one (embedded-registry.ts) keeps it in memory and on disk; the same interface is what a
 * distributed engine would serve so that several hub servers share one hub, with sessions of the other servers' nodes as routes.
 */
export interface NodeRegistry {
  /** The hub's own node. */
  readonly selfId: string
  /** Who asks to join. */
  readonly requests: RequestStore
  /** All nodes on the hub, the hub's own first, then in the order they joined. */
  nodes(): Node[]
  /** Hears of every later change, in the one order in which they happen: `nodes()` just before and what is told just after leave no gap. */
  follow(listener: (event: NodeEvent) => void): void
  route(nodeId: string): NodeRoute
  /** Lets a node in, with its key; resolves, once that is on disk, to its place: `isNew` when it was not on the list. */
  admit(joiner: JoiningNode): Promise<MemberPlace>
  /** Takes a node off the list again, as `remove` does, unless it has been let in anew since or is gone already. */
  expel(place: MemberPlace): Promise<boolean>
  /**
   * A node has proven its key and is about to be welcomed: notes where it is from now on. Undefined: it is certain that it is no member.
   * Throws ServiceError UNAVAILABLE when neither can be made certain now; a registry that needs to ask nobody answers at once. `withdrawn`:
   * the node waits no longer.
   */
  claim(nodeId: string, record: NodeRecord, withdrawn: AbortSignal): Claim | undefined | Promise<Claim | undefined>
  /** The link of a claim stands: the node is online until the session closes. One that is no member any more is cut off. */
  connect(session: LinkSession, record: NodeRecord, claim: Claim): void
  /** A node has said over its session that its details have changed. */
  update(session: LinkSession, record: NodeRecord): void
  /**
   * Takes a node off the hub and cuts its link; resolves, once that is on disk, to whether it was on the hub. `answerFirst`: the link is
   * cut after the current turn, so that the node hears the answer to what it asked for.
   */
  remove(nodeId: string, options?: { answerFirst?: boolean }): Promise<boolean>
  /** The hub's own node has changed its details. */
  setSelf(record: NodeRecord): void
  /** Brings to disk when each node was last heard of; nothing is told from now on. */
  close(): Promise<void>
}
