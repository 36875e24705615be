/** Where a node is, and what callers show it. */

/** What a WebSocket has to offer: the platform's own, or that of the package ws. */
export interface SocketLike {
  send(text: string): void
  close(code?: number): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

export interface ConnectionOptions {
  /** `http://127.0.0.1:8769`, `https://node.example/base`: what stands before `/v1`. */
  readonly url: string
  /** Bearer token; or what gives the one to use, asked before each call; undefined: none. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>)
  /** In place of the platform's, such as `nodeFetch` of `@penstock/client/node`, which knows a CA or a fingerprint. */
  readonly fetch?: typeof fetch
  /** In place of `new WebSocket(url, protocols)`, which Node.js has from version 22 on. */
  readonly webSocket?: (url: string, protocols: string[]) => SocketLike
  /**
   * How streams come: `events`, the default, or `sockets`, a WebSocket each, of which browsers open some two hundred at once to a node without
   * HTTP/2 where of other requests they open six. A stream with a request that a path and a query cannot say comes as events.
   */
  readonly streams?: 'events' | 'sockets'
  /** Milliseconds of silence after which a stream is taken for broken; default 45,000. A node says every 15 s that it is there. */
  readonly silence?: number
}

/** A node to call. It holds nothing open: streams and sockets are closed by who opened them. */
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

/** The token to show now; undefined: none. */
export async function tokenOf({ token }: Connection): Promise<string | undefined> {
  return typeof token === 'function' ? await token() : token
}
