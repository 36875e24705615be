/**
 * What the messages of a streaming call hold on the link: a kind byte, then the operation's protobuf message or a status.
 *
 * A unary call needs none of this: its one message is the response itself. A server that serves a stream first says READY (the stream
 * stands), then sends MESSAGEs. On a bidirectional call it also says of every message it was sent, in order, that it was TAKEN or
 * REFUSED with a status, so that one bad message does not end the call. What the caller sends are plain request messages.
 */

import { type Code, codeNumbers, ServiceError } from '../contract/errors.ts'
import type { LinkStatus } from '../link/link.ts'
import { isObject } from '../text/json-object.ts'
import type { Problem } from '../text/pointer.ts'

export const READY = 0
export const MESSAGE = 1
export const TAKEN = 2
export const REFUSED = 3

/** A message of this kind without content. */
export function mark(kind: number): Uint8Array {
  return Uint8Array.of(kind)
}

export function wrap(kind: number, content: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(content.length + 1)
  bytes[0] = kind
  bytes.set(content, 1)
  return bytes
}

/** REFUSED with its status, in JSON. */
export function refused({ code, message, problems }: ServiceError): Uint8Array {
  return wrap(REFUSED, Buffer.from(JSON.stringify({ code, message, problems })))
}

/** The failure in a REFUSED message's content. */
export function readRefused(content: Uint8Array): ServiceError {
  try {
    const { code, message, problems } = JSON.parse(Buffer.from(content).toString('utf8')) as Record<string, unknown>
    return new ServiceError(isCode(code) ? code : 'UNKNOWN', String(message), {
      problems: Array.isArray(problems) ? problems.filter(isProblem) : [],
    })
  } catch {
    return new ServiceError('INTERNAL', 'the other node refused a message in a way this one does not understand')
  }
}

function isCode(code: unknown): code is Code {
  return typeof code === 'string' && code !== 'OK' && Object.hasOwn(codeNumbers, code)
}

function isProblem(problem: unknown): problem is Problem {
  return isObject(problem) && typeof problem.pointer === 'string' && typeof problem.message === 'string'
}

export function statusOfError({ code, message, problems }: ServiceError): LinkStatus {
  return problems.length === 0 ? { code, message } : { code, message, details: problems }
}

export function errorOf({ code, message, details = [] }: LinkStatus): ServiceError {
  return new ServiceError(code === 'OK' ? 'INTERNAL' : code, message, { problems: details })
}
