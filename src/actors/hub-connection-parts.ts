/** What the machine of a node's standing with its hub is made of: its events, effects, guards and actions. */
import { assign, type EventObject, emit, fromCallback, fromPromise, setup } from 'xstate'
import type { SignInRecord } from '../store/sign-in.ts'
import { formerAfter, isSameList, orderAfter, othersOf, startingOrder } from './hub-addresses.ts'
import { changeOverDelay, HEALTHY_MS, MINUTE_ATTEMPTS, reconnectDelay } from './reconnect-delay.ts'

/** What the machine needs of a link session. */
export interface HubLink {
  close(reason: 'LEFT' | 'REPLACED' | 'SHUTDOWN', message: string): void
  /** Never rejects. */
  readonly closed: Promise<{ readonly reason: string; readonly byPeer: boolean }>
}

/** What the server at the other end tells of the hub's servers. */
export type HubNews =
  | { type: 'SERVERS'; servers: NonNullable<SignInRecord['servers']> }
  /** It cannot tell the other servers of its nodes now: another should have the link. */
  | { type: 'LOOK_ELSEWHERE' }
  /** It can again. */
  | { type: 'STAY' }

/** One attempt to open a link, as the `dial` actor gets it. */
export interface Attempt {
  readonly signIn: SignInRecord
  /** Of the server that is tried. */
  readonly address: string
}

/** Rejected with by the `dial` actor when the hub says, signed, that this node is not on its list. */
export class NotAMember extends Error {
  override readonly name = 'NotAMember'
}

interface HubConnectionInput {
  /** The sign-in found on disk. */
  signIn: SignInRecord | null
  /** Uniform in [0, 1). */
  random(): number
}

/** A request to join that the hub has accepted: what is signed in with, and the link over which the hub said so. */
export interface Accepted {
  readonly request: number
  readonly signIn: SignInRecord
  readonly link: HubLink
}

/** A request to join as the `ask` actor gets it. */
export interface Asked {
  readonly request: number
  readonly address: URL
}

export interface HubConnectionContext extends HubConnectionInput {
  link: HubLink | null
  /** Address of the server that the link is with, or was last. */
  address: string
  /** The server that the link is with has told where the hub's servers are. */
  isTold: boolean
  /** The servers in the order in which they are tried, over and over; with a link, those besides its own. */
  order: readonly string[]
  /** How many of them have been tried. */
  tried: number
  /** Attempts to connect in a row. */
  attempts: number
  /** The server wants the node to have its link elsewhere. */
  isSeeking: boolean
  /** Requests to join that wait for a hub's answer, each an `ask` actor. */
  asking: readonly number[]
  /** Those that were accepted, oldest first; the first is the one whose sign-in is being written. */
  accepted: readonly Accepted[]
  /** Somebody wants to leave, once the sign-in that is being written is on disk. */
  isLeaving: boolean
  /** The node goes down, once what is being written is on disk. */
  isClosing: boolean
}

/** What the `ask` actors tell. */
export type AskEvent =
  | ({ type: 'ACCEPTED' } & Accepted)
  /** The hub has refused, or cannot be reached. */
  | { type: 'REFUSED'; request: number; error: unknown }

export type HubConnectionEvent =
  /** Ask the hub at `address` to let this node in. `request`: the asker's number, never used before. */
  | ({ type: 'JOIN' } & Asked)
  /** Who asked has gone. */
  | { type: 'WITHDRAW'; request: number }
  /** Leave, whether or not the hub can be told. */
  | { type: 'DISCONNECT' }
  /** The node goes down: the link too, the sign-in stays. */
  | { type: 'CLOSE' }
  | AskEvent
  | HubNews

/** How a request to join ended. */
export type JoinOutcome =
  /** The sign-in is on disk. */
  | { readonly kind: 'joined' }
  /** The node is on another hub, at this address; or, when it asked, on any. */
  | { readonly kind: 'signed in already'; readonly hubAddress: string }
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'closed' }
  /** The hub refused or cannot be reached, or the sign-in could not be written. */
  | { readonly kind: 'failed'; readonly error: unknown }

/** Told once the machine's snapshot shows the change. */
type HubConnectionEmitted =
  | { type: 'joinEnded'; request: number; outcome: JoinOutcome }
  /** `link`: the one that is being closed; `error`: why the node is still signed in. */
  | { type: 'leaveEnded'; link: HubLink | null; error?: unknown }

/** The request that was accepted first. */
export const first = ({ accepted }: HubConnectionContext) => accepted[0] as Accepted
/** Told of a request that is over. */
export const ended = (request: number, outcome: JoinOutcome) => ({ type: 'joinEnded' as const, request, outcome })
/** Why a link that a hub has opened is not wanted. */
export const notJoining = 'the node does not join after all'
/** The address of the attempt that has just ended: each is counted when it begins. */
export const triedLast = ({ order, tried }: HubConnectionContext) => order[(tried - 1) % order.length] as string

export const hubConnectionParts = setup({
  types: {
    context: {} as HubConnectionContext,
    input: {} as HubConnectionInput,
    events: {} as HubConnectionEvent,
    emitted: {} as HubConnectionEmitted,
  },
  actors: {
    /** Asks a hub to let this node in, and tells its answer; stopped when nobody waits for that any more, it withdraws the request. */
    ask: fromCallback<EventObject, Asked, AskEvent>(() => {
      throw new Error('the machine needs an ask actor')
    }),
    /** Writes the sign-in; resolves once it is on disk. */
    signIn: fromPromise<void, SignInRecord>(() => {
      throw new Error('the machine needs a signIn actor')
    }),
    /** Takes the sign-in off the disk; resolves once that is done. */
    signOut: fromPromise<void>(() => {
      throw new Error('the machine needs a signOut actor')
    }),
    /** Opens a link; its signal aborts when the machine has no use for it any more. */
    dial: fromPromise<HubLink, Attempt>(() => {
      throw new Error('the machine needs a dial actor')
    }),
    /** Tells what the server at the other end of the link says of the hub's servers. */
    hear: fromCallback<EventObject, HubLink, HubNews>(() => {}),
    closing: fromPromise<{ reason: string; byPeer: boolean }, HubLink>(({ input }) => input.closed),
  },
  delays: {
    // With several servers the nodes of one that is lost come upon the others: they are spread over more time, which begins at once.
    backOff: ({ context: { attempts, order, random } }) => {
      if (order.length < 2) return reconnectDelay(attempts, random())
      return attempts === 0 ? changeOverDelay(random()) : reconnectDelay(attempts + 1, random())
    },
    // While a link stands there is no hurry: at most 4 s at first, longer from the next time on.
    seek: ({ context }) => reconnectDelay(context.tried + MINUTE_ATTEMPTS - 1, context.random()),
    healthy: HEALTHY_MS,
  },
  guards: {
    isSignedIn: ({ context }) => context.signIn !== null,
    isConnected: ({ context }) => context.signIn !== null && context.link !== null,
    isAsking: ({ context }) => context.asking.length > 0,
    isNotAsking: ({ context }) => context.asking.length === 0,
    isSeeking: ({ context }) => context.isSeeking,
    hasOthers: ({ context }) => context.order.length > 0,
    /**
     * A list that counts more than the one there is: the first over each link, since the hub lets nodes in where it knows all its servers, and one by a higher
     * number. A number says nothing over the end of all servers: if the clock of one was ahead, those of later lists are lower.
     */
    isNewer: ({ context: { signIn, isTold }, event }) => {
      if (event.type !== 'SERVERS' || signIn === null) return false
      const { servers } = event
      return isTold ? servers.issue > (signIn.servers?.issue ?? -1n) : !isSameList(servers, signIn.servers)
    },
    isLeaving: ({ context }) => context.isLeaving,
    isClosing: ({ context }) => context.isClosing,
    hasAccepted: ({ context }) => context.accepted.length > 0 && !context.isClosing,
    /** The request accepted first is another hub's than the node's. */
    isElsewhere: ({ context: { signIn, accepted } }) =>
      signIn !== null && accepted[0] !== undefined && accepted[0].signIn.hubId !== signIn.hubId,
    isAskedStill: ({ context, event }) => 'request' in event && context.asking.includes(event.request),
    /** As `isElsewhere`, of the request that was accepted just now. */
    isAskedElsewhere: ({ context: { signIn, asking }, event }) =>
      event.type === 'ACCEPTED' &&
      asking.includes(event.request) &&
      signIn !== null &&
      event.signIn.hubId !== signIn.hubId,
    /** It was accepted, and its turn to be written has not come. */
    isInLine: ({ context, event }) =>
      event.type === 'WITHDRAW' && context.accepted.slice(1).some(({ request }) => request === event.request),
    isRemoval: (_, closed: { reason: string; byPeer: boolean }) => closed.reason === 'REMOVED' && closed.byPeer,
    /** Another connection with this node's key took this one's place. */
    isReplacement: (_, closed: { reason: string; byPeer: boolean }) => closed.reason === 'REPLACED' && closed.byPeer,
    isNotAMember: (_, { error }: { error: unknown }) => error instanceof NotAMember,
  },
  actions: {
    takeAccepted: assign(({ context, event }) => {
      if (event.type !== 'ACCEPTED') return {}
      const { request, signIn, link } = event
      return { accepted: [...context.accepted, { request, signIn, link }] }
    }),
    dropFirst: assign({ accepted: ({ context }) => context.accepted.slice(1) }),
    /** The hub takes a node that hangs up without a word off its list, if it came there by this request. */
    hangUp: ({ event }) => {
      if (event.type === 'ACCEPTED') event.link.close('SHUTDOWN', notJoining)
    },
    hangUpFirst: ({ context }) => first(context).link.close('SHUTDOWN', notJoining),
    takeSignIn: assign(({ context }) => {
      const { signIn, link } = first(context)
      return { signIn, link, address: new URL(signIn.hubAddress).href, isTold: false }
    }),
    replaceLink: ({ context }) => {
      if (context.link !== first(context).link) context.link?.close('REPLACED', 'joined anew')
    },
    /** Tells the hub over the link accepted first that the sign-in is on disk. */
    confirm: (_, _accepted: Accepted) => {},
    tellJoined: emit(({ context }) => ended(first(context).request, { kind: 'joined' })),
    tellFirstFailed: emit(({ context }, { error }: { error: unknown }) =>
      ended(first(context).request, { kind: 'failed', error }),
    ),
    tellFirstElsewhere: emit(({ context }) =>
      ended(first(context).request, { kind: 'signed in already', hubAddress: context.signIn?.hubAddress ?? '' }),
    ),
    tellSignedIn: emit(({ context }, { request }: { request: number }) =>
      ended(request, { kind: 'signed in already', hubAddress: context.signIn?.hubAddress ?? '' }),
    ),
    tellRefused: emit((_, { request, error }: { request: number; error: unknown }) =>
      ended(request, { kind: 'failed', error }),
    ),
    tellWithdrawn: emit((_, { request }: { request: number }) => ended(request, { kind: 'withdrawn' })),
    tellClosed: emit((_, { request }: { request: number }) => ended(request, { kind: 'closed' })),
    tellLeft: emit(({ context }) => ({ type: 'leaveEnded' as const, link: context.link })),
    tellNotLeft: emit(({ context }, { error }: { error: unknown }) => ({
      type: 'leaveEnded' as const,
      link: context.link,
      error,
    })),
    noteLeaving: assign({ isLeaving: true }),
    noteLeft: assign({ isLeaving: false }),
    noteClosing: assign({ isClosing: true }),
    takeLink: assign(({ context }, link: HubLink) => {
      const { signIn } = context
      const address = triedLast(context)
      const isAway = signIn !== null && address !== new URL(signIn.lastAddress ?? signIn.hubAddress).href
      return { link, address, isTold: false, signIn: isAway ? { ...signIn, lastAddress: address } : signIn }
    }),
    /** The one that has admitted the node takes the place of the one that stands. */
    changeOver: ({ context }) => context.link?.close('REPLACED', 'another server of the hub has let this node in'),
    hangUpLink: ({ context }) => context.link?.close('SHUTDOWN', 'the hub does not know this node any more'),
    orderAtStart: assign(({ context: { signIn, random } }) => ({
      order: signIn === null ? [] : startingOrder(signIn, random),
      tried: 0,
    })),
    orderAfterLoss: assign(({ context: { signIn, address, random } }) => ({
      order: signIn === null ? [] : orderAfter(signIn, address, random),
      tried: 0,
    })),
    orderOthers: assign(({ context: { signIn, address, random } }) => ({
      order: signIn === null ? [] : othersOf(signIn, address, random),
      tried: 0,
    })),
    countTry: assign({ tried: ({ context }) => context.tried + 1 }),
    seek: assign({ isSeeking: true }),
    seekNoMore: assign({ isSeeking: false }),
    takeServers: assign(({ context: { signIn }, event }) => {
      if (event.type !== 'SERVERS' || signIn === null) return {}
      const { servers } = event
      return { isTold: true, signIn: { ...signIn, servers, former: formerAfter(signIn, servers) } }
    }),
    noteTold: assign({ isTold: true }),
    /** Brings what the sign-in says of the hub's servers, and of the last link, to the disk. */
    keepServers: (_, _signIn: SignInRecord) => {},
    dropLink: assign({ link: null, isSeeking: false }),
    dropSignIn: assign({ signIn: null }),
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    resetAttempts: assign({ attempts: 0 }),
    leave: ({ context }) => context.link?.close('LEFT', 'the node leaves the hub'),
    /** Takes the sign-in off the disk: the hub does not know this node any more. */
    forget: () => {},
  },
})
