/** The hub's end of a handshake: who is there, do they hold their key, are they let in. */

import { randomBytes } from 'node:crypto'
import type { Clock } from '../contract/clock.ts'
import { Heartbeat } from './heartbeat.ts'
import type { HubSigner } from './hub-key.ts'
import type { Identity } from './identity.ts'
import { nodeIdOfRaw } from './identity.ts'
import { rawKey, signAs, transcript, verifyAs } from './keys.ts'
import type { Admission, HubPolicy, LinkEvent, LinkSession, NodeRecord, ShownCertificate } from './link.ts'
import {
  decodeFrame,
  decodeRecord,
  encodeFrame,
  encodeHubHelloBody,
  encodeVerdictBody,
  type Frame,
  type Frames,
  type Hello,
  MAX_HANDSHAKE_FRAME_BYTES,
  type VerdictBody,
  Violation,
} from './messages.ts'
import { isSameCertificate, mustBeServer, OTHER_CERTIFICATE_CURE } from './peer-checks.ts'
import { Session } from './session.ts'
import type { SignedBody } from './signed.ts'
import { type CloseCode, closeCodes, deaf, type LinkTransport } from './transport.ts'

/** Version of the protocol that this implementation speaks with everybody, and the newest that it speaks. */
export const VERSION = 1
export const NEWEST_VERSION = 2
/** Time for a handshake up to the proof, and on the node's side to the hub's first answer to it; milliseconds. */
export const HANDSHAKE_MS = 10_000
/** What may wait on the transport before a peer that asks to join counts as dead, bytes: it has been sent pings and pongs only. */
const MAX_UNREAD_BYTES = 64 * 1024

export interface HubOptions {
  readonly identity: Identity
  readonly policy: HubPolicy
  readonly clock: Clock
  /** What the connection was made with, and the node must have seen; undefined: plain HTTP. */
  readonly certificate?: ShownCertificate | undefined
  /** Of a hub with a hub key, which this is a server of. Absent: the key of `identity` is the hub's. */
  readonly signer?: HubSigner | undefined
  /** The same: where all its servers are now, as it has signed it. */
  readonly servers?: (() => SignedBody | undefined) | undefined
  readonly report: (event: LinkEvent) => void
}

/** What the listener wants to know of a handshake. */
export interface HandshakeProgress {
  /** The peer has proven its key, or the connection is over; called once. */
  proven?(): void
  /** The peer is let in: a session stands, and the handshake is over. */
  admitted?(session: LinkSession): void
}

/** Serves one connection. */
export function acceptLink(
  transport: LinkTransport,
  options: HubOptions,
  progress: HandshakeProgress = {},
): HubHandshake {
  return new HubHandshake(transport, options, progress)
}

type Step = 'hello' | 'proof' | 'decision' | 'over'

export class HubHandshake {
  readonly #transport: LinkTransport
  readonly #options: HubOptions
  readonly #progress: HandshakeProgress
  readonly #withdrawn = new AbortController()
  readonly #timer: unknown
  #step: Step = 'hello'
  #isProven = false
  #messages: Uint8Array[] = []
  #hello: Hello | undefined
  #peerId: string | undefined
  #heartbeat: Heartbeat | undefined
  #session: LinkSession | undefined

  constructor(transport: LinkTransport, options: HubOptions, progress: HandshakeProgress) {
    this.#transport = transport
    this.#options = options
    this.#progress = progress
    this.#timer = options.clock.setTimeout(() => {
      this.#cutOff('violation', 'the handshake took too long', closeCodes.PROTOCOL)
    }, HANDSHAKE_MS)
    transport.handlers = {
      message: (bytes) => this.#receive(bytes),
      foreign: (what) => this.#violated(new Violation(what)),
      close: () => this.#over(),
      drain: () => {},
    }
  }

  /** Ends the handshake. */
  close(_reason: 'SHUTDOWN', message: string): void {
    if (this.#step === 'over') return
    this.#over()
    this.#transport.close(closeCodes.SHUTDOWN, message)
  }

  #markProven(): void {
    this.#options.clock.clearTimeout(this.#timer)
    if (this.#isProven) return
    this.#isProven = true
    this.#progress.proven?.()
  }

  #over(): void {
    if (this.#step === 'over') return
    this.#step = 'over'
    this.#transport.handlers = deaf
    this.#heartbeat?.stop()
    this.#markProven()
    this.#withdrawn.abort()
  }

  #cutOff(
    kind: LinkEvent['kind'],
    message: string,
    code: CloseCode,
    about: Pick<LinkEvent, 'error' | 'reason'> = {},
  ): void {
    if (this.#step === 'over') return
    this.#over()
    const { remoteAddress } = this.#transport
    this.#options.report({ kind, message, remoteAddress, peerId: this.#peerId, ...about })
    this.#transport.close(code, message)
  }

  #violated(error: unknown): void {
    if (error instanceof Violation) this.#cutOff('violation', error.message, closeCodes.PROTOCOL)
    else this.#cutOff('failed', 'internal error', closeCodes.SHUTDOWN, { error })
  }

  #receive(bytes: Uint8Array): void {
    try {
      const frame = decodeFrame(bytes, MAX_HANDSHAKE_FRAME_BYTES)
      this.#heartbeat?.heard()
      if (this.#step === 'hello' && frame.kind === 'hello') this.#onHello(frame.value, bytes)
      else if (this.#step === 'proof' && frame.kind === 'proof') this.#onProof(frame.value, bytes)
      else this.#onOther(frame)
    } catch (error) {
      this.#violated(error)
    }
  }

  #onOther(frame: Frame): void {
    if (this.#step === 'decision' && frame.kind === 'ping') {
      if (this.#transport.buffered > MAX_UNREAD_BYTES) {
        this.#cutOff('dead', 'the joining node does not read', closeCodes.DEAD)
        return
      }
      this.#transport.send(encodeFrame('pong', { sequence: frame.value.sequence }))
    } else if (this.#step === 'decision' && frame.kind === 'pong') this.#heartbeat?.pong(frame.value.sequence)
    else throw new Violation(`a ${frame.kind} frame during the handshake`)
  }

  #onHello(hello: Hello, bytes: Uint8Array): void {
    const { identity, signer, certificate } = this.#options
    if (hello.version !== VERSION) {
      throw new Violation(`version ${hello.version} of the protocol is not spoken here, only ${VERSION}`)
    }
    if (hello.intent !== 'JOIN' && hello.intent !== 'CONNECT' && (hello.intent !== 'SERVER' || signer === undefined)) {
      throw new Violation('a hello without a known intent')
    }
    // A node that reads no statements would take the hub key for one that this server has to hold.
    if (signer !== undefined && (hello.newestVersion ?? 0) < NEWEST_VERSION) {
      throw new Violation('this hub speaks version 2 of the protocol, as it has a hub key: update the node')
    }
    const serverKey = rawKey(identity.publicKey)
    const hubKey = signer?.key ?? serverKey
    if ([serverKey, hubKey].some((key) => Buffer.compare(hello.nodeKey, key) === 0)) {
      throw new Violation(
        "the node has this hub's identity: is it the hub itself, or does it run with a copy of the hub's data directory?",
      )
    }
    this.#hello = hello
    const statement = signer?.statement(certificate?.key)
    const body = encodeHubHelloBody({ hubKey, nonce: randomBytes(32), statement })
    const signature = signAs('hub', identity.privateKey, transcript(bytes, body))
    const answer = encodeFrame('hubHello', { body, signature })
    this.#messages = [bytes, answer]
    this.#step = 'proof'
    this.#transport.send(answer)
  }

  #onProof(proof: Frames['proof'], bytes: Uint8Array): void {
    const { nodeKey, intent } = this.#hello as Hello
    if (!verifyAs('node', nodeKey, transcript(...this.#messages, proof.record), proof.signature)) {
      throw new Violation('a proof that the key of the hello has not signed')
    }
    const record = decodeRecord(proof.record)
    if (intent === 'SERVER') mustBeServer(nodeKey, proof.statement, this.#options.signer as HubSigner)
    this.#messages.push(bytes)
    this.#step = 'decision'
    const nodeId = nodeIdOfRaw(nodeKey)
    this.#peerId = nodeId
    this.#markProven()
    this.#decide(nodeId, record)
      .then((admission) => this.#conclude(nodeId, record, admission))
      .catch((error: unknown) => this.#failed(error))
  }

  #failed(error: unknown): void {
    if (this.#session === undefined) {
      this.#cutOff('failed', 'internal error', closeCodes.SHUTDOWN, { error })
      return
    }
    const { remoteAddress } = this.#transport
    this.#options.report({
      kind: 'failed',
      message: 'a session could not be set up',
      remoteAddress,
      peerId: this.#peerId,
      error,
    })
    this.#session.close('SHUTDOWN', 'internal error')
  }

  async #decide(nodeId: string, record: NodeRecord): Promise<Admission> {
    const { nodeKey, intent, certificateFingerprint } = this.#hello as Hello
    const { policy, certificate } = this.#options
    if (!isSameCertificate(certificateFingerprint, certificate)) {
      const message =
        certificateFingerprint.length === 0
          ? 'this hub is reached over HTTPS only: write https://'
          : `the TLS certificate you see is not that of the hub: something between ends the encryption; ${OTHER_CERTIFICATE_CURE}`
      return { admitted: false, reason: 'WRONG_CERTIFICATE', message }
    }
    if (intent === 'SERVER') return { admitted: true }
    if (intent === 'CONNECT') return await policy.admit(nodeId, record, this.#withdrawn.signal)
    this.#heartbeat = new Heartbeat({
      clock: this.#options.clock,
      ping: (sequence) => this.#transport.send(encodeFrame('ping', { sequence })),
      dead: () => this.#cutOff('dead', 'the joining node has gone silent', closeCodes.DEAD),
    })
    this.#transport.send(encodeFrame('pending', { servers: this.#options.servers?.() }))
    const { remoteAddress } = this.#transport
    return await policy.join({ nodeId, key: new Uint8Array(nodeKey), record, remoteAddress }, this.#withdrawn.signal)
  }

  #conclude(nodeId: string, record: NodeRecord, admission: Admission): void {
    if (this.#step !== 'decision') return
    if (admission.admitted) {
      const messages = this.#sendVerdict({ welcome: { servers: this.#options.servers?.() } })
      this.#establish(nodeId, record, messages, admission)
      return
    }
    const { reason, message } = admission
    this.#sendVerdict({ refused: { reason, message: message.slice(0, 1024) } })
    this.#cutOff('refused', `${reason}: ${message}`, closeCodes.REFUSED, { reason })
  }

  #sendVerdict(verdict: VerdictBody): readonly Uint8Array[] {
    const body = encodeVerdictBody(verdict)
    const { privateKey } = this.#options.identity
    const frame = encodeFrame('verdict', {
      body,
      signature: signAs('verdict', privateKey, transcript(...this.#messages, body)),
    })
    this.#transport.send(frame)
    return [...this.#messages, frame]
  }

  #establish(nodeId: string, record: NodeRecord, messages: readonly Uint8Array[], admission: Admission): void {
    this.#step = 'over'
    this.#heartbeat?.stop()
    const { identity, clock, report, policy } = this.#options
    const whole = transcript(...messages)
    const isServerLink = this.#hello?.intent === 'SERVER'
    this.#messages = []
    this.#hello = undefined
    const session = new Session({
      side: 'hub',
      isServerLink,
      localId: identity.nodeId,
      peerId: nodeId,
      transport: this.#transport,
      clock,
      heartbeat: this.#heartbeat?.sequence ?? 0,
      signRemoval: () => signAs('removed', identity.privateKey, whole),
      verifyRemoval: () => false,
      report,
    })
    this.#session = session
    this.#progress.admitted?.(session)
    if (!isServerLink) policy.established(session, record, admission)
    else if (policy.serverEstablished === undefined) session.close('SHUTDOWN', 'this server has no links with others')
    else policy.serverEstablished(session)
  }
}
