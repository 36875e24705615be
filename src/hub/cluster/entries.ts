/** The values of the buckets as bytes (proto/penstock/cluster/cluster.proto), with the revisions that their writers could not know. */
import { decodeFromPeer } from '../../contract/binary-decode.ts'
import { encodeBinary } from '../../contract/binary-encode.ts'
import { type MessageSchema, readSchema } from '../../contract/schema.ts'
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
  readonly lastSeen: Date
}

interface OperationEntry {
  readonly id: Uint8Array
  readonly revision: Revision
}

/** What is known of one node. */
export interface NodeEntry {
  readonly member: MemberEntry | undefined
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

const { messages } = readSchema(['penstock/cluster/cluster.proto'], 'penstock.cluster')
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
  member?: { key: Uint8Array; record: Uint8Array; joined: bigint; admission: bigint; lastSeen?: Date }
  operations: { id: Uint8Array; revision: bigint }[]
}

export function encodeNodeEntry({ member, operations }: NodeEntry): Uint8Array {
  const wire: WireEntry = {
    operations: operations.map(({ id, revision }) => ({ id, revision: BigInt(revision) })),
  }
  if (member !== undefined) {
    const { key, record, joined, admission, lastSeen } = member
    wire.member = {
      key,
      record: encodeRecord(record),
      joined: BigInt(joined),
      admission: BigInt(admission),
      lastSeen,
    }
  }
  return encodeBinary(NODE_ENTRY, wire)
}

/** Throws when the bytes are no entry. */
export function decodeNodeEntry(bytes: Uint8Array, revision: Revision): NodeEntry {
  const { member, operations } = decodeFromPeer(NODE_ENTRY, bytes) as unknown as WireEntry
  const own = (number: bigint): Revision => (number === 0n ? revision : Number(number))
  return {
    member:
      member === undefined
        ? undefined
        : {
            key: new Uint8Array(member.key),
            record: decodeRecord(member.record),
            joined: own(member.joined),
            admission: own(member.admission),
            lastSeen: member.lastSeen ?? new Date(0),
          },
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
