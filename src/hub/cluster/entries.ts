/** The values of the buckets as bytes (proto/penstock/cluster/cluster.proto), with the revisions that their writers could not know. */
import { decodeFromPeer } from '../../contract/binary-decode.ts'
import { encodeBinary } from '../../contract/binary-encode.ts'
import { readSchema } from '../../contract/load-schema.ts'
import type { MessageSchema } from '../../contract/schema.ts'
import type { NodeRecord } from '../../link/link.ts'
import { decodeRecord, encodeRecord } from '../../link/messages.ts'

/** Version of the layout of the buckets that this implementation reads and writes. */
export const LAYOUT = 1
/** Operations that an entry remembers. */
export const MAX_OPERATIONS = 8

/** Revisions are sequence numbers of JetStream, from 1; 0 in a value: that of the value itself. */
export type Revision = number

export interface HubKey {
  readonly layout: number
  /** 32 bytes. */
  readonly hubId: Uint8Array
  readonly requestBase: bigint
}

export interface MemberEntry {
  /** Ed25519, 32 bytes. */
  readonly key: Uint8Array
  readonly record: NodeRecord
  readonly joined: Revision
  readonly admission: Revision
  /** When it became a member. Where servers of an earlier version have written the entry: when they did that last, the latest that is possible. */
  readonly joinedAt: EngineTime
  readonly lastSeen: Date
}

/** What is written of a node that is let in by that write: a member since then, unless it was one before. */
export function admitted(before: MemberEntry | undefined): Pick<MemberEntry, 'joined' | 'joinedAt' | 'admission'> {
  return { joined: before?.joined ?? 0, joinedAt: before?.joinedAt ?? 0, admission: 0 }
}

/** When a member was seen last by what its entry says, which the engine took at `stamp`: not later than that, whatever the clock of its writer said. */
export function writtenTime({ lastSeen }: MemberEntry, stamp: EngineTime): EngineTime {
  return Math.min(lastSeen.getTime(), stamp)
}

interface OperationEntry {
  readonly id: Uint8Array
  readonly revision: Revision
}

/** Milliseconds since the epoch by the engine's clock; 0 in a value that is to be written: the time stamp that it will get. */
export type EngineTime = number

export interface RequestEntry {
  readonly revision: Revision
  /** Ed25519, 32 bytes. */
  readonly key: Uint8Array
  readonly record: NodeRecord
  readonly network: string
  readonly life: string
  readonly waiter: string
  /** Milliseconds from `raised` on. */
  readonly timeout: number
  readonly raised: EngineTime
  /** Undefined: it is open. */
  readonly decision: DecisionEntry | undefined
}

export interface DecisionEntry {
  readonly verdict: 'accepted' | 'rejected' | 'timedOut'
  /** Of an acceptance: the admission. */
  readonly revision: Revision
  readonly at: EngineTime
  readonly isNew: boolean
}

/** What is known of one node. */
export interface NodeEntry {
  readonly member: MemberEntry | undefined
  readonly requests: readonly RequestEntry[]
  readonly operations: readonly OperationEntry[]
}

export interface LeaseEntry {
  readonly server: string
  readonly renewal: bigint
  readonly details: Uint8Array
}

export interface PresenceEntry {
  readonly life: string
  readonly session: string
  readonly joined: Revision
}

const { messages } = readSchema('penstock.cluster')
const schemaOf = (name: string): MessageSchema => messages.get(`penstock.cluster.${name}`) as MessageSchema
const HUB = schemaOf('Hub')
const NODE_ENTRY = schemaOf('NodeEntry')
const LEASE = schemaOf('Lease')
const PRESENCE = schemaOf('Presence')

export function encodeHub(hub: HubKey): Uint8Array {
  return encodeBinary(HUB, hub)
}

export function decodeHub(bytes: Uint8Array): HubKey {
  return decodeFromPeer(HUB, bytes) as unknown as HubKey
}

interface WireEntry {
  member?: { key: Uint8Array; record: Uint8Array; joined: bigint; admission: bigint; joinedAt?: Date; lastSeen?: Date }
  requests: WireRequest[]
  operations: { id: Uint8Array; revision: bigint }[]
}

interface WireRequest {
  revision: bigint
  key: Uint8Array
  record: Uint8Array
  network: string
  life: string
  waiter: string
  timeout: number
  raised?: Date
  decision?: { verdict: keyof typeof VERDICTS; revision: bigint; at?: Date; isNew: boolean }
}

const VERDICTS = { ACCEPTED: 'accepted', REJECTED: 'rejected', TIMED_OUT: 'timedOut' } as const
const VERDICT_NAMES = { accepted: 'ACCEPTED', rejected: 'REJECTED', timedOut: 'TIMED_OUT' } as const

export function encodeNodeEntry({ member, requests, operations }: NodeEntry): Uint8Array {
  const wire: WireEntry = {
    requests: requests.map(wireRequest),
    operations: operations.map(({ id, revision }) => ({ id, revision: BigInt(revision) })),
  }
  if (member !== undefined) {
    const { key, record, joined, admission, joinedAt, lastSeen } = member
    wire.member = {
      key,
      record: encodeRecord(record),
      joined: BigInt(joined),
      admission: BigInt(admission),
      lastSeen,
      ...at('joinedAt', joinedAt),
    }
  }
  return encodeBinary(NODE_ENTRY, wire)
}

function wireRequest({ revision, record, raised, decision, ...rest }: RequestEntry): WireRequest {
  const wire: WireRequest = {
    ...rest,
    revision: BigInt(revision),
    record: encodeRecord(record),
    ...at('raised', raised),
  }
  if (decision !== undefined) {
    const { verdict, isNew } = decision
    const revision = BigInt(decision.revision)
    wire.decision = { verdict: VERDICT_NAMES[verdict], revision, isNew, ...at('at', decision.at) }
  }
  return wire
}

/** A time that is to be written, where it is known. */
function at<K extends string>(key: K, time: EngineTime): { [key in K]?: Date } {
  return time === 0 ? {} : ({ [key]: new Date(time) } as { [key in K]?: Date })
}

/** `stamp`: when the engine took the value. Throws when the bytes are no entry. */
export function decodeNodeEntry(bytes: Uint8Array, revision: Revision, stamp: EngineTime): NodeEntry {
  const { member, requests, operations } = decodeFromPeer(NODE_ENTRY, bytes) as unknown as WireEntry
  const own = (number: bigint): Revision => (number === 0n ? revision : Number(number))
  const time = (date: Date | undefined): EngineTime => date?.getTime() ?? stamp
  return {
    member:
      member === undefined
        ? undefined
        : {
            key: new Uint8Array(member.key),
            record: decodeRecord(member.record),
            joined: own(member.joined),
            admission: own(member.admission),
            joinedAt: time(member.joinedAt),
            lastSeen: member.lastSeen ?? new Date(0),
          },
    requests: requests.map(({ decision, ...request }) => ({
      ...request,
      revision: own(request.revision),
      key: new Uint8Array(request.key),
      record: decodeRecord(request.record),
      raised: time(request.raised),
      decision:
        decision === undefined
          ? undefined
          : {
              verdict: VERDICTS[decision.verdict],
              revision: own(decision.revision),
              at: time(decision.at),
              isNew: decision.isNew,
            },
    })),
    operations: operations.map(({ id, revision: at }) => ({ id: new Uint8Array(id), revision: own(at) })),
  }
}

export function encodeLease(lease: LeaseEntry): Uint8Array {
  return encodeBinary(LEASE, lease)
}

export function decodeLease(bytes: Uint8Array): LeaseEntry {
  const { server, renewal, details } = decodeFromPeer(LEASE, bytes) as unknown as LeaseEntry
  return { server, renewal, details: new Uint8Array(details) }
}

export function encodePresence({ life, session, joined }: PresenceEntry): Uint8Array {
  return encodeBinary(PRESENCE, { life, session, joined: BigInt(joined) })
}

export function decodePresence(bytes: Uint8Array): PresenceEntry {
  const { life, session, joined } = decodeFromPeer(PRESENCE, bytes) as unknown as PresenceEntry & { joined: bigint }
  return { life, session, joined: Number(joined) }
}
