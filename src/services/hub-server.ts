/** The hub server operations on the node that hosts the hub: which nodes there are, who may join, who has to go. */
import type { JoinRequests } from '../hub/join-requests.ts'
import type { NodeEvent, NodeRegistry } from '../hub/registry.ts'
import { Announcements } from './announcements.ts'
import { ServiceError } from './errors.ts'
import { Fanout } from './fanout.ts'
import { filterNodes } from './node-records.ts'
import type { Handlers } from './operations.ts'
import type { AuthenticationByRequestRequest, StreamNodesResponse, StreamNodesUpdateResponse } from './types.ts'

/** Changes that wait for a slow subscriber of streamNodes before its stream ends. */
export const EVENT_BACKLOG = 4_096
/** Requests that wait for a slow operator before that stream ends: as many as can be pending. */
const REQUEST_BACKLOG = 1_000

export interface HubServerOptions {
  registry: NodeRegistry
  /** Absent: the hub does not accept authentication by request. */
  requests?: JoinRequests
}

export type HubServerHandlers = Pick<
  Handlers,
  'getNodes' | 'removeNode' | 'streamNodes' | 'authenticationByRequests' | 'getPendingAuthenticationRequests'
>

export class HubServerService {
  readonly #options: HubServerOptions
  readonly #changes = new Announcements<StreamNodesResponse>({ kind: 'bounded', limit: EVENT_BACKLOG })
  readonly #requests = new Fanout<AuthenticationByRequestRequest>({ kind: 'bounded', limit: REQUEST_BACKLOG })

  constructor(options: HubServerOptions) {
    this.#options = options
    options.registry.follow((event) => this.#changes.announce({ updateResponse: update(event) }))
    options.requests?.onRequest((request) => this.#requests.publish(request))
  }

  /** The operations, for the router. */
  readonly handlers: HubServerHandlers = {
    getNodes: async (request) => ({ nodes: filterNodes(this.#options.registry.nodes(), request) }),
    removeNode: async ({ nodeId }, call) => {
      const { registry } = this.#options
      if (nodeId === registry.selfId) {
        throw new ServiceError('FAILED_PRECONDITION', 'this node hosts the hub server, so it cannot be removed from it')
      }
      const answerFirst = call.transport === 'link' && call.identity === nodeId
      if (!(await registry.remove(nodeId, { answerFirst }))) throw notOnHub(nodeId)
      return {}
    },
    streamNodes: async (request, _call, sink) => {
      const { registry } = this.#options
      await this.#changes.add(sink, () => ({
        initialResponse: { nodes: filterNodes(registry.nodes(), request) },
      }))
    },
    authenticationByRequests: async (_call, sink) => {
      const { requests } = this.#options
      this.#requests.add(sink)
      return {
        message: async ({ requestId, accept }) => {
          if (requests === undefined) {
            throw new ServiceError('NOT_FOUND', 'this hub does not accept authentication by request')
          }
          await requests.answer(requestId, accept)
        },
      }
    },
    getPendingAuthenticationRequests: async () => ({ requests: this.#options.requests?.pending() ?? [] }),
  }

  /** Ends the streams. */
  close(): void {
    const error = new ServiceError('UNAVAILABLE', 'the hub is shutting down')
    this.#changes.end(error)
    this.#requests.end(error)
  }
}

/** NOT_FOUND for a node id that is not on the hub. */
export function notOnHub(nodeId: string): ServiceError {
  return new ServiceError('NOT_FOUND', `no node ${nodeId} is on this hub`)
}

function update({ type, node }: NodeEvent): StreamNodesUpdateResponse {
  switch (type) {
    case 'authenticated':
      return { authenticatedNode: node }
    case 'deauthenticated':
      return { deauthenticatedNode: node }
    case 'connected':
      return { connectedNode: node }
    case 'disconnected':
      return { disconnectedNode: node }
    case 'updated':
      return { updatedNode: node }
  }
}
