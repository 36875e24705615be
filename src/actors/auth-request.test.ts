/** The authentication request on a simulated clock: every event in every state, the rows of the specification's table among them, and every race. */
import { describe, expect, test } from 'vitest'
import { createActor, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { type AuthRequestEvent, authRequest, type Place } from './auth-request.ts'

const TIMEOUT = 300_000
const full = new Error('the disk is full')

/** What happens outside of the machine: its disk, its clock. */
const outside = ['written', 'written, was on the list', 'not written', 'taken off', 'not taken off', 'time'] as const
type Step = AuthRequestEvent | (typeof outside)[number] | number

function rig() {
  const clock = new SimulatedClock()
  const admits: { resolve: (place: Place) => void; reject: (error: Error) => void }[] = []
  const expels: { place: Place; resolve: () => void; reject: (error: Error) => void }[] = []
  const machine = authRequest.provide({
    actors: {
      admit: fromPromise<Place, { requestId: bigint }>(
        () => new Promise((resolve, reject) => admits.push({ resolve, reject })),
      ),
      expel: fromPromise<unknown, Place>(
        ({ input }) => new Promise<void>((resolve, reject) => expels.push({ place: input, resolve, reject })),
      ),
    },
  })
  const actor = createActor(machine, { clock, input: { requestId: 1n, timeout: TIMEOUT } })
  const told: string[] = []
  actor.on('admitted', () => told.push(`admitted in ${state()}`))
  actor.subscribe({ complete: () => told.push(actor.getSnapshot().output?.outcome ?? '') })
  actor.start()
  const state = () => {
    const { value } = actor.getSnapshot()
    return typeof value === 'string' ? value : Object.values(value)[0]
  }
  const take = async (step: Step) => {
    if (step === 'time') clock.increment(TIMEOUT)
    else if (typeof step === 'number') clock.increment(step)
    else if (step === 'written') admits.at(-1)?.resolve({ isNew: true })
    else if (step === 'written, was on the list') admits.at(-1)?.resolve({ isNew: false })
    else if (step === 'not written') admits.at(-1)?.reject(full)
    else if (step === 'taken off') expels.at(-1)?.resolve()
    else if (step === 'not taken off') expels.at(-1)?.reject(full)
    else if (actor.getSnapshot().status === 'active') actor.send(step)
    await settle(1)
  }
  return { actor, take, told, state, admits, expels }
}

const accept: AuthRequestEvent = { type: 'ANSWER', accept: true }
const reject: AuthRequestEvent = { type: 'ANSWER', accept: false }
const withdraw: AuthRequestEvent = { type: 'WITHDRAW' }
const session: AuthRequestEvent = { type: 'SESSION' }
const confirmed: AuthRequestEvent = { type: 'CONFIRMED' }
const hungUp: AuthRequestEvent = { type: 'LINK_CLOSED', isHangUp: true }
const broken: AuthRequestEvent = { type: 'LINK_CLOSED', isHangUp: false }
const heldByAnother: AuthRequestEvent = { type: 'HELD_BY_ANOTHER' }

const steps: Step[] = [...[accept, reject, withdraw, session, confirmed, hungUp, broken, heldByAnother], ...outside]
const nameOf = (step: Step) =>
  typeof step === 'object'
    ? `${step.type}${'accept' in step ? ` ${step.accept}` : 'isHangUp' in step ? ` ${step.isHangUp}` : ''}`
    : String(step)

describe('transitions', () => {
  // A state, what leads to it, and what each step that is not ignored there leads to.
  const table: [string, Step[], [Step, string][]][] = [
    [
      'pending',
      [],
      [
        [accept, 'wanted'],
        [reject, 'rejected'],
        [withdraw, 'withdrawn'],
        ['time', 'timedOut'],
      ],
    ],
    [
      'wanted',
      [accept],
      [
        [withdraw, 'unwanted'],
        ['written', 'waiting'],
        ['written, was on the list', 'waiting'],
        ['not written', 'failed'],
      ],
    ],
    [
      'unwanted',
      [accept, withdraw],
      [
        ['written', 'expelling'],
        ['written, was on the list', 'gone'],
        ['not written', 'failed'],
      ],
    ],
    [
      'waiting',
      [accept, 'written'],
      [
        [withdraw, 'expelling'],
        [session, 'inSession'],
      ],
    ],
    [
      'inSession',
      [accept, 'written', session],
      [
        [confirmed, 'confirmed'],
        [hungUp, 'expelling'],
        [broken, 'unconfirmed'],
      ],
    ],
    [
      'expelling',
      [accept, 'written', withdraw],
      [
        ['taken off', 'gone'],
        ['not taken off', 'gone'],
      ],
    ],
    ['rejected', [reject], []],
    ['timedOut', ['time'], []],
    ['withdrawn', [withdraw], []],
    ['failed', [accept, 'not written'], []],
    ['confirmed', [accept, 'written', session, confirmed], []],
    ['unconfirmed', [accept, 'written', session, broken], []],
    ['gone', [accept, 'written', withdraw, 'taken off'], []],
  ]
  const rows = table.flatMap(([state, before, leads]) =>
    steps.map((step) => [state, nameOf(step), before, step, leads.find(([which]) => which === step)?.[1]] as const),
  )
  test.each(rows)('%s: %s', async (from, _step, before, step, to) => {
    const { take, state, admits, expels } = rig()
    for (const earlier of before) await take(earlier)
    expect(state()).toBe(from)
    const asked = [admits.length, expels.length]
    await take(step)
    // Whatever has no row is ignored.
    expect(state()).toBe(to ?? from)
    expect([admits.length - asked[0]!, expels.length - asked[1]!]).toEqual([
      to === 'wanted' ? 1 : 0,
      to === 'expelling' ? 1 : 0,
    ])
  })

  test('a moment before its time the request is pending, and an answer counts', async () => {
    const { take, state } = rig()
    await take(TIMEOUT - 1)
    expect(state()).toBe('pending')
    await take(accept)
    await take(1)
    expect(state()).toBe('wanted')
  })
})

describe('who is taken off the list: only whom this request had put there', () => {
  const table: [string, Step[], boolean][] = [
    ['withdrawn before it was on disk', [accept, withdraw, 'written'], true],
    ['withdrawn before its session stood', [accept, 'written', withdraw], true],
    ['hung up before it was confirmed', [accept, 'written', session, hungUp], true],
    ['the link broke before it was confirmed', [accept, 'written', session, broken], false],
    ['confirmed', [accept, 'written', session, confirmed, hungUp], false],
    ['on the list before: withdrawn before it was on disk', [accept, withdraw, 'written, was on the list'], false],
    ['on the list before: withdrawn', [accept, 'written, was on the list', withdraw], false],
    ['on the list before: hung up', [accept, 'written, was on the list', session, hungUp], false],
    ['another of it confirmed before it was accepted', [heldByAnother, accept, 'written', withdraw], true],
    ['held by another while it was written', [accept, heldByAnother, withdraw, 'written'], false],
    ['held by another, withdrawn', [accept, 'written', heldByAnother, withdraw], false],
    ['held by another, hung up', [accept, 'written', session, heldByAnother, hungUp], false],
  ]
  test.each(table)('%s', async (_row, taken, isExpelled) => {
    const { take, expels } = rig()
    for (const step of taken) await take(step)
    expect(expels.map(({ place }) => place)).toEqual(isExpelled ? [{ isNew: true }] : [])
  })
})

describe('of events that race, the first decides and there is one outcome', () => {
  const events: [string, Step, string][] = [
    ['accept', accept, 'wanted'],
    ['reject', reject, 'rejected'],
    ['withdraw', withdraw, 'withdrawn'],
    ['timeout', 'time', 'timedOut'],
  ]
  const orders = events.flatMap((first) =>
    events
      .filter((second) => !(first[1] === accept && second[1] === withdraw))
      .map((second) => [first[0], second[0], first, second] as const),
  )
  test.each(orders)('%s, then %s', async (_first, _second, first, second) => {
    const { take, state, told } = rig()
    await take(first[1])
    await take(second[1])
    expect(state()).toBe(first[2])
    expect(told).toEqual(first[1] === accept ? [] : [first[2]])
  })
})

describe('what is told', () => {
  test.each<[string, Step[], string[]]>([
    ['confirmed', [accept, 'written', session, confirmed], ['admitted in waiting', 'confirmed']],
    ['withdrawn before it was on disk', [accept, withdraw, 'written', 'taken off'], ['gone']],
    ['withdrawn after', [accept, 'written', withdraw, 'taken off'], ['admitted in waiting', 'gone']],
    ['not written', [accept, 'not written'], ['failed']],
  ])('%s', async (_row, taken, expected) => {
    const { take, told } = rig()
    for (const step of taken) await take(step)
    expect(told).toEqual(expected)
  })

  test.each<[string, Step[], object]>([
    ['not written', [accept, 'not written'], { outcome: 'failed', error: full }],
    ['not written for who has gone', [accept, withdraw, 'not written'], { outcome: 'failed', error: full }],
    ['not taken off', [accept, 'written', withdraw, 'not taken off'], { outcome: 'gone', error: full }],
    ['taken off', [accept, 'written', withdraw, 'taken off'], { outcome: 'gone' }],
  ])('why it failed: %s', async (_row, taken, output) => {
    const { actor, take } = rig()
    for (const step of taken) await take(step)
    expect(actor.getSnapshot().output).toEqual(output)
  })
})
