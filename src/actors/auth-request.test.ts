/** The authentication request on a simulated clock: every event in every state, the rows of the specification's table among them, and every race. */
import { describe, expect, test } from 'vitest'
import { createActor, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { NotStored, ServiceError } from '../contract/errors.ts'
import { type AuthRequestEvent, authRequest, type Decision, type Place, type Verdict } from './auth-request.ts'

const TIMEOUT = 300_000
const fault = new Error('a fault of the hub')
const full = new NotStored('penstock.lmdb', 'no space left')
const away = new ServiceError('UNAVAILABLE', 'cut off')

/** What happens outside of the machine: where its hub's state is kept, its clock. */
const outside = [
  'written',
  'written, was on the list',
  'another was faster: accepted',
  'another was faster: rejected',
  'not written',
  'disk full',
  'away',
  'taken off',
  'not taken off',
  'time',
] as const
type Step = AuthRequestEvent | (typeof outside)[number] | number

function rig() {
  const clock = new SimulatedClock()
  const writes: { verdict: Verdict; resolve: (decision: Decision) => void; reject: (error: Error) => void }[] = []
  const expels: { place: Place; resolve: () => void; reject: (error: Error) => void }[] = []
  const machine = authRequest.provide({
    actors: {
      decide: fromPromise<Decision, { requestId: bigint; verdict: Verdict }>(
        ({ input: { verdict } }) => new Promise((resolve, reject) => writes.push({ verdict, resolve, reject })),
      ),
      expel: fromPromise<unknown, Place>(
        ({ input }) => new Promise<void>((resolve, reject) => expels.push({ place: input, resolve, reject })),
      ),
    },
  })
  const actor = createActor(machine, { clock, input: { requestId: 1n, timeout: TIMEOUT, now: () => clock.now() } })
  const told: string[] = []
  actor.on('admitted', () => told.push(`admitted in ${state()}`))
  actor.subscribe({ complete: () => told.push(actor.getSnapshot().output?.outcome ?? '') })
  actor.start()
  const state = () => {
    const { value } = actor.getSnapshot()
    return typeof value === 'string' ? value : Object.values(value)[0]
  }
  const wrote = (place: Place) => {
    const { verdict, resolve } = writes.at(-1) ?? {}
    if (verdict !== undefined) resolve?.({ verdict, place: verdict === 'accepted' ? place : null, isOwn: true })
  }
  const take = async (step: Step) => {
    if (step === 'time') clock.increment(TIMEOUT)
    else if (typeof step === 'number') clock.increment(step)
    else if (step === 'written') wrote({ isNew: true })
    else if (step === 'written, was on the list') wrote({ isNew: false })
    else if (step === 'another was faster: accepted') writes.at(-1)?.resolve(acceptedElsewhere)
    else if (step === 'another was faster: rejected') writes.at(-1)?.resolve(rejectedElsewhere)
    else if (step === 'not written') writes.at(-1)?.reject(fault)
    else if (step === 'disk full') writes.at(-1)?.reject(full)
    else if (step === 'away') writes.at(-1)?.reject(away)
    else if (step === 'taken off') expels.at(-1)?.resolve()
    else if (step === 'not taken off') expels.at(-1)?.reject(fault)
    else if (actor.getSnapshot().status === 'active') actor.send(step)
    await settle(1)
  }
  return { actor, take, told, state, writes, expels }
}

const acceptedElsewhere: Decision = { verdict: 'accepted', place: { isNew: true }, isOwn: false }
const rejectedElsewhere: Decision = { verdict: 'rejected', place: null, isOwn: false }
const heardAccepted: AuthRequestEvent = { type: 'DECIDED', decision: acceptedElsewhere }
const heardRejected: AuthRequestEvent = { type: 'DECIDED', decision: rejectedElsewhere }
const accept: AuthRequestEvent = { type: 'ANSWER', accept: true }
const reject: AuthRequestEvent = { type: 'ANSWER', accept: false }
const withdraw: AuthRequestEvent = { type: 'WITHDRAW' }
const leaveBehind: AuthRequestEvent = { type: 'LEAVE_BEHIND' }
const session: AuthRequestEvent = { type: 'SESSION' }
const confirmed: AuthRequestEvent = { type: 'CONFIRMED' }
const hungUp: AuthRequestEvent = { type: 'LINK_CLOSED', isHangUp: true }
const broken: AuthRequestEvent = { type: 'LINK_CLOSED', isHangUp: false }
const heldByAnother: AuthRequestEvent = { type: 'HELD_BY_ANOTHER' }

const steps: Step[] = [
  ...[
    accept,
    reject,
    withdraw,
    leaveBehind,
    session,
    confirmed,
    hungUp,
    broken,
    heldByAnother,
    heardAccepted,
    heardRejected,
  ],
  ...outside,
]
const nameOf = (step: Step) =>
  typeof step === 'object'
    ? `${step.type}${'decision' in step ? ` ${step.decision.verdict}` : 'accept' in step ? ` ${step.accept}` : 'isHangUp' in step ? ` ${step.isHangUp}` : ''}`
    : String(step)

describe('transitions', () => {
  // A state, what leads to it, and what each step that is not ignored there leads to.
  const decidedElsewhere: [Step, string][] = [
    ['another was faster: accepted', 'waiting'],
    ['another was faster: rejected', 'rejected'],
    ['not written', 'failed'],
  ]
  const table: [string, Step[], [Step, string][]][] = [
    [
      'pending',
      [],
      [
        [accept, 'deciding'],
        [reject, 'deciding'],
        [withdraw, 'deciding'],
        ['time', 'deciding'],
        [heardAccepted, 'waiting'],
        [heardRejected, 'rejected'],
      ],
    ],
    [
      'deciding',
      [accept],
      [
        ...decidedElsewhere,
        ['written', 'waiting'],
        ['written, was on the list', 'waiting'],
        ['away', 'pending'],
        ['disk full', 'pending'],
      ],
    ],
    [
      'deciding',
      [accept, withdraw],
      [
        ['written', 'expelling'],
        ['written, was on the list', 'gone'],
        ['another was faster: accepted', 'expelling'],
        ['another was faster: rejected', 'rejected'],
        ['not written', 'failed'],
        ['away', 'failed'],
        ['disk full', 'failed'],
      ],
    ],
    [
      'deciding',
      [reject],
      [
        ...decidedElsewhere,
        ['written', 'rejected'],
        ['written, was on the list', 'rejected'],
        ['away', 'pending'],
        ['disk full', 'pending'],
      ],
    ],
    [
      'deciding',
      ['time'],
      [
        ...decidedElsewhere,
        ['written', 'timedOut'],
        ['written, was on the list', 'timedOut'],
        ['away', 'failed'],
        ['disk full', 'failed'],
      ],
    ],
    [
      'deciding',
      [withdraw],
      [
        ['written', 'withdrawn'],
        ['written, was on the list', 'withdrawn'],
        ['another was faster: accepted', 'expelling'],
        ['another was faster: rejected', 'rejected'],
        ['not written', 'failed'],
        ['away', 'failed'],
        ['disk full', 'failed'],
      ],
    ],
    [
      'deciding',
      [accept, heardAccepted],
      [
        ...decidedElsewhere,
        ['written', 'waiting'],
        ['written, was on the list', 'waiting'],
        ['away', 'waiting'],
        ['disk full', 'waiting'],
      ],
    ],
    [
      'pending',
      [accept, 'away'],
      [
        [accept, 'deciding'],
        [reject, 'deciding'],
        [withdraw, 'deciding'],
        ['time', 'deciding'],
        [heardAccepted, 'waiting'],
        [heardRejected, 'rejected'],
      ],
    ],
    [
      'waiting',
      [accept, 'written'],
      [
        [withdraw, 'expelling'],
        [leaveBehind, 'leftBehind'],
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
    ['rejected', [reject, 'written'], []],
    ['timedOut', ['time', 'written'], []],
    ['withdrawn', [withdraw, 'written'], []],
    ['failed', [accept, 'not written'], []],
    ['confirmed', [accept, 'written', session, confirmed], []],
    ['unconfirmed', [accept, 'written', session, broken], []],
    ['gone', [accept, 'written', withdraw, 'taken off'], []],
    ['leftBehind', [accept, 'written', leaveBehind], []],
  ]
  const rows = table.flatMap(([state, before, leads]) =>
    steps.map((step) => [state, nameOf(step), before, step, leads.find(([which]) => which === step)?.[1]] as const),
  )
  test.each(rows)('%s: %s', async (from, _step, before, step, to) => {
    const { take, state, writes, expels } = rig()
    for (const earlier of before) await take(earlier)
    expect(state()).toBe(from)
    const asked = [writes.length, expels.length]
    await take(step)
    // Whatever has no row is ignored.
    expect(state()).toBe(to ?? from)
    expect([writes.length - asked[0]!, expels.length - asked[1]!]).toEqual([
      to === 'deciding' ? 1 : 0,
      to === 'expelling' ? 1 : 0,
    ])
  })

  test('a moment before its time the request is pending, and an answer counts', async () => {
    const { take, state } = rig()
    await take(TIMEOUT - 1)
    expect(state()).toBe('pending')
    await take(accept)
    await take(1)
    expect(state()).toBe('deciding')
  })

  test('an answer that could not be written gives the request no more time', async () => {
    const { take, state, writes } = rig()
    await take(TIMEOUT - 2)
    await take(accept)
    await take(1)
    await take('away')
    expect(state()).toBe('pending')
    await take(1)
    expect(state()).toBe('deciding')
    expect(writes.map(({ verdict }) => verdict)).toEqual(['accepted', 'timedOut'])
  })
})

describe('who is taken off the list: only whom this request had put there', () => {
  const table: [string, Step[], boolean][] = [
    ['withdrawn before it was on disk', [accept, withdraw, 'written'], true],
    ['withdrawn before its session stood', [accept, 'written', withdraw], true],
    ['hung up before it was confirmed', [accept, 'written', session, hungUp], true],
    ['the link broke before it was confirmed', [accept, 'written', session, broken], false],
    ['confirmed', [accept, 'written', session, confirmed, hungUp], false],
    ['left behind', [accept, 'written', leaveBehind], false],
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
    ['accept', accept, 'accepted'],
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
    const { take, told, writes } = rig()
    await take(first[1])
    await take(second[1])
    expect(writes.map(({ verdict }) => verdict)).toEqual([first[2]])
    await take('written')
    expect(told).toEqual(first[1] === accept ? ['admitted in waiting'] : [first[2]])
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
    ['not written', [accept, 'not written'], { outcome: 'failed', error: fault }],
    ['not written for who has gone', [accept, withdraw, 'not written'], { outcome: 'failed', error: fault }],
    ['not taken off', [accept, 'written', withdraw, 'not taken off'], { outcome: 'gone', error: fault }],
    ['taken off', [accept, 'written', withdraw, 'taken off'], { outcome: 'gone' }],
  ])('why it failed: %s', async (_row, taken, output) => {
    const { actor, take } = rig()
    for (const step of taken) await take(step)
    expect(actor.getSnapshot().output).toEqual(output)
  })
})
