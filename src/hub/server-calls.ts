/** Calls for nodes whose link another server of the hub has. */
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { LinkOpener, LinkSession, LinkStatus, LinkStream, OpenOptions, StreamHandlers } from '../link/link.ts'
import { notOnHub } from './hub-server.ts'
import { statusOfError } from './link-envelope.ts'
import type { NodeRegistry, NodeRoute } from './registry.ts'
import type { ServerLinks } from './server-links.ts'

/** How long is waited, when a server does not have the node any more, for word of who has, milliseconds. */
export const MOVE_MS = 250

export interface ServerCallsOptions {
  readonly registry: Pick<NodeRegistry, 'route'>
  readonly links: Pick<ServerLinks, 'with'>
  readonly clock: Clock
}

export class ServerCalls {
  readonly #options: ServerCallsOptions
  /** One for each link: what is bounded per link is bounded by who opens on it. */
  readonly #openers = new WeakMap<LinkSession, LinkOpener>()

  constructor(options: ServerCallsOptions) {
    this.#options = options
  }

  /** What opens calls for nodes that the server has. Throws UNAVAILABLE when there is no link with it. */
  opener(nodeId: string, serverId: string): LinkOpener {
    const session = this.#options.links.with(serverId)
    if (session === undefined) throw serverAway(nodeId, serverId)
    const known = this.#openers.get(session)
    if (known !== undefined) return known
    const opener: LinkOpener = {
      open: (operation, target, request, options = {}) =>
        new ServerCall(this.#options, { operation, target, request, options }, session),
    }
    this.#openers.set(session, opener)
    return opener
  }
}

interface CallOpened {
  readonly operation: string
  readonly target: string
  readonly request: Uint8Array | undefined
  readonly options: OpenOptions
}

/**
 * One call over the link with another server. Until something has come back, what the caller sends waits here, at most the credit it has, so that the call can be
 * made once more, where its node is by then, when the other server does not have it.
 */
class ServerCall implements LinkStream {
  readonly #options: ServerCallsOptions
  readonly #call: CallOpened
  readonly #begun: number
  /** The server that is asked. */
  readonly #serverId: string
  #stream: LinkStream
  #handlers: StreamHandlers | undefined
  /** What is sent once something has come back; undefined: it has. */
  #kept: { bytes: Uint8Array; more: boolean }[] | undefined = []
  #isHalfClosed = false
  #isOver = false
  /** That the call is made once more, and when. */
  #retry: unknown
  #hasRetried = false
  readonly #heldRequest: number

  constructor(options: ServerCallsOptions, call: CallOpened, session: LinkSession) {
    this.#options = options
    this.#call = call
    this.#begun = options.clock.now()
    this.#serverId = session.peerId
    // The request is needed until the other server has said that it has the node.
    this.#heldRequest = call.request?.length ?? 0
    if (call.options.holder?.hold(this.#heldRequest) === false) {
      throw new ServiceError('RESOURCE_EXHAUSTED', 'too many requests of this node wait for nodes that do not read')
    }
    try {
      this.#stream = this.#open(session)
    } catch (error) {
      this.#giveBack()
      throw error
    }
  }

  get operation(): string {
    return this.#call.operation
  }

  get target(): string {
    return this.#call.target
  }

  get origin(): string {
    return this.#stream.origin
  }

  get deadlineMs(): number | undefined {
    return this.#call.options.deadlineMs
  }

  get timeLeft(): number | undefined {
    const { deadlineMs } = this
    return deadlineMs === undefined ? undefined : deadlineMs - (this.#options.clock.now() - this.#begun)
  }

  get closed(): boolean {
    return this.#isOver
  }

  get writable(): boolean {
    return this.#kept === undefined && this.#stream.writable
  }

  set handlers(handlers: StreamHandlers) {
    this.#handlers = handlers
    this.#listen()
  }

  send(bytes: Uint8Array): boolean {
    return this.sendFragment(bytes, false)
  }

  sendFragment(bytes: Uint8Array, more: boolean): boolean {
    if (this.#kept === undefined) return this.#stream.sendFragment(bytes, more)
    this.#kept.push({ bytes, more })
    return false
  }

  halfClose(): void {
    this.#isHalfClosed = true
    if (this.#kept === undefined) this.#stream.halfClose()
  }

  end(): void {
    throw new TypeError('a call is ended by who serves it')
  }

  cancel(): void {
    if (this.#isOver) return
    this.#settle()
    if (!this.#stream.closed) this.#stream.cancel()
  }

  resume(): void {
    this.#stream.resume()
  }

  hold(bytes: number): boolean {
    return this.#stream.hold(bytes)
  }

  #open(session: LinkSession): LinkStream {
    const { operation, target, request, options } = this.#call
    const { origin, holder } = options
    return session.open(operation, target, request, { origin, deadlineMs: this.timeLeft, holder })
  }

  #listen(): void {
    const { message, fragment, drain } = this.#handlers ?? {}
    this.#stream.handlers = {
      ...(message && { message: (bytes) => this.#answered(() => message(bytes)) }),
      ...(fragment && { fragment: (bytes, more) => this.#answered(() => fragment(bytes, more)) }),
      drain: () => drain?.(),
      end: (status) => this.#ended(status),
    }
  }

  /** The node has the call: from now on it is one like any other. */
  #answered(deliver: () => unknown): unknown {
    this.#flush()
    return deliver()
  }

  #flush(): void {
    const kept = this.#kept
    if (kept === undefined) return
    this.#kept = undefined
    this.#giveBack()
    for (const { bytes, more } of kept) this.#stream.sendFragment(bytes, more)
    if (this.#isHalfClosed) this.#stream.halfClose()
    else if (kept.length > 0 && this.#stream.writable) this.#handlers?.drain?.()
  }

  #ended(status: LinkStatus): void {
    if (status.notHere !== true || this.#kept === undefined) this.#over(status)
    else if (this.#hasRetried) this.#over(statusOfError(nodeMoves(this.target)))
    else {
      this.#hasRetried = true
      const route = this.#options.registry.route(this.target)
      if (route.kind !== 'server' || route.server !== this.#serverId) this.#again(route)
      else
        this.#retry = this.#options.clock.setTimeout(
          () => this.#again(this.#options.registry.route(this.target)),
          MOVE_MS,
        )
    }
  }

  #again(route: NodeRoute): void {
    if (this.#isOver) return
    try {
      this.#stream = this.#open(this.#sessionTo(route))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      this.#over(statusOfError(error))
      return
    }
    this.#listen()
    // The node's own link has it at once.
    if (route.kind === 'session') this.#flush()
  }

  #sessionTo(route: NodeRoute): LinkSession {
    switch (route.kind) {
      case 'session':
        return route.session
      case 'server': {
        const session = this.#options.links.with(route.server)
        if (session === undefined) throw serverAway(this.target, route.server)
        return session
      }
      case 'unknown':
        throw notOnHub(this.target)
      default:
        throw nodeMoves(this.target)
    }
  }

  #over(status: LinkStatus): void {
    if (this.#isOver) return
    this.#settle()
    this.#handlers?.end?.(status)
  }

  #settle(): void {
    this.#isOver = true
    this.#options.clock.clearTimeout(this.#retry)
    if (this.#kept === undefined) return
    this.#kept = undefined
    this.#giveBack()
  }

  #giveBack(): void {
    this.#call.options.holder?.hold(-this.#heldRequest)
  }
}

/** UNAVAILABLE: this server and the one that has the node have no link. */
function serverAway(nodeId: string, serverId: string): ServiceError {
  return new ServiceError(
    'UNAVAILABLE',
    `node ${nodeId} is connected to another server of this hub, ${serverId}, with which this one has no link now`,
  )
}

/** UNAVAILABLE: the node is between two servers. */
function nodeMoves(nodeId: string): ServiceError {
  return new ServiceError(
    'UNAVAILABLE',
    `node ${nodeId} is on this hub, but not connected to it now: it may be changing servers`,
  )
}
