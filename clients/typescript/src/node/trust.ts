/** Whose certificate is taken: an agent of node:https that hands a connection over only once that is settled. */
import { Agent } from 'node:https'
import { addAbortSignal } from 'node:stream'
import { connect, type TLSSocket, type ConnectionOptions as TlsOptions } from 'node:tls'

export interface Trust {
  /** Certificate authorities to trust in place of the usual ones, PEM. */
  readonly ca?: string
  /** SHA-256 of the one certificate to trust, whoever signed it: hexadecimal, with or without colons. */
  readonly fingerprint?: string
  /** Takes any certificate, unless `fingerprint` is given: for where nobody can be in between, as on the loopback interface. */
  readonly anyCertificate?: boolean
}

/** A certificate that is not to be trusted: nothing was sent. It is the `cause` of the PenstockError that a call rejects with. */
export class UntrustedCertificate extends Error {
  override readonly name = 'UntrustedCertificate'
  /** It is not the one that was asked for; its authority is none that is trusted; it has expired; it is for other names. */
  readonly reason: 'OTHER_FINGERPRINT' | 'NOT_TRUSTED' | 'EXPIRED' | 'OTHER_NAME'
  /** Its SHA-256, as `AA:BB:…`. */
  readonly fingerprint: string
  /** Whom it is for, as `DNS:node.example, IP Address:10.0.0.1`; empty where it names nobody. */
  readonly names: string

  constructor(reason: UntrustedCertificate['reason'], message: string, fingerprint: string, names: string) {
    super(message)
    this.reason = reason
    this.fingerprint = fingerprint
    this.names = names
  }
}

const digits = (fingerprint: string): string =>
  fingerprint
    .replace(/^sha256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()

/** Hands a connection over once its certificate is one to trust: nothing, the token included, goes to another. */
export class TrustingAgent extends Agent {
  readonly #trust: Trust
  readonly #signal: AbortSignal | undefined

  /** `signal`: ends a connection also before it is handed over, which that of a request does not. */
  constructor(trust: Trust, signal?: AbortSignal) {
    super({ keepAlive: false })
    this.#trust = trust
    this.#signal = signal
  }

  override createConnection(...[options, callback]: Parameters<Agent['createConnection']>) {
    const { ca } = this.#trust
    const socket = connect({
      ...(options as TlsOptions),
      ...(ca === undefined ? {} : { ca }),
      ALPNProtocols: ['http/1.1'],
      // Decided below, where the certificate can be named.
      rejectUnauthorized: false,
    })
    if (this.#signal !== undefined) addAbortSignal(this.#signal, socket)
    const failed = (error: Error): void => callback?.(error, socket)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      socket.off('error', failed)
      const problem = problemOf(socket, this.#trust)
      if (problem === undefined) callback?.(null, socket)
      else {
        socket.destroy()
        failed(problem)
      }
    })
    return undefined
  }
}

function problemOf(socket: TLSSocket, { fingerprint, anyCertificate }: Trust): UntrustedCertificate | undefined {
  const { fingerprint256: shown = '', subjectaltname: names = '', valid_to: until } = socket.getPeerCertificate()
  if (fingerprint !== undefined) {
    if (digits(shown) === digits(fingerprint)) return undefined
    const message = `the certificate is another one than asked for: its fingerprint is ${shown}`
    return new UntrustedCertificate('OTHER_FINGERPRINT', message, shown, names)
  }
  if (socket.authorized || anyCertificate === true) return undefined
  // Node.js types it as an Error; it is the code of one, or an Error.
  const why = socket.authorizationError as unknown
  if (why === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const message = `the certificate is for ${names || 'no name at all'}`
    return new UntrustedCertificate('OTHER_NAME', message, shown, names)
  }
  // Not so that of an authority between, which may be what has.
  if (why === 'CERT_HAS_EXPIRED' && Date.parse(until) < Date.now()) {
    return new UntrustedCertificate('EXPIRED', `the certificate expired on ${until}`, shown, names)
  }
  return new UntrustedCertificate('NOT_TRUSTED', why instanceof Error ? why.message : String(why), shown, names)
}
