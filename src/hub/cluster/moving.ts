/** The members of a hub of several servers, read from NATS and put there, while a hub moves between this state and that of a single server. */
import type { KV } from '@nats-io/kv'
import { errors } from '@nats-io/transport-node'
import { systemClock } from '../../contract/clock.ts'
import { nodeIdOfRaw } from '../../link/identity.ts'
import type { NodeRecord } from '../../link/link.ts'
import type { StoredNode } from '../../store/nodes.ts'
import { messageOf } from '../../text/error-message.ts'
import { sameFacts } from '../node-records.ts'
import { NO_ENTRY } from './changes.ts'
import { Engine, type EngineOptions, type EngineSession } from './engine.ts'
import {
  admitted,
  decodeNodeEntry,
  decodePresence,
  type EngineTime,
  encodeHub,
  encodeNodeEntry,
  type MemberEntry,
  type Revision,
  writtenTime,
} from './entries.ts'
import { inTurns } from './in-turns.ts'
import { RENEWED_WITHIN_MS } from './life.ts'
import { nodeKey } from './picture.ts'
import { Servers } from './servers.ts'

/** How long NATS may say nothing while it tells keys, milliseconds: after ten seconds without its heartbeats the library asks once more. */
const MAX_SILENCE_MS = 20_000

type EngineSettings = Omit<EngineOptions, 'timers' | 'onFact' | 'connectionName'>

export interface MovedMembers {
  readonly members: readonly StoredNode[]
  /** Requests to join have had ids below this. */
  readonly requestIds: number
}

/**
 * All members but the servers. When each joined is in the order in which they did: of entries that say a later time (`MemberEntry.joinedAt`) it is that of the next.
 * Throws EngineUnfit, and an Error where NATS stops answering.
 */
export async function readMembers(settings: EngineSettings): Promise<MovedMembers> {
  return await withEngine(settings, async ({ members, presence, hub }) => {
    const found = (await allMembers(members)).filter(({ member }) => !isServer(member.record))
    found.sort((a, b) => b.member.joined - a.member.joined)
    const seen = await seenTimes(presence, found)
    let latest = Number.POSITIVE_INFINITY
    const stored = found.map(({ id, member, at }) => {
      latest = Math.min(latest, member.joinedAt)
      return storedNode(member, at, latest, seen.get(id) ?? 0)
    })
    const { state } = (await members.status()).streamInfo
    return { members: stored.reverse(), requestIds: Number(hub.requestBase) + state.last_seq + 1 }
  })
}

/**
 * Puts members on a hub that has none but those, and whose servers are down. Cut off in between, it goes on when it is done again. Throws EngineUnfit, an
 * Error that says what stands against it, nothing having been written, and an Error where NATS stops answering.
 */
export async function writeMembers(settings: EngineSettings, { members, requestIds }: MovedMembers): Promise<void> {
  await withEngine(settings, async (session) => {
    const there = new Map((await allMembers(session.members)).map(({ id, ...found }) => [id, found]))
    const wanted = new Map(members.map((member) => [member.id, member]))
    const others = [...there].filter(([id, { member }]) => !isServer(member.record) && !isSame(member, wanted.get(id)))
    if (others.length > 0) {
      throw new Error(
        `this hub has ${others.length} members that are not in the file as they are here: what is imported goes into a hub without any`,
      )
    }
    if (await isAnyServerUp(session.presence)) {
      throw new Error('servers of this hub are up: stop them until the members are there')
    }
    const { hub } = session
    const requestBase = hub.requestBase > BigInt(requestIds) ? hub.requestBase : BigInt(requestIds)
    await session.members.put('hub', encodeHub({ ...hub, requestBase }))
    const inOrder = [...members].sort((a, b) => a.joinedAt - b.joinedAt || (a.id < b.id ? -1 : 1))
    // One after the other: the order in which they joined is that of their revisions.
    for (const node of inOrder) if (!there.has(node.id)) await session.members.put(nodeKey(node.id), entryOf(node))
  })
}

async function withEngine<T>(settings: EngineSettings, work: (session: EngineSession) => Promise<T>): Promise<T> {
  const engine = await Engine.open({ ...settings, connectionName: 'penstock hub', timers: systemClock })
  try {
    return await work(engine.session as EngineSession)
  } catch (error) {
    if (!(error instanceof Silence) && !isOfEngine(error)) throw error
    throw new Error(
      `the NATS servers at ${settings.servers.join(', ')} have stopped answering (${messageOf(error)}): try again once they are well`,
      { cause: error },
    )
  } finally {
    await engine.close()
  }
}

/** NATS has told nothing for too long. */
class Silence extends Error {
  override readonly name = 'Silence'
}

const isOfEngine = (error: unknown): boolean =>
  [errors.TimeoutError, errors.RequestError, errors.NoRespondersError, errors.ClosedConnectionError].some(
    (kind) => error instanceof kind,
  )

/** Throws Silence. */
async function keysOf(bucket: KV, filter?: string): Promise<string[]> {
  const keys = await bucket.keys(filter)
  const silence = new Silence(`not a key within ${MAX_SILENCE_MS / 1000} s`)
  const timer = setTimeout(() => keys.stop(silence), MAX_SILENCE_MS)
  const found: string[] = []
  try {
    for await (const key of keys) {
      found.push(key)
      timer.refresh()
    }
  } finally {
    clearTimeout(timer)
  }
  return found
}

/** `at`: when its entry was written last, milliseconds since the epoch. */
async function allMembers(bucket: KV): Promise<{ id: string; member: MemberEntry; at: number }[]> {
  const keys = await keysOf(bucket, 'node.>')
  const found: { id: string; member: MemberEntry; at: number }[] = []
  await inTurns(keys, async (key) => {
    const entry = await bucket.get(key)
    if (entry?.operation !== 'PUT') return
    const { member } = decodeNodeEntry(entry.value, entry.revision, entry.created.getTime())
    if (member === undefined) return
    found.push({ id: nodeIdOfRaw(member.key), member, at: entry.created.getTime() })
  })
  return found
}

/**
 * What the bucket of presence says of when each of these members was seen last, by its id, milliseconds since the epoch: the last renewal of the server that has
 * its link, or when that link was noted, or ended.
 */
async function seenTimes(presence: KV, members: readonly { id: string; member: MemberEntry }[]) {
  const seen = new Map<string, number>()
  const renewed = new Map<string, number>()
  for (const key of await keysOf(presence)) {
    const life = Servers.lifeOfKey(key)
    const lease = life === undefined ? null : await presence.get(key)
    if (life !== undefined && lease?.operation === 'PUT') renewed.set(life, lease.created.getTime())
  }
  await inTurns(members, async ({ id, member: { joined } }) => {
    const found = await presence.get(nodeKey(id))
    if (found === null) return
    const link = found.operation === 'PUT' ? decodePresence(found.value) : undefined
    const lease = link?.joined === joined ? renewed.get(link.life) : undefined
    seen.set(id, Math.max(found.created.getTime(), lease ?? 0))
  })
  return seen
}

async function isAnyServerUp(presence: KV): Promise<boolean> {
  const before = await leases(presence)
  if (before.size === 0) return false
  await new Promise((resolve) => setTimeout(resolve, RENEWED_WITHIN_MS))
  for (const [key, revision] of await leases(presence)) if (before.get(key) !== revision) return true
  return false
}

async function leases(presence: KV): Promise<Map<string, Revision>> {
  const found = new Map<string, Revision>()
  for (const key of await keysOf(presence)) {
    if (Servers.lifeOfKey(key) !== undefined) found.set(key, 0)
  }
  for (const key of found.keys()) found.set(key, (await presence.get(key))?.revision ?? 0)
  return found
}

const isServer = ({ services }: NodeRecord): boolean => services.includes('HUB_SERVER')

function isSame({ key, record }: MemberEntry, node: StoredNode | undefined): boolean {
  return node !== undefined && Buffer.compare(key, node.key) === 0 && sameFacts(record, recordOf(node))
}

const recordOf = ({ name, metadata, services }: StoredNode): NodeRecord => ({
  name,
  metadata: { items: metadata },
  services,
})

function storedNode(member: MemberEntry, at: EngineTime, joinedAt: EngineTime, seen: EngineTime): StoredNode {
  const { key, record } = member
  const { name, metadata, services } = record
  return {
    ...{ id: nodeIdOfRaw(key), key, name, metadata: metadata.items, services: [...services] },
    ...{ joinedAt, lastSeen: Math.max(writtenTime(member, at), seen) },
  }
}

function entryOf(node: StoredNode): Uint8Array {
  const { key, joinedAt } = node
  const times = { joinedAt, lastSeen: new Date(node.lastSeen) }
  return encodeNodeEntry({ ...NO_ENTRY, member: { ...admitted(undefined), key, record: recordOf(node), ...times } })
}
