/** A server's link to another server of its hub: being dialled, standing, or down and about to be dialled again. */
import { assign, fromPromise, setup } from 'xstate'
import { HEALTHY_MS, reconnectDelay } from './reconnect-delay.ts'

/** What the machine needs of a link session. */
export interface ServerSession {
  close(reason: 'SHUTDOWN', message: string): void
  /** Never rejects. */
  readonly closed: Promise<ServerLinkEnd>
}

interface ServerLinkEnd {
  readonly reason: string
  readonly byPeer: boolean
}

interface ServerLinkInput {
  /** Where the other server is reached. */
  address: string
  /** Uniform in [0, 1). */
  random(): number
}

interface ServerLinkContext extends ServerLinkInput {
  session: ServerSession | null
  /** Attempts in a row. */
  attempts: number
}

type ServerLinkEvent =
  /** The other server is reached elsewhere from now on. */
  | { type: 'MOVED'; address: string }
  /** The other server is gone, or this one is closing. */
  | { type: 'CLOSE' }

export const serverLink = setup({
  types: { context: {} as ServerLinkContext, input: {} as ServerLinkInput, events: {} as ServerLinkEvent },
  actors: {
    /** Opens the link; its signal aborts when it is not wanted any more. */
    dial: fromPromise<ServerSession, string>(() => {
      throw new Error('the machine needs a dial actor')
    }),
    closing: fromPromise<ServerLinkEnd, ServerSession>(({ input }) => input.closed),
  },
  delays: {
    backOff: ({ context }) => reconnectDelay(context.attempts, context.random()),
    healthy: HEALTHY_MS,
  },
  guards: {
    isElsewhere: ({ context, event }) => event.type === 'MOVED' && event.address !== context.address,
    /** Another link with this server's key took this one's place. */
    isReplacement: (_, { reason, byPeer }: ServerLinkEnd) => reason === 'REPLACED' && byPeer,
  },
  actions: {
    takeAddress: assign(({ event }) => (event.type === 'MOVED' ? { address: event.address } : {})),
    takeSession: assign((_, session: ServerSession) => ({ session })),
    dropSession: assign({ session: null }),
    countAttempt: assign({ attempts: ({ context }) => context.attempts + 1 }),
    resetAttempts: assign({ attempts: 0 }),
    close: ({ context }) => context.session?.close('SHUTDOWN', 'the link between the servers is not needed any more'),
  },
}).createMachine({
  id: 'server-link',
  context: ({ input }) => ({ ...input, session: null, attempts: 0 }),
  on: { CLOSE: '.closed' },
  initial: 'dialling',
  states: {
    dialling: {
      invoke: {
        src: 'dial',
        input: ({ context }) => context.address,
        onDone: { target: 'standing', actions: { type: 'takeSession', params: ({ event }) => event.output } },
        onError: { target: 'waiting', actions: 'countAttempt' },
      },
      on: { MOVED: { guard: 'isElsewhere', target: 'dialling', reenter: true, actions: 'takeAddress' } },
    },
    // One that stands stays: the other end is the same server, wherever it is reached next.
    standing: {
      invoke: {
        src: 'closing',
        input: ({ context }) => context.session as ServerSession,
        onDone: [
          {
            // Two servers with one identity push each other out: longer waits keep that from being a storm.
            guard: { type: 'isReplacement', params: ({ event }) => event.output },
            target: 'waiting',
            actions: 'countAttempt',
          },
          { target: 'waiting' },
        ],
      },
      on: { MOVED: { guard: 'isElsewhere', actions: 'takeAddress' } },
      after: { healthy: { actions: 'resetAttempts' } },
    },
    waiting: {
      entry: 'dropSession',
      after: { backOff: 'dialling' },
      on: { MOVED: { guard: 'isElsewhere', target: 'dialling', actions: 'takeAddress' } },
    },
    closed: { type: 'final', entry: 'close' },
  },
})
