/** The registry of a hub of several servers: its state in NATS JetStream, seen through watches, changed on conditions. */
import type { Clock } from '../../contract/clock.ts'
import { ServiceError } from '../../contract/errors.ts'
import type { Node } from '../../contract/types.ts'
import type { JoiningNode, LinkSession, NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Claim, HubServer, MemberPlace, NodeEvent, NodeRegistry, NodeRoute } from '../registry.ts'
import { Changes, unavailable } from './changes.ts'
import { Engine, type EngineFact, type EngineOptions } from './engine.ts'
import type { MemberEntry, NodeEntry } from './entries.ts'
import { Life, leaseKey } from './life.ts'
import { Links } from './links.ts'
import { nodeKey, Picture } from './picture.ts'
import { PresenceWriter } from './presence-writer.ts'
import { Servers } from './servers.ts'
import { View } from './view.ts'

export interface ClusterRegistryOptions {
  readonly selfId: string
  /** The node's own Ed25519 key, 32 bytes. */
  readonly selfKey: Uint8Array
  readonly self: NodeRecord
  readonly engine: Omit<EngineOptions, 'timers' | 'onFact'>
  /** What the other servers need to reach this one. */
  readonly details: () => Uint8Array
  readonly clock: Clock
  readonly onFact: (fact: ClusterFact) => void
  /** What nobody waits for has failed. */
  readonly onError: (message: string, error: unknown) => void
  /** Milliseconds since the epoch; default: the system's clock. */
  readonly now?: () => number
}

/** What happens between this server and the state of its hub. */
export type ClusterFact = EngineFact | { readonly kind: 'lease held' | 'lease lost' }

interface ClusterPlace extends MemberPlace {
  readonly admission: number
}

export class ClusterRegistry implements NodeRegistry {
  readonly selfId: string
  readonly #options: ClusterRegistryOptions
  readonly #now: () => number
  readonly #engine: Engine
  readonly #changes: Changes
  readonly #writer: PresenceWriter
  readonly #picture: Picture
  readonly #servers: Servers
  readonly #view: View
  readonly #links: Links
  readonly #listeners: ((event: NodeEvent) => void)[] = []
  /** This server's life, and those before it whose links have yet to be noted again. */
  readonly #ownLives = new Set<string>()
  #life: Life | undefined
  #self: NodeRecord
  #isClosed = false
  #ready!: () => void

  /** Connects and reads everything. Throws EngineUnfit when the engine is not what it should be. */
  static async open(options: ClusterRegistryOptions): Promise<ClusterRegistry> {
    const { clock, onFact } = options
    const engine = await Engine.open({ ...options.engine, timers: clock, onFact })
    const registry = new ClusterRegistry(options, engine)
    try {
      await registry.#begin()
    } catch (error) {
      await registry.close()
      throw error
    }
    return registry
  }

  private constructor(options: ClusterRegistryOptions, engine: Engine) {
    const { selfId, self, clock, now = Date.now } = options
    this.selfId = selfId
    this.#options = options
    this.#self = self
    this.#now = now
    this.#engine = engine
    const mayWrite = () => this.#mayWrite()
    this.#changes = new Changes({ engine, clock, mayWrite })
    this.#writer = new PresenceWriter({ engine, clock, mayWrite })
    this.#servers = new Servers({
      now: () => clock.now(),
      onStanding: (life, server) => this.#onLease(life, server),
      onEnded: (life, server) => {
        this.#onLease(life, server)
        this.#endLease(life)
        this.#sweep()
      },
    })
    this.#picture = new Picture({
      stands: (life) => this.#stands(life),
      isServer: (nodeId) => nodeId === selfId || this.#servers.lifeOf(nodeId) !== undefined,
      tell: (event) => this.#tell(event),
      now,
    })
    this.#links = new Links({
      picture: this.#picture,
      writer: this.#writer,
      life: () => (this.#life as Life).name,
      isOwn: (life) => this.#ownLives.has(life),
      stands: (life) => this.#stands(life),
      leave: (nodeId) => this.#forget(nodeId),
      onError: options.onError,
    })
    this.#view = new View({
      engine,
      picture: this.#picture,
      servers: this.#servers,
      life: () => this.#life,
      clock,
      onNode: (nodeId) => this.#links.settle(nodeId),
      onWhole: () => this.#onWhole(),
      onError: options.onError,
    })
  }

  nodes(): Node[] {
    const all = this.#picture.nodes()
    const own = all.findIndex(({ id }) => id === this.selfId)
    return own > 0 ? [...all.splice(own, 1), ...all] : all
  }

  follow(listener: (event: NodeEvent) => void): void {
    this.#listeners.push(listener)
  }

  /** The servers of the hub whose leases stand, this one excepted. */
  servers(): HubServer[] {
    return this.#servers.list()
  }

  route(nodeId: string): NodeRoute {
    if (nodeId === this.selfId) return { kind: 'self' }
    if (this.#picture.member(nodeId) === undefined) return { kind: 'unknown' }
    const { entry } = this.#picture.presence(nodeId)
    const link = this.#links.get(nodeId)
    if (link !== undefined && entry?.session === link.id) return { kind: 'session', session: link.session }
    if (this.#servers.lifeOf(nodeId) !== undefined) return { kind: 'server', serverId: nodeId }
    if (entry === undefined || !this.#picture.isOnline(nodeId)) return { kind: 'offline' }
    const serverId = this.#servers.serverOf(entry.life)
    return serverId === undefined ? { kind: 'offline' } : { kind: 'server', serverId }
  }

  /** Resolves when everything that was answered anywhere before has been seen here. Throws UNAVAILABLE. */
  async current(): Promise<void> {
    this.#mayWrite()
    try {
      await this.#view.current()
    } catch (error) {
      throw unavailable(error)
    }
  }

  async admit({ nodeId, key, record }: JoiningNode): Promise<ClusterPlace> {
    const { revision, before } = await this.#change(nodeId, ({ member }) => ({
      member: { key, record, joined: member?.joined ?? 0, admission: 0, lastSeen: new Date(this.#now()) },
    }))
    return { nodeId, isNew: before.entry.member === undefined, admission: revision as number }
  }

  async expel(place: MemberPlace): Promise<boolean> {
    const { admission } = place as ClusterPlace
    return await this.#forget(place.nodeId, (member) => member.admission === admission)
  }

  async remove(nodeId: string, { answerFirst = false } = {}): Promise<boolean> {
    if (this.#servers.lifeOf(nodeId) !== undefined) {
      throw new ServiceError(
        'FAILED_PRECONDITION',
        `node ${nodeId} is a server of this hub: stop it before removing it`,
      )
    }
    const link = this.#links.get(nodeId)
    if (!answerFirst || link === undefined) return await this.#forget(nodeId)
    return await this.#links.keep(nodeId, async () => {
      const wasMember = await this.#forget(nodeId)
      if (wasMember) setImmediate(() => link.session.close('REMOVED', 'the node was removed from the hub'))
      return wasMember
    })
  }

  async claim(nodeId: string, record: NodeRecord): Promise<Claim | undefined> {
    this.#mayWrite()
    if (this.#picture.member(nodeId) === undefined) await this.current()
    const member = this.#picture.member(nodeId)
    if (member === undefined) return undefined
    if (!sameFacts(member.record, record)) await this.#noteRecord(nodeId, () => record)
    const { claim, revision } = await this.#links.claim(nodeId, member)
    await this.#view.presencePassed(revision)
    return claim
  }

  connect(session: LinkSession, record: NodeRecord, claim: Claim): void {
    if (this.#isClosed) session.close('SHUTDOWN', 'the hub is shutting down')
    else this.#links.add(session, record, claim)
  }

  update(session: LinkSession, record: NodeRecord): void {
    const { peerId: nodeId } = session
    const link = this.#links.get(nodeId)
    if (link?.session !== session) return
    link.record = record
    this.#noteRecord(nodeId, () => link.record).catch((error: unknown) =>
      this.#options.onError(`the changed details of node ${nodeId} could not be stored`, error),
    )
  }

  setSelf(record: NodeRecord): void {
    this.#self = record
    this.#noteRecord(this.selfId, () => this.#self).catch((error: unknown) =>
      this.#options.onError('the changed details of this node could not be stored', error),
    )
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    try {
      await this.#life?.close()
    } catch (error) {
      this.#options.onError('the lease of this server could not be given up; the others wait for its end', error)
    }
    await this.#engine.close()
  }

  async #begin(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#ready = resolve
    })
    this.#newLife()
    this.#view.begin()
    await ready
    const { selfKey, onError } = this.#options
    const key = selfKey
    await this.#change(this.selfId, ({ member }) => {
      if (member !== undefined && sameFacts(member.record, this.#self)) return undefined
      const lastSeen = new Date(this.#now())
      return { member: { key, record: this.#self, joined: 0, admission: 0, ...member, lastSeen } }
    }).catch((error: unknown) => {
      onError('this server could not note itself as a node of its hub', error)
      throw error
    })
  }

  #mayWrite(): void {
    if (this.#life?.isHeld === true && !this.#isClosed) return
    throw new ServiceError(
      'UNAVAILABLE',
      'this server is cut off from the state of its hub (NATS JetStream), and changes nothing until it is back: try again, or at another server of the hub',
    )
  }

  #newLife(): void {
    const { clock, selfId, details, onFact } = this.#options
    const life: Life = new Life({
      engine: this.#engine,
      clock,
      server: selfId,
      details,
      onRenewed: () => this.#view.renewed(),
      onHeld: () => {
        onFact({ kind: 'lease held' })
        this.#view.lifeHeld()
      },
      onLost: () => {
        if (this.#isClosed || this.#life !== life) return
        onFact({ kind: 'lease lost' })
        this.#newLife()
      },
    })
    this.#ownLives.add(life.name)
    this.#life = life
  }

  /** Everything has been read, and the lease is held: every link of this server is noted for this life. */
  #onWhole(): void {
    this.#ready()
    const life = (this.#life as Life).name
    this.#links.settleAll()
    this.#links
      .noteAll()
      .then(async () => {
        const over = [...this.#ownLives].filter((name) => name !== life)
        if (this.#life?.name !== life) return
        for (const name of over) this.#ownLives.delete(name)
        this.#sweep()
        await Promise.all(over.map((name) => this.#engine.session?.presence.delete(leaseKey(name))))
      })
      .catch((error: unknown) => this.#options.onError('the links of this server could not all be noted again', error))
  }

  async #change(nodeId: string, next: (entry: NodeEntry) => { member: MemberEntry | undefined } | undefined) {
    const changed = await this.#changes.change(nodeKey(nodeId), this.#picture.versioned(nodeId), next)
    await this.#view.membersPassed(changed.revision ?? changed.before.revision)
    return changed
  }

  async #noteRecord(nodeId: string, record: () => NodeRecord): Promise<void> {
    await this.#change(nodeId, ({ member }) =>
      member === undefined || sameFacts(member.record, record())
        ? undefined
        : { member: { ...member, record: record(), lastSeen: new Date(this.#now()) } },
    )
  }

  async #forget(nodeId: string, isMeant: (member: MemberEntry) => boolean = () => true): Promise<boolean> {
    this.#mayWrite()
    // Not on the list as this server sees it: that may have changed.
    if (this.#picture.member(nodeId) === undefined) await this.current()
    const { revision } = await this.#change(nodeId, ({ member }) =>
      member === undefined || !isMeant(member) ? undefined : { member: undefined },
    )
    return revision !== undefined
  }

  #stands(life: string): boolean {
    return this.#ownLives.has(life) || this.#servers.stands(life)
  }

  /** What the lease of a server says about its own node and those it has. */
  #onLease(life: string, server: string): void {
    this.#picture.refresh(server)
    for (const nodeId of this.#picture.presentIn((name) => name === life)) this.#picture.refresh(nodeId)
  }

  /** A server that others count as dead is to know it, should it come back. */
  #endLease(life: string): void {
    const { session } = this.#engine
    if (session === undefined || this.#life?.isHeld !== true) return
    session.presence
      .delete(leaseKey(life))
      .catch((error: unknown) => this.#options.onError('the lease of a dead server could not be ended', error))
  }

  /** Takes away what lives that have ended left behind, where this server is the one to do it. */
  #sweep(): void {
    const own = this.#life?.name
    if (own === undefined || !this.#view.isWhole || this.#servers.lives().some((life) => life < own)) return
    const left = this.#picture.presentIn((life) => !this.#stands(life))
    const deletions = left.map(async (nodeId) => {
      const seen = this.#picture.presence(nodeId)
      await this.#writer.delete(nodeId, seen.entry?.session ?? '', seen)
    })
    // What is left counts for nothing, and somebody sweeps again at the end of the next lease.
    Promise.all(deletions).catch((error: unknown) =>
      this.#options.onError('what a server left behind could not be taken away', error),
    )
  }

  #tell(event: NodeEvent): void {
    if (this.#isClosed) return
    for (const listener of this.#listeners) listener(event)
  }
}
