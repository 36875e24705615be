/** What nodes say about themselves: comparing it, filtering by it, and how much of it there may be. */
import { invalidArgument } from '../contract/errors.ts'
import { refuse } from '../contract/json-decode.ts'
import type {
  AuthenticationByRequestRequest,
  GetNodesRequest,
  Node,
  NodeMetadata,
  NodeMetadataItem,
} from '../contract/types.ts'
import type { NodeRecord } from '../link/link.ts'
import { below } from '../text/pointer.ts'
import type { OpenRequest } from './request-store.ts'

/** Longest name and all metadata of a node, bytes of UTF-8 and values: a record has to fit into one message of the handshake. */
const MAX_DETAILS_BYTES = 8 * 1024

/** A node as callers see it; `lastSeen` in milliseconds since the epoch. */
export function nodeView(id: string, record: NodeRecord, online: boolean, lastSeen: number): Node {
  const { name, metadata, services } = record
  return { id, name, metadata, online, services: [...services], lastSeen: new Date(lastSeen) }
}

/** A request to join as operators see it: the node waits at the door, not online before it is let in. */
export function requestView({ id, nodeId, record, raisedAt }: OpenRequest): AuthenticationByRequestRequest {
  return { requestId: id, node: nodeView(nodeId, record, false, raisedAt) }
}

/** Whether two items have the same type and equal values. */
function sameItem(a: NodeMetadataItem, b: NodeMetadataItem): boolean {
  if (a.bytesValue !== undefined && b.bytesValue !== undefined) {
    return Buffer.compare(a.bytesValue, b.bytesValue) === 0
  }
  if (a.doubleValue !== undefined && b.doubleValue !== undefined) {
    return a.doubleValue === b.doubleValue || (Number.isNaN(a.doubleValue) && Number.isNaN(b.doubleValue))
  }
  return (
    a.stringValue === b.stringValue &&
    a.intValue === b.intValue &&
    a.boolValue === b.boolValue &&
    a.doubleValue === b.doubleValue &&
    a.bytesValue === b.bytesValue
  )
}

export function sameFacts(a: NodeRecord, b: NodeRecord): boolean {
  const keys = Object.keys(a.metadata.items)
  return (
    a.name === b.name &&
    a.services.length === b.services.length &&
    a.services.every((service) => b.services.includes(service)) &&
    keys.length === Object.keys(b.metadata.items).length &&
    keys.every((key) => {
      const other = own(b.metadata.items, key)
      return other !== undefined && sameItem(a.metadata.items[key] as NodeMetadataItem, other)
    })
  )
}

/** The nodes that have every key of the metadata filters with an equal value of the same type, and offer every service. */
export function filterNodes(nodes: Node[], { metadataFilters, serviceFilters }: GetNodesRequest): Node[] {
  const items = Object.entries(metadataFilters)
  for (const [key, item] of items) {
    if (isUnset(item)) {
      throw invalidArgument(below('/metadataFilters', key), 'give the value to look for, as in {"stringValue": "eu"}')
    }
  }
  if (items.length === 0 && serviceFilters.length === 0) return nodes
  return nodes.filter(
    ({ metadata, services }) =>
      serviceFilters.every((service) => services.includes(service)) &&
      items.every(([key, wanted]) => {
        const item = own(metadata?.items ?? {}, key)
        return item !== undefined && sameItem(item, wanted)
      }),
  )
}

/** Throws INVALID_ARGUMENT, with every problem, when a node cannot be called so. */
export function checkDetails(name: string, metadata: NodeMetadata): void {
  const problems = Object.entries(metadata.items)
    .filter(([, item]) => isUnset(item))
    .map(([key]) => ({
      pointer: below('/metadata/items', key),
      message: 'has no value: give one, as in {"stringValue": "eu"}',
    }))
  const bytes = detailsBytes(name, metadata)
  if (bytes > MAX_DETAILS_BYTES) {
    problems.push({ pointer: '', message: `name and metadata take ${bytes} bytes, more than ${MAX_DETAILS_BYTES}` })
  }
  refuse(problems)
}

/** Bytes that name and metadata take on the wire, at most. */
function detailsBytes(name: string, { items }: NodeMetadata): number {
  let bytes = Buffer.byteLength(name)
  for (const [key, { stringValue, bytesValue }] of Object.entries(items)) {
    bytes += 24 + Buffer.byteLength(key) + Buffer.byteLength(stringValue ?? '') + (bytesValue?.length ?? 0)
  }
  return bytes
}

function isUnset(item: NodeMetadataItem): boolean {
  return Object.values(item).every((value) => value === undefined)
}

function own(items: Record<string, NodeMetadataItem>, key: string): NodeMetadataItem | undefined {
  return Object.hasOwn(items, key) ? items[key] : undefined
}
