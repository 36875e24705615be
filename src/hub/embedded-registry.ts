/** The registry of a hub that is one process: nodes as actors in memory, their records on disk. */
import { type ActorRefFrom, createActor } from 'xstate'
import { nodeConnection, seenAt } from '../actors/node-connection.ts'
import { systemClock, type Timers } from '../contract/clock.ts'
import { SerialQueue } from '../contract/serial-queue.ts'
import type { Node } from '../contract/types.ts'
import type { JoiningNode, LinkSession, NodeRecord } from '../link/link.ts'
import type { NodeCollection, StoredNode } from '../store/nodes.ts'
import type { RequestIds } from '../store/requests.ts'
import { EmbeddedRequests } from './embedded-requests.ts'
import { nodeView, sameFacts } from './node-records.ts'
import type { Claim, NodeEvent, NodeRegistry, NodeRoute } from './registry.ts'
import type { MemberPlace } from './request-store.ts'

export interface EmbeddedRegistryOptions {
  selfId: string
  /** What the hub's own node says about itself; `setSelf` changes it. */
  self: NodeRecord
  store: NodeCollection
  requestIds: Pick<RequestIds, 'next'>
  /** A write in the background failed. */
  onError(error: unknown): void
  /** Milliseconds since the epoch; default: the system's clock. */
  now?: () => number
  /** Default: the system's. */
  timers?: Timers
}

interface Member {
  readonly id: string
  readonly key: Uint8Array
  readonly joinedAt: number
  readonly actor: ActorRefFrom<typeof nodeConnection>
  /** That of the last acceptance since the start; none when there was none. */
  place: MemberPlace | undefined
}

/** Who is connected is noted when the link stands: there is nobody else to tell. */
const CLAIM: Claim = {}

/** How often it is brought to disk when the nodes were last heard of, milliseconds: what is at most lost of it when the process is killed. */
const SEEN_MS = 60_000

const CHANGES = ['authenticated', 'deauthenticated', 'connected', 'disconnected', 'updated'] as const

export class EmbeddedRegistry implements NodeRegistry {
  readonly selfId: string
  readonly requests: EmbeddedRequests
  readonly #store: NodeCollection
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  readonly #members = new Map<string, Member>()
  readonly #listeners: ((event: NodeEvent) => void)[] = []
  /** Node id → the last of its changes that goes to disk: they wait for one another. */
  readonly #changes = new Map<string, SerialQueue>()
  readonly #timers: Timers
  /** Set from the first link on, until there is none. */
  #noting: unknown
  #self: NodeRecord
  #closed = false

  /** Loads the nodes on disk, all offline. */
  constructor(options: EmbeddedRegistryOptions) {
    this.selfId = options.selfId
    this.#self = options.self
    this.#store = options.store
    this.#onError = options.onError
    this.#now = options.now ?? Date.now
    this.#timers = options.timers ?? systemClock
    this.requests = new EmbeddedRequests({
      nextId: () => options.requestIds.next(),
      admit: (joiner) => this.admit(joiner),
      now: this.#now,
    })
    const stored = this.#store.all().sort((a, b) => a.joinedAt - b.joinedAt || (a.id < b.id ? -1 : 1))
    for (const record of stored) this.#add(record)
  }

  nodes(): Node[] {
    return [this.#selfView(), ...Array.from(this.#members.values(), (member) => this.#view(member))]
  }

  follow(listener: (event: NodeEvent) => void): void {
    this.#listeners.push(listener)
  }

  route(nodeId: string): NodeRoute {
    if (nodeId === this.selfId) return { kind: 'self' }
    const member = this.#members.get(nodeId)
    if (member === undefined) return { kind: 'unknown' }
    const { link } = member.actor.getSnapshot().context
    return link === null ? { kind: 'offline' } : { kind: 'session', session: link as LinkSession }
  }

  async admit({ nodeId, key, record }: JoiningNode): Promise<MemberPlace> {
    return await this.#inTurn(nodeId, async () => {
      const known = this.#members.get(nodeId)
      const now = this.#now()
      const stored = storedNode({ id: nodeId, key, joinedAt: known?.joinedAt ?? now }, record, now)
      await this.#store.put(stored)
      const place = { nodeId, isNew: known === undefined }
      if (known !== undefined) {
        known.place = place
        known.actor.send({ type: 'ADMITTED', details: record })
        return place
      }
      const member = this.#add(stored)
      member.place = place
      this.#tell('authenticated', this.#view(member))
      return place
    })
  }

  async expel(place: MemberPlace): Promise<boolean> {
    const member = this.#members.get(place.nodeId)
    if (member === undefined) return false
    return await this.#forget(member, { type: 'REMOVE', answerFirst: false }, () => member.place === place)
  }

  claim(nodeId: string): Claim | undefined {
    return this.#members.has(nodeId) ? CLAIM : undefined
  }

  connect(session: LinkSession, record: NodeRecord): void {
    const member = this.#members.get(session.peerId)
    if (this.#closed) {
      session.close('SHUTDOWN', 'the hub is shutting down')
      return
    }
    if (member === undefined) {
      session.close('REMOVED', 'the node was removed from the hub')
      return
    }
    const { actor } = member
    session.onLeave(async () => {
      if (this.#members.get(session.peerId) === member) await this.#forget(member, { type: 'LEAVE' })
    })
    actor.send({ type: 'CONNECTED', link: session, details: record })
    this.#noteLater()
    void session.closed.then(() => {
      if (!this.#closed && actor.getSnapshot().status === 'active') actor.send({ type: 'CLOSED', link: session })
    })
  }

  update(session: LinkSession, record: NodeRecord): void {
    const actor = this.#members.get(session.peerId)?.actor
    if (actor === undefined || sameFacts(actor.getSnapshot().context.details as NodeRecord, record)) return
    actor.send({ type: 'DETAILS', link: session, details: record })
  }

  async remove(nodeId: string, { answerFirst = false } = {}): Promise<boolean> {
    const member = this.#members.get(nodeId)
    if (member === undefined) return false
    return await this.#forget(member, { type: 'REMOVE', answerFirst })
  }

  setSelf(record: NodeRecord): void {
    if (sameFacts(this.#self, record)) return
    this.#self = record
    this.#tell('updated', this.#selfView())
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#timers.clearTimeout(this.#noting)
    await this.#noteSeen()
    await Promise.all(Array.from(this.#changes.values(), (changes) => changes.run(() => {})))
  }

  /** As long as there is a link. */
  #noteLater(): void {
    if (this.#noting !== undefined || this.#closed) return
    this.#noting = this.#timers.setTimeout(async () => {
      await this.#noteSeen()
      this.#noting = undefined
      if ([...this.#members.values()].some(isOnline)) this.#noteLater()
    }, SEEN_MS)
  }

  /** Brings to disk when the nodes were last heard of; of those that are offline too, since their records may say less than was noted before. */
  async #noteSeen(): Promise<void> {
    if (this.#noting === undefined) return
    const members = [...this.#members.values()]
    try {
      await this.#store.noteSeen(members.map(({ id, actor }) => [id, seenAt(actor.getSnapshot().context)]))
    } catch (error) {
      this.#onError(error)
    }
  }

  /** From disk first: once somebody was told that the node is gone, it does not come back with a restart. `isMeant` is asked in its turn. */
  async #forget(
    member: Member,
    event: { type: 'LEAVE' } | { type: 'REMOVE'; answerFirst: boolean },
    isMeant = () => true,
  ): Promise<boolean> {
    const { id, actor } = member
    return await this.#inTurn(id, async () => {
      if (this.#members.get(id) !== member || !isMeant()) return false
      await this.#store.remove(id)
      this.#members.delete(id)
      actor.send(event)
      return true
    })
  }

  #add(record: StoredNode): Member {
    const { id, key, joinedAt, lastSeen, name, metadata, services } = record
    const details: NodeRecord = { name, metadata: { items: metadata }, services }
    const actor = createActor(nodeConnection, { input: { details, lastSeen, now: this.#now } })
    const member: Member = { id, key, joinedAt, actor, place: undefined }
    this.#members.set(id, member)
    for (const type of CHANGES) {
      actor.on(type, () => {
        if (this.#closed) return
        if (type !== 'deauthenticated') this.#save(member)
        const node = this.#view(member)
        // A newer link may stand already, of which the next event tells.
        this.#tell(type, type === 'disconnected' ? { ...node, online: false } : node)
      })
    }
    actor.start()
    return member
  }

  /** Brings details and time of a member to disk, in the background. */
  #save(member: Member): void {
    this.#inTurn(member.id, async () => {
      if (this.#members.get(member.id) !== member) return
      const { context } = member.actor.getSnapshot()
      await this.#store.put(storedNode(member, context.details as NodeRecord, seenAt(context)))
    }).catch(this.#onError)
  }

  #tell(type: NodeEvent['type'], node: Node): void {
    if (this.#closed) return
    const event = { type, node }
    for (const listener of this.#listeners) listener(event)
  }

  #view(member: Member): Node {
    const { context } = member.actor.getSnapshot()
    return nodeView(member.id, context.details as NodeRecord, isOnline(member), seenAt(context))
  }

  #selfView(): Node {
    return nodeView(this.selfId, this.#self, true, this.#now())
  }

  #inTurn<T>(id: string, step: () => Promise<T>): Promise<T> {
    const changes = this.#changes.get(id) ?? new SerialQueue()
    this.#changes.set(id, changes)
    return changes.run(step).finally(() => {
      if (changes.isIdle) this.#changes.delete(id)
    })
  }
}

function isOnline({ actor }: Member): boolean {
  return actor.getSnapshot().context.link !== null
}

function storedNode(
  { id, key, joinedAt }: Pick<Member, 'id' | 'key' | 'joinedAt'>,
  { name, metadata, services }: NodeRecord,
  lastSeen: number,
): StoredNode {
  return { id, key, joinedAt, lastSeen, name, metadata: metadata.items, services: [...services] }
}
