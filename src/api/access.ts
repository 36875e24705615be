/** Who may call: loopback callers freely, others with a token; and what a browser may do on a person's behalf. */
import { isIP } from 'node:net'
import { isLoopbackAddress } from '../contract/address.ts'
import { ServiceError } from '../contract/errors.ts'
import type { Caller } from './call.ts'

/** Looks a bearer token up; returns the name it was made under, or undefined when it is none of ours. */
export type VerifyToken = (token: string) => string | undefined

export interface AccessOptions {
  /** Lets everyone in without a token. */
  readonly open?: boolean
  /** What callers on this machine have to show; default: nothing. `token` holds whatever `open` says. */
  readonly loopback?: 'open' | 'token'
  /** Names, besides the loopback ones, that a Host header may hold; without ports. */
  readonly hostnames?: readonly string[]
  readonly verifyToken?: VerifyToken
  /** Origins of web pages, as browsers write them, that are served with a token. */
  readonly allowedOrigins?: readonly string[]
}

/** The headers access depends on; absent ones are empty. */
export interface AccessHeaders {
  readonly host: string
  readonly origin: string
  readonly authorization: string
  /** `sec-fetch-site`, which browsers send with every request. */
  readonly fetchSite: string
  /** Whether `x-forwarded-for` or `forwarded` is there: a proxy has passed the request on. */
  readonly forwarded: boolean
}

/** The access rules of one node, shared by all its listeners. */
export class Access {
  readonly #open: boolean
  readonly #loopbackIsOpen: boolean
  readonly #hostnames: ReadonlySet<string>
  readonly #verifyToken: VerifyToken
  readonly allowedOrigins: ReadonlySet<string>
  /** The Host header seen last that names us: nearly always the next one too. */
  #ownHost: string | undefined
  /** The caller let in last without a token, and not by a proxy: the rules do not change, so the same address is let in again. */
  #tokenless: Caller | undefined

  constructor(options: AccessOptions = {}) {
    const {
      open = false,
      loopback = 'open',
      hostnames = [],
      verifyToken = () => undefined,
      allowedOrigins = [],
    } = options
    this.#open = open
    this.#loopbackIsOpen = loopback === 'open'
    this.#hostnames = new Set(hostnames.map((name) => name.toLowerCase()))
    this.#verifyToken = verifyToken
    this.allowedOrigins = new Set(allowedOrigins)
  }

  /**
   * The caller behind a connection from `remoteAddress` with this Authorization value; throws UNAUTHENTICATED. What a proxy on this machine
   * passes on (`isForwarded`) comes from elsewhere, whatever the connection's address.
   */
  caller(remoteAddress: string, authorization: string, isForwarded = false): Caller {
    const known = this.#tokenless
    if (authorization === '' && !isForwarded && known?.remoteAddress === remoteAddress) return known
    const isLoopback = isLoopbackAddress(remoteAddress) && !isForwarded
    if (authorization !== '') {
      const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
      if (token === undefined) {
        throw new ServiceError(
          'UNAUTHENTICATED',
          'the Authorization header is none of the kind that counts here: send `Authorization: Bearer TOKEN`, or no such header where no token is needed',
        )
      }
      const identity = this.#verifyToken(token)
      // A wrong token is refused even where none is needed: its holder believes it counts.
      if (identity === undefined) {
        throw new ServiceError(
          'UNAUTHENTICATED',
          'the bearer token is not known here; make one with `penstock token create`',
        )
      }
      return { remoteAddress, isLoopback, identity }
    }
    if (isForwarded && !this.#open) {
      throw new ServiceError(
        'UNAUTHENTICATED',
        'what comes through a proxy (X-Forwarded-For, Forwarded) needs `Authorization: Bearer TOKEN`; make a token on the node with `penstock token create`',
      )
    }
    if (isLoopback && !this.#loopbackIsOpen) {
      throw new ServiceError(
        'UNAUTHENTICATED',
        'callers on the machine of this node need `Authorization: Bearer TOKEN` too (access.loopback: token)',
      )
    }
    if (!isLoopback && !this.#open) {
      throw new ServiceError(
        'UNAUTHENTICATED',
        'callers from another machine need `Authorization: Bearer TOKEN`; make a token on the node with `penstock token create`',
      )
    }
    const caller = { remoteAddress, isLoopback }
    if (!isForwarded) this.#tokenless = caller
    return caller
  }

  /**
   * The caller behind an HTTP request; throws UNAUTHENTICATED, or PERMISSION_DENIED for what a foreign web page could make a
   * browser send: a Host header that is not ours (DNS rebinding), a cross-origin request. A token, which a browser never adds by itself, lifts
   * the first, and the second for pages of the origins allowed.
   */
  httpCaller(remoteAddress: string, headers: AccessHeaders): Caller {
    const caller = this.caller(remoteAddress, headers.authorization, headers.forwarded)
    const isCrossOrigin = headers.origin !== '' && !isSameOrigin(headers.origin, headers.host)
    if (caller.identity !== undefined) {
      if (isCrossOrigin && !this.allowedOrigins.has(headers.origin)) throw refusedOrigin(headers.origin)
      return caller
    }
    if (headers.host !== this.#ownHost) {
      const host = hostname(headers.host)
      if (this.#isOurs(host)) this.#ownHost = headers.host
      else throw refusedHost(host)
    }
    const isForeign = headers.fetchSite === 'cross-site' || headers.fetchSite === 'same-site'
    if (isForeign || isCrossOrigin) {
      throw new ServiceError('PERMISSION_DENIED', 'cross-origin requests need `Authorization: Bearer TOKEN`')
    }
    return caller
  }

  #isOurs(host: string): boolean {
    if (host === 'localhost' || host.endsWith('.localhost') || isLoopbackAddress(host)) return true
    // An address cannot be rebound to another machine by its owner's name server.
    if (this.#open && isIP(host) !== 0) return true
    return this.#hostnames.has(host)
  }
}

function refusedHost(host: string): ServiceError {
  const name = JSON.stringify(host.slice(0, 100))
  return new ServiceError(
    'PERMISSION_DENIED',
    `the Host header names ${name}, which is not a name of this node; add it to http.hostnames or send a token`,
  )
}

function refusedOrigin(origin: string): ServiceError {
  const page = JSON.stringify(origin.slice(0, 100))
  return new ServiceError(
    'PERMISSION_DENIED',
    `pages of ${page} are not served; add their origin to http.allowedOrigins`,
  )
}

/** The name in a Host header, lower case, without port, brackets and trailing dot. */
function hostname(host: string): string {
  const match = /^\[([^\]]*)\](?::\d*)?$/.exec(host)
  if (match?.[1] !== undefined) return match[1].toLowerCase()
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

function isSameOrigin(origin: string, host: string): boolean {
  // The scheme is not compared: behind a TLS terminator the node cannot know it.
  return /^https?:\/\//.test(origin) && origin.replace(/^https?:\/\//, '').toLowerCase() === host.toLowerCase()
}
