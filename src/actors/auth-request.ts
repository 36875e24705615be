/** A node's request to join the hub, from the moment it is raised until the node has said that it holds its sign-in, or will not join. */
import { assign, emit, fromPromise, setup } from 'xstate'
import { mayPass } from '../contract/errors.ts'

/** An accepted node's place on the hub's list. */
export interface Place {
  /** The node was not on the list before, or only by a request that nobody has confirmed: whoever gives the place up takes it off. */
  readonly isNew: boolean
}

/** What may be decided of a request; the first verdict that is written counts. */
export type Verdict =
  | 'accepted'
  | 'rejected'
  | 'timedOut'
  /** Its node waits for it no more, or does so elsewhere. */
  | 'withdrawn'

/** The verdict that counts. */
export interface Decision<P extends Place = Place> {
  readonly verdict: Verdict
  /** Of an acceptance: the node is on the list. */
  readonly place: P | null
  /** Whether it is the verdict that was asked for, not that of somebody who was faster. */
  readonly isOwn: boolean
}

/** How a request ended. */
export type AuthOutcome =
  | 'rejected'
  | 'timedOut'
  /** Before it was answered, or before the acceptance was written. */
  | 'withdrawn'
  /** What was decided could not be written. */
  | 'failed'
  /** The node has said that it holds its sign-in. */
  | 'confirmed'
  /** Its link ended before it said so, and not by its own word: it may hold its sign-in and stays on the list. */
  | 'unconfirmed'
  /** It went away after the acceptance was written, and does not join after all. */
  | 'gone'
  /** Accepted, but this server could not let it in now: it takes its acceptance up at another. */
  | 'leftBehind'

export interface AuthRequestOutput {
  readonly outcome: AuthOutcome
  /** Why the decision could not be written, or the node not be taken off the list again. */
  readonly error?: unknown
}

export interface AuthRequestInput {
  requestId: bigint
  /** Milliseconds until a request without an answer times out. */
  timeout: number
  /** Monotonic, milliseconds. */
  now(): number
}

export interface AuthRequestContext extends Omit<AuthRequestInput, 'timeout'> {
  /** When it times out, by `now`. */
  deadline: number
  /** What is being written. */
  wanted: Verdict
  /** Its node has gone before its session stood. */
  isWithdrawn: boolean
  /** What was decided elsewhere, as this machine was told. */
  heard: Decision | null
  /** Once it is written. */
  place: Place | null
  /** The place is the node's whatever becomes of this request: another one of it holds the place now, or was confirmed. */
  isHeldByAnother: boolean
  outcome: AuthOutcome
  error: unknown
}

export type AuthRequestEvent =
  /** The operator's answer. */
  | { type: 'ANSWER'; accept: boolean }
  /** Another server of the hub has decided. */
  | { type: 'DECIDED'; decision: Decision }
  /** The caller at the joining node has gone, or the connection to it, before its session stood. */
  | { type: 'WITHDRAW' }
  /** It cannot be let in here now, though it was accepted. */
  | { type: 'LEAVE_BEHIND' }
  /** The node's session stands: the hub's word has left. */
  | { type: 'SESSION' }
  /** The node has said that it holds its sign-in. */
  | { type: 'CONFIRMED' }
  /** The session has ended; `isHangUp`: by the node's own word, not by a failure and not by the hub. */
  | { type: 'LINK_CLOSED'; isHangUp: boolean }
  /** Another request of the same node holds its place now, or was confirmed. */
  | { type: 'HELD_BY_ANOTHER' }

/** Told once an accepted node is on the list for good and may hear of it. */
export type AuthRequestEmitted = { type: 'admitted' }

const ends = (outcome: AuthOutcome) => ({
  type: 'final' as const,
  entry: { type: 'noteOutcome' as const, params: { outcome } },
})

const VERDICTS = ['rejected', 'timedOut', 'withdrawn'] as const

/**
 * The first of answer, timeout and withdrawal that is written decides, here or at another server of the hub; a place that was given is taken back when the
 * node goes before it has its sign-in.
 */
export const authRequest = setup({
  types: {
    context: {} as AuthRequestContext,
    input: {} as AuthRequestInput,
    events: {} as AuthRequestEvent,
    emitted: {} as AuthRequestEmitted,
    output: {} as AuthRequestOutput,
  },
  actors: {
    /** Writes a verdict, an accepted node being put on the list with it; resolves to the one that counts once that cannot be lost. */
    decide: fromPromise<Decision, { requestId: bigint; verdict: Verdict }>(() => {
      throw new Error('the machine needs a decide actor')
    }),
    /** Takes the node off the list again, unless it was let in anew since. */
    expel: fromPromise<unknown, Place>(() => {
      throw new Error('the machine needs an expel actor')
    }),
  },
  delays: { left: ({ context: { deadline, now } }) => Math.max(0, deadline - now()) },
  guards: {
    isAccept: ({ event }) => event.type === 'ANSWER' && event.accept,
    isWithdrawn: ({ context }) => context.isWithdrawn,
    isHangUp: ({ event }) => event.type === 'LINK_CLOSED' && event.isHangUp,
    holdsNewPlace: ({ context }) => holdsNewPlace(context),
    is: (_, { decision, verdict }: { decision: Decision | null; verdict: Verdict }) => decision?.verdict === verdict,
    /** An answer that could not be written, or of which that is not known, with its node still waiting. */
    mayWaitOn: ({ context: { wanted, isWithdrawn } }, { error }: { error: unknown }) =>
      mayPass(error) && !isWithdrawn && (wanted === 'accepted' || wanted === 'rejected'),
  },
  actions: {
    want: assign((_, { verdict }: { verdict: Verdict }) => ({ wanted: verdict })),
    withdraw: assign({ isWithdrawn: true }),
    hear: assign(({ event }) => (event.type === 'DECIDED' ? { heard: event.decision } : {})),
    takePlace: assign((_, { decision }: { decision: Decision | null }) => ({ place: decision?.place ?? null })),
    leavePlace: assign({ isHeldByAnother: true }),
    noteError: assign((_, { error }: { error: unknown }) => ({ error })),
    noteOutcome: assign((_, { outcome }: { outcome: AuthOutcome }) => ({ outcome })),
    tellAdmitted: emit({ type: 'admitted' }),
  },
}).createMachine({
  id: 'auth-request',
  context: ({ input: { requestId, timeout, now } }) => ({
    requestId,
    now,
    deadline: now() + timeout,
    wanted: 'withdrawn',
    isWithdrawn: false,
    heard: null,
    place: null,
    isHeldByAnother: false,
    outcome: 'withdrawn',
    error: undefined,
  }),
  output: ({ context: { outcome, error } }) => (error === undefined ? { outcome } : { outcome, error }),
  on: { DECIDED: { actions: 'hear' } },
  initial: 'pending',
  states: {
    pending: {
      always: [
        ...VERDICTS.map((verdict) => ({
          guard: {
            type: 'is' as const,
            params: ({ context }: { context: AuthRequestContext }) => ({ decision: context.heard, verdict }),
          },
          target: verdict,
        })),
        {
          guard: { type: 'is', params: ({ context }) => ({ decision: context.heard, verdict: 'accepted' }) },
          target: 'admitted',
          actions: { type: 'takePlace', params: ({ context }) => ({ decision: context.heard }) },
        },
      ],
      on: {
        ANSWER: [
          { guard: 'isAccept', target: 'deciding', actions: { type: 'want', params: { verdict: 'accepted' } } },
          { target: 'deciding', actions: { type: 'want', params: { verdict: 'rejected' } } },
        ],
        WITHDRAW: { target: 'deciding', actions: ['withdraw', { type: 'want', params: { verdict: 'withdrawn' } }] },
      },
      after: { left: { target: 'deciding', actions: { type: 'want', params: { verdict: 'timedOut' } } } },
    },
    // What has begun to be written cannot be called back: a withdrawal waits for it.
    deciding: {
      on: { HELD_BY_ANOTHER: { actions: 'leavePlace' }, WITHDRAW: { actions: 'withdraw' } },
      invoke: {
        src: 'decide',
        input: ({ context: { requestId, wanted } }) => ({ requestId, verdict: wanted }),
        onDone: [
          ...VERDICTS.map((verdict) => ({
            guard: {
              type: 'is' as const,
              params: ({ event }: { event: { output: Decision } }) => ({ decision: event.output, verdict }),
            },
            target: verdict,
          })),
          {
            guard: 'isWithdrawn',
            target: 'givingUp',
            actions: { type: 'takePlace', params: ({ event }) => ({ decision: event.output }) },
          },
          { target: 'admitted', actions: { type: 'takePlace', params: ({ event }) => ({ decision: event.output }) } },
        ],
        onError: [
          { guard: { type: 'mayWaitOn', params: ({ event }) => event }, target: 'pending' },
          { target: 'failed', actions: { type: 'noteError', params: ({ event }) => event } },
        ],
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
            LEAVE_BEHIND: '#auth-request.leftBehind',
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
    leftBehind: ends('leftBehind'),
  },
})

/** Whether the node is on the list by this request alone. */
export function holdsNewPlace({ place, isHeldByAnother }: AuthRequestContext): boolean {
  return place?.isNew === true && !isHeldByAnother
}
