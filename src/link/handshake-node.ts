/** The node's end of a handshake: is this the hub it should be, and does it let us in. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../contract/clock.ts'
import { HANDSHAKE_MS, NEWEST_VERSION, VERSION } from './handshake-hub.ts'
import { Heartbeat } from './heartbeat.ts'
import { readServerList, readStatement } from './hub-key.ts'
import { type Identity, nodeIdOfRaw } from './identity.ts'
import { rawKey, signAs, transcript, verifyAs } from './keys.ts'
import { type Intent, type LinkEvent, LinkRefused, type LinkSession, LinkUnreachable, type NodeRecord } from './link.ts'
import {
  decodeFrame,
  decodeHubHelloBody,
  decodeVerdictBody,
  encodeFrame,
  encodeRecord,
  type Frame,
  MAX_HANDSHAKE_FRAME_BYTES,
  Violation,
} from './messages.ts'
import { OTHER_CERTIFICATE_CURE } from './peer-checks.ts'
import { Session } from './session.ts'
import type { ServerList, SignedBody } from './signed.ts'
import { closeCodes, deaf, type LinkTransport } from './transport.ts'

export interface NodeHandshakeOptions {
  readonly identity: Identity
  readonly record: NodeRecord
  readonly intent: Intent
  /** 32 bytes. A hub with another key is refused (WRONG_HUB). */
  readonly pinnedHubKey?: Uint8Array | undefined
  /** SERVER: that this node is a server of the hub. */
  readonly statement?: SignedBody | undefined
  /** SHA-256 of the public key of the TLS certificate seen, 32 bytes; absent on plain HTTP. */
  readonly certificateKey?: Uint8Array | undefined
  /** What there is against that certificate: the hub is refused with this, unless its hub key speaks for the certificate. */
  readonly certificateDoubt?: LinkRefused | undefined
  /** Milliseconds since the Unix epoch, to see whether statements of the hub key still count; default: the system's clock. */
  readonly now?: (() => number) | undefined
  readonly clock: Clock
  /** Gives up: the connection is closed, the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the hub must have answered (default HANDSHAKE_MS). */
  readonly within?: number
  /** Called when the hub shows the request to its operator (JOIN). */
  readonly onPending?: ((hub: PendingAt) => void) | undefined
  readonly report: (event: LinkEvent) => void
}

/** The hub that a request to join waits at. */
export interface PendingAt {
  /** Raw public key of the hub, 32 bytes. */
  readonly hubKey: Uint8Array
  /** Where all its servers are; absent: it has not told. */
  readonly servers: ServerList | undefined
}

export interface Joined {
  readonly session: LinkSession
  readonly hubKey: Uint8Array
  readonly hubId: string
  /** The hub key has said that the certificate seen is this server's. */
  readonly isCertificateStated: boolean
}

/**
 * Shakes hands over a fresh connection. `certificate`: SHA-256 of the TLS certificate seen (32 bytes), empty on plain HTTP. Rejects
 * with LinkRefused or LinkUnreachable; the transport is closed then.
 */
export function joinLink(
  transport: LinkTransport,
  certificate: Uint8Array,
  options: NodeHandshakeOptions,
): Promise<Joined> {
  return new Promise((resolve, reject) => {
    new NodeHandshake(transport, certificate, options, resolve, reject).start()
  })
}

class NodeHandshake {
  readonly #transport: LinkTransport
  readonly #certificate: Uint8Array
  readonly #options: NodeHandshakeOptions
  readonly #resolve: (joined: Joined) => void
  readonly #reject: (error: unknown) => void
  readonly #aborted = () => this.#fail(this.#options.signal?.reason, closeCodes.SHUTDOWN, 'the node gave up')
  #timer: unknown
  #heartbeat: Heartbeat | undefined
  #step: 'hubHello' | 'verdict' | 'pending' | 'over' = 'hubHello'
  #messages: Uint8Array[] = []
  #hubKey: Uint8Array = new Uint8Array(0)
  /** What signs here and now: the hub key itself, or that of one of the hub's servers. */
  #serverKey: Uint8Array = new Uint8Array(0)
  /** It has shown a statement of the hub key. */
  #isServer = false
  #isCertificateStated = false

  constructor(
    transport: LinkTransport,
    certificate: Uint8Array,
    options: NodeHandshakeOptions,
    resolve: (joined: Joined) => void,
    reject: (error: unknown) => void,
  ) {
    this.#transport = transport
    this.#certificate = certificate
    this.#options = options
    this.#resolve = resolve
    this.#reject = reject
  }

  start(): void {
    const { clock, identity, intent, signal } = this.#options
    this.#timer = clock.setTimeout(() => {
      this.#fail(new LinkUnreachable('the hub did not answer in time'), closeCodes.DEAD, 'no answer in time')
    }, this.#options.within ?? HANDSHAKE_MS)
    this.#transport.handlers = {
      message: (bytes) => this.#receive(bytes),
      foreign: (what) => this.#violated(new Violation(what)),
      close: (code, reason) => this.#closed(code, reason),
      drain: () => {},
    }
    if (signal?.aborted) {
      this.#aborted()
      return
    }
    signal?.addEventListener('abort', this.#aborted, { once: true })
    const hello = encodeFrame('hello', {
      version: VERSION,
      nodeKey: rawKey(identity.publicKey),
      nonce: randomBytes(32),
      intent,
      certificateFingerprint: this.#certificate,
      newestVersion: NEWEST_VERSION,
    })
    this.#messages = [hello]
    this.#transport.send(hello)
  }

  #stop(): void {
    this.#step = 'over'
    this.#options.clock.clearTimeout(this.#timer)
    this.#heartbeat?.stop()
    this.#options.signal?.removeEventListener('abort', this.#aborted)
  }

  #fail(error: unknown, code: (typeof closeCodes)[keyof typeof closeCodes], reason: string): void {
    if (this.#step === 'over') return
    this.#stop()
    this.#transport.handlers = deaf
    this.#transport.close(code, reason)
    this.#reject(error)
  }

  #closed(code: number, reason: string): void {
    const error =
      code === closeCodes.PROTOCOL
        ? new LinkRefused('PROTOCOL', `the hub cut the connection: ${reason}`)
        : new LinkUnreachable(`the hub closed the connection before it answered${reason === '' ? '' : `: ${reason}`}`)
    this.#fail(error, closeCodes.SHUTDOWN, '')
  }

  #refuse(refusal: LinkRefused, reason: string): void {
    this.#fail(refusal, closeCodes.PROTOCOL, reason)
  }

  #violated(error: unknown): void {
    if (error instanceof LinkRefused) this.#refuse(error, 'this server is not trusted')
    else if (error instanceof Violation) {
      // Behind a hello that its key has signed it is a hub, of whatever else it is to be told.
      const refusal =
        this.#step === 'hubHello'
          ? new LinkRefused('NOT_A_HUB', `what answers is no hub: ${error.message}`)
          : new LinkRefused('PROTOCOL', `the hub does not keep to the protocol: ${error.message}`)
      this.#refuse(refusal, error.message)
    } else this.#fail(error, closeCodes.SHUTDOWN, 'internal error')
  }

  #receive(bytes: Uint8Array): void {
    try {
      const frame = decodeFrame(bytes, MAX_HANDSHAKE_FRAME_BYTES)
      this.#heartbeat?.heard()
      if (this.#step === 'hubHello' && frame.kind === 'hubHello') this.#onHubHello(frame.value, bytes)
      else if (this.#step === 'verdict' && frame.kind === 'pending' && this.#options.intent === 'JOIN')
        this.#onPending(frame.value.servers)
      else if ((this.#step === 'verdict' || this.#step === 'pending') && frame.kind === 'verdict') {
        this.#onVerdict(frame.value, bytes)
      } else this.#onOther(frame)
    } catch (error) {
      this.#violated(error)
    }
  }

  #onOther(frame: Frame): void {
    if (this.#step === 'pending' && frame.kind === 'ping') {
      this.#transport.send(encodeFrame('pong', { sequence: frame.value.sequence }))
    } else if (this.#step === 'pending' && frame.kind === 'pong') this.#heartbeat?.pong(frame.value.sequence)
    else throw new Violation(`a ${frame.kind} frame during the handshake`)
  }

  #onHubHello({ body, signature }: SignedBody, bytes: Uint8Array): void {
    const { identity, pinnedHubKey, record, certificateDoubt } = this.#options
    const hello = decodeHubHelloBody(body)
    const { hubKey, statement } = hello
    if (pinnedHubKey !== undefined && Buffer.compare(hubKey, pinnedHubKey) !== 0) {
      const message =
        'the hub at this address has another key than the one this node joined; leave and join again if that is meant'
      this.#refuse(new LinkRefused('WRONG_HUB', message), 'another hub key is pinned')
      return
    }
    const server = statement === undefined ? undefined : readStatement(statement, { hubKey, now: this.#now() })
    const serverKey = server?.serverKey ?? hubKey
    if (!verifyAs('hub', serverKey, transcript(this.#messages[0] as Uint8Array, body), signature)) {
      throw new Violation('a hello that the key in it has not signed')
    }
    const ownKey = rawKey(identity.publicKey)
    if ([hubKey, serverKey].some((key) => Buffer.compare(key, ownKey) === 0)) {
      throw new Violation('the hub has the key of this node')
    }
    if (server !== undefined) this.#checkCertificate(server.certificateKey)
    if (certificateDoubt !== undefined && !(this.#isCertificateStated && pinnedHubKey !== undefined))
      throw certificateDoubt
    this.#isServer = server !== undefined
    this.#hubKey = new Uint8Array(hubKey)
    this.#serverKey = new Uint8Array(serverKey)
    this.#messages.push(bytes)
    const encoded = encodeRecord(record)
    const proof = encodeFrame('proof', {
      record: encoded,
      signature: signAs('node', identity.privateKey, transcript(...this.#messages, encoded)),
      statement: this.#options.statement,
    })
    this.#messages.push(proof)
    this.#step = 'verdict'
    this.#transport.send(proof)
  }

  /** What the hub key says of the server's certificate must be what this node sees. */
  #checkCertificate(stated: Uint8Array): void {
    const seen = this.#options.certificateKey ?? new Uint8Array(0)
    if (Buffer.compare(stated, seen) !== 0) {
      const message = `the TLS certificate that this node sees is not the one that the hub key names for this server; ${OTHER_CERTIFICATE_CURE}`
      throw new LinkRefused('WRONG_CERTIFICATE', message)
    }
    this.#isCertificateStated = seen.length > 0
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }

  #onPending(list: SignedBody | undefined): void {
    const servers = list === undefined || !this.#isServer ? undefined : readServerList(list, this.#hubKey)
    this.#step = 'pending'
    this.#options.clock.clearTimeout(this.#timer)
    this.#heartbeat = new Heartbeat({
      clock: this.#options.clock,
      ping: (sequence) => this.#transport.send(encodeFrame('ping', { sequence })),
      dead: () => this.#fail(new LinkUnreachable('the hub has gone silent'), closeCodes.DEAD, 'nothing was heard'),
    })
    this.#options.onPending?.({ hubKey: this.#hubKey, servers })
  }

  #onVerdict({ body, signature }: SignedBody, bytes: Uint8Array): void {
    if (!verifyAs('verdict', this.#serverKey, transcript(...this.#messages, body), signature)) {
      throw new Violation('a verdict that the hub has not signed')
    }
    const verdict = decodeVerdictBody(body)
    if ('refused' in verdict) {
      const { reason, message } = verdict.refused
      const name = typeof reason === 'number' ? 'PROTOCOL' : reason
      this.#fail(new LinkRefused(name, message, true), closeCodes.REFUSED, 'refused')
      return
    }
    const list = this.#isServer ? verdict.welcome.servers : undefined
    const servers = list === undefined ? undefined : readServerList(list, this.#hubKey)
    this.#messages.push(bytes)
    this.#stop()
    const { identity, clock, report } = this.#options
    const whole = transcript(...this.#messages)
    const hubKey = this.#hubKey
    const serverKey = this.#serverKey
    // Made at once: the hub's first call may be right behind.
    const session = new Session({
      side: 'node',
      isServerLink: this.#options.intent === 'SERVER',
      localId: identity.nodeId,
      peerId: nodeIdOfRaw(serverKey),
      transport: this.#transport,
      clock,
      heartbeat: this.#heartbeat?.sequence ?? 0,
      signRemoval: () => new Uint8Array(0),
      ...(this.#isServer ? { readServers: (list) => readServerList(list, hubKey), servers } : {}),
      verifyRemoval: (removal) => verifyAs('removed', serverKey, whole, removal),
      report,
    })
    this.#resolve({ session, hubKey, hubId: nodeIdOfRaw(hubKey), isCertificateStated: this.#isCertificateStated })
  }
}
