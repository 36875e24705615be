/** Reaches a hub from a node: a WebSocket to its address, trust in its certificate, the handshake. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { rootCertificates, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { messageOf, wordsOf } from '../text/error-message.ts'
import { fingerprintOf, fingerprintText, keyFingerprintOf } from './certificate.ts'
import { loadSignatures } from './ed25519.ts'
import { joinLink, type NodeHandshakeOptions } from './handshake-node.ts'
import { type Dialled, LinkRefused, LinkUnreachable, type SeenCertificate } from './link.ts'
import { MAX_RECEIVE_BYTES } from './messages.ts'
import { speaksNoTls, tlsFault } from './tls-error.ts'
import { type CloseCode, closeReason, deaf, type LinkTransport, type TransportHandlers } from './transport.ts'

/** Path of the link on a hub's HTTP listener. */
export const LINK_PATH = '/v1/link'
/** WebSocket subprotocol (RFC 6455, section 1.9). */
export const SUBPROTOCOL = 'penstock-link.v1'
/** Time for name lookup, connection, TLS and upgrade; milliseconds. */
const CONNECT_MS = 10_000
/** Bytes on their way that make a sender wait, and below which it goes on. */
const HIGH_WATER = 256 * 1024
const LOW_WATER = 64 * 1024
/** How long the closing of a connection may take, milliseconds. */
const CLOSING_MS = 2_000

export interface DialOptions extends Omit<NodeHandshakeOptions, 'certificateKey' | 'certificateDoubt'> {
  /** See `hubAddress` (hub-address.ts). */
  readonly address: URL
  /**
   * Fingerprint (lowercase hex) that the hub's certificate must have, unless the pinned hub key speaks for another; without it and without a CA's
   * word the first one seen is taken.
   */
  readonly pinnedCertificate?: string | undefined
  /** SHA-256 (lowercase hex) of a public key: with `pinnedCertificate`, another certificate with this key will do. */
  readonly pinnedCertificateKey?: string | undefined
  /** Certificates (PEM) of authorities to believe besides the system's. */
  readonly ca?: string | undefined
}

/**
 * Opens a link. Rejects with LinkRefused, LinkUnreachable (10 s without a connection included), the signal's reason, or ServiceError where nothing
 * can be signed; the connection is closed then. On plain HTTP nothing protects what the session carries from those on the path (docs/link-protocol.md).
 */
export function dialHub(options: DialOptions): Promise<Dialled> {
  const { address, signal, clock, ca } = options
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    loadSignatures()
    const begun = clock.now()
    const url = new URL(address)
    url.pathname = address.pathname.replace(/\/+$/, '') + LINK_PATH
    url.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(url, SUBPROTOCOL, {
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: MAX_RECEIVE_BYTES,
      // Judged below, where a self-signed certificate can be told by its fingerprint.
      rejectUnauthorized: false,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    })
    let seen: Judged | undefined
    const settle = (): void => {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const fail = (error: unknown): void => {
      settle()
      socket.terminate()
      reject(error)
    }
    const timer = clock.setTimeout(() => {
      fail(new LinkUnreachable(`no connection to ${address.host} within ${CONNECT_MS / 1000} s`))
    }, CONNECT_MS)
    const abort = (): void => fail(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    let isAnswered = false
    socket.on('error', (error: NodeJS.ErrnoException) => fail(connectError(address, error, isAnswered)))
    socket.on('close', () => fail(new LinkUnreachable(`${address.host} closed the connection at once`)))
    socket.on('unexpected-response', (request: ClientRequest, response: IncomingMessage) => {
      request.destroy()
      fail(answerError(address, response.statusCode ?? 0))
    })
    socket.on('upgrade', (response: IncomingMessage) => {
      isAnswered = true
      try {
        if (address.protocol === 'https:') seen = judge(response.socket as TLSSocket, options)
      } catch (error) {
        fail(error)
      }
    })
    socket.on('open', () => {
      if (socket.readyState !== WebSocket.OPEN) return
      settle()
      // At once: nothing that the socket says may be missed.
      const fingerprint = seen === undefined ? new Uint8Array(0) : Buffer.from(seen.certificate.fingerprint, 'hex')
      // Who listens but says nothing is as far away as who does not: the time is that of connection and answer together.
      const within = Math.max(0, CONNECT_MS - (clock.now() - begun))
      const joined = joinLink(new SocketTransport(socket), fingerprint, {
        ...options,
        within,
        certificateKey: seen && Buffer.from(seen.certificate.key, 'hex'),
        certificateDoubt: seen?.doubt,
      })
      resolve(joined.then((result) => ({ ...result, certificate: believed(seen, result.isCertificateStated) })))
    })
  })
}

/** The certificate seen, and what there is against it. */
interface Judged {
  readonly certificate: SeenCertificate
  readonly doubt?: LinkRefused
}

function believed(seen: Judged | undefined, isStated: boolean): SeenCertificate | undefined {
  return seen === undefined || !isStated ? seen?.certificate : { ...seen.certificate, trust: 'HUB_KEY' }
}

function judge(socket: TLSSocket, { address, pinnedCertificate, pinnedCertificateKey }: DialOptions): Judged {
  const { raw } = socket.getPeerCertificate()
  if (raw === undefined) throw new LinkUnreachable(`${address.host} showed no certificate`)
  const fingerprint = fingerprintOf(raw)
  const key = keyFingerprintOf(raw)
  if (pinnedCertificate !== undefined) {
    // The hub has renewed its certificate: TLS has just proven that whoever shows it holds the same key.
    if (fingerprint === pinnedCertificate || key === pinnedCertificateKey)
      return { certificate: { fingerprint, key, trust: 'PINNED' } }
    const doubt = new LinkRefused(
      'WRONG_CERTIFICATE',
      `${address.host} shows another certificate (${fingerprintText(fingerprint)}), with another key, than the one pinned (${fingerprintText(pinnedCertificate)}); leave and join again if that is meant`,
    )
    return { certificate: { fingerprint, key, trust: 'FIRST_USE' }, doubt }
  }
  return { certificate: { fingerprint, key, trust: socket.authorized ? 'CA' : 'FIRST_USE' } }
}

/** `isAnswered`: the upgrade was agreed to, so that the error is what ws has against the answer's headers. */
function connectError(address: URL, error: NodeJS.ErrnoException, isAnswered: boolean): Error {
  // HPE_…: the answer is no HTTP (llhttp).
  if (isAnswered || error.code?.startsWith('HPE_')) {
    return new LinkRefused('NOT_A_HUB', `what answers at ${address.host} is no hub: ${wordsOf(error)}`)
  }
  // Happy eyeballs collects several errors under an empty message.
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  const said = causes.map((cause) => tlsFault(cause) ?? messageOf(cause)).join('; ')
  const message = speaksNoTls(error)
    ? 'it speaks no TLS; if it is a hub on plain HTTP, write http://'
    : error.code === 'ECONNRESET' && address.protocol === 'http:'
      ? `${said}; if it is a hub that serves TLS, write https://`
      : said
  return new LinkUnreachable(`no connection to ${address.host}: ${message}`, { cause: error })
}

function answerError(address: URL, status: number): Error {
  if (status === 429)
    return new LinkRefused('TOO_MANY', `${address.host} has too many connections waiting to be let in`)
  if (status >= 500) return new LinkUnreachable(`${address.host} answered ${status}`)
  return new LinkRefused('NOT_A_HUB', `there is no hub at ${address.host}: it answered ${status}`)
}

/** A transport over a WebSocket of ws. */
class SocketTransport implements LinkTransport {
  readonly remoteAddress: string
  handlers: TransportHandlers = deaf
  readonly #socket: WebSocket
  #isFull = false
  #isClosed = false

  constructor(socket: WebSocket) {
    this.#socket = socket
    this.remoteAddress = addressOf(socket)
    socket.binaryType = 'nodebuffer'
    socket.removeAllListeners()
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.handlers.message(data)
      else this.handlers.foreign('a text message')
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // Errors of ws itself mean frames that break RFC 6455 or are too long.
      if (error.code?.startsWith('WS_ERR')) this.handlers.foreign(error.message)
    })
    socket.on('close', (code: number, reason: Buffer) => {
      if (this.#isClosed) return
      this.#isClosed = true
      this.handlers.close(code, reason.toString())
    })
  }

  get buffered(): number {
    return this.#socket.bufferedAmount
  }

  send(bytes: Uint8Array): boolean {
    if (this.#isClosed) return true
    this.#socket.send(bytes, () => this.#sent())
    if (this.#socket.bufferedAmount > HIGH_WATER) this.#isFull = true
    return !this.#isFull
  }

  #sent(): void {
    if (!this.#isFull || this.#isClosed || this.#socket.bufferedAmount > LOW_WATER) return
    this.#isFull = false
    this.handlers.drain()
  }

  close(code: CloseCode, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.close(code, closeReason(reason))
    // A real timer: it concerns a descriptor, not the protocol.
    const timer = setTimeout(() => this.#socket.terminate(), CLOSING_MS)
    timer.unref()
    this.#socket.on('close', () => clearTimeout(timer))
  }
}

function addressOf(socket: WebSocket): string {
  // Not part of the public interface, and worth an empty text only.
  const inner = (socket as unknown as { _socket?: { remoteAddress?: string } })._socket
  return inner?.remoteAddress ?? ''
}
