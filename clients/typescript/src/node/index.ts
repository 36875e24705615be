/** For Node.js: whose certificate is taken. */
import { request as plainRequest } from 'node:http'
import { Agent, request as tlsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { connect, type ConnectionOptions as TlsOptions } from 'node:tls'

export interface Trust {
  /** Certificate authorities to trust in place of the usual ones, PEM. */
  readonly ca?: string
  /** SHA-256 of the one certificate to trust, whoever signed it: hexadecimal, with or without colons. */
  readonly fingerprint?: string
}

/**
 * A fetch for `connect` that trusts as told. It takes what this client sends: an address, method, headers, a text as body and a signal; it
 * follows no redirects. A certificate that is not to be trusted is an error before anything is sent, the token included.
 */
export function nodeFetch(trust: Trust = {}): typeof fetch {
  const agent = new TrustingAgent(trust)
  return (input, { method = 'GET', headers = {}, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const url = new URL(String(input))
      const options = { method, headers: headers as Record<string, string>, ...(signal ? { signal } : {}) }
      const call =
        url.protocol === 'https:'
          ? tlsRequest(url, { ...options, agent })
          : plainRequest(url, { ...options, agent: false })
      call.on('error', reject)
      call.on('response', (answer) => {
        const { statusCode: status = 0, statusMessage: statusText = '' } = answer
        const isEmpty = status === 204 || status === 304 || method === 'HEAD'
        const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
        if (isEmpty) answer.resume()
        resolve(new Response(stream, { status, statusText, headers: pairs(answer.rawHeaders) }))
      })
      call.end(body)
    })
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string])
}

const digits = (fingerprint: string): string =>
  fingerprint
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()

/** Hands a connection over once its certificate is one to trust. */
class TrustingAgent extends Agent {
  readonly #trust: Trust

  constructor(trust: Trust) {
    super({ keepAlive: false })
    this.#trust = trust
  }

  override createConnection(...[options, callback]: Parameters<Agent['createConnection']>) {
    const { ca, fingerprint } = this.#trust
    const socket = connect({
      ...(options as TlsOptions),
      ...(ca === undefined ? {} : { ca }),
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: fingerprint === undefined,
    })
    const failed = (error: Error): void => callback?.(error, socket)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      socket.off('error', failed)
      const shown = socket.getPeerCertificate().fingerprint256 ?? ''
      if (fingerprint === undefined || digits(shown) === digits(fingerprint)) callback?.(null, socket)
      else {
        socket.destroy()
        failed(new Error(`the certificate is another one than asked for: its fingerprint is ${shown}`))
      }
    })
    return undefined
  }
}
