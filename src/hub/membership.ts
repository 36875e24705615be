/** This node on its hub: joining, coming back after every loss of the link, leaving. */
import {
  type ActorRefFrom,
  type AnyActorRef,
  createActor,
  type EventObject,
  fromCallback,
  fromPromise,
  toPromise,
} from 'xstate'
import { hubConnection } from '../actors/hub-connection.ts'
import {
  type AskEvent,
  type Asked,
  type Attempt,
  type HubConnectionEvent,
  type HubLink,
  type HubNews,
  type JoinOutcome,
  NotAMember,
} from '../actors/hub-connection-parts.ts'
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { ConnectionState } from '../contract/types.ts'
import { type Dialled, LinkRefused, type LinkSession, LinkUnreachable, type NodeRecord } from '../link/link.ts'
import type { SignIn, SignInRecord } from '../store/sign-in.ts'
import { askHub } from './asking.ts'
import type { DialRequest } from './dial-request.ts'
import type { MembershipFact } from './facts.ts'
import { goingDown, requireJoined, signedInAlready } from './join-outcome.ts'
import { pinOf, StoredSignIn } from './stored-sign-in.ts'

export interface MembershipOptions {
  signIn: Pick<SignIn, 'get' | 'put' | 'remove'>
  /** Rejects with LinkRefused or LinkUnreachable. */
  dial(request: DialRequest): Promise<Dialled>
  /** What this node says about itself now. */
  record(): NodeRecord
  /** Sets who serves what the hub opens on a new session. */
  serve(session: LinkSession): void
  /** Hears of sign-in and sign-out, and of every link: up, down, not to be had. */
  onFact(fact: MembershipFact): void
  /** Drives its deadlines; absent: the system's timers. */
  clock?: Clock
  /** Uniform in [0, 1). */
  random?: () => number
}

/** What an actor and its children share. */
type System = AnyActorRef['system']

export class Membership {
  /** By the systems of their actors: one machine does for all. */
  static readonly #all = new WeakMap<System, Membership>()
  static readonly #machine = hubConnection.provide({
    actors: {
      ask: fromCallback<EventObject, Asked, AskEvent>(({ input, sendBack, system }) =>
        Membership.#of(system).#ask(input, sendBack),
      ),
      signIn: fromPromise<void, SignInRecord>(({ input, system }) => Membership.#of(system).#stored.put(input)),
      signOut: fromPromise<void>(({ system }) => Membership.#of(system).#stored.signOut()),
      dial: fromPromise<HubLink, Attempt>(({ input, signal, system }) =>
        Membership.#of(system).#connect(input, signal),
      ),
      hear: fromCallback<EventObject, HubLink, HubNews>(({ input, sendBack }) => sessionOf(input).onNews(sendBack)),
    },
    actions: {
      forget: ({ system }) => Membership.#of(system).#stored.forget(),
      keepServers: ({ system }, record) => Membership.#of(system).#stored.keepServers(record),
      confirm: ({ system }, accepted) => {
        const { onFact, record } = Membership.#of(system).#options
        onFact({ kind: 'signed in', hub: accepted.signIn.hubAddress })
        sessionOf(accepted.link).sendRecord(record())
      },
    },
  })
  readonly #options: MembershipOptions
  readonly #actor: ActorRefFrom<typeof hubConnection>
  readonly #listeners: ((state: ConnectionState) => void)[] = []
  #state: ConnectionState
  readonly #stored: StoredSignIn
  /** Requests to join so far. */
  #requests = 0
  #isStarted = false

  /** Signed in when the disk says so; connects once `start` is called. */
  constructor(options: MembershipOptions) {
    this.#options = options
    this.#stored = new StoredSignIn(options)
    const { signIn, random = Math.random, clock } = options
    this.#actor = createActor(Membership.#machine, {
      input: { signIn: signIn.get() ?? null, random },
      ...(clock === undefined ? {} : { clock }),
    })
    Membership.#all.set(this.#actor.system, this)
    this.#state = stateOf(this.#actor.getSnapshot())
    this.#actor.subscribe((snapshot) => {
      const state = stateOf(snapshot)
      if (state === this.#state) return
      this.#state = state
      for (const listener of this.#listeners) listener(state)
    })
  }

  static #of(system: System): Membership {
    return Membership.#all.get(system) as Membership
  }

  start(): void {
    this.#isStarted = true
    this.#actor.start()
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** The live link to the hub, if there is one. */
  get session(): LinkSession | undefined {
    const { link } = this.#actor.getSnapshot().context
    return link === null ? undefined : sessionOf(link)
  }

  onChange(listener: (state: ConnectionState) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Asks the hub at `address` to let this node in and waits for the operator's answer; `caller` aborting withdraws the request, until the
   * sign-in is being written. Throws ALREADY_EXISTS, CANCELLED, UNAVAILABLE, or what the hub's refusal means.
   */
  async join(address: URL, caller: AbortSignal): Promise<void> {
    this.requireNone()
    const request = ++this.#requests
    const withdraw = () => this.#tell({ type: 'WITHDRAW', request })
    const outcome = new Promise<JoinOutcome>((resolve) => {
      const listening = this.#actor.on('joinEnded', (end) => {
        if (end.request !== request) return
        listening.unsubscribe()
        resolve(end.outcome)
      })
      if (!this.#tell({ type: 'JOIN', request, address })) resolve({ kind: 'closed' })
    })
    caller.addEventListener('abort', withdraw)
    if (caller.aborted) withdraw()
    try {
      requireJoined(await outcome, address)
    } finally {
      caller.removeEventListener('abort', withdraw)
    }
  }

  /** Leaves the hub, whether or not it can be told; nothing to do on none. Resolves once the sign-in is off the disk. */
  async leave(): Promise<void> {
    const { link, error } = await new Promise<{ link: HubLink | null; error?: unknown }>((resolve) => {
      const listening = this.#actor.on('leaveEnded', (end) => {
        listening.unsubscribe()
        resolve(end)
      })
      if (!this.#tell({ type: 'DISCONNECT' })) resolve({ link: null, error: goingDown() })
    })
    if (error !== undefined) throw error
    await link?.closed
  }

  /** Tells the hub what this node's details have become, each change by itself; a hub that is away hears of the last with the next link. */
  recordChanged(record: NodeRecord): void {
    this.session?.sendRecord(record)
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

  /** Takes the link down, and withdraws what asks to join; the sign-in stays. Resolves once nothing of it is being written any more. */
  async close(): Promise<void> {
    if (!this.#isStarted) {
      this.#actor.stop()
      return
    }
    this.#tell({ type: 'CLOSE' })
    await toPromise(this.#actor)
  }

  /** Throws ALREADY_EXISTS when the node is signed in to a hub. */
  requireNone(): void {
    const { signIn } = this.#actor.getSnapshot().context
    if (signIn !== null) throw signedInAlready(signIn.hubAddress)
  }

  /** False when the node has gone down. */
  #tell(event: HubConnectionEvent): boolean {
    if (this.#actor.getSnapshot().status !== 'active') return false
    this.#actor.send(event)
    return true
  }

  #ask({ request, address }: Asked, tell: (event: AskEvent) => void): () => void {
    const withdrawal = new AbortController()
    const { dial, record, clock, random = Math.random } = this.#options
    askHub(address, { dial, record, clock, random }, withdrawal.signal)
      .then(({ session, hubId, hubKey, certificate, address: at }) => {
        if (withdrawal.signal.aborted) {
          session.close('SHUTDOWN', 'the node does not join after all')
          return
        }
        this.#serve(session, at)
        const pin = certificate?.trust === 'FIRST_USE' ? pinOf(certificate) : {}
        tell({
          type: 'ACCEPTED',
          request,
          signIn: { hubAddress: at, hubId, hubKey, ...pin },
          link: session,
        })
      })
      .catch((error: unknown) => {
        if (!withdrawal.signal.aborted) tell({ type: 'REFUSED', request, error })
      })
    return () => withdrawal.abort()
  }

  async #connect({ signIn, address }: Attempt, signal: AbortSignal): Promise<LinkSession> {
    const { dial, onFact } = this.#options
    const record = this.#options.record()
    // On disk is what was pinned last: the actor knows the sign-in as it began.
    const { hubKey, certificate, certificateKey } = this.#options.signIn.get() ?? signIn
    try {
      const { session, certificate: shown } = await dial({
        address: new URL(address),
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
      this.#serve(session, address)
      if (shown?.trust === 'PINNED') this.#stored.repin(signIn, shown)
      if (this.#options.record() !== record) session.sendRecord(this.#options.record())
      return session
    } catch (error) {
      if (signal.aborted) throw error
      onFact({ kind: 'link failed', hub: address, error })
      const isOut =
        error instanceof LinkRefused && error.signed && (error.reason === 'NOT_A_MEMBER' || error.reason === 'REMOVED')
      throw isOut ? new NotAMember(error.message) : error
    }
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
}

/** Whoever asks another hub, or the same anew, is what it was until the sign-in is on disk. */
function stateOf({ context: { signIn, link } }: { context: { signIn: unknown; link: unknown } }): ConnectionState {
  if (signIn === null) return 'UNAUTHENTICATED'
  return link === null ? 'DISCONNECTED' : 'CONNECTED'
}

/** The links of the machine are sessions: `#ask` and `#connect` give it no others. */
function sessionOf(link: HubLink): LinkSession {
  return link as LinkSession
}
