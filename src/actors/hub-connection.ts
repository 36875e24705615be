/** A node's standing with its hub: on none, or signed in with the link up, or down and on its way back. */
import { assign, fromPromise, setup } from 'xstate'
import type { SignInRecord } from '../store/sign-in.ts'

export const BACK_OFF_LEAST_MS = 500
export const BACK_OFF_MOST_MS = 30_000
/** A link that stood this long ends the row of attempts. */
export const HEALTHY_MS = 10_000

/** What the machine needs of a link session. */
export interface HubLink {
  close(reason: 'LEFT' | 'REPLACED', message: string): void
  /** Never rejects. */
  readonly closed: Promise<{ readonly reason: string; readonly byPeer: boolean }>
}

/** Rejected with by the `dial` actor when the hub says, signed, that this node is not on its list. */
export class NotAMember extends Error {
  override readonly name = 'NotAMember'
}

export interface HubConnectionInput {
  /** The sign-in found on disk. */
  signIn: SignInRecord | null
  /** Uniform in [0, 1). */
  random(): number
}

export interface HubConnectionContext extends HubConnectionInput {
  link: HubLink | null
  /** Attempts to connect in a row. */
  attempts: number
}

export type HubConnectionEvent =
  /** The hub has let this node in; the sign-in is on disk. */
  | { type: 'JOINED'; signIn: SignInRecord; link: HubLink }
  /** Leave, whether or not the hub can be told. */
  | { type: 'DISCONNECT' }

/** Milliseconds before the attempt after `attempts` failed ones: any between 0.5 s and 1 s, 2 s, … 30 s, so that nodes do not come all at once. */
export function reconnectDelay(attempts: number, random: number): number {
  const most = Math.min(BACK_OFF_MOST_MS, 2 * BACK_OFF_LEAST_MS * 2 ** Math.min(attempts, 16))
  return BACK_OFF_LEAST_MS + random * (most - BACK_OFF_LEAST_MS)
}

export const hubConnection = setup({
  types: {
    context: {} as HubConnectionContext,
    input: {} as HubConnectionInput,
    events: {} as HubConnectionEvent,
  },
  actors: {
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
    isRemoval: (_, closed: { reason: string; byPeer: boolean }) => closed.reason === 'REMOVED' && closed.byPeer,
    /** Another connection with this node's key took this one's place. */
    isReplacement: (_, closed: { reason: string; byPeer: boolean }) => closed.reason === 'REPLACED' && closed.byPeer,
    isNotAMember: (_, { error }: { error: unknown }) => error instanceof NotAMember,
  },
  actions: {
    takeSignIn: assign(({ event }) => (event.type === 'JOINED' ? { signIn: event.signIn, link: event.link } : {})),
    takeLink: assign((_, link: HubLink) => ({ link })),
    dropLink: assign({ link: null }),
    dropSignIn: assign({ signIn: null }),
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    resetAttempts: assign({ attempts: 0 }),
    leave: ({ context }) => context.link?.close('LEFT', 'the node leaves the hub'),
    replaceLink: ({ context, event }) => {
      if (event.type === 'JOINED' && event.link !== context.link) context.link?.close('REPLACED', 'joined anew')
    },
    /** Takes the sign-in off the disk: the hub does not know this node any more. */
    forget: () => {},
  },
}).createMachine({
  id: 'hub-connection',
  context: ({ input }) => ({ ...input, link: null, attempts: 0 }),
  initial: 'starting',
  states: {
    starting: {
      always: [{ guard: 'isSignedIn', target: 'disconnected' }, { target: 'unauthenticated' }],
    },
    unauthenticated: {
      entry: ['dropSignIn', 'dropLink', 'resetAttempts'],
      on: { JOINED: { target: 'connected', actions: 'takeSignIn' } },
    },
    disconnected: {
      on: {
        JOINED: { target: 'connected', actions: 'takeSignIn' },
        DISCONNECT: 'unauthenticated',
      },
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
      on: {
        JOINED: { target: 'connected', reenter: true, actions: ['replaceLink', 'takeSignIn'] },
        DISCONNECT: { target: 'unauthenticated', actions: 'leave' },
      },
    },
  },
})
