/** The lease of another server, as this one sees it: it stands until this server has seen for five seconds that nobody renews it. */
import { assign, emit, setup } from 'xstate'

/** The others' time, from seeing a renewal; milliseconds. */
const SEEN_LEASE_MS = 5_000
/** A server that has not seen its own renewals for that long has been away: its own lease was over; milliseconds. */
const MAX_GAP_MS = 3_000

export interface SeenLeaseInput {
  /** When it was seen first, by this server's monotonic clock; milliseconds. */
  at: number
}

export interface SeenLeaseContext {
  /** Since when no renewal was seen. */
  since: number
  /** Up to when this server has seen everything. */
  seenUntil: number
}

export type SeenLeaseEvent =
  | { type: 'RENEWED'; at: number }
  /**
   * All that the engine took before that moment has been seen: this server's own renewal, sent then, has come back in the watch. A server that
   * cannot renew never says so, and declares nobody dead.
   */
  | { type: 'CURRENT'; asOf: number }
  /** This server has been away: what it has not seen meanwhile does not count. */
  | { type: 'RESUMED'; at: number }
  /** Its key is gone. */
  | { type: 'DELETED' }

export type SeenLeaseEmitted = { type: 'ended' }

export const seenLease = setup({
  types: {
    context: {} as SeenLeaseContext,
    input: {} as SeenLeaseInput,
    events: {} as SeenLeaseEvent,
    emitted: {} as SeenLeaseEmitted,
  },
  guards: {
    isBack: ({ context: { seenUntil }, event }) => event.type === 'CURRENT' && event.asOf - seenUntil > MAX_GAP_MS,
    isOver: ({ context: { since }, event }) => event.type === 'CURRENT' && event.asOf - since >= SEEN_LEASE_MS,
  },
  actions: {
    note: assign(({ context: { since }, event }) =>
      event.type === 'RENEWED' ? { since: Math.max(since, event.at) } : {},
    ),
    noteBack: assign(({ context: { since }, event }) => {
      if (event.type !== 'CURRENT' && event.type !== 'RESUMED') return {}
      const at = event.type === 'CURRENT' ? event.asOf : event.at
      return { since: Math.max(since, at), seenUntil: at }
    }),
    noteSeen: assign(({ context: { seenUntil }, event }) =>
      event.type === 'CURRENT' ? { seenUntil: Math.max(seenUntil, event.asOf) } : {},
    ),
    tellEnded: emit({ type: 'ended' }),
  },
}).createMachine({
  id: 'seen-lease',
  context: ({ input: { at } }) => ({ since: at, seenUntil: at }),
  initial: 'standing',
  states: {
    standing: {
      on: {
        RENEWED: { actions: 'note' },
        RESUMED: { actions: 'noteBack' },
        // The engine was there for nobody, or not for this server: the others have had no chance to be seen.
        CURRENT: [
          { guard: 'isBack', actions: 'noteBack' },
          { guard: 'isOver', target: 'ended' },
          { actions: 'noteSeen' },
        ],
        DELETED: 'ended',
      },
    },
    // Not even a renewal brings it back: its server begins another life.
    ended: { type: 'final', entry: 'tellEnded' },
  },
})
