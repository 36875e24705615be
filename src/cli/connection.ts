/** How commands reach a node: HTTP requests and WebSockets over TCP or TLS, and whose certificate is taken. */
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { Agent, type RequestOptions, request as tlsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { isLoopbackHost } from '../contract/address.ts'
import { speaksNoTls } from '../link/tls-error.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'

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

/** A certificate that is not to be trusted, or not the one that was meant. */
class Untrusted extends Failure {}

export class ApiConnection {
  readonly url: string
  /** Rejects when the node cannot be asked. */
  readonly #token: () => Promise<string | undefined>
  readonly #agent: Agent | undefined

  /** `url` is the node's HTTP or HTTPS address. */
  constructor(url: string, { token, tokenIfAsked, ca, fingerprint }: Credentials = {}) {
    this.url = url.replace(/\/+$/, '')
    let asked: Promise<string | undefined> | undefined
    this.#token = async () => {
      if (tokenIfAsked === undefined) return token
      asked ??= this.#asksForToken().then((asks) => (asks ? tokenIfAsked : undefined))
      return await asked
    }
    if (new URL(url).protocol === 'https:') this.#agent = new CheckingAgent(this.url, ca, fingerprint)
  }

  /** Sends one request; fulfilled with the head of the answer, whose body is yet to be read. A body is sent as JSON. */
  async request(method: string, target: string, body?: unknown, signal?: AbortSignal): Promise<IncomingMessage> {
    return await this.#request(await this.#token(), method, target, body, signal)
  }

  async #asksForToken(): Promise<boolean> {
    const answer = await this.#request(undefined, 'GET', '/v1/hub-client/local-node-id')
    answer.resume()
    return answer.statusCode === 401
  }

  #request(
    token: string | undefined,
    method: string,
    target: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers: Record<string, string> = {}
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    if (text !== undefined) {
      headers['content-type'] = 'application/json'
      headers['content-length'] = String(Buffer.byteLength(text))
    }
    return new Promise((resolve, reject) => {
      const options = { method, headers, ...(signal === undefined ? {} : { signal }) }
      const call =
        this.#agent === undefined
          ? plainRequest(this.url + target, { ...options, agent: false })
          : tlsRequest(this.url + target, { ...options, agent: this.#agent })
      call.on('response', resolve)
      call.on('error', (error) => reject(signal?.aborted ? error : this.#unreachable(error)))
      call.end(text)
    })
  }

  /** Opens a WebSocket; what keeps it from opening comes as its error event. */
  async webSocket(target: string): Promise<WebSocket> {
    const token = await this.#token()
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return new WebSocket(this.url.replace(/^http/, 'ws') + target, {
      headers,
      ...(this.#agent === undefined ? {} : { agent: this.#agent }),
    })
  }

  #unreachable(error: Error): Failure {
    if (error instanceof Failure) return error
    const { code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] }
    const isPlain = speaksNoTls(error)
    const why = isPlain ? 'it speaks no TLS' : error.message || errors?.[0]?.message || code
    const hint = isPlain
      ? '; write http://'
      : code === 'ECONNRESET' && this.#agent === undefined
        ? '; if it serves TLS, write https://'
        : ''
    return new Failure(
      `no penstock node answers at ${this.url} (${why}${hint}): start one with "penstock up", ` +
        'or say where it is with --url or PENSTOCK_URL',
    )
  }
}

/** Hands a connection over only when its certificate is one to trust: nothing, no token either, goes to another. */
class CheckingAgent extends Agent {
  readonly #url: string
  readonly #ca: string | undefined
  readonly #fingerprint: string | undefined

  constructor(url: string, ca: string | undefined, fingerprint: string | undefined) {
    super({ keepAlive: false })
    this.#url = url
    this.#ca = ca
    this.#fingerprint = fingerprint
  }

  override createConnection(
    options: RequestOptions,
    callback: (error: Error | null, socket: Duplex) => void,
  ): Duplex | null | undefined {
    const socket = connect({
      ...(options as object),
      ...(this.#ca === undefined ? {} : { ca: this.#ca }),
      ALPNProtocols: ['http/1.1'],
      // Decided below, where the certificate can be named.
      rejectUnauthorized: false,
    })
    const failed = (error: Error) => callback(error, socket)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      socket.off('error', failed)
      const problem = this.#problemOf(socket)
      if (problem === undefined) {
        callback(null, socket)
        return
      }
      socket.destroy()
      failed(new Untrusted(problem))
    })
    return undefined
  }

  #problemOf(socket: TLSSocket): string | undefined {
    const shown = socket.getPeerCertificate().fingerprint256 ?? ''
    if (this.#fingerprint !== undefined) {
      if (plain(shown) === plain(this.#fingerprint)) return undefined
      return `the certificate at ${this.#url} is another one than asked for: its fingerprint is ${shown}`
    }
    const host = new URL(this.#url).hostname.replace(/^\[|\]$/g, '')
    // Nobody is in between on the loopback interface, and nodes make their own certificates.
    if (socket.authorized || (isLoopbackHost(host) && this.#ca === undefined)) return undefined
    const { authorizationError } = socket
    const why =
      (authorizationError as unknown) === 'ERR_TLS_CERT_ALTNAME_INVALID'
        ? `it is for ${socket.getPeerCertificate().subjectaltname ?? 'no name at all'}, not for ${host}`
        : messageOf(authorizationError)
    return (
      `the certificate at ${this.#url} is not trusted (${why}): ` +
      `if its fingerprint ${shown} is the one that the node logged at its start, give it with --fingerprint; ` +
      'or name its authority with --ca'
    )
  }
}

function plain(fingerprint: string): string {
  return fingerprint
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()
}

/** SHA-256 of the certificate that is shown at an HTTPS address, as `AA:BB:…`; undefined when there is none to see within 5 s. */
export function shownFingerprint(address: string): Promise<string | undefined> {
  const { hostname, port, protocol } = new URL(address)
  if (protocol !== 'https:') return Promise.resolve(undefined)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false, timeout: 5_000 })
    const done = (fingerprint?: string) => {
      socket.destroy()
      resolve(fingerprint)
    }
    socket.once('secureConnect', () => done(socket.getPeerCertificate().fingerprint256))
    socket.once('error', () => done())
    socket.once('timeout', () => done())
  })
}
