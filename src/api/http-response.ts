/** Whole HTTP responses: JSON bodies and errors. */
import type { HttpResponse } from 'uWebSockets.js'
import type { ServiceError } from '../services/errors.ts'
import { errorBody, statusLine } from './errors.ts'

/** Ends a response that was not begun with a JSON body; `head` leaves the body out. */
export function sendJson(response: HttpResponse, body: string, head = false): void {
  response.cork(() => {
    response.writeStatus('200 OK')
    response.writeHeader('content-type', 'application/json')
    response.writeHeader('cache-control', 'no-store')
    if (head) response.endWithoutBody(Buffer.byteLength(body))
    else response.end(body)
  })
}

export interface ErrorResponse {
  /** Instead of the status line of the error's code. */
  readonly status?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Close the connection afterwards: the rest of the request is not wanted. */
  readonly close?: boolean
  readonly head?: boolean
}

/** Ends a response that was not begun with an error body. */
export function sendError(response: HttpResponse, error: ServiceError, options: ErrorResponse = {}): void {
  const body = errorBody(error)
  response.cork(() => {
    response.writeStatus(options.status ?? statusLine(error))
    response.writeHeader('content-type', 'application/json')
    response.writeHeader('cache-control', 'no-store')
    if (error.code === 'UNAUTHENTICATED') response.writeHeader('www-authenticate', 'Bearer')
    for (const [name, value] of Object.entries(options.headers ?? {})) response.writeHeader(name, value)
    if (options.head) response.endWithoutBody(Buffer.byteLength(body), options.close ?? false)
    else response.end(body, options.close ?? false)
  })
}
