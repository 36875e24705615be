/** The hub client operations: who this node is and what it is called. */
import type { LocalNode } from './local-node.ts'
import { requireLocal } from './local-node.ts'
import type { Handlers } from './operations.ts'
import type { NodeMetadataItem } from './types.ts'

export interface HubClientOptions {
  node: LocalNode
  name: string
  metadata: Record<string, NodeMetadataItem>
}

export type HubClientHandlers = Pick<Handlers, 'getLocalNodeId' | 'getNode'>

export class HubClientService {
  readonly #options: HubClientOptions

  constructor(options: HubClientOptions) {
    this.#options = options
  }

  /** The operations, for the router. */
  readonly handlers: HubClientHandlers = {
    getLocalNodeId: async () => ({ nodeId: this.#options.node.id, isAuthenticated: false }),
    getNode: async ({ nodeId }) => {
      const { node, name, metadata } = this.#options
      requireLocal(node, nodeId)
      return {
        node: {
          id: node.id,
          name,
          metadata: { items: metadata },
          online: false,
          services: ['PIPELINES'],
          lastSeen: new Date(),
        },
      }
    },
  }
}
