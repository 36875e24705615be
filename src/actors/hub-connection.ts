/** A node's standing with its hub: on none, asking to join one, or signed in with the link up, or down and on its way back; and leaving it. */
import { and, enqueueActions } from 'xstate'
import type { SignInRecord } from '../store/sign-in.ts'
import { startingOrder } from './hub-addresses.ts'
import {
  ended,
  first,
  type HubConnectionContext,
  type HubLink,
  hubConnectionParts,
  notJoining,
  triedLast,
} from './hub-connection-parts.ts'

const asker = (request: number) => `ask.${request}`
const kept = ({ context }: { context: HubConnectionContext }) => context.signIn as SignInRecord

export const hubConnection = hubConnectionParts
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
      address: '',
      isTold: false,
      order: input.signIn === null ? [] : startingOrder(input.signIn, input.random),
      tried: 0,
      attempts: 0,
      isSeeking: false,
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
            entry: 'countTry',
            invoke: {
              src: 'dial',
              input: ({ context }) => ({ signIn: context.signIn as SignInRecord, address: triedLast(context) }),
              onDone: {
                target: '#hub-connection.connected',
                actions: [
                  { type: 'takeLink', params: ({ event }) => event.output },
                  { type: 'keepServers', params: kept },
                ],
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
        invoke: [
          {
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
                actions: ['dropLink', 'orderAtStart', 'countAttempt'],
              },
              { target: 'disconnected.waiting', actions: ['dropLink', 'orderAfterLoss'] },
            ],
          },
          { src: 'hear', input: ({ context }) => context.link as HubLink },
        ],
        on: {
          SERVERS: [
            // Whoever seeks goes on with the servers that there are now.
            {
              guard: and(['isNewer', 'isSeeking']),
              target: '.seeking',
              actions: ['takeServers', { type: 'keepServers', params: kept }],
            },
            { guard: 'isNewer', actions: ['takeServers', { type: 'keepServers', params: kept }] },
            { actions: 'noteTold' },
          ],
          STAY: { guard: 'isSeeking', target: '.steady', actions: 'seekNoMore' },
        },
        after: { healthy: { actions: 'resetAttempts' } },
        initial: 'steady',
        states: {
          steady: {
            // A request to join that was accepted meanwhile does not end the search.
            always: { guard: 'isSeeking', target: 'seeking' },
            on: { LOOK_ELSEWHERE: { target: 'seeking', actions: 'seek' } },
          },
          seeking: {
            entry: 'orderOthers',
            initial: 'waiting',
            states: {
              waiting: {
                after: {
                  seek: [
                    { guard: 'hasOthers', target: 'dialling' },
                    { target: 'waiting', reenter: true, actions: 'countTry' },
                  ],
                },
              },
              /** The link stands until another server has let the node in. */
              dialling: {
                entry: 'countTry',
                invoke: {
                  src: 'dial',
                  input: ({ context }) => ({ signIn: context.signIn as SignInRecord, address: triedLast(context) }),
                  onDone: {
                    target: '#hub-connection.connected',
                    reenter: true,
                    actions: [
                      'changeOver',
                      'seekNoMore',
                      { type: 'takeLink', params: ({ event }) => event.output },
                      { type: 'keepServers', params: kept },
                    ],
                  },
                  onError: [
                    {
                      guard: { type: 'isNotAMember', params: ({ event }) => ({ error: event.error }) },
                      target: '#hub-connection.unauthenticated',
                      actions: ['hangUpLink', 'forget'],
                    },
                    { target: 'waiting' },
                  ],
                },
              },
            },
          },
        },
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
