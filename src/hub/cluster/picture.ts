/** The joint picture of both buckets: who is on the hub, where each node is, and which events lead from one state to the next. */
import type { Node } from '../../contract/types.ts'
import { nodeView, sameFacts } from '../node-records.ts'
import type { NodeEvent } from '../registry.ts'
import { NO_ENTRY, type Versioned } from './changes.ts'
import {
  decodeNodeEntry,
  decodePresence,
  type EngineTime,
  type MemberEntry,
  type NodeEntry,
  type PresenceEntry,
  type Revision,
  writtenTime,
} from './entries.ts'
import type { WatchedKey } from './watch.ts'

const NODE_PREFIX = 'node.'

export const nodeKey = (nodeId: string): string => `${NODE_PREFIX}${nodeId}`

/** The node that a key is about; undefined for other keys. */
export function nodeOfKey(key: string): string | undefined {
  return key.startsWith(NODE_PREFIX) ? key.slice(NODE_PREFIX.length) : undefined
}

/** The presence of a node and its revision, 0 when there is none; a deleted key has one. */
export interface VersionedPresence {
  readonly entry: PresenceEntry | undefined
  readonly revision: Revision
  /** When the engine took it, milliseconds since the epoch. */
  readonly at: number
}

export interface PictureOptions {
  /** Whether the lease of a life stands, as far as this server knows. */
  readonly stands: (life: string) => boolean
  /** Whether the node is a server of the hub whose lease stands. */
  readonly isServer: (nodeId: string) => boolean
  readonly tell: (event: NodeEvent) => void
  /** Milliseconds since the epoch, by the engine's clock: those of the servers may be anything. What is said of a node that is online, and of one that goes. */
  readonly hubTime: () => number
}

/** A member as it was told. */
interface Shown {
  readonly member: MemberEntry
  /** What tells its connection from others; undefined: offline. */
  readonly connection: string | undefined
  readonly lastSeen: number
}

const ABSENT: Versioned = { entry: NO_ENTRY, revision: 0, at: 0 }
const NEVER: VersionedPresence = { entry: undefined, revision: 0, at: 0 }

export class Picture {
  readonly #options: PictureOptions
  readonly #members = new Map<string, Versioned>()
  /** Entries that the reading under way has told, older than those that are known: of a replica that has yet to catch up, or all that is left. */
  readonly #older = new Map<string, Versioned>()
  readonly #presence = new Map<string, VersionedPresence>()
  /** As `#older`: NATS may lose the end of what it has in memory, too. */
  readonly #olderPresence = new Map<string, VersionedPresence>()
  readonly #shown = new Map<string, Shown>()
  /** Nodes that have changed while the picture is not whole. */
  #changed: Set<string> | undefined = new Set()

  constructor(options: PictureOptions) {
    this.#options = options
  }

  /** The entry of a node. */
  versioned(nodeId: string): Versioned {
    return this.#members.get(nodeId) ?? ABSENT
  }

  presence(nodeId: string): VersionedPresence {
    return this.#presence.get(nodeId) ?? NEVER
  }

  /** The member, as it was told. */
  member(nodeId: string): MemberEntry | undefined {
    return this.#shown.get(nodeId)?.member
  }

  isOnline(nodeId: string): boolean {
    return this.#shown.get(nodeId)?.connection !== undefined
  }

  /** Members that are offline and were seen more than `slack` milliseconds after what their entry says, with when, milliseconds since the epoch. */
  seenLater(slack: number): { readonly nodeId: string; readonly lastSeen: number }[] {
    const found: { nodeId: string; lastSeen: number }[] = []
    for (const [nodeId, { member, connection, lastSeen }] of this.#shown) {
      if (connection === undefined && lastSeen > member.lastSeen.getTime() + slack) found.push({ nodeId, lastSeen })
    }
    return found
  }

  /** Nodes whose presence names one of these lives, or one whose lease does not stand. */
  presentIn(life: (name: string) => boolean): string[] {
    const found: string[] = []
    for (const [nodeId, { entry }] of this.#presence) if (entry !== undefined && life(entry.life)) found.push(nodeId)
    return found
  }

  /** Nodes of which there are requests to join. */
  asking(): string[] {
    const found: string[] = []
    for (const [nodeId, { entry }] of this.#members) if (entry.requests.length > 0) found.push(nodeId)
    return found
  }

  /** All members, in the order they joined. */
  nodes(): Node[] {
    const shown = Array.from(this.#shown).sort(([a, one], [b, other]) => {
      return one.member.joined - other.member.joined || (a < b ? -1 : 1)
    })
    return shown.map(([nodeId, each]) => this.#view(nodeId, each))
  }

  /** A key of the bucket of members. Throws when its value is none. */
  takeMember({ key, revision, value, at }: WatchedKey): string | undefined {
    const nodeId = nodeOfKey(key)
    if (nodeId === undefined) return undefined
    const known = this.versioned(nodeId)
    this.#older.delete(nodeId)
    if (revision === known.revision && at === known.at) return undefined
    const told = { entry: value === undefined ? NO_ENTRY : decodeNodeEntry(value, revision, at), revision, at }
    if (revision <= known.revision) {
      this.#older.set(nodeId, told)
      return undefined
    }
    this.#members.set(nodeId, told)
    return nodeId
  }

  /** A key of the bucket of presence. Throws when its value is none. */
  takePresence({ key, revision, value, at }: WatchedKey): string | undefined {
    const nodeId = nodeOfKey(key)
    if (nodeId === undefined) return undefined
    const known = this.presence(nodeId)
    this.#olderPresence.delete(nodeId)
    if (revision === known.revision && at === known.at) return undefined
    const told = { entry: value === undefined ? undefined : decodePresence(value), revision, at }
    if (revision <= known.revision) {
      this.#olderPresence.set(nodeId, told)
      return undefined
    }
    this.#presence.set(nodeId, told)
    return nodeId
  }

  /** Keys that say that a node is no member and does not ask to be one, or is not connected. */
  *ends(): Iterable<{ bucket: 'members' | 'presence'; key: string; revision: Revision; at: EngineTime }> {
    for (const [nodeId, { entry, revision, at }] of this.#members) {
      if (isNobody(entry)) yield { bucket: 'members', key: nodeKey(nodeId), revision, at }
    }
    for (const [nodeId, { entry, revision, at }] of this.#presence) {
      if (entry === undefined) yield { bucket: 'presence', key: nodeKey(nodeId), revision, at }
    }
  }

  /** A tombstone of this revision is purged. */
  forget(bucket: 'members' | 'presence', key: string, revision: Revision): void {
    const known: Map<string, { readonly revision: Revision }> = bucket === 'members' ? this.#members : this.#presence
    const nodeId = nodeOfKey(key) ?? ''
    if (known.get(nodeId)?.revision === revision) known.delete(nodeId)
  }

  /** From now on changes are only noted, until it is whole again. */
  beginReading(): void {
    this.#changed ??= new Set()
    this.#older.clear()
    this.#olderPresence.clear()
  }

  /** The bucket of presence is a new one: what was in the old one counts for nothing. */
  forgetPresence(): void {
    for (const nodeId of this.#presence.keys()) this.refresh(nodeId)
    this.#presence.clear()
  }

  /** Both buckets have been read: keys that are not in them are gone, and the difference to what was told is told. */
  endReading(members: ReadonlySet<string>, presence: ReadonlySet<string>): void {
    const changed = this.#changed ?? new Set()
    this.#changed = undefined
    for (const [nodeId, left] of this.#older) {
      this.#members.set(nodeId, left)
      changed.add(nodeId)
    }
    for (const [nodeId, left] of this.#olderPresence) {
      this.#presence.set(nodeId, left)
      changed.add(nodeId)
    }
    this.#older.clear()
    this.#olderPresence.clear()
    for (const [read, known] of [
      [members, this.#members],
      [presence, this.#presence],
    ] as const) {
      for (const nodeId of known.keys()) {
        if (read.has(nodeKey(nodeId))) continue
        known.delete(nodeId)
        changed.add(nodeId)
      }
    }
    for (const nodeId of changed) this.#tellOf(nodeId)
  }

  /** Tells what is different about a node. */
  refresh(nodeId: string): void {
    if (this.#changed === undefined) this.#tellOf(nodeId)
    else this.#changed.add(nodeId)
  }

  #tellOf(nodeId: string): void {
    const old = this.#shown.get(nodeId)
    const now = this.#joint(nodeId, old)
    if (now === undefined) this.#shown.delete(nodeId)
    else this.#shown.set(nodeId, now)
    const { tell } = this.#options
    for (const type of differences(old, now)) {
      if (type === 'deauthenticated') tell({ type, node: this.#view(nodeId, this.#ended(old as Shown)) })
      else if (type === 'disconnected')
        tell({ type, node: this.#view(nodeId, { ...(now as Shown), connection: undefined }) })
      else tell({ type, node: this.#view(nodeId, now as Shown) })
    }
  }

  #joint(nodeId: string, old: Shown | undefined): Shown | undefined {
    const known = this.versioned(nodeId)
    const { member } = known.entry
    if (member === undefined) return undefined
    const { entry, at } = this.presence(nodeId)
    const { stands, isServer, hubTime } = this.#options
    const isPresent = entry !== undefined && entry.joined === member.joined && stands(entry.life)
    const connection = isPresent ? entry.session : isServer(nodeId) ? 'server' : undefined
    // A life that has ended leaves the presence of its nodes behind for a moment; a node that has another connection has left the one before.
    const left = old?.connection !== undefined && connection !== old.connection ? hubTime() : (old?.lastSeen ?? 0)
    const ended = entry === undefined ? at : 0
    return { member, connection, lastSeen: Math.max(writtenTime(member, known.at), ended, left) }
  }

  /** A member that is none any more. */
  #ended(old: Shown): Shown {
    return old.connection === undefined ? old : { ...old, connection: undefined, lastSeen: this.#options.hubTime() }
  }

  #view(nodeId: string, { member, connection, lastSeen }: Shown): Node {
    const isOnline = connection !== undefined
    return nodeView(nodeId, member.record, isOnline, isOnline ? this.#options.hubTime() : lastSeen)
  }
}

/** Whether an entry is that of no member, and of nobody who asks to be one. */
export const isNobody = ({ member, requests }: NodeEntry): boolean => member === undefined && requests.length === 0

function differences(old: Shown | undefined, now: Shown | undefined): NodeEvent['type'][] {
  if (old !== undefined && now !== undefined && old.member.joined !== now.member.joined) {
    return [...differences(old, undefined), ...differences(undefined, now)]
  }
  if (now === undefined) return old === undefined ? [] : ['deauthenticated']
  const types: NodeEvent['type'][] = []
  if (old?.member.admission !== now.member.admission) types.push('authenticated')
  else if (!sameFacts(old.member.record, now.member.record)) types.push('updated')
  if (old?.connection === now.connection) return types
  if (old?.connection !== undefined) types.push('disconnected')
  if (now.connection !== undefined) types.push('connected')
  return types
}
