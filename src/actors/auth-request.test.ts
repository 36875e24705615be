/** The authentication request on a simulated clock: every row of the specification's table, and every race. */
import { describe, expect, test } from 'vitest'
import { createActor, SimulatedClock } from 'xstate'
import { type AuthRequestEvent, authRequest } from './auth-request.ts'

const TIMEOUT = 300_000
type Step = AuthRequestEvent | number

function rig() {
  const clock = new SimulatedClock()
  const actor = createActor(authRequest, { clock, input: { timeout: TIMEOUT } })
  const outcomes: unknown[] = []
  actor.subscribe({ complete: () => outcomes.push(actor.getSnapshot().value) })
  actor.start()
  const take = (step: Step) => (typeof step === 'number' ? clock.increment(step) : actor.send(step))
  return { actor, take, outcomes, state: () => actor.getSnapshot().value }
}

const accept: AuthRequestEvent = { type: 'ANSWER', accept: true }
const reject: AuthRequestEvent = { type: 'ANSWER', accept: false }
const withdraw: AuthRequestEvent = { type: 'WITHDRAW' }

describe('transitions', () => {
  const table: [string, Step, string][] = [
    ['pending: answer with accept=true before the request times out', accept, 'accepted'],
    ['pending: answer with accept=false before the request times out', reject, 'rejected'],
    ['pending: no answer, request times out', TIMEOUT, 'timedOut'],
    ['pending: no answer yet', TIMEOUT - 1, 'pending'],
    ['pending: the joining caller goes away', withdraw, 'withdrawn'],
  ]
  test.each(table)('%s', (_row, step, expected) => {
    const { take, state } = rig()
    expect(state()).toBe('pending')
    take(step)
    expect(state()).toBe(expected)
  })
})

describe('of events that race, the first decides and there is one outcome', () => {
  const events: [string, Step, string][] = [
    ['accept', accept, 'accepted'],
    ['reject', reject, 'rejected'],
    ['withdraw', withdraw, 'withdrawn'],
    ['timeout', TIMEOUT, 'timedOut'],
  ]
  const orders = events.flatMap((first) => events.map((second) => [first[0], second[0], first, second] as const))
  test.each(orders)('%s, then %s', (_first, _second, first, second) => {
    const { take, state, outcomes, actor } = rig()
    take(first[1])
    take(second[1])
    expect(state()).toBe(first[2])
    expect(outcomes).toEqual([first[2]])
    expect(actor.getSnapshot().output).toBe(first[2])
  })

  test('an answer in the last millisecond is in time', () => {
    const { take, state } = rig()
    take(TIMEOUT - 1)
    take(accept)
    take(1)
    expect(state()).toBe('accepted')
  })
})
