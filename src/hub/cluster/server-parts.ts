/** All that one server of a cluster is made of, put together: what it sees, what it writes, and what each tells the others. */

import type { Clock } from '../../contract/clock.ts'
import type { NodeRecord } from '../../link/link.ts'
import type { NodeEvent } from '../registry.ts'
import { Changes, unavailable } from './changes.ts'
import { Directory } from './directory.ts'
import { type Engine, type EngineFact, type EngineOptions, notInTime, START_MS } from './engine.ts'
import type { EngineTime } from './entries.ts'
import { Links } from './links.ts'
import { Members } from './members.ts'
import { OwnLives } from './own-lives.ts'
import { OwnNode } from './own-node.ts'
import { Picture } from './picture.ts'
import { PresenceWriter } from './presence-writer.ts'
import { RequestUpkeep } from './request-upkeep.ts'
import { ClusterRequests, type RequestPlaces } from './requests.ts'
import { Routes } from './routes.ts'
import { SameIdentity } from './same-identity.ts'
import { SeenTimes } from './seen-times.ts'
import { Servers } from './servers.ts'
import { Sweeper } from './sweeper.ts'
import { ToldOnce } from './told-once.ts'
import { Tombstones } from './tombstones.ts'
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
  /** What the engine's clock says, by the last time stamp of it that was seen, `seen`; default: that. */
  readonly engineTime?: (seen: EngineTime) => EngineTime
}

/** What happens between this server and the state of its hub. */
export type ClusterFact =
  | EngineFact
  /** A life of this server, by its name, has begun or ended. */
  | { readonly kind: 'lease held'; readonly life: string }
  | { readonly kind: 'lease lost'; readonly error?: unknown }
  /** This server was taken off the list while the others took it for gone, and puts itself on it again. */
  | { readonly kind: 'removed' }
  /** Another process runs with this server's identity, and has that life. */
  | { readonly kind: 'identity in use'; readonly life: string }

export class ServerParts {
  readonly lives: OwnLives
  readonly servers: Servers
  readonly directory: Directory
  readonly picture: Picture
  readonly routes: Routes
  readonly members: Members
  readonly links: Links
  readonly requests: ClusterRequests
  readonly view: View
  readonly ownNode: OwnNode
  readonly #options: ClusterRegistryOptions
  readonly #engine: Engine
  readonly #sameIdentity: SameIdentity
  readonly #sweeper: Sweeper
  readonly #upkeep: RequestUpkeep
  readonly #tombstones: Tombstones
  readonly #seenTimes: SeenTimes
  readonly #ready: Promise<void>
  #isReady!: () => void
  /** How often everything was read, and as of which of these this server's links are noted. */
  #timesWhole = 0
  #timesNoted = 0
  #isNoting = false
  readonly #notingFailure = new ToldOnce((error) =>
    this.failed('the links of this server could not all be noted again; it is tried again', error),
  )

  /** `tell` hears of every change of a node. */
  constructor(options: ClusterRegistryOptions, engine: Engine, tell: (event: NodeEvent) => void) {
    const { selfId, self, selfKey, clock, onFact, now = Date.now } = options
    this.#options = options
    this.#engine = engine
    this.#ready = new Promise((resolve) => {
      this.#isReady = resolve
    })
    this.lives = new OwnLives({
      engine,
      clock,
      server: selfId,
      details: () => this.directory.details,
      onRenewed: (sentAt) => this.view.renewed(sentAt),
      onHeld: () => {
        onFact({ kind: 'lease held', life: this.lives.name })
        this.view.lifeHeld()
        this.directory.touchChanged()
      },
      onLost: (error) => {
        onFact({ kind: 'lease lost', ...(error !== undefined && { error }) })
        this.directory.touchChanged()
      },
      onFailed: (error) => {
        if (this.#timesWhole === 0) onFact({ kind: 'failed', error })
      },
    })
    const engineTimeOf = options.engineTime ?? ((seen: EngineTime) => seen)
    const engineTime = () => engineTimeOf(this.view.engineTime)
    // What all servers are told is by the one clock that they share, this server's own only until it has seen that one.
    const hubTime = () => (this.view.engineNow === 0 ? now() : engineTimeOf(this.view.engineNow))
    const mayWrite = () => this.lives.mayWrite()
    const writer = new PresenceWriter({ engine, clock, mayWrite })
    this.#sameIdentity = new SameIdentity({
      selfId,
      clock,
      isOwn: (life) => this.lives.knows(life),
      ownLife: () => this.lives.name,
      engineTime: () => this.view.engineTime,
      onOther: (life) => onFact({ kind: 'identity in use', life }),
    })
    this.servers = new Servers({
      now: () => clock.now(),
      onStanding: (life, server) => this.#onLease(life, server),
      onChanged: () => this.directory.serversChanged(),
      onSeen: (life, server, at) => this.#sameIdentity.take(life, server, at),
      onEnded: (life, server) => {
        this.#sameIdentity.ended(life)
        this.#onLease(life, server)
        this.#sweeper.ended(life)
      },
    })
    this.directory = new Directory({
      selfId,
      servers: this.servers,
      isInTouch: () => this.isInTouch,
      onPublished: () => this.lives.current?.renewNow(),
      onRemoved: (nodeId, revision) => this.links.removed(nodeId, revision),
    })
    this.picture = new Picture({
      stands: (life) => this.routes.stands(life),
      isServer: (nodeId) => nodeId === selfId || this.servers.lifeOf(nodeId) !== undefined,
      tell: (event) => {
        const isElsewhere = event.type === 'deauthenticated' && !this.members.isForgetting(event.node.id)
        tell(isElsewhere ? { ...event, isElsewhere } : event)
      },
      hubTime,
    })
    const routes = new Routes({
      selfId,
      picture: this.picture,
      lives: this.lives,
      servers: this.servers,
      links: () => this.links,
    })
    this.routes = routes
    const isInTouch = () => this.isInTouch
    const isFirst = () => this.isInTouch && routes.isFirst
    this.#sweeper = new Sweeper({
      clock,
      engine,
      picture: this.picture,
      writer,
      lives: this.lives,
      stands: (life) => routes.stands(life),
      isFirst,
      onError: options.onError,
    })
    this.members = new Members({
      changes: new Changes({ engine, clock, mayWrite }),
      picture: this.picture,
      passed: (revision) => this.view.membersPassed(revision),
      current: () => this.current(),
      onForgotten: (nodeId, revision) => this.directory.tellRemoval(nodeId, revision),
      hubTime,
    })
    const onLater = (message: string) => (error: unknown) => this.failed(message, error)
    this.ownNode = new OwnNode({
      id: selfId,
      key: selfKey,
      record: self,
      members: this.members,
      picture: this.picture,
      onRemoved: () => onFact({ kind: 'removed' }),
      onLater: onLater('the details of this node could not be stored; it is tried again'),
    })
    const places: RequestPlaces = {
      isOwn: (life) => this.lives.has(life),
      isElsewhere: (life) => routes.isElsewhere(life),
      life: () => this.lives.name,
    }
    this.requests = new ClusterRequests({
      members: this.members,
      picture: this.picture,
      places,
      clock,
      isInTouch,
      base: () => engine.hub.requestBase,
      current: () => this.current(),
      hubTime,
      onLater: onLater('that a request to join is over could not be stored'),
    })
    this.#upkeep = new RequestUpkeep({
      requests: this.requests,
      members: this.members,
      places,
      isInTouch,
      isFirst,
      engineTime,
      hubTime,
      onLater: onLater('a request to join that a server left behind could not be changed'),
    })
    this.#tombstones = new Tombstones({
      engine,
      picture: this.picture,
      isFirst,
      engineTime,
      onLater: onLater('what has been of no use for a day could not be purged'),
    })
    this.#seenTimes = new SeenTimes({
      picture: this.picture,
      members: this.members,
      isFirst,
      hubTime,
      onLater: onLater('when nodes were seen last could not be stored; it is tried again'),
    })
    this.links = new Links({
      picture: this.picture,
      writer,
      life: () => this.lives.name,
      isOwn: (life) => this.lives.has(life),
      stands: (life) => routes.stands(life),
      leave: (nodeId) => this.members.forget(nodeId),
      noteRecord: (nodeId, record, holds) => this.members.note(nodeId, record, holds),
      onError: options.onError,
    })
    this.view = new View({
      engine,
      picture: this.picture,
      servers: this.servers,
      life: () => this.lives.current,
      clock,
      onKey: (bucket, key) => this.#tombstones.note(bucket, key),
      onNode: (nodeId) => {
        this.links.settle(nodeId)
        this.requests.refresh(nodeId)
        if (nodeId === selfId && this.isInTouch) this.ownNode.look()
      },
      onRenewal: () => {
        void this.#upkeep.tick()
        void this.#tombstones.look()
        void this.#seenTimes.look()
        void this.#noteLinks()
        void this.links.catchUp()
        this.ownNode.catchUp()
      },
      onWhole: () => this.#onWhole(),
      onPresenceLost: () => this.links.presenceLost(),
      onBroken: () => {
        this.directory.touchChanged()
        this.#tombstones.forget()
      },
      onError: options.onError,
    })
  }

  /** Resolves once everything has been read, and this server's node is a member. Throws an Error when another process runs with its identity. */
  async begin(): Promise<void> {
    this.lives.begin()
    this.view.begin()
    await this.#readyInTime()
    await this.#sameIdentity.requireNone()
    await this.ownNode.note()
  }

  /** As `#ready`, unless NATS does not let this server read or take its lease for as long as a start waits for it, or the start is ended. */
  async #readyInTime(): Promise<void> {
    const {
      engine: { signal, servers },
      clock,
    } = this.#options
    let giveUp: (error: unknown) => void = () => {}
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = reject
    })
    const look = () => {
      const failure = this.#engine.failure ?? this.lives.current?.failure ?? this.view.failure
      if (failure !== undefined) giveUp(notInTime(servers, failure))
      else timer = clock.setTimeout(look, START_MS)
    }
    let timer = clock.setTimeout(look, START_MS)
    const end = () => giveUp(signal?.reason)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
    try {
      await Promise.race([this.#ready, givenUp])
    } finally {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
  }

  close(): void {
    this.#sweeper.close()
  }

  /** Resolves when everything that was answered anywhere before has been seen here. Throws UNAVAILABLE. */
  async current(): Promise<void> {
    this.lives.mayWrite()
    try {
      await this.view.current()
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** Whether this server sees the state of its hub and may change it. */
  get isInTouch(): boolean {
    return this.lives.isHeld && this.view.isWhole
  }

  /** Something that is done again when this server is in touch, if it is not now; whether it was told. */
  failed(message: string, error: unknown): boolean {
    const { isInTouch } = this
    if (isInTouch) this.#options.onError(message, error)
    return isInTouch
  }

  /** Everything has been read, and the lease is held: every link of this server is noted for this life. */
  #onWhole(): void {
    this.#isReady()
    this.directory.touchChanged()
    this.links.settleAll()
    this.requests.refreshAll()
    this.#tombstones.noteKnown()
    this.ownNode.noteAgain()
    void this.#upkeep.tick()
    this.#timesWhole++
    void this.#noteLinks()
  }

  /** Notes what has not been noted since everything was read last; what fails is tried again with the next renewal. */
  async #noteLinks(): Promise<void> {
    const times = this.#timesWhole
    if (this.#isNoting || this.#timesNoted === times || !this.isInTouch) return
    this.#isNoting = true
    try {
      const life = this.lives.name
      await this.links.noteAll()
      const isOver = (name: string) => name !== life && this.lives.has(name)
      const left = this.picture.presentIn(isOver)
      const ended = this.lives.keepOnly(life)
      // Links that ended while nothing could be written: nobody but this server counts the lives in which they stood.
      for (const nodeId of left) this.picture.refresh(nodeId)
      await ended
      this.#timesNoted = times
      this.#notingFailure.worked()
      this.#sweeper.sweepLater()
    } catch (error) {
      this.#notingFailure.failed(error)
    } finally {
      this.#isNoting = false
    }
    if (this.#timesWhole !== times) await this.#noteLinks()
  }

  /** What the lease of a server says about its own node and those it has. */
  #onLease(life: string, server: string): void {
    this.picture.refresh(server)
    for (const nodeId of this.picture.presentIn((name) => name === life)) this.picture.refresh(nodeId)
    this.requests.look()
    this.directory.serversChanged()
  }
}
