/** A hub's members as a file, which another registry of the same hub takes: JSON Lines (jsonlines.org), the first line saying what it is. */

import { ServiceError } from '../contract/errors.ts'
import { decodeJson } from '../contract/json-decode.ts'
import { jsonEncoder } from '../contract/json-encode.ts'
import { readSchema } from '../contract/load-schema.ts'
import type { MessageSchema } from '../contract/schema.ts'
import type { NodeMetadata, NodeService } from '../contract/types.ts'
import { nodeIdOfRaw } from '../link/identity.ts'
import type { StoredNode } from '../store/nodes.ts'
import { isObject } from '../text/json-object.ts'
import { checkDetails } from './node-records.ts'

const FORMAT = 'penstock-hub'
const VERSION = 1
/** Faults that are told of one file. */
const MAX_FAULTS = 20
const { messages } = readSchema('penstock.link')
const RECORD = messages.get('penstock.link.NodeRecord') as MessageSchema
const encodeRecord = jsonEncoder(RECORD)

/** What is in such a file. */
export interface HubFile {
  /** The id by which the members know the hub: that of its key. */
  readonly hubId: string
  /** Id of the node that it was exported on. */
  readonly server: string
  /** Requests to join have had ids below this. */
  readonly requestIds: number
  /** Pipelines on that node: they are its own, and are not in the file. */
  readonly pipelines: readonly { readonly id: string; readonly name: string }[]
  readonly members: readonly StoredNode[]
}

/** A file that cannot be taken; `faults` say what is wrong and in which line. */
export class HubFileError extends Error {
  override readonly name = 'HubFileError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/** The text of the file; members in the order of their ids. */
export function hubFileText({ hubId, server, requestIds, pipelines, members }: HubFile): string {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1))
  const head = { format: FORMAT, version: VERSION, hubId, server, requestIds, pipelines, members: sorted.length }
  const lines = sorted.map(({ id, key, name, metadata, services, joinedAt, lastSeen }) => {
    const member = {
      id,
      key: Buffer.from(key).toString('base64'),
      joinedAt: new Date(joinedAt).toISOString(),
      lastSeen: new Date(lastSeen).toISOString(),
    }
    // As the encoder writes it: JSON.stringify makes 0 of -0.
    const record = encodeRecord({ name, metadata: { items: metadata }, services })
    return `${JSON.stringify(member).slice(0, -1)},"record":${record}}`
  })
  return `${[JSON.stringify(head), ...lines].join('\n')}\n`
}

/** Reads the text of a file, all of it or nothing. Throws HubFileError. */
export function readHubFile(text: string): HubFile {
  const [first = '', ...rest] = text.replace(/\n$/, '').split('\n')
  const head = readHead(first)
  const lines = text.endsWith('\n') ? rest : rest.slice(0, -1)
  const faults: string[] = []
  const members = new Map<string, StoredNode>()
  for (const [i, line] of lines.entries()) {
    try {
      const member = readMember(line)
      if (members.has(member.id)) throw new Error(`node ${member.id} is in the file twice`)
      if (member.id === head.hubId) throw new Error('a member has the key of the hub')
      members.set(member.id, member)
    } catch (error) {
      faults.push(`line ${i + 2}: ${(error as Error).message}`)
    }
  }
  if (lines.length !== head.members) {
    faults.push(`${lines.length} members, where the first line says ${head.members}: the file is not whole`)
  }
  if (faults.length > MAX_FAULTS) faults.splice(MAX_FAULTS, faults.length, `and ${faults.length - MAX_FAULTS} more`)
  if (faults.length > 0) throw new HubFileError(faults)
  return { ...head, members: [...members.values()] }
}

function readHead(line: string): Omit<HubFile, 'members'> & { readonly members: number } {
  let head: Record<string, unknown>
  try {
    head = objectIn(line)
  } catch {
    throw new HubFileError(['line 1: it must say that this is a hub, as penstock hub export writes it'])
  }
  const { format, version, hubId, server, requestIds, pipelines, members } = head
  if (format !== FORMAT) throw new HubFileError([`line 1: format must be ${JSON.stringify(FORMAT)}`])
  if (version !== VERSION) {
    throw new HubFileError([`line 1: version ${JSON.stringify(version)} is not read here, only ${VERSION}`])
  }
  const faults: string[] = []
  if (!isId(hubId)) faults.push('line 1: hubId must be the id of a key')
  if (!isId(server)) faults.push('line 1: server must be the id of a node')
  if (!isCount(requestIds)) faults.push('line 1: requestIds must be a whole number')
  if (!isCount(members)) faults.push('line 1: members must be their number')
  if (!Array.isArray(pipelines) || !pipelines.every(isNamed))
    faults.push('line 1: pipelines must have id and name each')
  if (faults.length > 0) throw new HubFileError(faults)
  return { hubId, server, requestIds, pipelines, members } as ReturnType<typeof readHead>
}

function readMember(line: string): StoredNode {
  const { id, key, record, joinedAt, lastSeen } = objectIn(line)
  const raw = typeof key === 'string' ? Buffer.from(key, 'base64') : Buffer.alloc(0)
  if (raw.length !== 32) throw new Error('key must be 32 bytes in base64')
  if (nodeIdOfRaw(raw) !== id) throw new Error('id is not that of the key')
  const { name, metadata, services } = readRecord(record)
  return {
    id,
    key: new Uint8Array(raw),
    name,
    metadata: metadata.items,
    services: [...services],
    joinedAt: timeIn('joinedAt', joinedAt),
    lastSeen: timeIn('lastSeen', lastSeen),
  }
}

function readRecord(given: unknown): { name: string; metadata: NodeMetadata; services: readonly NodeService[] } {
  try {
    const { name, metadata = { items: {} }, services } = decodeJson(RECORD, given) as ReturnType<typeof readRecord>
    checkDetails(name, metadata)
    return { name, metadata, services }
  } catch (error) {
    if (error instanceof ServiceError) throw new Error(`record: ${error.message}`)
    throw error
  }
}

function objectIn(line: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new Error('it is no JSON')
  }
  if (!isObject(value)) throw new Error('it is no JSON object')
  return value as Record<string, unknown>
}

function timeIn(field: string, value: unknown): number {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw new Error(`${field} must be a time, as in 2026-01-31T12:00:00.000Z`)
  return time
}

const isId = (value: unknown): boolean => typeof value === 'string' && /^[a-z2-7]{26}$/.test(value)
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const isNamed = (value: unknown): boolean =>
  isObject(value) &&
  typeof (value as { id?: unknown }).id === 'string' &&
  typeof (value as { name?: unknown }).name === 'string'
