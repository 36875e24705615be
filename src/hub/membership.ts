/** This node on its hub: joining, coming back after every loss of the link, leaving. */
import { type ActorRefFrom, createActor, fromPromise } from 'xstate'
import { type HubLink, hubConnection, NotAMember } from '../actors/hub-connection.ts'
import type { ActorClock } from '../actors/pipeline.ts'
import { type Code, ServiceError } from '../contract/errors.ts'
import { SerialQueue } from '../contract/serial-queue.ts'
import type { ConnectionState } from '../contract/types.ts'
import {
  type Dialled,
  type Intent,
  LinkRefused,
  type LinkSession,
  LinkUnreachable,
  type NodeRecord as NodeFacts,
  type SeenCertificate,
} from '../link/link.ts'
import type { SignIn, SignInRecord } from '../store/sign-in.ts'
import type { MembershipFact } from './facts.ts'

/** One attempt to open a link. */
export interface DialRequest {
  readonly address: URL
  readonly intent: Intent
  readonly record: NodeFacts
  /** CONNECT: the hub must prove this key, 32 bytes. */
  readonly hubKey?: Uint8Array
  /** SHA-256 of the one certificate accepted, lowercase hex. */
  readonly certificate?: string
  /** SHA-256 of the public key that another certificate may have, lowercase hex. */
  readonly certificateKey?: string
  readonly signal: AbortSignal
}

export interface MembershipOptions {
  signIn: SignIn
  /** Rejects with LinkRefused or LinkUnreachable. */
  dial(request: DialRequest): Promise<Dialled>
  /** What this node says about itself now. */
  record(): NodeFacts
  /** Sets who serves what the hub opens on a new session. */
  serve(session: LinkSession): void
  /** Hears of sign-in and sign-out, and of every link: up, down, not to be had. */
  onFact(fact: MembershipFact): void
  clock?: ActorClock
  /** Uniform in [0, 1). */
  random?: () => number
}

export class Membership {
  readonly #options: MembershipOptions
  readonly #actor: ActorRefFrom<typeof hubConnection>
  readonly #listeners: ((state: ConnectionState) => void)[] = []
  #state: ConnectionState
  /** Changes of the sign-in wait for one another. */
  /** Changes of the sign-in. */
  readonly #changes = new SerialQueue()
  #closed = false

  /** Signed in when the disk says so; connects once `start` is called. */
  constructor(options: MembershipOptions) {
    this.#options = options
    const machine = hubConnection.provide({
      actors: { dial: fromPromise<HubLink, SignInRecord>(({ input, signal }) => this.#connect(input, signal)) },
      actions: { forget: () => this.#forget() },
    })
    const { signIn, random = Math.random, clock } = options
    this.#actor = createActor(machine, {
      input: { signIn: signIn.get() ?? null, random },
      ...(clock === undefined ? {} : { clock }),
    })
    this.#state = stateOf(this.#actor.getSnapshot())
    this.#actor.subscribe((snapshot) => {
      const state = stateOf(snapshot)
      if (state === this.#state) return
      this.#state = state
      for (const listener of this.#listeners) listener(state)
    })
  }

  start(): void {
    this.#actor.start()
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** The live link to the hub, if there is one. */
  get session(): LinkSession | undefined {
    return (this.#actor.getSnapshot().context.link as LinkSession | null) ?? undefined
  }

  onChange(listener: (state: ConnectionState) => void): void {
    this.#listeners.push(listener)
  }

  /** Asks the hub at `address` to let this node in and waits for the operator's answer; `caller` aborting withdraws the request. */
  async join(address: URL, caller: AbortSignal): Promise<void> {
    this.requireNone()
    const record = this.#options.record()
    let dialled: Dialled
    try {
      dialled = await this.#options.dial({ address, intent: 'JOIN', record, signal: caller })
    } catch (error) {
      throw joinFailure(error, address, caller)
    }
    const { session, certificate } = dialled
    this.#serve(session, address.href)
    await this.#changes.run(async () => {
      try {
        if (this.#closed) throw new ServiceError('UNAVAILABLE', 'the node is shutting down')
        if (caller.aborted) throw new ServiceError('CANCELLED', 'the caller went away')
        this.requireNone(dialled.hubId)
        const signIn: SignInRecord = {
          hubAddress: address.href,
          hubId: dialled.hubId,
          hubKey: dialled.hubKey,
          ...(certificate === undefined || certificate.trust === 'CA' ? {} : pinOf(certificate)),
        }
        await this.#options.signIn.put(signIn)
        this.#actor.send({ type: 'JOINED', signIn, link: session })
        this.#options.onFact({ kind: 'signed in', hub: address.href })
        session.sendRecord(this.#options.record())
      } catch (error) {
        session.close('LEFT', 'the node does not join after all')
        throw error
      }
    })
  }

  /** Leaves the hub, whether or not it can be told; nothing to do on none. Resolves once the sign-in is off the disk. */
  async leave(): Promise<void> {
    const session = await this.#changes.run(async () => {
      const hub = this.#options.signIn.get()?.hubAddress
      await this.#options.signIn.remove()
      const left = this.session
      this.#actor.send({ type: 'DISCONNECT' })
      if (hub !== undefined) this.#options.onFact({ kind: 'signed out', hub })
      return left
    })
    await session?.closed
  }

  /** Tells the hub that this node's details have changed; a hub that is away hears of it with the next link. */
  recordChanged(): void {
    this.session?.sendRecord(this.#options.record())
  }

  /**
   * The link over which the hub is asked; throws FAILED_PRECONDITION when the node is on no hub, UNAVAILABLE when the hub is away.
   * `purpose` says what for: "to reach node x".
   */
  require(purpose: string): LinkSession {
    if (this.#state === 'UNAUTHENTICATED') {
      throw new ServiceError('FAILED_PRECONDITION', `this node is on no hub, which it takes ${purpose}: join one first`)
    }
    const { session } = this
    if (session === undefined) {
      throw new ServiceError('UNAVAILABLE', `the hub of this node, which it takes ${purpose}, is not connected now`)
    }
    return session
  }

  /** Takes the link down; the sign-in stays. */
  close(): void {
    this.#closed = true
    const { session } = this
    this.#actor.stop()
    session?.close('SHUTDOWN', 'the node is shutting down')
  }

  /** Throws ALREADY_EXISTS when the node is signed in to a hub, other than the one with the id `accepted`. */
  requireNone(accepted?: string): void {
    const { signIn } = this.#actor.getSnapshot().context
    if (signIn === null || signIn.hubId === accepted) return
    throw new ServiceError(
      'ALREADY_EXISTS',
      `this node is on the hub at ${signIn.hubAddress} already: disconnect it there first`,
    )
  }

  async #connect(signIn: SignInRecord, signal: AbortSignal): Promise<LinkSession> {
    const { dial, onFact } = this.#options
    const record = this.#options.record()
    // On disk is what was pinned last: the actor knows the sign-in as it began.
    const { hubAddress, hubKey, certificate, certificateKey } = this.#options.signIn.get() ?? signIn
    try {
      const address = new URL(hubAddress)
      const { session, certificate: shown } = await dial({
        address,
        intent: 'CONNECT',
        record,
        hubKey,
        signal,
        ...(certificate === undefined ? {} : { certificate }),
        ...(certificateKey === undefined ? {} : { certificateKey }),
      })
      if (signal.aborted) {
        session.close('SHUTDOWN', 'the node does not need the link any more')
        throw new LinkUnreachable('not needed any more')
      }
      this.#serve(session, hubAddress)
      if (shown?.trust === 'PINNED') this.#repin(signIn, shown)
      if (this.#options.record() !== record) session.sendRecord(this.#options.record())
      return session
    } catch (error) {
      if (signal.aborted) throw error
      onFact({ kind: 'link failed', hub: hubAddress, error })
      const isOut =
        error instanceof LinkRefused && error.signed && (error.reason === 'NOT_A_MEMBER' || error.reason === 'REMOVED')
      throw isOut ? new NotAMember(error.message) : error
    }
  }

  /** The hub has proven itself: what it shows now is pinned from here on. */
  #repin({ hubId, hubAddress: hub }: SignInRecord, shown: SeenCertificate): void {
    const { signIn, onFact } = this.#options
    this.#changes
      .run(async () => {
        const record = signIn.get()
        if (record?.hubId !== hubId) return
        if (record.certificate === shown.fingerprint && record.certificateKey === shown.key) return
        if (record.certificate !== shown.fingerprint) {
          onFact({ kind: 'certificate renewed', hub, fingerprint: shown.fingerprint })
        }
        await signIn.put({ ...record, ...pinOf(shown) })
      })
      .catch((error: unknown) => onFact({ kind: 'certificate not pinned', hub, error }))
  }

  #serve(session: LinkSession, hub: string): void {
    const { serve, onFact } = this.#options
    serve(session)
    onFact({ kind: 'link up', hub })
    session.closed.then((end) => {
      onFact({ kind: 'link down', hub, end })
      if (end.reason === 'REPLACED' && end.byPeer) onFact({ kind: 'replaced', hub })
    })
  }

  #forget(): void {
    const { onFact, signIn } = this.#options
    const hub = signIn.get()?.hubAddress ?? ''
    onFact({ kind: 'removed', hub })
    signIn.remove().catch((error: unknown) => onFact({ kind: 'sign-in not deleted', hub, error }))
  }
}

function pinOf({ fingerprint, key }: SeenCertificate) {
  return { certificate: fingerprint, certificateKey: key }
}

function stateOf({ value, context }: { value: unknown; context: { signIn: unknown } }): ConnectionState {
  if (value === 'connected') return 'CONNECTED'
  return context.signIn === null ? 'UNAUTHENTICATED' : 'DISCONNECTED'
}

const REFUSALS: Partial<Record<LinkRefused['reason'], Code>> = {
  REJECTED: 'UNAUTHENTICATED',
  TIMED_OUT: 'DEADLINE_EXCEEDED',
  TOO_MANY: 'RESOURCE_EXHAUSTED',
  NO_AUTHENTICATION_BY_REQUEST: 'NOT_FOUND',
  NOT_A_HUB: 'NOT_FOUND',
  WITHDRAWN: 'CANCELLED',
}

function joinFailure(error: unknown, { href }: URL, caller: AbortSignal): unknown {
  if (caller.aborted) return new ServiceError('CANCELLED', 'the caller went away; the request is withdrawn')
  if (error instanceof LinkRefused) {
    return new ServiceError(REFUSALS[error.reason] ?? 'UNAVAILABLE', `the hub at ${href}: ${error.message}`)
  }
  if (error instanceof LinkUnreachable) {
    return new ServiceError('UNAVAILABLE', `the hub at ${href} cannot be reached: ${error.message}`)
  }
  return error
}
