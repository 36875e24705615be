/** The hub server operations on the node that hosts the hub: which nodes there are, who may join, who has to go. */

import { Announcements } from '../contract/announcements.ts'
import { ServiceError } from '../contract/errors.ts'
import { Fanout } from '../contract/fanout.ts'
import type { Handlers } from '../contract/handlers.ts'
import type {
  AuthenticationByRequestRequest,
  StreamNodesResponse,
  StreamNodesUpdateResponse,
} from '../contract/types.ts'
import { type FactCaller, factCaller, type HubFact } from './facts.ts'
import type { JoinRequests } from './join-requests.ts'
import { filterNodes } from './node-records.ts'
import type { NodeEvent, NodeRegistry } from './registry.ts'

/** Changes that wait for a slow subscriber of streamNodes before its stream ends. */
export const MAX_EVENT_BACKLOG = 4_096
/** Requests that wait for a slow operator before that stream ends: as many as can be pending. */
const MAX_REQUEST_BACKLOG = 1_000

export interface HubServerOptions {
  registry: NodeRegistry
  /** Absent: the hub does not accept authentication by request. */
  requests?: JoinRequests
  /** Hears of every node that joins, leaves or is removed. */
  onFact?(fact: HubFact): void
}

export type HubServerHandlers = Pick<
  Handlers,
  'getNodes' | 'removeNode' | 'streamNodes' | 'authenticationByRequests' | 'getPendingAuthenticationRequests'
>

export class HubServerService {
  readonly #options: HubServerOptions
  readonly #changes = new Announcements<StreamNodesResponse>({ kind: 'bounded', limit: MAX_EVENT_BACKLOG })
  /** Who removes which node right now, in the order in which they asked: the first to ask is the one who does. */
  readonly #removing = new Map<string, FactCaller[]>()
  readonly #requests = new Fanout<AuthenticationByRequestRequest>({ kind: 'bounded', limit: MAX_REQUEST_BACKLOG })

  constructor(options: HubServerOptions) {
    this.#options = options
    options.registry.follow((event) => {
      this.#changes.announce({ updateResponse: update(event) })
      this.#note(event)
    })
    options.requests?.onRequest((request) => this.#requests.publish(request))
  }

  /** The operations, for the dispatcher. */
  readonly handlers: HubServerHandlers = {
    getNodes: async (request) => ({ nodes: filterNodes(this.#options.registry.nodes(), request) }),
    removeNode: async ({ nodeId }, call) => {
      const { registry } = this.#options
      if (nodeId === registry.selfId) {
        throw new ServiceError('FAILED_PRECONDITION', 'this node hosts the hub server, so it cannot be removed from it')
      }
      const answerFirst = call.transport === 'link' && call.identity === nodeId
      await this.#by(factCaller(call), nodeId, async () => {
        if (!(await registry.remove(nodeId, { answerFirst }))) throw notOnHub(nodeId)
      })
      return {}
    },
    streamNodes: async (request, _call, sink) => {
      const { registry } = this.#options
      await this.#changes.add(sink, () => ({
        initialResponse: { nodes: filterNodes(registry.nodes(), request) },
      }))
    },
    authenticationByRequests: async (call, sink) => {
      const { requests } = this.#options
      this.#requests.add(sink)
      return {
        message: async ({ requestId, accept }) => {
          if (requests === undefined) {
            throw new ServiceError('NOT_FOUND', 'this hub does not accept authentication by request')
          }
          await requests.answer(requestId, accept, factCaller(call))
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

  /** Does `remove`, which takes the node off the hub for that caller. */
  async #by(caller: FactCaller, nodeId: string, remove: () => Promise<void>): Promise<void> {
    const callers = this.#removing.get(nodeId) ?? []
    this.#removing.set(nodeId, callers)
    callers.push(caller)
    try {
      await remove()
    } finally {
      callers.splice(callers.indexOf(caller), 1)
      if (callers.length === 0) this.#removing.delete(nodeId)
    }
  }

  #note({ type, node: { id: nodeId, name }, isElsewhere = false }: NodeEvent): void {
    const { onFact, registry } = this.#options
    // What is said of a server to itself is in its log as what it is: removed, and a member again.
    if (nodeId === registry.selfId) return
    if (type === 'authenticated') onFact?.({ kind: 'joined', nodeId, name })
    if (type !== 'deauthenticated') return
    const [caller] = this.#removing.get(nodeId) ?? []
    if (isElsewhere) onFact?.({ kind: 'gone elsewhere', nodeId, name })
    else onFact?.(caller === undefined ? { kind: 'left', nodeId, name } : { kind: 'removed', nodeId, name, caller })
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
