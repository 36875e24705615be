/** The registry of a hub of several servers: its state in NATS JetStream, seen through watches, changed on conditions. */
import { ServiceError } from '../../contract/errors.ts'
import type { Node } from '../../contract/types.ts'
import type { JoiningNode, LinkSession, NodeRecord } from '../../link/link.ts'
import type { Claim, NodeEvent, NodeRegistry, NodeRoute } from '../registry.ts'
import type { MemberPlace } from '../request-store.ts'
import type { Directory } from './directory.ts'
import { Engine } from './engine.ts'
import type { ClusterRequests } from './requests.ts'
import { type ClusterRegistryOptions, ServerParts } from './server-parts.ts'

export type { ClusterFact, ClusterRegistryOptions } from './server-parts.ts'

interface ClusterPlace extends MemberPlace {
  readonly admission: number
}

export class ClusterRegistry implements NodeRegistry {
  readonly selfId: string
  /** The servers of the hub. */
  readonly directory: Directory
  readonly requests: ClusterRequests
  readonly #options: ClusterRegistryOptions
  readonly #engine: Engine
  readonly #parts: ServerParts
  readonly #listeners: ((event: NodeEvent) => void)[] = []
  #isClosed = false

  /** Connects and reads everything. Throws EngineUnfit when the engine is not what it should be. */
  static async open(options: ClusterRegistryOptions): Promise<ClusterRegistry> {
    const { clock, onFact } = options
    const engine = await Engine.open({ ...options.engine, timers: clock, onFact })
    const registry = new ClusterRegistry(options, engine)
    try {
      await registry.#parts.begin()
    } catch (error) {
      await registry.close()
      throw error
    }
    return registry
  }

  private constructor(options: ClusterRegistryOptions, engine: Engine) {
    this.selfId = options.selfId
    this.#options = options
    this.#engine = engine
    const parts = new ServerParts(options, engine, (event) => this.#tell(event))
    this.#parts = parts
    this.directory = parts.directory
    this.requests = parts.requests
  }

  nodes(): Node[] {
    const all = this.#parts.picture.nodes()
    const own = all.findIndex(({ id }) => id === this.selfId)
    return own > 0 ? [...all.splice(own, 1), ...all] : all
  }

  follow(listener: (event: NodeEvent) => void): void {
    this.#listeners.push(listener)
  }

  route(nodeId: string): NodeRoute {
    return this.#parts.routes.route(nodeId)
  }

  /** Resolves when everything that was answered anywhere before has been seen here. Throws UNAVAILABLE. */
  async current(): Promise<void> {
    await this.#parts.current()
  }

  async admit({ nodeId, key, record }: JoiningNode): Promise<ClusterPlace> {
    return { nodeId, ...(await this.#parts.members.admit(nodeId, key, record)) }
  }

  async expel(place: MemberPlace): Promise<boolean> {
    const { admission } = place as ClusterPlace
    return await this.#parts.members.forget(place.nodeId, (member, { requests }) => {
      const request = requests.find(({ decision }) => decision?.revision === admission)
      return member.admission === admission && request?.decision?.isNew !== false
    })
  }

  async remove(nodeId: string, { answerFirst = false } = {}): Promise<boolean> {
    if (this.#parts.servers.lifeOf(nodeId) !== undefined) {
      throw new ServiceError(
        'FAILED_PRECONDITION',
        `node ${nodeId} is a server of this hub: stop it before removing it`,
      )
    }
    const link = this.#parts.links.get(nodeId)
    if (!answerFirst || link === undefined) return await this.#parts.members.forget(nodeId)
    try {
      return await this.#parts.links.keep(nodeId, async () => {
        const wasMember = await this.#parts.members.forget(nodeId)
        if (wasMember) setImmediate(() => link.session.close('REMOVED', 'the node was removed from the hub'))
        return wasMember
      })
    } finally {
      // Another server may have taken it off meanwhile, when its link was kept. Out of touch, all links are settled once that is over.
      setImmediate(() => {
        if (this.#parts.isInTouch) this.#parts.links.settle(nodeId)
      })
    }
  }

  async claim(nodeId: string, record: NodeRecord, withdrawn: AbortSignal): Promise<Claim | undefined> {
    this.#parts.lives.mayWrite()
    if (this.#parts.picture.member(nodeId) === undefined) await this.current()
    const member = this.#parts.picture.member(nodeId)
    if (member === undefined) return undefined
    const { claim, revision } = await this.#parts.links.claim(nodeId, member, record, withdrawn)
    await this.#parts.view.presencePassed(revision)
    return claim
  }

  connect(session: LinkSession, record: NodeRecord, claim: Claim): void {
    if (this.#isClosed) session.close('SHUTDOWN', 'the hub is shutting down')
    else this.#parts.links.add(session, record, claim)
  }

  update(session: LinkSession, record: NodeRecord): void {
    this.#parts.links.change(session, record)
  }

  setSelf(record: NodeRecord): void {
    this.#parts.ownNode.set(record)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#parts.close()
    try {
      await this.#parts.lives.close()
    } catch (error) {
      this.#options.onError('the lease of this server could not be given up; the others wait for its end', error)
    }
    await this.#engine.close()
  }

  #tell(event: NodeEvent): void {
    if (this.#isClosed) return
    for (const listener of this.#listeners) listener(event)
  }
}
