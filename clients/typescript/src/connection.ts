/** Where a node is, and what callers show it. */
import { PenstockError } from './error.ts'
import type { Fetch } from './fetch.ts'

/** What a WebSocket has to offer: the platform's own, or that of the package ws. */
export interface SocketLike {
  send(text: string): void
  close(code?: number): void
  addEventListener(type: 'open', listener: () => void): void
  /** `error`: why it does not open, where that is known; a PenstockError is what the node has answered. */
  addEventListener(type: 'error', listener: (event: { error?: unknown }) => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

export interface ConnectionOptions {
  /** `http://127.0.0.1:8769`, `https://node.example/base`: what stands before `/v1`. */
  readonly url: string
  /** Bearer token; or what gives the one to use, asked before each call; undefined: none. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>)
  /** In place of the platform's, such as `nodeFetch` of `@penstock/client/node`, which knows a CA or a fingerprint. */
  readonly fetch?: Fetch
  /** In place of `new WebSocket(url, protocols)`, which Node.js has from version 22 on; `nodeWebSocket` makes one of the package ws. */
  readonly webSocket?: (url: string, protocols: string[]) => SocketLike | Promise<SocketLike>
  /**
   * How streams come: `events`, the default, or `socket`, all over one WebSocket, where browsers open six connections to a node that has no
   * HTTP/2. A stream with a request that a path and a query cannot say comes as events.
   */
  readonly streams?: 'events' | 'socket'
  /** Milliseconds of silence after which a stream is taken for broken; default 45,000. A node says every 15 s that it is there, over one WebSocket for all streams every 5 s. */
  readonly silence?: number
  /** Whether streams connect again unless they are told otherwise; default true. */
  readonly reconnect?: boolean
  /** Given each failure before the caller is; what it returns is thrown in its place, such as an error that says what to do. */
  readonly explain?: (error: PenstockError) => Error
}

/** A node to call. It holds nothing open: streams and sockets are closed by who opened them, the socket of all streams with the last of them. */
export interface Connection extends ConnectionOptions {
  /** Without a slash at its end. */
  readonly url: string
}

/** Checks the options; throws TypeError when `url` is none of http or https. Nothing is sent. */
export function connect(options: ConnectionOptions): Connection {
  const { protocol, href } = new URL(options.url)
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new TypeError(`${options.url} is no address of a node: it begins with http:// or https://`)
  }
  return { ...options, url: href.replace(/\/+$/, '') }
}

/** The token to show now; undefined: none. Rejects with UNAUTHENTICATED when a header cannot carry it. */
export async function tokenOf({ token }: Connection): Promise<string | undefined> {
  const given = typeof token === 'function' ? await token() : token
  if (given === undefined || /^[!-~]+$/.test(given)) return given
  throw new PenstockError(
    'UNAUTHENTICATED',
    'the token cannot be sent: it is empty, or holds more than letters, digits and signs',
  )
}

/** What a caller is to be told of a failure; other errors are as they were. */
export function explained({ explain }: Connection, error: unknown): unknown {
  return explain !== undefined && error instanceof PenstockError ? explain(error) : error
}
