/** One request, one answer. */
import type { Connection } from './connection.ts'
import { failureOf, PenstockError } from './error.ts'
import { type Form, prepare } from './request.ts'

export interface CallOptions {
  /** Gives the call up: it rejects with the signal's reason, and the node is told by the end of the connection. */
  readonly signal?: AbortSignal
}

/** Calls an operation; rejects with PenstockError, or with the reason of `signal`. Nothing is tried a second time. */
export async function call<Response>(
  connection: Connection,
  forms: readonly Form[],
  request: object,
  { signal }: CallOptions = {},
): Promise<Response> {
  const { url, init } = await prepare(connection, forms, request)
  const response = await send(connection, url, init, signal)
  if (!response.ok) throw await failureOf(response)
  try {
    return (await response.json()) as Response
  } catch (cause) {
    signal?.throwIfAborted()
    throw new PenstockError('UNAVAILABLE', `the answer of ${connection.url} broke off`, { cause })
  }
}

/** Sends a request; rejects with UNAVAILABLE when nobody answers. */
export async function send(
  { url: node, fetch: own }: Connection,
  url: string,
  init: RequestInit,
  signal?: AbortSignal,
): Promise<Response> {
  try {
    return await (own ?? fetch)(url, signal === undefined ? init : { ...init, signal })
  } catch (cause) {
    signal?.throwIfAborted()
    throw new PenstockError('UNAVAILABLE', `${node} does not answer`, { cause })
  }
}
