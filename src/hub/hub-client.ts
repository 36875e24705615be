/** The hub client operations: who this node is, what it is called, joining a hub and leaving it. */
import { Announcements } from '../contract/announcements.ts'
import { invalidArgument, ServiceError } from '../contract/errors.ts'
import type { CallContext, Handlers } from '../contract/handlers.ts'
import { type LocalNode, requireLocal } from '../contract/local-node.ts'
import type { ConnectionState, GetLocalNodeIdResponse, Node, StreamConnectionStateResponse } from '../contract/types.ts'
import { unchanging } from '../contract/unchanging.ts'
import { hubAddress } from '../link/hub-address.ts'
import type { NodeRecord } from '../link/link.ts'
import type { LocalDetails } from './local-details.ts'
import type { Membership } from './membership.ts'
import type { ServerDirectory } from './server-directory.ts'

/** Changes of the connection state that wait for a slow subscriber before its stream ends. */
const MAX_STATE_BACKLOG = 64

export interface HubClientOptions {
  node: LocalNode
  details: LocalDetails
  /** Absent on a node that hosts a hub: it is always on that one. */
  membership?: Membership
  /** On a server of a hub of several: whether it is in touch with what they share. */
  servers?: Pick<ServerDirectory, 'isInTouch' | 'followTouch'>
}

export type HubClientHandlers = Pick<
  Handlers,
  'getLocalNodeId' | 'getNode' | 'setNode' | 'authenticateByRequest' | 'disconnect' | 'streamConnectionState'
>

export class HubClientService {
  readonly #options: HubClientOptions
  #identity: GetLocalNodeIdResponse | undefined
  readonly #states = new Announcements<StreamConnectionStateResponse>({ kind: 'bounded', limit: MAX_STATE_BACKLOG })

  constructor(options: HubClientOptions) {
    this.#options = options
    const { details, membership, servers } = options
    details.onChange((record) => membership?.recordChanged(record))
    membership?.onChange((state) => this.#states.announce({ state }))
    servers?.followTouch(() => this.#states.announce({ state: this.#state() }))
  }

  /** The operations, for the dispatcher. */
  readonly handlers: HubClientHandlers = {
    getLocalNodeId: () => this.#localNodeId(),
    getNode: async ({ nodeId }, call) => {
      requireLocal(this.#options.node, nodeId)
      return { node: this.#view(this.#options.details.record, call) }
    },
    setNode: async ({ nodeId, name, metadata }, call) => {
      const { node, details } = this.#options
      requireLocal(node, nodeId)
      const record = await details.set(name, metadata ?? { items: {} })
      return { node: this.#view(record, call) }
    },
    authenticateByRequest: async ({ hubServerAddress }, call) => {
      const { membership } = this.#options
      if (membership === undefined) {
        throw new ServiceError('ALREADY_EXISTS', 'this node hosts a hub server and is on that hub')
      }
      // First of all: a node on a hub answers the same to whatever it is given.
      membership.requireNone()
      await membership.join(addressOf(hubServerAddress), call.signal)
      return {}
    },
    disconnect: async () => {
      const { membership } = this.#options
      if (membership === undefined) {
        throw new ServiceError('FAILED_PRECONDITION', 'this node hosts the hub server, so it cannot leave that hub')
      }
      await membership.leave()
      return {}
    },
    streamConnectionState: async (_request, _call, sink) => {
      await this.#states.add(sink, () => ({ state: this.#state() }))
    },
  }

  /** Ends the streams. */
  close(): void {
    this.#states.end(new ServiceError('UNAVAILABLE', 'the node is shutting down'))
  }

  /** The same object until something in it changes. */
  #localNodeId(): GetLocalNodeIdResponse {
    const isAuthenticated = this.#state() !== 'UNAUTHENTICATED'
    if (this.#identity?.isAuthenticated !== isAuthenticated) {
      this.#identity = unchanging({ nodeId: this.#options.node.id, isAuthenticated })
    }
    return this.#identity
  }

  #state(): ConnectionState {
    const { membership, servers } = this.#options
    if (membership !== undefined) return membership.state
    return servers?.isInTouch === false ? 'DISCONNECTED' : 'CONNECTED'
  }

  #view({ name, metadata, services }: NodeRecord, call: CallContext): Node {
    const { node } = this.#options
    // A call that came over the link may be ahead of the word that the link is up.
    const online = call.transport === 'link' || this.#state() === 'CONNECTED'
    return { id: node.id, name, metadata, online, services: [...services], lastSeen: new Date() }
  }
}

function addressOf(text: string): URL {
  try {
    return hubAddress(text)
  } catch (error) {
    throw invalidArgument('/hubServerAddress', (error as TypeError).message)
  }
}
