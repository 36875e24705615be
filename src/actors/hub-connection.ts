/** A node's standing with its hub: on none, asking to join one, or signed in with the link up, or down and on its way back; and leaving it. */
import { assign, type EventObject, emit, enqueueActions, fromCallback, fromPromise, setup } from 'xstate'
import type { SignInRecord } from '../store/sign-in.ts'

export const MIN_BACK_OFF_MS = 500
export const MAX_BACK_OFF_MS = 30_000
/** Longest wait of the first attempts in a row: the nodes of a hub that was started again are back within it, and are spread over it. */
const MAX_EARLY_BACK_OFF_MS = 2_000
/** How many attempts these are: about the first quarter of a minute. */
const EARLY_ATTEMPTS = 13
/** A link that stood this long ends the row of attempts. */
export const HEALTHY_MS = 10_000

/** What the machine needs of a link session. */
export interface HubLink {
  close(reason: 'LEFT' | 'REPLACED' | 'SHUTDOWN', message: string): void
  /** Never rejects. */
  readonly closed: Promise<{ readonly reason: string; readonly byPeer: boolean }>
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
  /** Attempts to connect in a row. */
  attempts: number
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

/**
 * Milliseconds before the attempt after `attempts` failed ones: any between 0.5 s and 1 s, then 2 s twelve times, 4 s, 8 s, 16 s, 30 s from then on,
 * so that nodes do not come all at once.
 */
export function reconnectDelay(attempts: number, random: number): number {
  const early = Math.min(MAX_EARLY_BACK_OFF_MS, 2 * MIN_BACK_OFF_MS * 2 ** Math.min(attempts, 16))
  const late = Math.min(MAX_BACK_OFF_MS, MAX_EARLY_BACK_OFF_MS * 2 ** Math.min(attempts - EARLY_ATTEMPTS + 1, 16))
  const most = attempts < EARLY_ATTEMPTS ? early : late
  return MIN_BACK_OFF_MS + random * (most - MIN_BACK_OFF_MS)
}

const asker = (request: number) => `ask.${request}`
const first = ({ accepted }: HubConnectionContext) => accepted[0] as Accepted
const ended = (request: number, outcome: JoinOutcome) => ({ type: 'joinEnded' as const, request, outcome })
const notJoining = 'the node does not join after all'

const base = setup({
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
    dial: fromPromise<HubLink, SignInRecord>(() => {
      throw new Error('the machine needs a dial actor')
    }),
    closing: fromPromise<{ reason: string; byPeer: boolean }, HubLink>(({ input }) => input.closed),
  },
  delays: {
    backOff: ({ context }) => reconnectDelay(context.attempts, context.random()),
    healthy: HEALTHY_MS,
  },
  guards: {
    isSignedIn: ({ context }) => context.signIn !== null,
    isConnected: ({ context }) => context.signIn !== null && context.link !== null,
    isAsking: ({ context }) => context.asking.length > 0,
    isNotAsking: ({ context }) => context.asking.length === 0,
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
    takeSignIn: assign(({ context }) => ({ signIn: first(context).signIn, link: first(context).link })),
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
    takeLink: assign((_, link: HubLink) => ({ link })),
    dropLink: assign({ link: null }),
    dropSignIn: assign({ signIn: null }),
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    resetAttempts: assign({ attempts: 0 }),
    leave: ({ context }) => context.link?.close('LEFT', 'the node leaves the hub'),
    /** Takes the sign-in off the disk: the hub does not know this node any more. */
    forget: () => {},
  },
})

export const hubConnection = base
  .extend({
    actions: {
      ask: enqueueActions(({ enqueue, context, event }) => {
        if (event.type !== 'JOIN') return
        const { request, address } = event
        enqueue.assign({ asking: [...context.asking, request] })
        enqueue.spawnChild('ask', { id: asker(request), input: { request, address } })
      }),
      /** The `ask` actor of the event's request is done, or not wanted any more. */
      askNoMore: enqueueActions(({ enqueue, context, event }) => {
        if (!('request' in event)) return
        enqueue.assign({ asking: context.asking.filter((request) => request !== event.request) })
        enqueue.stopChild(asker(event.request))
      }),
      hangUpInLine: enqueueActions(({ enqueue, context, event }) => {
        if (event.type !== 'WITHDRAW') return
        const { request } = event
        context.accepted.find((each) => each.request === request)?.link.close('SHUTDOWN', notJoining)
        enqueue.assign({ accepted: context.accepted.filter((each) => each.request !== request) })
      }),
      /** Ends whatever there is; the sign-in stays. */
      closeAll: enqueueActions(({ enqueue, context }) => {
        for (const request of context.asking) {
          enqueue.stopChild(asker(request))
          enqueue.emit(ended(request, { kind: 'closed' }))
        }
        for (const { request, link } of context.accepted) {
          link.close('SHUTDOWN', notJoining)
          enqueue.emit(ended(request, { kind: 'closed' }))
        }
        context.link?.close('SHUTDOWN', 'the node is shutting down')
        enqueue.assign({ asking: [], accepted: [] })
      }),
    },
  })
  .createMachine({
    id: 'hub-connection',
    context: ({ input }) => ({
      ...input,
      link: null,
      attempts: 0,
      asking: [],
      accepted: [],
      isLeaving: false,
      isClosing: false,
    }),
    on: {
      // Allowed while another asks, and while the first sign-in is being written; refused from then on.
      JOIN: [
        { guard: 'isSignedIn', actions: { type: 'tellSignedIn', params: ({ event }) => event } },
        { guard: 'isClosing', actions: { type: 'tellClosed', params: ({ event }) => event } },
        { actions: 'ask' },
      ],
      ACCEPTED: [
        {
          guard: 'isAskedElsewhere',
          actions: ['askNoMore', 'hangUp', { type: 'tellSignedIn', params: ({ event }) => event }],
        },
        { guard: 'isAskedStill', target: '.settling', actions: ['askNoMore', 'takeAccepted'] },
      ],
      REFUSED: {
        guard: 'isAskedStill',
        actions: ['askNoMore', { type: 'tellRefused', params: ({ event }) => event }],
      },
      // The sign-in that is being written is written, and its request joins.
      WITHDRAW: [
        {
          guard: 'isAskedStill',
          actions: ['askNoMore', { type: 'tellWithdrawn', params: ({ event }) => event }],
        },
        { guard: 'isInLine', actions: ['hangUpInLine', { type: 'tellWithdrawn', params: ({ event }) => event }] },
      ],
      DISCONNECT: { target: '.leaving', actions: 'noteLeaving' },
      CLOSE: { target: '.closed', actions: 'noteClosing' },
    },
    initial: 'settling',
    states: {
      /** Where to from here. */
      settling: {
        always: [
          {
            guard: 'isElsewhere',
            target: 'settling',
            reenter: true,
            actions: ['hangUpFirst', 'tellFirstElsewhere', 'dropFirst'],
          },
          { guard: 'hasAccepted', target: 'joining.signingIn' },
          { guard: 'isLeaving', target: 'leaving' },
          { guard: 'isClosing', target: 'closed' },
          { guard: 'isConnected', target: 'connected' },
          { guard: 'isSignedIn', target: 'disconnected' },
          { guard: 'isAsking', target: 'joining' },
          { target: 'unauthenticated' },
        ],
      },
      unauthenticated: {
        entry: ['dropSignIn', 'dropLink', 'resetAttempts'],
        // Requests made before the node was signed in outlive its leaving and its removal.
        always: { guard: 'isAsking', target: 'joining' },
        on: { JOIN: { target: 'joining', actions: 'ask' } },
      },
      joining: {
        initial: 'asking',
        states: {
          asking: { always: { guard: 'isNotAsking', target: '#hub-connection.unauthenticated' } },
          signingIn: {
            invoke: {
              src: 'signIn',
              input: ({ context }) => first(context).signIn,
              onDone: {
                target: '#hub-connection.settling',
                actions: [
                  'replaceLink',
                  'takeSignIn',
                  { type: 'confirm', params: ({ context }) => first(context) },
                  'tellJoined',
                  'dropFirst',
                ],
              },
              onError: {
                target: '#hub-connection.settling',
                actions: ['hangUpFirst', { type: 'tellFirstFailed', params: ({ event }) => event }, 'dropFirst'],
              },
            },
            on: {
              ACCEPTED: { guard: 'isAskedStill', actions: ['askNoMore', 'takeAccepted'] },
              // What is being written cannot be called back: both wait for it.
              DISCONNECT: { actions: 'noteLeaving' },
              CLOSE: { actions: 'noteClosing' },
            },
          },
        },
      },
      disconnected: {
        initial: 'connecting',
        states: {
          connecting: {
            invoke: {
              src: 'dial',
              input: ({ context }) => context.signIn as SignInRecord,
              onDone: {
                target: '#hub-connection.connected',
                actions: { type: 'takeLink', params: ({ event }) => event.output },
              },
              onError: [
                {
                  guard: { type: 'isNotAMember', params: ({ event }) => ({ error: event.error }) },
                  target: '#hub-connection.unauthenticated',
                  actions: 'forget',
                },
                { target: 'waiting', actions: 'countAttempt' },
              ],
            },
          },
          waiting: { after: { backOff: 'connecting' } },
        },
      },
      connected: {
        invoke: {
          src: 'closing',
          input: ({ context }) => context.link as HubLink,
          onDone: [
            {
              guard: { type: 'isRemoval', params: ({ event }) => event.output },
              target: 'unauthenticated',
              actions: 'forget',
            },
            {
              // Two nodes with one key push each other out: longer waits keep that from being a storm.
              guard: { type: 'isReplacement', params: ({ event }) => event.output },
              target: 'disconnected.waiting',
              actions: ['dropLink', 'countAttempt'],
            },
            { target: 'disconnected.waiting', actions: 'dropLink' },
          ],
        },
        after: { healthy: { actions: 'resetAttempts' } },
      },
      leaving: {
        invoke: {
          src: 'signOut',
          onDone: {
            target: 'settling',
            actions: ['leave', 'tellLeft', 'noteLeft', 'dropSignIn', 'dropLink', 'resetAttempts'],
          },
          onError: {
            target: 'settling',
            actions: [{ type: 'tellNotLeft', params: ({ event }) => event }, 'noteLeft'],
          },
        },
        on: {
          ACCEPTED: { guard: 'isAskedStill', actions: ['askNoMore', 'takeAccepted'] },
          DISCONNECT: { actions: 'noteLeaving' },
          CLOSE: { actions: 'noteClosing' },
        },
      },
      closed: { type: 'final', entry: 'closeAll' },
    },
  })
