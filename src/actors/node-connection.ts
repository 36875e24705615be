/** A node on the hub as the hub sees it: on the list with or without a live link, until it leaves or is removed. */
import { assign, emit, setup } from 'xstate'

/** What the machine needs of a link session. */
export interface NodeLink {
  /** Since something was heard on it, milliseconds. */
  readonly silence: number
  close(reason: 'REMOVED' | 'REPLACED', message: string): void
}

export interface NodeConnectionInput<Details = unknown> {
  /** What the node said about itself last. */
  details: Details
  /** Milliseconds since the epoch; while there is a link `seenAt` says it. */
  lastSeen: number
  /** The time now, milliseconds since the epoch. */
  now(): number
}

export interface NodeConnectionContext<Details = unknown> extends NodeConnectionInput<Details> {
  link: NodeLink | null
}

export type NodeConnectionEvent<Details = unknown> =
  /** The node was let in again, with a new request: it had lost its sign-in. */
  | { type: 'ADMITTED'; details: Details }
  /** A link of the node stands; one that is there already goes. */
  | { type: 'CONNECTED'; link: NodeLink; details: Details }
  | { type: 'DETAILS'; link: NodeLink; details: Details }
  /** `link` is down; ignored when another has replaced it. */
  | { type: 'CLOSED'; link: NodeLink }
  /** `answerFirst`: the node asked for it itself, the answer leaves before the link is cut. */
  | { type: 'REMOVE'; answerFirst: boolean }
  /** The node leaves the hub by itself. */
  | { type: 'LEAVE' }

/** Told once the machine's snapshot shows the change. */
export type NodeConnectionEmitted = {
  type: 'authenticated' | 'deauthenticated' | 'connected' | 'disconnected' | 'updated'
}

export const nodeConnection = setup({
  types: {
    context: {} as NodeConnectionContext,
    input: {} as NodeConnectionInput,
    events: {} as NodeConnectionEvent,
    emitted: {} as NodeConnectionEmitted,
  },
  guards: {
    isOwnLink: ({ context, event }) => 'link' in event && event.link === context.link,
  },
  actions: {
    takeDetails: assign(({ event }) => ('details' in event ? { details: event.details } : {})),
    takeLink: assign(({ event }) => (event.type === 'CONNECTED' ? { link: event.link } : {})),
    dropLink: assign({ link: null }),
    see: assign(({ context }) => ({ lastSeen: context.now() })),
    seeLast: assign(({ context }) => ({ lastSeen: seenAt(context) })),
    replaceLink: ({ context }) => context.link?.close('REPLACED', 'the node has opened a newer connection'),
    cutLink: ({ context, event }) => {
      const { link } = context
      const cut = () => link?.close('REMOVED', 'the node was removed from the hub')
      if (event.type === 'REMOVE' && event.answerFirst) setImmediate(cut)
      else cut()
    },
    tell: emit((_, type: NodeConnectionEmitted['type']) => ({ type })),
  },
}).createMachine({
  id: 'node-connection',
  context: ({ input }) => ({ ...input, link: null }),
  initial: 'offline',
  on: {
    ADMITTED: { actions: ['takeDetails', 'see', { type: 'tell', params: 'authenticated' }] },
    REMOVE: { target: '.removed', actions: 'cutLink' },
    LEAVE: '.removed',
  },
  states: {
    offline: {
      on: {
        CONNECTED: {
          target: 'online',
          actions: ['takeLink', 'takeDetails', 'see', { type: 'tell', params: 'connected' }],
        },
      },
    },
    online: {
      on: {
        // The link before it went down, whether or not anybody had noticed yet.
        CONNECTED: {
          actions: [
            'replaceLink',
            { type: 'tell', params: 'disconnected' },
            'takeLink',
            'takeDetails',
            'see',
            { type: 'tell', params: 'connected' },
          ],
        },
        DETAILS: {
          guard: 'isOwnLink',
          actions: ['takeDetails', 'see', { type: 'tell', params: 'updated' }],
        },
        CLOSED: {
          guard: 'isOwnLink',
          target: 'offline',
          actions: ['seeLast', 'dropLink', { type: 'tell', params: 'disconnected' }],
        },
      },
    },
    removed: {
      type: 'final',
      entry: ['seeLast', 'dropLink', { type: 'tell', params: 'deauthenticated' }],
    },
  },
})

/** When something was last heard of the node, whole milliseconds since the epoch. */
export function seenAt({ link, lastSeen, now }: NodeConnectionContext): number {
  // Rounded up: the time now has lost its fraction, and would else be that of a moment before.
  return link === null ? lastSeen : Math.ceil(now() - link.silence)
}
