/** The client with which commands call a node: its token, whose certificate it takes, and failures that say what to do. */
import { type CallOptions, type Client, connect, createClient, getLocalNodeId, PenstockError } from '@penstock/client'
import { nodeFetch, nodeWebSocket, UntrustedCertificate } from '@penstock/client/node'
import { isLoopbackHost, withoutBrackets } from '../contract/address.ts'
import { speaksNoTls, tlsFault } from '../link/tls-error.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { named } from './terminal.ts'

export interface Credentials {
  /** A bearer token, needed from other machines. */
  token?: string | undefined
  /** A bearer token for a node that asks for one, and only for that: another node would refuse it. */
  tokenIfAsked?: string | undefined
  /** What to do when the node does not let the caller in. */
  advice?: string | undefined
  /** Certificate authorities to trust instead of the usual ones, PEM. */
  ca?: string | undefined
  /** SHA-256 of the certificate to trust whoever signed it, hexadecimal, with or without colons. */
  fingerprint?: string | undefined
}

/** Default address of a node's HTTP listener. */
export const DEFAULT_URL = 'http://127.0.0.1:8769'

/** How long a node has to say who it is, ms. It looks nothing up for that, so whoever does not say it in time is none, or stuck. */
const PATIENCE_MS = 10_000
const STUCK = 'no penstock node listens there, or one that is stuck: correct --url or PENSTOCK_URL, or restart the node'

/**
 * A client of the node at `url`, its HTTP or HTTPS address. What the node answers is thrown as PenstockError, everything else as a Failure.
 * Streams that break are not connected again: what was missed would not be told. getLocalNodeId is given up in time; other calls take what they
 * take.
 */
export function clientOf(url: string, { token, tokenIfAsked, advice, ca, fingerprint }: Credentials = {}): Client {
  const trust = {
    ...(ca === undefined ? {} : { ca }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    // Nobody is in between on the loopback interface, and nodes make their own certificates.
    anyCertificate: isLoopbackHost(hostOf(url)) && ca === undefined,
  }
  const connection = connect({
    url,
    fetch: nodeFetch(trust),
    // Of use to one command: the others do not wait for it to be loaded.
    webSocket: async (at, protocols) => nodeWebSocket((await import('ws')).WebSocket, trust)(at, protocols),
    reconnect: false,
  })
  let asked: Promise<string | undefined> | undefined
  const asking = () => {
    asked ??= asksForToken(connection).then((asks) => (asks ? tokenIfAsked : undefined))
    return asked
  }
  const client = createClient({
    ...connection,
    token: tokenIfAsked === undefined ? () => token : asking,
    explain: explanationFor(connection.url, advice),
  })
  return {
    ...client,
    getLocalNodeId: (request, options) => inTime((timely) => client.getLocalNodeId(request, { ...timely, ...options })),
  }
}

/** Does a call that a node answers at once. */
async function inTime<T>(call: (options: CallOptions) => Promise<T>): Promise<T> {
  try {
    return await call({ timeout: PATIENCE_MS })
  } catch (error) {
    if (!hasCode(error, 'DEADLINE_EXCEEDED')) throw error
    throw new Failure(`${error.message}: ${STUCK}`)
  }
}

const hostOf = (url: string): string => withoutBrackets(new URL(url).hostname)

/** Whether the node asks who shows none for a token; rejects when nobody answers. */
async function asksForToken(connection: Client['connection']): Promise<boolean> {
  try {
    await inTime((options) => getLocalNodeId(connection, {}, options))
    return false
  } catch (error) {
    if (!(error instanceof PenstockError) || error.status === undefined) throw error
    return error.status === 401
  }
}

/** Whether a call failed with this code. */
export const hasCode = (error: unknown, code: PenstockError['code']): error is PenstockError =>
  error instanceof PenstockError && error.code === code

/** What to tell of failures of the node at `url`. `advice`: what to do when it does not let the caller in. */
export function explanationFor(url: string, advice?: string): (error: PenstockError) => Error {
  return (error) => {
    const { code, loss, message, cause, status, details } = error
    if (loss === 'NO_ANSWER' && code === 'UNAVAILABLE')
      return new Failure(unreachable(url, cause instanceof Error ? cause : error))
    if (loss === 'BROKEN_OFF') return new Failure(named(`${message}: ${messageOf(cause)}`))
    if (advice === undefined || code !== 'UNAUTHENTICATED') return error
    return new PenstockError(code, `${message}\n  ${advice}`, { details, cause: error, ...(status && { status }) })
  }
}

function unreachable(url: string, error: Error): string {
  if (error instanceof UntrustedCertificate) return untrusted(url, error)
  const { code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] }
  const isPlain = speaksNoTls(error)
  const why = isPlain
    ? 'it speaks no TLS'
    : (tlsFault(error) ?? (messageOf(error) || (errors?.[0] && messageOf(errors[0])) || String(code)))
  const hint = isPlain
    ? '; write http://'
    : code === 'ECONNRESET' && url.startsWith('http:')
      ? '; if it serves TLS, write https://'
      : code === 'ENETUNREACH' && isLoopbackHost(hostOf(url))
        ? '; the loopback interface is down: ip link set lo up'
        : ''
  return (
    `no penstock node answers at ${url} (${named(why)}${hint}): start one with "penstock up", ` +
    'or say where it is with --url or PENSTOCK_URL'
  )
}

function untrusted(url: string, { reason, message, fingerprint, names }: UntrustedCertificate): string {
  if (reason === 'OTHER_FINGERPRINT') {
    return `the certificate at ${url} is another one than asked for: its fingerprint is ${fingerprint}`
  }
  const theNodes = `if its fingerprint ${fingerprint} is the one that the node has logged, give it with --fingerprint`
  if (reason === 'EXPIRED') return `${url}: ${message}: renew it there; until then, ${theNodes}`
  const why = reason === 'OTHER_NAME' ? `it is for ${names || 'no name at all'}, not for ${hostOf(url)}` : message
  return `the certificate at ${url} is not trusted (${named(why)}): ${theNodes}; or name its authority with --ca`
}
