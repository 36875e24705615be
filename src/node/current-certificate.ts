/** The certificate that the node's listeners show: that of its files as they are now, which may be renewed while the node runs; and its end, told in time. */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock } from '../contract/clock.ts'
import { messageOf } from '../text/error-message.ts'
import { type Pem, readPem, readTls, type Tls, type TlsFiles, tlsOf } from './tls.ts'

/** Time between two looks at the files, milliseconds. */
const LOOK_MS = 30_000
const DAY_MS = 24 * 3600 * 1000
/** A certificate with less than this left is told of, milliseconds; */
const ENDING_MS = 14 * DAY_MS
/** with less than this share of its whole time, where that is less: what is made for a day is renewed when a third of it is left. */
const ENDING_SHARE = 0.25
/** After this, milliseconds, what was refused is tried again: it may have been for want of memory or of descriptors. */
const RETRY_MS = 3600 * 1000

/** What shows a certificate to those that connect. */
interface Listener {
  /** Makes ready; what it returns shows it to new connections and leaves those that are open alone. Throws Error when it cannot be used. */
  renew(tls: Tls): () => void
}

export interface CurrentCertificateOptions {
  readonly files: TlsFiles
  /** The node has made it (`auto`): it is renewed at a start, and its files are not looked at. */
  readonly isOwn: boolean
  readonly log: Logger
  readonly clock: Clock
  /** Milliseconds since the epoch; default: the system's clock. */
  readonly now?: () => number
}

interface Found {
  /** Of what the files hold, other than that of anything else that they may hold; or why they cannot be read. */
  readonly mark: string
  /** Throws Error when it is of no use. */
  tls(): Tls
}

interface Doubt {
  readonly kind: 'EARLY' | 'ENDING' | 'ENDED'
  readonly message: string
}

export class CurrentCertificate {
  readonly #options: CurrentCertificateOptions
  readonly #listeners: Listener[] = []
  #tls: Tls
  /** What the last look found. */
  #seen: string
  /** What was found and is of no use, when, and why, as it was told. */
  #refused: { readonly mark: string; readonly at: number; readonly problem: string } | undefined
  #doubt: { readonly kind: Doubt['kind']; readonly at: number } | undefined
  #timer: unknown

  /** Throws Error when the files cannot be used. */
  constructor(options: CurrentCertificateOptions) {
    this.#options = options
    this.#tls = readTls(options.files)
    this.#seen = markOf(this.#tls)
    this.#tellDoubt()
    this.#tell('TLS certificate')
  }

  get tls(): Tls {
    return this.#tls
  }

  /** Its files are looked at. */
  get isRenewable(): boolean {
    return !this.#options.isOwn
  }

  /** Has `listener`, which shows it already, show later ones too. */
  show(listener: Listener): void {
    this.#listeners.push(listener)
  }

  /** Looks at the files from time to time. */
  watch(): void {
    const { clock } = this.#options
    this.#timer = clock.setTimeout(() => {
      this.look()
      this.watch()
    }, LOOK_MS)
  }

  unwatch(): void {
    this.#options.clock.clearTimeout(this.#timer)
  }

  /**
   * Takes what the files hold now, if it is another certificate and two looks in a row have found it, or `isAsked`: certificate and key are
   * replaced one after the other, and written piece by piece. What cannot be used changes nothing, and is told once, or as often as it is asked for.
   */
  look({ isAsked = false } = {}): void {
    if (this.isRenewable) this.#lookAtFiles(isAsked)
    this.#tellDoubt()
  }

  #lookAtFiles(isAsked: boolean): void {
    const { clock, log } = this.#options
    const found = this.#find()
    const refused = this.#refused
    const isSettled = found.mark === this.#seen
    this.#seen = found.mark
    const isRefused = found.mark === refused?.mark && clock.now() - refused.at < RETRY_MS
    if (!isAsked && (!isSettled || isRefused)) return
    try {
      if (found.mark !== markOf(this.#tls)) this.#take(found.tls())
      else if (isAsked || refused !== undefined) this.#tell('the TLS certificate is the same as before')
      this.#refused = undefined
    } catch (error) {
      const problem = messageOf(error)
      this.#refused = { mark: found.mark, at: clock.now(), problem }
      if (problem === refused?.problem && !isAsked) return
      const { fingerprint, until } = this.#tls
      log.warn({ fingerprint }, `${problem}; the last certificate stays in use, until ${dateOf(until)}`)
    }
  }

  #find(): Found {
    const { files } = this.#options
    try {
      const pem = readPem(files)
      return { mark: markOf(pem), tls: () => tlsOf(files, pem) }
    } catch (error) {
      const tls = () => {
        throw error
      }
      return { mark: messageOf(error), tls }
    }
  }

  /** All listeners, or none. */
  #take(tls: Tls): void {
    const ready = this.#listeners.map((listener) => listener.renew(tls))
    // The HTTP library has read them by itself.
    if (markOf(readPem(this.#options.files)) !== markOf(tls)) {
      throw new Error(`http.tls: ${tls.certFile} or ${tls.keyFile} has changed while it was read`)
    }
    for (const show of ready) show()
    this.#tls = tls
    this.#doubt = undefined
    this.#tell('another TLS certificate is in use for new connections')
  }

  #tell(message: string): void {
    const { fingerprint, certFile, until } = this.#tls
    this.#options.log.info({ fingerprint, certificate: certFile, until: dateOf(until) }, message)
  }

  /** Tells once a day what is wrong with the time of the certificate. */
  #tellDoubt(): void {
    const { now = Date.now, isOwn, clock, log } = this.#options
    const doubt = doubtOf(this.#tls, now())
    const at = clock.now()
    if (doubt?.kind === this.#doubt?.kind && at - (this.#doubt?.at ?? at) < DAY_MS) return
    this.#doubt = doubt && { kind: doubt.kind, at }
    if (doubt === undefined) return
    const cure = isOwn ? 'the next start of the node renews it' : 'the node takes a renewed one by itself'
    // Of one that is not valid yet time is the cure, or the clock.
    log.warn(doubt.kind === 'EARLY' ? doubt.message : `${doubt.message}: ${cure}`)
  }
}

/** What is wrong with the time of a certificate; undefined: nothing. */
export function doubtOf({ certFile, from, until }: Tls, now: number): Doubt | undefined {
  if (now < from) {
    return { kind: 'EARLY', message: `the certificate in ${certFile} is not valid before ${dateOf(from)}` }
  }
  if (now > until) return { kind: 'ENDED', message: `the certificate in ${certFile} expired on ${dateOf(until)}` }
  if (until - now > Math.min(ENDING_MS, ENDING_SHARE * (until - from))) return undefined
  return { kind: 'ENDING', message: `the certificate in ${certFile} expires on ${dateOf(until)}` }
}

const dateOf = (time: number): string => new Date(time).toISOString()

/** Different for any two pairs. */
function markOf({ cert, key }: Pem): string {
  const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
  return `${hash(cert)} ${hash(key)}`
}
