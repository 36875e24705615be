/** What the servers of a hub share, in one process: each has a registry of its own, and sees the links of the others. */
import { join } from 'node:path'
import type { Node } from '../../src/contract/types.ts'
import { EmbeddedRegistry, type EmbeddedRegistryOptions } from '../../src/hub/embedded-registry.ts'
import type { NodeEvent, NodeRegistry, NodeRoute } from '../../src/hub/registry.ts'
import type { MemberPlace } from '../../src/hub/request-store.ts'
import type { JoiningNode, NodeRecord } from '../../src/link/link.ts'
import type { SharedHub } from '../../src/node/hub-part.ts'
import { Store } from '../../src/store/store.ts'
import { SharedDirectory } from './shared-directory.ts'

/** A registry whose members are those of the others too. */
class SharingRegistry extends EmbeddedRegistry {
  readonly #others: () => EmbeddedRegistry[]

  constructor(options: EmbeddedRegistryOptions, others: () => EmbeddedRegistry[]) {
    super(options)
    this.#others = others
  }

  override async admit(joiner: JoiningNode): Promise<MemberPlace> {
    const place = await super.admit(joiner)
    for (const other of this.#others()) await EmbeddedRegistry.prototype.admit.call(other, joiner)
    return place
  }
}

export class SharedHubs {
  readonly directory = new SharedDirectory()
  /** Where a server believes a node to be, once, whatever is true: node id → server id. */
  readonly mistaken = new Map<string, string>()
  readonly #own = new Map<string, EmbeddedRegistry>()
  readonly #root: string

  /** `root`: a directory for what the servers have on disk. */
  constructor(root: string) {
    this.#root = root
  }

  /** As the server with this node id has it. */
  of(selfId: string, self: NodeRecord): SharedHub {
    return { directory: this.directory.of(selfId), registry: this.#registry(selfId, self) }
  }

  /** The server is gone, without a word. */
  leave(selfId: string): void {
    this.#own.delete(selfId)
    this.directory.leave(selfId)
  }

  /** Whether a server sees no link with a node any more. */
  hasNoLink(serverId: string, nodeId: string): boolean {
    return this.#own.get(serverId)?.route(nodeId).kind !== 'session'
  }

  #registry(selfId: string, self: NodeRecord): NodeRegistry {
    const store = new Store(join(this.#root, `registry-${selfId}`))
    const others = () => [...this.#own].filter(([id]) => id !== selfId)
    const own = new SharingRegistry(
      {
        selfId,
        self,
        store: store.nodes,
        requestIds: store.requestIds,
        onError: (error) => expectNone(error),
      },
      () => others().map(([, other]) => other),
    )
    this.#own.set(selfId, own)
    const serverOf = (nodeId: string): string | undefined => {
      const mistaken = this.mistaken.get(nodeId)
      this.mistaken.delete(nodeId)
      if (mistaken !== undefined) return mistaken
      return this.#own.has(nodeId) ? nodeId : others().find(([, other]) => other.route(nodeId).kind === 'session')?.[0]
    }
    return {
      selfId,
      requests: own.requests,
      nodes: () => {
        const servers = others().map(([, other]) => other.nodes()[0] as Node)
        return [
          ...own.nodes().map((node) => ({ ...node, online: node.online || serverOf(node.id) !== undefined })),
          ...servers,
        ]
      },
      follow: (listener: (event: NodeEvent) => void) => own.follow(listener),
      route: (nodeId): NodeRoute => {
        const route = own.route(nodeId)
        if (route.kind === 'self' || (route.kind === 'session' && !this.mistaken.has(nodeId))) return route
        const server = serverOf(nodeId)
        return server === undefined ? route : { kind: 'server', server }
      },
      claim: (nodeId) => own.claim(nodeId),
      admit: (joiner) => own.admit(joiner),
      expel: (place) => own.expel(place),
      connect: (session, record) => own.connect(session, record),
      update: (session, record) => own.update(session, record),
      remove: async (nodeId, options) => {
        for (const [, other] of others()) await other.remove(nodeId)
        return await own.remove(nodeId, options)
      },
      setSelf: (record) => own.setSelf(record),
      close: async () => {
        await own.close()
        await store.close()
      },
    }
  }
}

function expectNone(error: unknown): never {
  throw error
}
