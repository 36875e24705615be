/** The registry of a hub of several servers: its state in NATS JetStream, seen through watches, changed on conditions. */
import type { Clock } from '../../contract/clock.ts'
import { ServiceError } from '../../contract/errors.ts'
import type { Node } from '../../contract/types.ts'
import type { JoiningNode, LinkSession, NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Claim, MemberPlace, NodeEvent, NodeRegistry, NodeRoute } from '../registry.ts'
import { Changes, unavailable } from './changes.ts'
import { Directory } from './directory.ts'
import { Engine, type EngineFact, type EngineOptions } from './engine.ts'
import { Links } from './links.ts'
import { Members } from './members.ts'
import { OwnLives } from './own-lives.ts'
import { Picture } from './picture.ts'
import { PresenceWriter } from './presence-writer.ts'
import { Servers } from './servers.ts'
import { Sweeper } from './sweeper.ts'
import { View } from './view.ts'

export interface ClusterRegistryOptions {
  readonly selfId: string
  /** The node's own Ed25519 key, 32 bytes. */
  readonly selfKey: Uint8Array
  readonly self: NodeRecord
  readonly engine: Omit<EngineOptions, 'timers' | 'onFact'>
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
  /** The servers of the hub. */
  readonly directory: Directory
  readonly #options: ClusterRegistryOptions
  readonly #engine: Engine
  readonly #members: Members
  readonly #picture: Picture
  readonly #servers: Servers
  readonly #view: View
  readonly #links: Links
  readonly #listeners: ((event: NodeEvent) => void)[] = []
  readonly #lives: OwnLives
  readonly #sweeper: Sweeper
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
    this.#engine = engine
    const { onFact } = options
    this.#lives = new OwnLives({
      engine,
      clock,
      server: selfId,
      details: () => this.directory.details,
      onRenewed: () => this.#view.renewed(),
      onHeld: () => {
        onFact({ kind: 'lease held' })
        this.#view.lifeHeld()
        this.directory.touchChanged()
      },
      onLost: () => {
        onFact({ kind: 'lease lost' })
        this.directory.touchChanged()
      },
    })
    const mayWrite = () => this.#lives.mayWrite()
    const writer = new PresenceWriter({ engine, clock, mayWrite })
    this.#servers = new Servers({
      now: () => clock.now(),
      onStanding: (life, server) => this.#onLease(life, server),
      onChanged: () => this.directory.serversChanged(),
      onEnded: (life, server) => {
        this.#onLease(life, server)
        this.#sweeper.ended(life)
      },
    })
    this.directory = new Directory({ selfId, servers: this.#servers, isInTouch: () => this.#isInTouch })
    this.#picture = new Picture({
      stands: (life) => this.#stands(life),
      isServer: (nodeId) => nodeId === selfId || this.#servers.lifeOf(nodeId) !== undefined,
      tell: (event) => this.#tell(event),
      now,
    })
    this.#sweeper = new Sweeper({
      engine,
      picture: this.#picture,
      writer,
      servers: this.#servers,
      lives: this.#lives,
      isInTouch: () => this.#isInTouch,
      onError: options.onError,
    })
    this.#members = new Members({
      changes: new Changes({ engine, clock, mayWrite }),
      picture: this.#picture,
      passed: (revision) => this.#view.membersPassed(revision),
      current: () => this.current(),
      now,
    })
    this.#links = new Links({
      picture: this.#picture,
      writer,
      life: () => this.#lives.name,
      isOwn: (life) => this.#lives.has(life),
      stands: (life) => this.#stands(life),
      leave: (nodeId) => this.#members.forget(nodeId),
      noteRecord: (nodeId, record) => this.#members.note(nodeId, record),
      onError: options.onError,
    })
    this.#view = new View({
      engine,
      picture: this.#picture,
      servers: this.#servers,
      life: () => this.#lives.current,
      clock,
      onNode: (nodeId) => this.#links.settle(nodeId),
      onWhole: () => this.#onWhole(),
      onBroken: () => this.directory.touchChanged(),
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

  route(nodeId: string): NodeRoute {
    if (nodeId === this.selfId) return { kind: 'self' }
    if (this.#picture.member(nodeId) === undefined) return { kind: 'unknown' }
    const { entry } = this.#picture.presence(nodeId)
    const link = this.#links.get(nodeId)
    // Its presence may be missing for a moment, after this server was away.
    const isElsewhere = entry !== undefined && entry.session !== link?.id && this.#stands(entry.life)
    if (link !== undefined && !isElsewhere) return { kind: 'session', session: link.session }
    if (this.#servers.lifeOf(nodeId) !== undefined) return { kind: 'server', server: nodeId }
    if (entry === undefined || !this.#picture.isOnline(nodeId)) return { kind: 'offline' }
    const server = this.#servers.serverOf(entry.life)
    return server === undefined ? { kind: 'offline' } : { kind: 'server', server }
  }

  /** Resolves when everything that was answered anywhere before has been seen here. Throws UNAVAILABLE. */
  async current(): Promise<void> {
    this.#lives.mayWrite()
    try {
      await this.#view.current()
    } catch (error) {
      throw unavailable(error)
    }
  }

  async admit({ nodeId, key, record }: JoiningNode): Promise<ClusterPlace> {
    return { nodeId, ...(await this.#members.admit(nodeId, key, record)) }
  }

  async expel(place: MemberPlace): Promise<boolean> {
    const { admission } = place as ClusterPlace
    return await this.#members.forget(place.nodeId, (member) => member.admission === admission)
  }

  async remove(nodeId: string, { answerFirst = false } = {}): Promise<boolean> {
    if (this.#servers.lifeOf(nodeId) !== undefined) {
      throw new ServiceError(
        'FAILED_PRECONDITION',
        `node ${nodeId} is a server of this hub: stop it before removing it`,
      )
    }
    const link = this.#links.get(nodeId)
    if (!answerFirst || link === undefined) return await this.#members.forget(nodeId)
    return await this.#links.keep(nodeId, async () => {
      const wasMember = await this.#members.forget(nodeId)
      if (wasMember) setImmediate(() => link.session.close('REMOVED', 'the node was removed from the hub'))
      return wasMember
    })
  }

  async claim(nodeId: string, record: NodeRecord): Promise<Claim | undefined> {
    this.#lives.mayWrite()
    if (this.#picture.member(nodeId) === undefined) await this.current()
    const member = this.#picture.member(nodeId)
    if (member === undefined) return undefined
    if (!sameFacts(member.record, record)) await this.#members.note(nodeId, () => record)
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
    this.#members
      .note(nodeId, () => link.record)
      .catch((error: unknown) => {
        // Who is away does so when it is back, with the other links.
        if (this.#isInTouch) this.#options.onError(`the changed details of node ${nodeId} could not be stored`, error)
      })
  }

  setSelf(record: NodeRecord): void {
    if (sameFacts(this.#self, record)) return
    this.#self = record
    this.#noteSelfInBackground()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    try {
      await this.#lives.close()
    } catch (error) {
      this.#options.onError('the lease of this server could not be given up; the others wait for its end', error)
    }
    await this.#engine.close()
  }

  async #begin(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#ready = resolve
    })
    this.#lives.begin()
    this.#view.begin()
    await ready
    await this.#noteSelf()
  }

  /** This server is a node of its hub. */
  async #noteSelf(): Promise<void> {
    await this.#members.noteServer(this.selfId, this.#options.selfKey, () => this.#self)
  }

  #noteSelfInBackground(): void {
    this.#noteSelf().catch((error: unknown) => {
      // Who is away does so when it is back.
      if (this.#isInTouch) this.#options.onError('the details of this node could not be stored', error)
    })
  }

  /** Everything has been read, and the lease is held: every link of this server is noted for this life. */
  #onWhole(): void {
    this.#ready()
    this.directory.touchChanged()
    const life = this.#lives.name
    this.#links.settleAll()
    if (this.#picture.member(this.selfId) !== undefined) this.#noteSelfInBackground()
    this.#links
      .noteAll()
      .then(async () => {
        await this.#lives.keepOnly(life)
        this.#sweeper.sweep()
      })
      .catch((error: unknown) => this.#options.onError('the links of this server could not all be noted again', error))
  }

  /** Whether this server sees the state of its hub and may change it. */
  get #isInTouch(): boolean {
    return this.#lives.isHeld && this.#view.isWhole
  }

  #stands(life: string): boolean {
    return this.#lives.has(life) || this.#servers.stands(life)
  }

  /** What the lease of a server says about its own node and those it has. */
  #onLease(life: string, server: string): void {
    this.#picture.refresh(server)
    for (const nodeId of this.#picture.presentIn((name) => name === life)) this.#picture.refresh(nodeId)
    this.directory.serversChanged()
  }

  #tell(event: NodeEvent): void {
    if (this.#isClosed) return
    for (const listener of this.#listeners) listener(event)
  }
}
