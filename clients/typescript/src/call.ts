/** One request, one answer. */
import { type Connection, explained } from './connection.ts'
import { failureOf, foreign, isMessage, PenstockError } from './error.ts'
import type { Answer, FetchInit } from './fetch.ts'
import { type Form, prepare } from './request.ts'
import { LONGEST_TIMER } from './timers.ts'

export interface CallOptions {
  /** Gives the call up: it rejects with the signal's reason, and the node is told by the end of the connection. */
  readonly signal?: AbortSignal
  /** Milliseconds, more than 0, after which the call is given up: it rejects with DEADLINE_EXCEEDED, `loss` NO_ANSWER. */
  readonly timeout?: number
}

/** What every answer of an operation has beside what may be left out: `nodeId` is a text that is not empty, `tokens[]` a list. */
export type Part = string

/**
 * Calls an operation, whose answers all have `parts`; rejects with PenstockError, or with the reason of `signal`. Nothing is tried a second
 * time.
 */
export async function call<Response>(
  connection: Connection,
  forms: readonly Form[],
  parts: readonly Part[],
  request: object,
  { signal, timeout }: CallOptions = {},
): Promise<Response> {
  const late = timeout === undefined ? undefined : AbortSignal.timeout(Math.min(timeout, LONGEST_TIMER))
  const either = late === undefined || signal === undefined ? (late ?? signal) : AbortSignal.any([late, signal])
  try {
    return await answered<Response>(connection, forms, parts, request, either)
  } catch (error) {
    signal?.throwIfAborted()
    const isLate = late?.aborted === true
    throw explained(connection, isLate ? tooLate(connection, timeout as number, error) : error)
  }
}

async function answered<Response>(
  connection: Connection,
  forms: readonly Form[],
  parts: readonly Part[],
  request: object,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const { url, init } = await prepare(connection, forms, request)
  const answer = await send(connection, url, init, signal)
  if (!answer.ok) throw await failureOf(answer)
  const text = await answer.text().catch((cause: unknown) => {
    throw new PenstockError('UNAVAILABLE', `the answer from ${connection.url} broke off`, { loss: 'BROKEN_OFF', cause })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw foreign(answer, cause)
  }
  if (!isMessage(value) || !parts.every((part) => hasPart(value, part))) throw foreign(answer)
  return value as Response
}

function hasPart(message: Readonly<Record<string, unknown>>, part: Part): boolean {
  if (part.endsWith('[]')) return Array.isArray(message[part.slice(0, -2)])
  const text = message[part]
  return typeof text === 'string' && text !== ''
}

function tooLate({ url }: Connection, timeout: number, cause: unknown): PenstockError {
  const message = `${url} did not answer within ${timeout / 1000} s`
  return new PenstockError('DEADLINE_EXCEEDED', message, { loss: 'NO_ANSWER', cause })
}

/** Sends a request; rejects with UNAVAILABLE when nobody answers. */
export async function send(
  { url: node, fetch: own }: Connection,
  url: string,
  init: FetchInit,
  signal?: AbortSignal,
): Promise<Answer> {
  try {
    return await (own ?? fetch)(url, signal === undefined ? init : { ...init, signal })
  } catch (cause) {
    throw new PenstockError('UNAVAILABLE', `${node} does not answer`, { loss: 'NO_ANSWER', cause })
  }
}
