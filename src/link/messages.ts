/** The frames of the link as bytes: encoded from and decoded into the messages of proto/penstock/link/link.proto, sizes checked. */

import { decodeFromPeer } from '../contract/binary-decode.ts'
import { encodeBinary, encodeMember } from '../contract/binary-encode.ts'
import { codeName, codeNumbers } from '../contract/errors.ts'
import { readSchema } from '../contract/load-schema.ts'
import type { MessageSchema } from '../contract/schema.ts'
import type { NodeMetadata } from '../contract/types.ts'
import type { Intent, LinkStatus, NodeRecord, RefusalReason } from './link.ts'
import type { SignedBody } from './signed.ts'

/** Longest frame, bytes. */
const MAX_FRAME_BYTES = 128 * 1024
/**
 * Longest WebSocket message that is taken in whole, bytes: who sends a frame that is too long is told so (4400), which the WebSocket libraries do
 * not do where they cut off by themselves.
 */
export const MAX_RECEIVE_BYTES = MAX_FRAME_BYTES + 1024
/** Longest frame before the handshake is over, bytes. */
export const MAX_HANDSHAKE_FRAME_BYTES = 16 * 1024
/** Longest encoded NodeRecord, bytes: it travels in a frame of the handshake. */
export const MAX_RECORD_BYTES = 15 * 1024
/** Longest message of a stream, all its pieces together, bytes. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
/** Longest piece of a message that this implementation sends, bytes. */
export const MAX_FRAGMENT_BYTES = 32 * 1024
/** The first piece of a request in an Open, bytes: the other side counts the caller's time from its arrival, which a slow connection must not delay. */
export const MAX_FIRST_PIECE_BYTES = 4 * 1024
/** Credit each side of a stream starts with, bytes. */
export const WINDOW_BYTES = 256 * 1024
/** What a piece of a message costs besides its bytes: empty messages are not free. */
export const MESSAGE_OVERHEAD = 64
/** What a piece that waits takes in memory besides its bytes (about 400: queue, view, buffer); it is held for that, not for its credit. */
export const PIECE_BYTES = 512
/** Streams each side may have open at once. */
export const MAX_STREAMS = 10_000

const MAX_OPERATION_LENGTH = 128
/** Longest id of a node in a frame, characters: whoever is sent a longer one ends the link. */
export const MAX_ID_LENGTH = 128
export const KEY_BYTES = 32
export const HASH_BYTES = 32
const SIGNATURE_BYTES = 64
const MAX_STATUS_MESSAGE_LENGTH = 8 * 1024
const MAX_STATUS_DETAILS_LENGTH = 64 * 1024

export interface Hello {
  readonly version: number
  readonly nodeKey: Uint8Array
  readonly nonce: Uint8Array
  /** A number when it is none that this version knows. */
  readonly intent: Intent | number
  readonly certificateFingerprint: Uint8Array
  /** 0 or absent: that of `version`. */
  readonly newestVersion?: number
}

export interface HubHelloBody {
  readonly hubKey: Uint8Array
  readonly nonce: Uint8Array
  readonly statement?: SignedBody | undefined
}

interface Refused {
  /** A number when it is none that this version knows. */
  readonly reason: RefusalReason | number
  readonly message: string
}

export type VerdictBody =
  | { readonly welcome: { readonly servers?: SignedBody | undefined } }
  | { readonly refused: Refused }

export interface Open {
  readonly stream: number
  readonly operation: string
  readonly target: string
  /** The request or its first piece; undefined for a bidirectional call. */
  request?: Uint8Array | undefined
  readonly requestContinues: boolean
  readonly deadlineMs: number
  readonly origin: string
}

interface Message {
  readonly stream: number
  payload: Uint8Array
  readonly more: boolean
}

export interface End {
  readonly stream: number
  readonly code: number
  readonly message: string
  readonly details: readonly { readonly pointer: string; readonly message: string }[]
  readonly notHere?: boolean
}

/** A record as it was sent; services that this version does not know are numbers. */
export interface DecodedRecord {
  readonly name: string
  readonly metadata?: NodeMetadata
  readonly services: readonly (NodeRecord['services'][number] | number)[]
}

type Empty = Record<string, never>

/** The members of a frame, by name; exactly one is there. */
/** A member that was taken off the hub by the change with that revision, of which the servers of the hub know the order. */
interface MemberRemoved {
  readonly nodeId: string
  readonly revision: bigint
}

export interface Frames {
  hello: Hello
  hubHello: SignedBody
  proof: { readonly record: Uint8Array; readonly signature: Uint8Array; readonly statement?: SignedBody | undefined }
  pending: { readonly servers?: SignedBody | undefined }
  verdict: SignedBody
  open: Open
  message: Message
  halfClose: { readonly stream: number }
  end: End
  cancel: { readonly stream: number }
  window: { readonly stream: number; readonly credit: number }
  ping: { readonly sequence: number }
  pong: { readonly sequence: number }
  record: DecodedRecord
  removed: { readonly signature: Uint8Array }
  leave: Empty
  left: Empty
  servers: SignedBody
  lookElsewhere: Empty
  stay: Empty
  memberRemoved: MemberRemoved
}

export type FrameName = keyof Frames
export type Frame = { [Name in FrameName]: { readonly kind: Name; readonly value: Frames[Name] } }[FrameName]

/** The peer broke the protocol; the message says how, in words fit for the log and for the peer. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

const { messages } = readSchema('penstock.link')
/** A message of the link's proto file. */
export const schemaOf = (name: string): MessageSchema => messages.get(`penstock.link.${name}`) as MessageSchema
const FRAME = schemaOf('Frame')
const HUB_HELLO_BODY = schemaOf('HubHelloBody')
const VERDICT_BODY = schemaOf('VerdictBody')
const RECORD = schemaOf('NodeRecord')

/** The frame with this one member, encoded. */
export function encodeFrame<Name extends Exclude<FrameName, 'record'>>(kind: Name, value: Frames[Name]): Uint8Array {
  return encodeMember(FRAME, kind, value)
}

/** What stands before the members of a Message frame on the wire: their number and wire type. */
const MESSAGE_TAG = 0x4a
const STREAM_TAG = 0x08
const PAYLOAD_TAG = 0x12
const MORE_TAG = 0x18

/**
 * The same as `encodeFrame('message', …)`, with one copy of the payload: the codec writes it to a buffer that grows, moves it behind the
 * length of the frame, and copies the whole out.
 */
export function encodeMessageFrame(stream: number, payload: Uint8Array, more: boolean): Uint8Array {
  const { length } = payload
  const streamSize = stream === 0 ? 0 : 1 + varintSize(stream)
  const payloadSize = length === 0 ? 0 : 1 + varintSize(length) + length
  const size = streamSize + payloadSize + (more ? 2 : 0)
  const frame = Buffer.allocUnsafe(1 + varintSize(size) + size)
  let at = writeVarint(frame, size, writeVarint(frame, MESSAGE_TAG, 0))
  if (stream !== 0) at = writeVarint(frame, stream, writeVarint(frame, STREAM_TAG, at))
  if (length !== 0) {
    at = writeVarint(frame, length, writeVarint(frame, PAYLOAD_TAG, at))
    frame.set(payload, at)
    at += length
  }
  if (more) writeVarint(frame, 1, writeVarint(frame, MORE_TAG, at))
  return frame
}

/** Bytes that a number below 2^32 takes, 7 bits in each. */
function varintSize(value: number): number {
  let size = 1
  for (let rest = value >>> 7; rest !== 0; rest >>>= 7) size++
  return size
}

/** Writes a number below 2^32 at `at`; returns where it ends. */
function writeVarint(into: Uint8Array, value: number, at: number): number {
  let rest = value
  let end = at
  for (; rest > 0x7f; rest >>>= 7) into[end++] = (rest & 0x7f) | 0x80
  into[end++] = rest
  return end
}

/** The frame that holds a record, encoded. Throws RangeError when it is longer than MAX_RECORD_BYTES. */
export function encodeRecordFrame(record: NodeRecord): Uint8Array {
  encodeRecord(record)
  return encodeMember(FRAME, 'record', record)
}

/**
 * Reads one frame of at most `limit` bytes; throws Violation when it is none. Byte fields are views of `bytes`, which the frame
 * therefore owns, but for payloads that are a small part of them: who keeps one would keep all of it.
 */
export function decodeFrame(bytes: Uint8Array, limit: number = MAX_FRAME_BYTES): Frame {
  if (bytes.length > limit) throw new Violation(`a frame of ${bytes.length} bytes, ${limit} are allowed`)
  const message = decode(FRAME, bytes, 'frame')
  let kind: FrameName | undefined
  for (const member in message) kind = member as FrameName
  if (kind === undefined) throw new Violation('a frame without a known member')
  const frame = { kind, value: message[kind] } as Frame
  check(frame, bytes.length)
  if (frame.kind === 'message') frame.value.payload = unpinned(frame.value.payload, bytes)
  else if (frame.kind === 'open' && frame.value.request !== undefined) {
    frame.value.request = unpinned(frame.value.request, bytes)
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

/** Throws Violation when the bytes are none; `what`: how the message is called. */
export function decode(message: MessageSchema, bytes: Uint8Array, what: string): Record<string, unknown> {
  try {
    return decodeFromPeer(message, bytes)
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
    case 'proof':
      if (frame.value.statement !== undefined) length('signature', frame.value.statement.signature, SIGNATURE_BYTES)
      length('signature', frame.value.signature, SIGNATURE_BYTES)
      return
    case 'pending':
      if (frame.value.servers !== undefined) length('signature', frame.value.servers.signature, SIGNATURE_BYTES)
      return
    case 'hubHello':
    case 'verdict':
    case 'removed':
    case 'servers':
      length('signature', frame.value.signature, SIGNATURE_BYTES)
      return
    case 'open': {
      const { operation, target, origin, request, requestContinues } = frame.value
      if (operation.length === 0 || operation.length > MAX_OPERATION_LENGTH)
        throw new Violation('a call without a proper name')
      if (target.length > MAX_ID_LENGTH || origin.length > MAX_ID_LENGTH)
        throw new Violation('a node id that is too long')
      if (request === undefined && requestContinues) throw new Violation('a request that goes on without a beginning')
      return
    }
    case 'record':
      if (size > MAX_RECORD_BYTES + 8) throw new Violation(`a record of ${size} bytes, ${MAX_RECORD_BYTES} are allowed`)
      return
    case 'window':
      if (frame.value.credit === 0) throw new Violation('a window of no credit')
      return
  }
}

/** Throws Violation unless a field has as many bytes as are wanted. */
export function length(field: string, bytes: Uint8Array, wanted: number): void {
  if (bytes.length !== wanted) throw new Violation(`${field} has ${bytes.length} bytes instead of ${wanted}`)
}

export function encodeHubHelloBody(body: HubHelloBody): Uint8Array {
  return encodeBinary(HUB_HELLO_BODY, body)
}

export function decodeHubHelloBody(bytes: Uint8Array): HubHelloBody {
  const body = decode(HUB_HELLO_BODY, bytes, 'HubHelloBody') as unknown as HubHelloBody
  length('hub_key', body.hubKey, KEY_BYTES)
  length('nonce', body.nonce, HASH_BYTES)
  if (body.statement !== undefined) length('signature', body.statement.signature, SIGNATURE_BYTES)
  return body
}

export function encodeVerdictBody(body: VerdictBody): Uint8Array {
  return encodeBinary(VERDICT_BODY, body)
}

export function decodeVerdictBody(bytes: Uint8Array): VerdictBody {
  const body = decode(VERDICT_BODY, bytes, 'VerdictBody') as { welcome?: { servers?: SignedBody }; refused?: Refused }
  if (body.refused !== undefined) return { refused: body.refused }
  if (body.welcome === undefined) throw new Violation('a verdict that says nothing')
  const { servers } = body.welcome
  if (servers !== undefined) length('signature', servers.signature, SIGNATURE_BYTES)
  return { welcome: body.welcome }
}

/** Encodes a record; throws RangeError when it is longer than MAX_RECORD_BYTES. */
export function encodeRecord(record: NodeRecord): Uint8Array {
  const bytes = encodeBinary(RECORD, record)
  if (bytes.length > MAX_RECORD_BYTES) {
    throw new RangeError(`the node's name and metadata take ${bytes.length} bytes, ${MAX_RECORD_BYTES} are allowed`)
  }
  return bytes
}

/** Reads a record; throws Violation. Services that this version does not know are left out. */
export function decodeRecord(bytes: Uint8Array): NodeRecord {
  if (bytes.length > MAX_RECORD_BYTES)
    throw new Violation(`a record of ${bytes.length} bytes, ${MAX_RECORD_BYTES} are allowed`)
  return readRecord(decode(RECORD, bytes, 'NodeRecord') as unknown as DecodedRecord)
}

/** The record in a decoded frame, which it outlives. */
export function readRecord({ name, metadata = { items: {} }, services }: DecodedRecord): NodeRecord {
  for (const item of Object.values(metadata.items)) {
    if (item.bytesValue !== undefined) item.bytesValue = new Uint8Array(item.bytesValue)
  }
  return { name, metadata, services: services.filter((service) => typeof service === 'string') }
}

/** A status as an End frame; cut to what fits. */
export function endFrame(stream: number, status: LinkStatus): Uint8Array {
  const details: { pointer: string; message: string }[] = []
  let room = MAX_STATUS_DETAILS_LENGTH
  for (const { pointer, message } of status.details ?? []) {
    // A code unit takes at most 3 bytes of UTF-8; the rest is tags.
    room -= 3 * (pointer.length + message.length) + 16
    if (room < 0) break
    details.push({ pointer, message })
  }
  const message = status.message.slice(0, MAX_STATUS_MESSAGE_LENGTH)
  const { notHere = false } = status
  return encodeFrame('end', { stream, code: codeNumbers[status.code], message, details, notHere })
}

/** `isServer`: the peer is a server of the same hub, which may say that it does not have the node. */
export function statusOfEnd({ code, message, details, notHere = false }: End, isServer = false): LinkStatus {
  const status: LinkStatus = { code: codeName(code), message, ...(isServer && notHere ? { notHere } : {}) }
  return details.length === 0
    ? status
    : { ...status, details: details.map(({ pointer, message }) => ({ pointer, message })) }
}
