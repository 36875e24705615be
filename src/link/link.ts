/** What the link between a node and its hub looks like from outside: sessions, their streams, and who is let in. */
import type { WebSocketBehavior } from 'uWebSockets.js'
import type { Code } from '../contract/errors.ts'
import type { NodeMetadata, NodeService } from '../contract/types.ts'
import type { Problem } from '../text/pointer.ts'
import type { ServerList, SignedBody } from './signed.ts'

/** What a node says about itself; at most MAX_RECORD_BYTES encoded (messages.ts). */
export interface NodeRecord {
  readonly name: string
  readonly metadata: NodeMetadata
  readonly services: readonly NodeService[]
}

/** How a call ended. */
export interface LinkStatus {
  readonly code: Code | 'OK'
  readonly message: string
  readonly details?: readonly Problem[]
  /** Between servers of a hub: the node that the call is for has no link with the one that says so, and has heard nothing of the call. */
  readonly notHere?: boolean
}

/**
 * What a stream tells its holder. A side of the stream is told of its end once: the opener by `end`, the server by `cancel`.
 * Nothing is told after that, nor after its own `end` or `cancel`.
 */
export interface StreamHandlers {
  /**
   * One whole message, the holder's from now on. Returning false withholds its credit, and that of what is already under way (at
   * most WINDOW_BYTES still arrives), until `resume`.
   */
  message?(bytes: Uint8Array): unknown
  /** Takes pieces of messages as they come, instead of `message`; `more`: the message goes on. Same return value. */
  fragment?(bytes: Uint8Array, more: boolean): unknown
  /** To the server: the opener sends no more. */
  halfClose?(): void
  /** To the opener: the call is over; UNAVAILABLE when the session was lost. */
  end?(status: LinkStatus): void
  /** To the server: the opener gave up, or the session was lost. */
  cancel?(): void
  /** There is room again after a `send` returned false. */
  drain?(): void
}

/** One call of a session, as either side sees it. Payloads are protobuf bytes of the operation's request or response message. */
export interface LinkStream {
  /** Name of the operation, e.g. `createPipeline`. */
  readonly operation: string
  /** Id of the node the call is meant for; empty: the peer itself. */
  readonly target: string
  /** Id of the node the call comes from. On the hub's side of a link this is always the peer: a node cannot name another. */
  readonly origin: string
  /** Milliseconds the caller gave the call when it opened it; whoever serves the call ends it then. */
  readonly deadlineMs: number | undefined
  /** What is left of them now, 0 or less: nothing. They count from the opening, however long the request takes to come. */
  readonly timeLeft: number | undefined
  /** Until they are set, what arrives is kept (at most a window). Set once; the keeping ends at once. */
  handlers: StreamHandlers
  /**
   * Sends one message of at most MAX_MESSAGE_BYTES; the bytes must not change afterwards. Returns whether there is room for more: after
   * false this message has been taken too, but further ones wait for `drain`. A sender that does not is ended with RESOURCE_EXHAUSTED.
   */
  send(bytes: Uint8Array): boolean
  /** As `send`, one piece of a message. */
  sendFragment(bytes: Uint8Array, more: boolean): boolean
  readonly writable: boolean
  readonly closed: boolean
  /** Opener: no more messages from this side. */
  halfClose(): void
  /** Server: the call is over, once what was sent before has left. */
  end(status: LinkStatus): void
  /** Opener: gives up. */
  cancel(): void
  /** Gives back the credit withheld by `message` returning false. */
  resume(): void
  /**
   * Accounts for `bytes` (negative: given back) that this call makes its holder keep; false, and nothing is accounted, when its session
   * holds too much.
   */
  hold(bytes: number): boolean
}

export type CloseReason =
  /** The node leaves the hub for good. */
  | 'LEFT'
  /** The hub has removed the node. */
  | 'REMOVED'
  /** The node has a newer session. */
  | 'REPLACED'
  | 'SHUTDOWN'
  | 'PROTOCOL'
  /** Nothing was heard for 30 s, or the peer reads nothing. */
  | 'DEAD'
  /** The connection broke. */
  | 'LOST'

export interface Closed {
  readonly reason: CloseReason
  readonly message: string
  readonly byPeer: boolean
}

export interface OpenOptions {
  readonly deadlineMs?: number | undefined
  /** Hub only: the node the call comes from; default: this side. */
  readonly origin?: string | undefined
  /** The call that this one is for: accounts for the request, PIECE_BYTES more than its length, until it has left. */
  readonly holder?: Pick<LinkStream, 'hold'> | undefined
}

/** What opens calls. */
export type LinkOpener = Pick<LinkSession, 'open'>

/** A proven connection between a node and its hub, or between two servers of one. */
export interface LinkSession {
  /** Node id of the other side, proven. */
  readonly peerId: string
  /** The other side's address as text; empty when there is none (in-process). */
  readonly remoteAddress: string
  /** Since something arrived last, milliseconds; counts on when the session has ended. */
  readonly silence: number
  /** Open streams, both directions. */
  readonly streamCount: number
  /**
   * Calls an operation. `request` undefined: bidirectional, messages follow with `send`. Throws ServiceError UNAVAILABLE when the
   * session is closed, RESOURCE_EXHAUSTED when MAX_STREAMS of this side are open, `origin` has its share of them, or `holder` holds too much.
   */
  open(operation: string, target: string, request: Uint8Array | undefined, options?: OpenOptions): LinkStream
  /** Sets who serves what the peer opens; until then calls wait. `request` undefined: bidirectional. */
  onOpen(listener: (stream: LinkStream, request: Uint8Array | undefined) => void): void
  /** Node: tells the hub that the record changed. Throws RangeError when it is longer than MAX_RECORD_BYTES. */
  sendRecord(record: NodeRecord): void
  /** Hub: sets who hears of changed records. */
  onRecord(listener: (record: NodeRecord) => void): void
  /** Hub: sets what is done before a leaving node is told that it has left; rejections are ignored, the node leaves anyway. */
  onLeave(listener: () => void | Promise<void>): void
  /** Server of a hub with a hub key: tells the node where all servers are now, as the hub key has signed it. */
  sendServers(list: SignedBody): void
  /** The same: tells the node whether it should have its link with another server. */
  sendWish(wish: 'LOOK_ELSEWHERE' | 'STAY'): void
  /** To another server of the hub: a member was taken off it, by the change with that revision. */
  sendRemoval(nodeId: string, revision: number): void
  /** On the link with another server: sets who hears of such. */
  onRemoval(listener: (nodeId: string, revision: number) => void): void
  /** Node: sets who hears of the hub's servers; the last list and the last wish are told at once. */
  onNews(listener: (news: HubNews) => void): void
  /**
   * Ends the session and all its streams. LEFT (node) tells the hub and waits for its answer, 5 s at most; REMOVED (hub) tells the
   * node in a signed message.
   */
  close(reason: CloseReason, message: string): void
  /** Never rejects. */
  readonly closed: Promise<Closed>
}

/** What a hub with several servers tells its nodes of them. */
export type HubNews =
  | { readonly type: 'SERVERS'; readonly servers: ServerList }
  /** The server cannot tell the others of its nodes now. */
  | { readonly type: 'LOOK_ELSEWHERE' }
  /** It can again. */
  | { readonly type: 'STAY' }

export type RefusalReason =
  /** CONNECT: the node is not on this hub. */
  | 'NOT_A_MEMBER'
  | 'REMOVED'
  /** JOIN: the operator said no. */
  | 'REJECTED'
  /** JOIN: the operator did not answer in time. */
  | 'TIMED_OUT'
  | 'TOO_MANY'
  | 'NO_AUTHENTICATION_BY_REQUEST'
  | 'WITHDRAWN'
  | 'PROTOCOL'
  /** The hub cannot tell now whether the node is on it: try again. */
  | 'UNAVAILABLE'
  /** TLS ends somewhere else than at the hub, or the certificate is not the pinned one. */
  | 'WRONG_CERTIFICATE'
  /** The hub's key is not the pinned one. Said by dialHub only. */
  | 'WRONG_HUB'
  /** There is no hub at the address. Said by dialHub only. */
  | 'NOT_A_HUB'

export type Admission =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly reason: RefusalReason; readonly message: string }

/** Who is let in, asked after a peer has proven its key. */
export interface HubPolicy {
  /** CONNECT: a member or why not. `withdrawn` aborts when the node goes away before a session stands. */
  admit(nodeId: string, record: NodeRecord, withdrawn: AbortSignal): Admission | Promise<Admission>
  /**
   * JOIN: settles when the operator has answered, the request has timed out, … `withdrawn` aborts when the joiner goes away. `key`:
   * 32 bytes, Ed25519.
   */
  join(joiner: JoiningNode, withdrawn: AbortSignal): Promise<Admission>
  /** A session stands, let in by `admission`, as `admit` or `join` gave it; the handlers (onOpen, onRecord, onLeave) are set before this returns. */
  established(session: LinkSession, record: NodeRecord, admission: Admission): void
  /** SERVER: the session of another server of the same hub stands. Absent: none is let in. */
  serverEstablished?(session: LinkSession): void
}

export interface JoiningNode {
  readonly nodeId: string
  readonly key: Uint8Array
  readonly record: NodeRecord
  readonly remoteAddress: string
}

/** Something on a link that an operator should know of. */
export interface LinkEvent {
  readonly kind: 'violation' | 'refused' | 'failed' | 'dead'
  /** What happened, in words. */
  readonly message: string
  readonly remoteAddress: string
  /** When proven. */
  readonly peerId: string | undefined
  /** Of `refused`. */
  readonly reason?: RefusalReason
  readonly error?: unknown
}

/** The TLS certificate that a connection was made with. SHA-256, 32 bytes each: */
export interface ShownCertificate {
  /** of the certificate (DER), */
  readonly fingerprint: Uint8Array
  /** of its public key (SubjectPublicKeyInfo, DER). */
  readonly key: Uint8Array
}

/** What a request to upgrade carries; it is lent until the answer. */
export interface UpgradeRequest {
  /** That this connection was made with: another may be shown to newer ones. Undefined: plain HTTP. */
  readonly certificate: ShownCertificate | undefined
  /** The peer's IP address as text. */
  readonly remoteAddress: string
  /** Raw, without the query. */
  readonly path: string
  /** Raw; empty when there is none. */
  readonly query: string
  /** A header by its lower-case name; empty when absent. */
  header(name: string | ArrayBuffer): string
  /** Calls `take` for every header, also one that is empty or of the name of another; names are lower case. */
  eachHeader(take: (name: string, value: string) => void): void
}

/**
 * What becomes of it: a socket with `data` (uWebSockets.js ends the process over data that is no object) under the subprotocol named (empty:
 * none), or an HTTP answer that refuses it.
 */
export type Upgrade<Data> =
  | { readonly data: Data; readonly protocol: string }
  | {
      readonly status: string
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
      readonly close?: boolean
    }

/** What serves WebSockets: the HTTP listener. */
export interface SocketHost {
  /** Serves those at `path`. `accept` decides on each request to upgrade. */
  webSocket<Data extends object>(
    path: string,
    behavior: WebSocketBehavior<Data>,
    accept: (request: UpgradeRequest) => Upgrade<Data>,
  ): void
}

/** The hub's end of all links; attached to the HTTP listener through its `extend`. */
export interface LinkServer {
  attach(host: SocketHost): void
  /** Ends every session and handshake: SHUTDOWN. */
  close(): void
}

/** The hub refused, or is not what it should be; the connection is closed. */
export class LinkRefused extends Error {
  override readonly name = 'LinkRefused'
  readonly reason: RefusalReason
  /** Whether the hub signed it. What is not signed could come from anybody on the path: never sign out because of it. */
  readonly signed: boolean

  constructor(reason: RefusalReason, message: string, signed = false) {
    super(message)
    this.reason = reason
    this.signed = signed
  }
}

/** The hub cannot be reached, or went away before it answered. */
export class LinkUnreachable extends Error {
  override readonly name = 'LinkUnreachable'
}

/** How the hub's certificate was found good: by a CA, by being the pinned one, by the word of the hub key, or because it was the first one seen. */
export interface SeenCertificate {
  /** SHA-256 of the certificate (DER), lowercase hex. */
  readonly fingerprint: string
  /** SHA-256 of its public key (SubjectPublicKeyInfo, DER), lowercase hex: what stays when the certificate is renewed. */
  readonly key: string
  readonly trust: 'CA' | 'PINNED' | 'HUB_KEY' | 'FIRST_USE'
}

/** SERVER: another server of the hub opens a link. */
export type Intent = 'JOIN' | 'CONNECT' | 'SERVER'

/** A link that the hub has let in. */
export interface Dialled {
  readonly session: LinkSession
  /** 32 bytes, Ed25519: pin it after a JOIN. */
  readonly hubKey: Uint8Array
  /** The id of that key; the id of the server that answered is the session's `peerId`. */
  readonly hubId: string
  /** Undefined on plain HTTP. Pin the fingerprint when it was seen for the first time. */
  readonly certificate: SeenCertificate | undefined
}
