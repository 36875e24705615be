/** A node's request to join the hub, from the moment it is raised until the node has said that it holds its sign-in, or will not join. */
import { assign, emit, fromPromise, setup, stateIn } from 'xstate'

/** An accepted node's place on the hub's list. */
export interface Place {
  /** The node was not on the list before, or only by a request that nobody has confirmed: whoever gives the place up takes it off. */
  readonly isNew: boolean
}

/** How a request ended. */
export type AuthOutcome =
  | 'rejected'
  | 'timedOut'
  /** Before it was answered, or before the acceptance was on disk. */
  | 'withdrawn'
  /** Accepted, but the node could not be put on the list. */
  | 'failed'
  /** The node has said that it holds its sign-in. */
  | 'confirmed'
  /** Its link ended before it said so, and not by its own word: it may hold its sign-in and stays on the list. */
  | 'unconfirmed'
  /** It went away after the acceptance was on disk, and does not join after all. */
  | 'gone'

export interface AuthRequestOutput {
  readonly outcome: AuthOutcome
  /** Why the node could not be put on the list, or taken off it again. */
  readonly error?: unknown
}

export interface AuthRequestInput {
  requestId: bigint
  /** Milliseconds until a request without an answer times out. */
  timeout: number
}

export interface AuthRequestContext extends AuthRequestInput {
  /** Once it is on disk. */
  place: Place | null
  /** The place is the node's whatever becomes of this request: another one of it holds the place now, or was confirmed. */
  isHeldByAnother: boolean
  outcome: AuthOutcome
  error: unknown
}

export type AuthRequestEvent =
  /** The operator's answer. */
  | { type: 'ANSWER'; accept: boolean }
  /** The caller at the joining node has gone, or the connection to it, before its session stood. */
  | { type: 'WITHDRAW' }
  /** The node's session stands: the hub's word has left. */
  | { type: 'SESSION' }
  /** The node has said that it holds its sign-in. */
  | { type: 'CONFIRMED' }
  /** The session has ended; `isHangUp`: by the node's own word, not by a failure and not by the hub. */
  | { type: 'LINK_CLOSED'; isHangUp: boolean }
  /** Another request of the same node holds its place now, or was confirmed. */
  | { type: 'HELD_BY_ANOTHER' }

/** Told once an accepted node is on disk and may hear of it. */
export type AuthRequestEmitted = { type: 'admitted' }

const ends = (outcome: AuthOutcome) => ({
  type: 'final' as const,
  entry: { type: 'noteOutcome' as const, params: { outcome } },
})

/** The first of answer, timeout and withdrawal decides; what it brought to disk is taken back when the node goes before it has its sign-in. */
export const authRequest = setup({
  types: {
    context: {} as AuthRequestContext,
    input: {} as AuthRequestInput,
    events: {} as AuthRequestEvent,
    emitted: {} as AuthRequestEmitted,
    output: {} as AuthRequestOutput,
  },
  actors: {
    /** Puts the node on the list; resolves once that is on disk. */
    admit: fromPromise<Place, { requestId: bigint }>(() => {
      throw new Error('the machine needs an admit actor')
    }),
    /** Takes the node off the list again, unless it was let in anew since. */
    expel: fromPromise<unknown, Place>(() => {
      throw new Error('the machine needs an expel actor')
    }),
  },
  delays: { timeout: ({ context }) => context.timeout },
  guards: {
    isAccept: ({ event }) => event.type === 'ANSWER' && event.accept,
    isHangUp: ({ event }) => event.type === 'LINK_CLOSED' && event.isHangUp,
    holdsNewPlace: ({ context }) => holdsNewPlace(context),
  },
  actions: {
    takePlace: assign((_, place: Place) => ({ place })),
    leavePlace: assign({ isHeldByAnother: true }),
    noteError: assign((_, { error }: { error: unknown }) => ({ error })),
    noteOutcome: assign((_, { outcome }: { outcome: AuthOutcome }) => ({ outcome })),
    tellAdmitted: emit({ type: 'admitted' }),
  },
}).createMachine({
  id: 'auth-request',
  context: ({ input }) => ({
    ...input,
    place: null,
    isHeldByAnother: false,
    outcome: 'withdrawn',
    error: undefined,
  }),
  output: ({ context: { outcome, error } }) => (error === undefined ? { outcome } : { outcome, error }),
  initial: 'pending',
  states: {
    pending: {
      on: {
        ANSWER: [{ guard: 'isAccept', target: 'accepted' }, { target: 'rejected' }],
        WITHDRAW: 'withdrawn',
      },
      after: { timeout: 'timedOut' },
    },
    // What has begun to be written cannot be called back: a withdrawal waits for it.
    accepted: {
      on: { HELD_BY_ANOTHER: { actions: 'leavePlace' } },
      invoke: {
        src: 'admit',
        input: ({ context }) => ({ requestId: context.requestId }),
        onDone: [
          {
            guard: stateIn({ accepted: 'unwanted' }),
            target: 'givingUp',
            actions: { type: 'takePlace', params: ({ event }) => event.output },
          },
          { target: 'admitted', actions: { type: 'takePlace', params: ({ event }) => event.output } },
        ],
        onError: { target: 'failed', actions: { type: 'noteError', params: ({ event }) => event } },
      },
      initial: 'wanted',
      states: {
        wanted: { on: { WITHDRAW: 'unwanted' } },
        unwanted: {},
      },
    },
    admitted: {
      on: { HELD_BY_ANOTHER: { actions: 'leavePlace' } },
      entry: 'tellAdmitted',
      initial: 'waiting',
      states: {
        waiting: {
          on: {
            WITHDRAW: '#auth-request.givingUp',
            SESSION: 'inSession',
          },
        },
        inSession: {
          on: {
            CONFIRMED: '#auth-request.confirmed',
            LINK_CLOSED: [
              { guard: 'isHangUp', target: '#auth-request.givingUp' },
              { target: '#auth-request.unconfirmed' },
            ],
          },
        },
      },
    },
    givingUp: {
      always: [{ guard: 'holdsNewPlace', target: 'expelling' }, { target: 'gone' }],
    },
    expelling: {
      invoke: {
        src: 'expel',
        input: ({ context }) => context.place as Place,
        onDone: 'gone',
        onError: { target: 'gone', actions: { type: 'noteError', params: ({ event }) => event } },
      },
    },
    rejected: ends('rejected'),
    timedOut: ends('timedOut'),
    withdrawn: ends('withdrawn'),
    failed: ends('failed'),
    confirmed: ends('confirmed'),
    unconfirmed: ends('unconfirmed'),
    gone: ends('gone'),
  },
})

/** Whether the node is on the list by this request alone. */
export function holdsNewPlace({ place, isHeldByAnother }: AuthRequestContext): boolean {
  return place?.isNew === true && !isHeldByAnother
}
