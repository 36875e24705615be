/** The frames of the link as bytes: encoded from and decoded into the messages of proto/penstock/link/link.proto, sizes checked. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import protobuf from 'protobufjs'
import { codeName, codeNumbers } from '../contract/errors.ts'
import type { NodeMetadataItem, NodeService } from '../contract/types.ts'
import type { LinkStatus, NodeRecord } from './link.ts'

/** Longest frame, bytes. */
export const FRAME_BYTES = 128 * 1024
/** Longest frame before the handshake is over, bytes. */
export const HANDSHAKE_FRAME_BYTES = 16 * 1024
/** Longest encoded NodeRecord, bytes: it travels in a frame of the handshake. */
export const RECORD_BYTES = 15 * 1024
/** Longest message of a stream, all its pieces together, bytes. */
export const MESSAGE_BYTES = 16 * 1024 * 1024
/** Longest piece of a message that this implementation sends, bytes. */
export const FRAGMENT_BYTES = 32 * 1024
/** Credit each side of a stream starts with, bytes. */
export const WINDOW_BYTES = 256 * 1024
/** What a piece of a message costs besides its bytes: empty messages are not free. */
export const MESSAGE_OVERHEAD = 64
/** What a piece that waits takes in memory besides its bytes (about 400: queue, view, buffer); it is held for that, not for its credit. */
export const PIECE_BYTES = 512
/** Streams each side may have open at once. */
export const MAX_STREAMS = 10_000

const OPERATION_LENGTH = 128
const ID_LENGTH = 128
const KEY_BYTES = 32
const HASH_BYTES = 32
const SIGNATURE_BYTES = 64
const STATUS_MESSAGE_LENGTH = 8 * 1024
const STATUS_DETAILS_LENGTH = 64 * 1024

export interface Hello {
  readonly version: number
  readonly nodeKey: Uint8Array
  readonly nonce: Uint8Array
  /** 1: JOIN, 2: CONNECT. */
  readonly intent: number
  readonly certificateFingerprint: Uint8Array
}

/** Bytes that are signed as they are. */
export interface Signed {
  readonly body: Uint8Array
  readonly signature: Uint8Array
}

export interface HubHelloBody {
  readonly hubKey: Uint8Array
  readonly nonce: Uint8Array
}

export type VerdictBody = { readonly welcome: object } | { readonly refused: { reason: number; message: string } }

export interface Open {
  readonly stream: number
  readonly operation: string
  readonly target: string
  /** The request or its first piece; undefined for a bidirectional call. */
  readonly request: Uint8Array | undefined
  readonly requestContinues: boolean
  readonly deadlineMs: number
  readonly origin: string
}

export interface Message {
  readonly stream: number
  readonly payload: Uint8Array
  readonly more: boolean
}

export interface End {
  readonly stream: number
  readonly code: number
  readonly message: string
  readonly details: readonly { readonly pointer: string; readonly message: string }[]
}

type Empty = Record<string, never>

/** The members of a frame, by name; exactly one is there. */
export interface Frames {
  hello: Hello
  hubHello: Signed
  proof: { readonly record: Uint8Array; readonly signature: Uint8Array }
  pending: Empty
  verdict: Signed
  open: Open
  message: Message
  halfClose: { readonly stream: number }
  end: End
  cancel: { readonly stream: number }
  window: { readonly stream: number; readonly credit: number }
  ping: { readonly sequence: number }
  pong: { readonly sequence: number }
  record: protobuf.Message
  removed: { readonly signature: Uint8Array }
  leave: Empty
  left: Empty
}

export type FrameName = keyof Frames
export type Frame = { [Name in FrameName]: { readonly kind: Name; readonly value: Frames[Name] } }[FrameName]

/** The peer broke the protocol; the message says how, in words fit for the log and for the peer. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

const EMPTY = Buffer.alloc(0)
const types = loadTypes()

function loadTypes() {
  let directory = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(directory, 'proto'))) {
    const parent = dirname(directory)
    if (parent === directory) throw new Error('no proto directory above the sources: the installation is incomplete')
    directory = parent
  }
  const root = new protobuf.Root()
  root.resolvePath = (_origin, target) => (target.startsWith('google/') ? target : join(directory, 'proto', target))
  root.loadSync('penstock/link/link.proto')
  root.resolveAll()
  // An absent bytes field reads as no bytes; protobufjs would show an empty array.
  for (const nested of (root.lookup('penstock.link') as protobuf.Namespace).nestedArray) {
    if (!(nested instanceof protobuf.Type)) continue
    for (const field of nested.fieldsArray) if (field.type === 'bytes') nested.ctor.prototype[field.name] = EMPTY
  }
  const type = (name: string): protobuf.Type => root.lookupType(`penstock.link.${name}`)
  return {
    // setup() compiles the codecs now instead of at first use.
    frame: type('Frame').setup(),
    hubHelloBody: type('HubHelloBody').setup(),
    verdictBody: type('VerdictBody').setup(),
    record: type('NodeRecord').setup(),
    services: root.lookupEnum('servicegrpc.hub.NodeService'),
    refusals: root.lookupEnum('penstock.link.RefusalReason'),
    intents: root.lookupEnum('penstock.link.Intent'),
  }
}

export const intentNumbers = types.intents.values as Readonly<Record<'JOIN' | 'CONNECT', number>>
export const refusalNumbers = types.refusals.values as Readonly<Record<string, number>>
export const refusalNames = types.refusals.valuesById as Readonly<Record<number, string>>

/** The frame with this one member, encoded. */
export function encodeFrame<Name extends Exclude<FrameName, 'record'>>(kind: Name, value: Frames[Name]): Uint8Array {
  return types.frame.encode({ [kind]: value } as never).finish()
}

/** The frame that holds a record, encoded. Throws RangeError when it is longer than RECORD_BYTES. */
export function encodeRecordFrame(record: NodeRecord): Uint8Array {
  encodeRecord(record)
  return types.frame.encode({ record: recordMessage(record) } as never).finish()
}

/**
 * Reads one frame of at most `limit` bytes; throws Violation when it is none. Byte fields are views of `bytes`, which the frame
 * therefore owns, but for payloads that are a small part of them: who keeps one would keep all of it.
 */
export function decodeFrame(bytes: Uint8Array, limit: number = FRAME_BYTES): Frame {
  if (bytes.length > limit) throw new Violation(`a frame of ${bytes.length} bytes, ${limit} are allowed`)
  const message = decode(types.frame, bytes, 'frame') as { frame?: FrameName } & Partial<Frames>
  const kind = message.frame
  if (kind === undefined) throw new Violation('a frame without a known member')
  // protobufjs shows an absent field as its default.
  if (kind === 'open' && !Object.hasOwn(message.open as Open, 'request'))
    Object.assign(message.open as Open, { request: undefined })
  const frame = { kind, value: message[kind] } as Frame
  check(frame, bytes.length)
  if (frame.kind === 'message') Object.assign(frame.value, { payload: unpinned(frame.value.payload, bytes) })
  else if (frame.kind === 'open' && frame.value.request !== undefined) {
    Object.assign(frame.value, { request: unpinned(frame.value.request, bytes) })
  }
  return frame
}

/** `payload`, on its own unless it makes up at least half of what it lies in. */
function unpinned(payload: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (payload.length * 2 >= bytes.buffer.byteLength) return payload
  const copy = Buffer.allocUnsafeSlow(payload.length)
  copy.set(payload)
  return copy
}

function decode(type: protobuf.Type, bytes: Uint8Array, what: string): unknown {
  try {
    return type.decode(bytes)
  } catch {
    throw new Violation(`the bytes are no ${what}`)
  }
}

function check(frame: Frame, size: number): void {
  switch (frame.kind) {
    case 'hello': {
      const { nodeKey, nonce, certificateFingerprint } = frame.value
      length('node_key', nodeKey, KEY_BYTES)
      length('nonce', nonce, HASH_BYTES)
      if (certificateFingerprint.length > 0) length('certificate_fingerprint', certificateFingerprint, HASH_BYTES)
      return
    }
    case 'hubHello':
    case 'proof':
    case 'verdict':
    case 'removed':
      length('signature', frame.value.signature, SIGNATURE_BYTES)
      return
    case 'open': {
      const { operation, target, origin, request, requestContinues } = frame.value
      if (operation.length === 0 || operation.length > OPERATION_LENGTH)
        throw new Violation('a call without a proper name')
      if (target.length > ID_LENGTH || origin.length > ID_LENGTH) throw new Violation('a node id that is too long')
      if (request === undefined && requestContinues) throw new Violation('a request that goes on without a beginning')
      return
    }
    case 'record':
      if (size > RECORD_BYTES + 8) throw new Violation(`a record of ${size} bytes, ${RECORD_BYTES} are allowed`)
      return
    case 'window':
      if (frame.value.credit === 0) throw new Violation('a window of no credit')
      return
  }
}

function length(field: string, bytes: Uint8Array, wanted: number): void {
  if (bytes.length !== wanted) throw new Violation(`${field} has ${bytes.length} bytes instead of ${wanted}`)
}

export function encodeHubHelloBody(body: HubHelloBody): Uint8Array {
  return types.hubHelloBody.encode(body as never).finish()
}

export function decodeHubHelloBody(bytes: Uint8Array): HubHelloBody {
  const body = decode(types.hubHelloBody, bytes, 'HubHelloBody') as HubHelloBody
  length('hub_key', body.hubKey, KEY_BYTES)
  length('nonce', body.nonce, HASH_BYTES)
  return body
}

export function encodeVerdictBody(body: VerdictBody): Uint8Array {
  return types.verdictBody.encode(body as never).finish()
}

export function decodeVerdictBody(bytes: Uint8Array): VerdictBody {
  const body = decode(types.verdictBody, bytes, 'VerdictBody') as {
    verdict?: 'welcome' | 'refused'
    refused: { reason: number; message: string }
  }
  if (body.verdict === undefined) throw new Violation('a verdict that says nothing')
  return body.verdict === 'refused' ? { refused: body.refused } : { welcome: {} }
}

/** Encodes a record; throws RangeError when it is longer than RECORD_BYTES. */
export function encodeRecord(record: NodeRecord): Uint8Array {
  const bytes = types.record.encode(recordMessage(record) as never).finish()
  if (bytes.length > RECORD_BYTES) {
    throw new RangeError(`the node's name and metadata take ${bytes.length} bytes, ${RECORD_BYTES} are allowed`)
  }
  return bytes
}

/** Reads a record; throws Violation. Services that this version does not know are left out. */
export function decodeRecord(bytes: Uint8Array): NodeRecord {
  if (bytes.length > RECORD_BYTES) throw new Violation(`a record of ${bytes.length} bytes, ${RECORD_BYTES} are allowed`)
  return readRecord(decode(types.record, bytes, 'NodeRecord') as protobuf.Message)
}

/** The record in a decoded frame. */
export function readRecord(message: protobuf.Message): NodeRecord {
  const { name, metadata, services } = message as unknown as {
    name: string
    metadata?: { items: Record<string, WireItem> } | null
    services: number[]
  }
  const items: Record<string, NodeMetadataItem> = {}
  for (const [key, item] of Object.entries(metadata?.items ?? {})) put(items, key, readItem(item))
  const names = services.map((service) => types.services.valuesById[service] as NodeService | undefined)
  return { name, metadata: { items }, services: names.filter((service) => service !== undefined) }
}

interface WireItem {
  value?: 'stringValue' | 'bytesValue' | 'intValue' | 'doubleValue' | 'boolValue'
  stringValue: string
  bytesValue: Uint8Array
  intValue: { low: number; high: number } | number
  doubleValue: number
  boolValue: boolean
}

function readItem(item: WireItem): NodeMetadataItem {
  if (item.value === undefined) return {}
  if (item.value === 'intValue') {
    const { intValue } = item
    if (typeof intValue === 'number') return { intValue: BigInt(intValue) }
    return { intValue: BigInt.asIntN(64, (BigInt(intValue.high) << 32n) | BigInt(intValue.low >>> 0)) }
  }
  // Copied: a record outlives its frame.
  if (item.value === 'bytesValue') return { bytesValue: new Uint8Array(item.bytesValue) }
  return { [item.value]: item[item.value] }
}

function recordMessage({ name, metadata, services }: NodeRecord): object {
  const items: Record<string, object> = {}
  for (const [key, item] of Object.entries(metadata.items)) put(items, key, itemMessage(item))
  return { name, metadata: { items }, services: services.map((service) => types.services.values[service]) }
}

function itemMessage(item: NodeMetadataItem): object {
  const { intValue } = item
  if (intValue === undefined) return item
  const low = Number(BigInt.asIntN(32, intValue))
  return { intValue: { low, high: Number(BigInt.asIntN(32, intValue >> 32n)), unsigned: false } }
}

/** Sets a key that came from outside, `__proto__` included. */
function put<Value>(target: Record<string, Value>, key: string, value: Value): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

/** A status as an End frame; cut to what fits. */
export function endFrame(stream: number, status: LinkStatus): Uint8Array {
  const details: { pointer: string; message: string }[] = []
  let room = STATUS_DETAILS_LENGTH
  for (const { pointer, message } of status.details ?? []) {
    // A code unit takes at most 3 bytes of UTF-8; the rest is tags.
    room -= 3 * (pointer.length + message.length) + 16
    if (room < 0) break
    details.push({ pointer, message })
  }
  const message = status.message.slice(0, STATUS_MESSAGE_LENGTH)
  return encodeFrame('end', { stream, code: codeNumbers[status.code], message, details })
}

export function statusOf({ code, message, details }: End): LinkStatus {
  const status: LinkStatus = { code: codeName(code), message }
  return details.length === 0
    ? status
    : { ...status, details: details.map(({ pointer, message }) => ({ pointer, message })) }
}
