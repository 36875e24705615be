/** A node's request to join the hub, from the moment it is raised to its one outcome. */
import { setup } from 'xstate'

/** How a request ended. */
export type AuthOutcome = 'accepted' | 'rejected' | 'timedOut' | 'withdrawn'

export interface AuthRequestInput {
  /** Milliseconds until a request without an answer times out. */
  timeout: number
}

export type AuthRequestEvent =
  /** The operator's answer. */
  | { type: 'ANSWER'; accept: boolean }
  /** The caller at the joining node has gone. */
  | { type: 'WITHDRAW' }

/** The first of answer, timeout and withdrawal decides; whatever comes later finds the machine done and changes nothing. */
export const authRequest = setup({
  types: {
    context: {} as AuthRequestInput,
    input: {} as AuthRequestInput,
    events: {} as AuthRequestEvent,
    output: {} as AuthOutcome,
  },
  delays: { timeout: ({ context }) => context.timeout },
  guards: { isAccept: ({ event }) => event.type === 'ANSWER' && event.accept },
}).createMachine({
  id: 'auth-request',
  context: ({ input }) => ({ timeout: input.timeout }),
  initial: 'pending',
  states: {
    pending: {
      on: {
        ANSWER: [{ guard: 'isAccept', target: 'accepted' }, { target: 'rejected' }],
        WITHDRAW: 'withdrawn',
      },
      after: { timeout: 'timedOut' },
    },
    accepted: { type: 'final', output: 'accepted' },
    rejected: { type: 'final', output: 'rejected' },
    timedOut: { type: 'final', output: 'timedOut' },
    withdrawn: { type: 'final', output: 'withdrawn' },
  },
  output: ({ event }) => (event as unknown as { output: AuthOutcome }).output,
})
