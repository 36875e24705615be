/** The lease of this server, as long as it may act for its hub: kept by renewals that the engine acknowledges, lost for good without them. */
import { assign, emit, setup } from 'xstate'

/** The owner's time, from sending the last renewal that was acknowledged; milliseconds. */
const LEASE_MS = 3_000

export interface OwnLeaseInput {
  /** Monotonic, milliseconds. */
  now(): number
}

export interface OwnLeaseContext extends OwnLeaseInput {
  /** When the last renewal was sent that was acknowledged; -Infinity before the first. */
  sentAt: number
}

export type OwnLeaseEvent =
  /** The engine has taken the renewal that was sent then. */
  | { type: 'ACKNOWLEDGED'; sentAt: number }
  /** The key of the lease is not this server's any more. */
  | { type: 'TAKEN' }
  /** The server gives it up. */
  | { type: 'CLOSE' }

export type OwnLeaseEmitted = { type: 'held' } | { type: 'lost' }

export const ownLease = setup({
  types: {
    context: {} as OwnLeaseContext,
    input: {} as OwnLeaseInput,
    events: {} as OwnLeaseEvent,
    emitted: {} as OwnLeaseEmitted,
  },
  delays: {
    left: ({ context: { sentAt, now } }) => Math.max(0, sentAt + LEASE_MS - now()),
  },
  guards: {
    isInTime: ({ context: { now }, event }) => event.type === 'ACKNOWLEDGED' && event.sentAt + LEASE_MS > now(),
    isNewer: ({ context: { sentAt, now }, event }) =>
      event.type === 'ACKNOWLEDGED' && event.sentAt > sentAt && sentAt + LEASE_MS > now(),
    isOver: ({ context: { sentAt, now } }) => sentAt + LEASE_MS <= now(),
  },
  actions: {
    note: assign(({ event }) => (event.type === 'ACKNOWLEDGED' ? { sentAt: event.sentAt } : {})),
    tellHeld: emit({ type: 'held' }),
    tellLost: emit({ type: 'lost' }),
  },
}).createMachine({
  id: 'own-lease',
  context: ({ input }) => ({ ...input, sentAt: Number.NEGATIVE_INFINITY }),
  initial: 'asked',
  states: {
    asked: {
      on: {
        ACKNOWLEDGED: [{ guard: 'isInTime', target: 'held', actions: ['note', 'tellHeld'] }, { target: 'lost' }],
        TAKEN: 'lost',
        CLOSE: 'lost',
      },
    },
    held: {
      on: {
        // A timer may be late, as in a process that was stopped: the clock decides.
        ACKNOWLEDGED: [
          { guard: 'isNewer', target: 'held', reenter: true, actions: 'note' },
          { guard: 'isOver', target: 'lost' },
        ],
        TAKEN: 'lost',
        CLOSE: 'lost',
      },
      after: { left: 'lost' },
    },
    lost: { type: 'final', entry: 'tellLost' },
  },
})

/** Whether the lease is held at this moment. */
export function isHeld({ sentAt, now }: OwnLeaseContext): boolean {
  return now() < sentAt + LEASE_MS
}
