/** What the frames of all WebSockets have in common, in both directions. */
import type { WebSocket } from 'uWebSockets.js'
import { type Code, codeNumbers, ServiceError } from '../contract/errors.ts'
import { jsonEncoder } from '../contract/json-encode.ts'
import type { Operation } from '../contract/operations.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import { errorBody } from './errors.ts'
import { parseJson } from './json-parse.ts'

/** Longest message of a client, bytes. */
const MAX_MESSAGE_BYTES = 64 * 1024
/** What uWebSockets.js takes in: it cuts a socket off beyond that without a word, so a message that is too long must reach us to be told so. */
export const MAX_RECEIVE_BYTES = 16 * MAX_MESSAGE_BYTES

/** A message that says nothing else: pages are not told of pings. */
export const STILL_HERE = '{}'

/**
 * The value of a client's frame, whose buffer is only lent; undefined: it was too long, and `socket` is closed. Throws INVALID_ARGUMENT where it is
 * no JSON text.
 */
export function readFrame(socket: WebSocket<unknown>, frame: ArrayBuffer, isBinary: boolean): unknown {
  if (frame.byteLength > MAX_MESSAGE_BYTES) {
    socket.end(1009, `a message may have ${MAX_MESSAGE_BYTES} bytes`)
    return undefined
  }
  if (isBinary) throw new ServiceError('INVALID_ARGUMENT', 'send JSON as text frames, not binary ones')
  return parseJson(Buffer.from(frame).toString('utf8'))
}

/** `{"result": …}`; not to be changed, since a message for many is encoded once. */
export function resultFrame(operation: Operation, message: unknown): Uint8Array {
  const encode = (value: unknown): Uint8Array => Buffer.from(`{"result":${jsonEncoder(operation.response)(value)}}`)
  return message instanceof SharedMessage ? message.encoded('websocket', encode) : encode(message)
}

export function errorFrame(error: ServiceError): string {
  return `{"error":${errorBody(error)}}`
}

/** What a socket is closed with when what it was opened for has failed. */
export const closeCode = (code: Code): number => 4000 + codeNumbers[code]
