/** Whole HTTP answers: JSON bodies, errors, pages of text. */
import { ServiceError } from '../contract/errors.ts'
import { FixedHeaders } from './encoded-header.ts'
import { errorBody, statusLine } from './errors.ts'

export interface HttpAnswer {
  /** The status line after the version: `404 Not Found`. */
  readonly status: string
  readonly headers?: Readonly<Record<string, string>> | FixedHeaders
  /** Absent: there is none, as with 204, or its length is not known, as of a stream asked for with HEAD. */
  readonly body?: string | Uint8Array
  /** Close the connection afterwards: the rest of the request is not wanted. */
  readonly close?: boolean
}

const JSON_HEADERS = new FixedHeaders({ 'content-type': 'application/json', 'cache-control': 'no-store' })

/** A JSON text, or its UTF-8, as the answer to a call that succeeded. */
export function jsonAnswer(body: string | Uint8Array): HttpAnswer {
  return { status: '200 OK', headers: JSON_HEADERS, body }
}

export interface ErrorOptions {
  /** Instead of the status line of the error's code. */
  readonly status?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly close?: boolean
}

/** A failure. */
export function errorAnswer(error: ServiceError, { status, headers, close = false }: ErrorOptions = {}): HttpAnswer {
  return {
    status: status ?? statusLine(error),
    headers: {
      ...JSON_HEADERS.fields,
      ...(error.code === 'UNAUTHENTICATED' ? { 'www-authenticate': 'Bearer' } : {}),
      ...headers,
    },
    body: errorBody(error),
    close,
  }
}

/** What is said to a method (upper case) that a path does not have, and to OPTIONS, which asks for those it has. */
export function methodAnswer(verb: string, allow: readonly string[]): HttpAnswer {
  const headers = { allow: allow.join(', ') }
  if (verb === 'OPTIONS') return { status: '204 No Content', headers }
  const asked = verb === 'HEAD' ? 'GET' : verb.slice(0, 100)
  const error = new ServiceError('UNIMPLEMENTED', `${asked} is not possible here; use ${headers.allow}`)
  return errorAnswer(error, { status: '405 Method Not Allowed', headers })
}

/** For a WebSocket's path that is asked for without one, or with another than there is (RFC 6455, section 4.4). */
export function upgradeAnswer(message = 'this path is a WebSocket; open it as one'): HttpAnswer {
  const error = new ServiceError('INVALID_ARGUMENT', message)
  const headers = { upgrade: 'websocket', 'sec-websocket-version': '13' }
  return errorAnswer(error, { status: '426 Upgrade Required', headers })
}

/** For a body in an encoding (RFC 9110, section 8.4): none is taken but the text itself. */
export function encodingAnswer(encoding: string): HttpAnswer {
  const message = `the body is encoded (Content-Encoding: ${encoding.slice(0, 100)}); send it as it is`
  const headers = { 'accept-encoding': 'identity' }
  return errorAnswer(new ServiceError('INVALID_ARGUMENT', message), { status: '415 Unsupported Media Type', headers })
}

/** A text that is no answer of an operation, made when it is asked for. */
export interface Page {
  /** Its media type. */
  readonly type: string
  readonly text: () => string
  /** Besides the content type. */
  readonly headers?: Readonly<Record<string, string>>
  /** Tells texts apart (RFC 9110, section 8.8.3), quotes included: who has the text is told that it has not changed. Absent: it is never kept. */
  readonly etag?: () => string
}

/** The answer of a page to a method in upper case; `ifNoneMatch` is the header of that name, empty without one. */
export function pageAnswer({ type, text, headers, etag }: Page, verb: string, ifNoneMatch: string): HttpAnswer {
  if (verb !== 'GET' && verb !== 'HEAD') return methodAnswer(verb, ['GET', 'HEAD', 'OPTIONS'])
  if (etag === undefined) {
    return {
      status: '200 OK',
      headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
      body: text(),
    }
  }
  const kept = { 'cache-control': 'no-cache', etag: etag(), ...headers }
  if (isAmong(kept.etag, ifNoneMatch)) return { status: '304 Not Modified', headers: kept }
  return { status: '200 OK', headers: { 'content-type': type, ...kept }, body: text() }
}

/** Whether If-None-Match names the tag: weakly compared (RFC 9110, section 13.1.2), as proxies that compress make tags weak. */
export function isAmong(etag: string, ifNoneMatch: string): boolean {
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
