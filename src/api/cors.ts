/** What web pages of other origins are told (CORS, fetch.spec.whatwg.org/#http-cors-protocol), and how their WebSockets carry a token. */
import { ServiceError } from '../contract/errors.ts'

/** The subprotocol that the API's WebSockets speak. */
const SUBPROTOCOL = 'penstock'
/** What a token comes behind, since a page cannot give its WebSocket a header. */
const BEARER = 'penstock.bearer.'

/** For every answer, when there are origins to tell apart. */
const VARY = { vary: 'Origin' }

/** The headers of answers to pages of one origin. */
function shared(origin: string): Readonly<Record<string, string>> {
  return {
    ...VARY,
    'access-control-allow-origin': origin,
    // Content-Type and Content-Length can be read anyway.
    'access-control-expose-headers': 'Allow, WWW-Authenticate',
  }
}

/** The pages of other origins that a node serves. */
export class Cors {
  readonly #byOrigin: ReadonlyMap<string, Readonly<Record<string, string>>>

  /** `origins` as browsers write them: `https://host`, `https://host:port`. */
  constructor(origins: Iterable<string>) {
    this.#byOrigin = new Map(Array.from(origins, (origin) => [origin, shared(origin)]))
  }

  /** Headers of every answer to a request that carries this Origin (empty: none). */
  headers(origin: string): Readonly<Record<string, string>> | undefined {
    if (this.#byOrigin.size === 0) return undefined
    return this.#byOrigin.get(origin) ?? VARY
  }

  /**
   * The headers, besides those, of the answer to an OPTIONS that is a preflight; undefined when it is none, or not from an origin served. The methods
   * are those of the whole API: what a path does not have is told by the answer to the request itself, which the page can read.
   */
  preflight(origin: string, header: (name: string) => string): Readonly<Record<string, string>> | undefined {
    if (!this.#byOrigin.has(origin) || header('access-control-request-method') === '') {
      return undefined
    }
    return {
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
      'access-control-allow-headers': 'Authorization, Cache-Control, Content-Type, Last-Event-ID',
      'access-control-max-age': '600',
      // A page of the public web that calls a private address asks for this as well (wicg.github.io/private-network-access).
      ...(header('access-control-request-private-network') === 'true'
        ? { 'access-control-allow-private-network': 'true' }
        : {}),
    }
  }
}

/** What a WebSocket offers as subprotocols: the one to answer with (empty: none), and the Authorization that it stands for. */
export function readSubprotocols(header: string): { protocol: string; authorization: string } {
  const offered = header.split(',').map((name) => name.trim())
  const protocol = offered.includes(SUBPROTOCOL) ? SUBPROTOCOL : ''
  const bearer = offered.find((name) => name.startsWith(BEARER))
  if (bearer === undefined) return { protocol, authorization: '' }
  if (protocol === '') {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `offer the subprotocol ${SUBPROTOCOL} beside ${BEARER}TOKEN: it is the one that is answered`,
    )
  }
  return { protocol, authorization: `Bearer ${bearer.slice(BEARER.length)}` }
}
