/** Where a call runs: on this node, on the node it names, or on the hub. */
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { BidiHandler, CallContext, StreamHandler, UnaryHandler } from '../contract/handlers.ts'
import type { LinkOpener } from '../link/link.ts'
import { MAX_ID_LENGTH } from '../link/messages.ts'
import { notOnHub } from './hub-server.ts'
import { bidiOver, type Codec, type Destination, streamOver, unaryOver } from './link-calls.ts'
import type { Membership } from './membership.ts'
import type { NodeRegistry, NodeRoute } from './registry.ts'
import type { ServerCalls } from './server-calls.ts'

export const HUB_SERVER_SERVICE = 'servicegrpc.hub.HubServerService'

/** What forwarding needs to know of an operation. */
export interface ForwardedOperation extends Codec {
  readonly service: string
  readonly kind: 'unary' | 'server' | 'bidi'
}

export type FarHandler =
  | UnaryHandler<unknown, unknown>
  | StreamHandler<unknown, unknown>
  | BidiHandler<unknown, unknown>

export interface ForwardingOptions {
  readonly nodeId: string
  /** What this node is to a hub: its host, or a member of one. */
  readonly hub: NodeRegistry | Membership
  /** Its host, when the hub has several servers. */
  readonly servers?: ServerCalls | undefined
  readonly clock: Clock
}

export class Forwarding {
  readonly #nodeId: string
  readonly #registry: NodeRegistry | undefined
  readonly #membership: Membership | undefined
  readonly #servers: ServerCalls | undefined
  readonly #clock: Clock

  constructor({ nodeId, hub, servers, clock }: ForwardingOptions) {
    this.#nodeId = nodeId
    this.#servers = servers
    this.#clock = clock
    if ('route' in hub) this.#registry = hub
    else this.#membership = hub
  }

  /**
   * The handler that carries the call to where it runs; undefined to run it here. Throws what contract and specification say: NOT_FOUND
   * for a node that is not on the hub, UNAVAILABLE for one without a link, FAILED_PRECONDITION on no hub; for getNode UNAVAILABLE in
   * each case. Calls that came over a link never go further.
   */
  forward(operation: ForwardedOperation, request: unknown, call: CallContext): FarHandler | undefined {
    if (operation.name !== 'getNode') return this.#forward(operation, request, call)
    try {
      const far = this.#forward(operation, request, call) as UnaryHandler<unknown, unknown> | undefined
      if (far === undefined) return undefined
      const reached: UnaryHandler<unknown, unknown> = async (message, context) => {
        try {
          return await far(message, context)
        } catch (error) {
          return throwUnreachable(error)
        }
      }
      return reached
    } catch (error) {
      return throwUnreachable(error)
    }
  }

  #forward(operation: ForwardedOperation, request: unknown, call: CallContext): FarHandler | undefined {
    const destination =
      operation.service === HUB_SERVER_SERVICE
        ? this.#toHub(operation, call)
        : this.#toNode((request as { nodeId?: string } | undefined)?.nodeId, call)
    if (destination === undefined) return undefined
    switch (operation.kind) {
      case 'unary':
        return unaryOver(destination, operation, this.#clock)
      case 'server':
        return streamOver(destination, operation, this.#clock)
      case 'bidi':
        return bidiOver(destination, operation, this.#clock)
    }
  }

  #toHub({ name }: ForwardedOperation, { transport }: CallContext): Destination | undefined {
    if (this.#membership === undefined) return undefined
    if (transport === 'link') throw new ServiceError('FAILED_PRECONDITION', `${name}: this node hosts no hub server`)
    return { session: this.#membership.require(`for ${name}`), target: '', called: 'the hub' }
  }

  #toNode(nodeId: string | undefined, { transport }: CallContext): Destination | undefined {
    if (nodeId === undefined || nodeId === this.#nodeId || transport === 'link') return undefined
    const called = `node ${nodeId}`
    if (this.#membership !== undefined) {
      const session = this.#membership.require(`to reach ${called}`)
      // The hub would end the link for it, with every other call on it.
      if (nodeId.length > MAX_ID_LENGTH) throw notOnHub(nodeId)
      return { session, target: nodeId, called }
    }
    const route = (this.#registry as NodeRegistry).route(nodeId)
    return { session: openerTo(nodeId, route, this.#servers), target: nodeId, called }
  }
}

/**
 * What opens calls for a node, by the way to it. Throws NOT_FOUND for one that is not on the hub, UNAVAILABLE for one without a link, or whose server
 * cannot be reached.
 */
export function openerTo(nodeId: string, route: NodeRoute, servers: ServerCalls | undefined): LinkOpener {
  if (route.kind === 'session') return route.session
  if (route.kind === 'server' && servers !== undefined) return servers.opener(nodeId, route.server)
  throw route.kind === 'unknown' ? notOnHub(nodeId) : notConnected(nodeId)
}

/** UNAVAILABLE for a node that is on the hub and has no link. */
function notConnected(nodeId: string): ServiceError {
  return new ServiceError('UNAVAILABLE', `node ${nodeId} is on this hub, but not connected to it now`)
}

/** To getNode a node that is not on the hub, or asked for on no hub, is one that cannot be reached; the message says which it is. */
function throwUnreachable(error: unknown): never {
  if (error instanceof ServiceError && (error.code === 'NOT_FOUND' || error.code === 'FAILED_PRECONDITION')) {
    throw new ServiceError('UNAVAILABLE', error.message)
  }
  throw error
}
