/** A node's standing with its hub, on a simulated clock: every event in every state, those of the specification among them, and the reconnects. */
import { describe, expect, test } from 'vitest'
import { createActor, type EventObject, fromCallback, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import type { SignInRecord } from '../store/sign-in.ts'
import { hubConnection } from './hub-connection.ts'
import {
  type AskEvent,
  type Asked,
  type Attempt,
  type HubConnectionEvent,
  type HubLink,
  type HubNews,
  NotAMember,
} from './hub-connection-parts.ts'
import { HEALTHY_MS, MAX_BACK_OFF_MS, MIN_BACK_OFF_MS, MINUTE_ATTEMPTS, reconnectDelay } from './reconnect-delay.ts'

const signIn: SignInRecord = { hubAddress: 'http://hub:1', hubId: 'h', hubKey: new Uint8Array(32) }
const other: SignInRecord = { hubAddress: 'http://other:1', hubId: 'o', hubKey: new Uint8Array(32) }
const full = new Error('the disk is full')

class Link implements HubLink {
  readonly name: string
  readonly closings: string[]
  #resolve: (closed: { reason: string; byPeer: boolean }) => void = () => {}
  readonly closed = new Promise<{ reason: string; byPeer: boolean }>((resolve) => {
    this.#resolve = resolve
  })
  constructor(name: string, closings: string[]) {
    this.name = name
    this.closings = closings
  }
  close(reason: string): void {
    this.closings.push(`${this.name} ${reason}`)
  }
  lose(reason = 'LOST', byPeer = true): void {
    this.#resolve({ reason, byPeer })
  }
}

interface Settler<T> {
  resolve(value: T): void
  reject(error: Error): void
}

/** The machine with its effects in hand; `told`: what it emits, what it does to links and the disk, in order. */
function rig(stored: SignInRecord | null) {
  const clock = new SimulatedClock()
  const told: string[] = []
  const dials: (Settler<HubLink> & { signal: AbortSignal; address: string })[] = []
  let hear: ((news: HubNews) => void) | undefined
  const writes: Settler<void>[] = []
  const removals: Settler<void>[] = []
  const asked = new Map<number, (event: AskEvent) => void>()
  const pending = <T>(into: Settler<T>[]) => new Promise<T>((resolve, reject) => into.push({ resolve, reject }))
  const machine = hubConnection.provide({
    actors: {
      ask: fromCallback<EventObject, Asked, AskEvent>(({ input, sendBack }) => {
        asked.set(input.request, sendBack)
        return () => asked.delete(input.request)
      }),
      signIn: fromPromise<void, SignInRecord>(() => pending(writes)),
      signOut: fromPromise<void>(() => pending(removals)),
      dial: fromPromise<HubLink, Attempt>(
        ({ signal, input: { address } }) =>
          new Promise((resolve, reject) => dials.push({ resolve, reject, signal, address })),
      ),
      hear: fromCallback<EventObject, HubLink, HubNews>(({ sendBack }) => {
        hear = sendBack
        return () => {
          hear = undefined
        }
      }),
    },
    actions: {
      forget: () => void told.push('forget'),
      keepServers: (_, { servers, lastAddress }) => void told.push(`kept ${servers?.issue} ${lastAddress}`),
      confirm: (_, { link }) => void told.push(`${(link as Link).name} confirmed`),
    },
  })
  const actor = createActor(machine, { clock, input: { signIn: stored, random: () => 0.5 } })
  actor.on('joinEnded', ({ request, outcome }) => told.push(`${request} ${outcome.kind}`))
  actor.on('leaveEnded', ({ error }) => told.push(error === undefined ? 'left' : 'not left'))
  actor.start()
  const links = new Map<string, Link>()
  const link = (name: string) => {
    const known = links.get(name) ?? new Link(name, told)
    links.set(name, known)
    return known
  }
  const state = () => {
    const { value } = actor.getSnapshot()
    if (typeof value === 'string') return value
    const [inner] = Object.values(value) as (string | { seeking: string })[]
    if (typeof inner !== 'string') return inner?.seeking === 'dialling' ? 'dialling' : 'seeking'
    return inner === 'steady' ? 'connected' : inner
  }
  const newest = () => actor.getSnapshot().context.link as Link | null
  const tell = (news: HubNews) => hear?.(news)
  return { actor, clock, told, dials, tell, writes, removals, asked, link, state, newest }
}
type Rig = ReturnType<typeof rig>
type Step = (rig: Rig) => void

const send =
  (event: HubConnectionEvent): Step =>
  ({ actor }) => {
    if (actor.getSnapshot().status === 'active') actor.send(event)
  }
const join = (request: number) => send({ type: 'JOIN', request, address: new URL('http://hub:1') })
const withdraw = (request: number) => send({ type: 'WITHDRAW', request })
/** As the `ask` actor tells it, and only as long as there is one. */
const accepted =
  (request: number, record = signIn): Step =>
  ({ asked, link }) =>
    asked.get(request)?.({ type: 'ACCEPTED', request, signIn: record, link: link(`link ${request}`) })
const refused =
  (request: number): Step =>
  ({ asked }) =>
    asked.get(request)?.({ type: 'REFUSED', request, error: new Error('no') })
const disconnect = send({ type: 'DISCONNECT' })
const close = send({ type: 'CLOSE' })
const written: Step = ({ writes }) => writes.at(-1)?.resolve()
const notWritten: Step = ({ writes }) => writes.at(-1)?.reject(full)
const removed: Step = ({ removals }) => removals.at(-1)?.resolve()
const notRemoved: Step = ({ removals }) => removals.at(-1)?.reject(full)
const dialled: Step = ({ dials, link }) => dials.at(-1)?.resolve(link('dialled'))
const unreachable: Step = ({ dials }) => dials.at(-1)?.reject(new Error('unreachable'))
const notAMember: Step = ({ dials }) => dials.at(-1)?.reject(new NotAMember('removed'))
const lost: Step = ({ newest }) => newest()?.lose()
const replaced: Step = ({ newest }) => newest()?.lose('REPLACED')
const expelled: Step = ({ newest }) => newest()?.lose('REMOVED')
const list = (issue: bigint): Step => {
  const servers = ['http://hub:1', 'http://b:1', 'http://c:1'].map((address, i) => ({ id: `${i}`, address }))
  return ({ tell }) => tell({ type: 'SERVERS', servers: { issue, servers } })
}
const lookElsewhere: Step = ({ tell }) => tell({ type: 'LOOK_ELSEWHERE' })
const stay: Step = ({ tell }) => tell({ type: 'STAY' })
const pass =
  (milliseconds: number): Step =>
  ({ clock }) =>
    void clock.increment(milliseconds)
/** Half of the way from the least to the most of the first wait. */
const firstWait = reconnectDelay(0, 0.5)
/** The same while a link stands. */
const unhurriedWait = reconnectDelay(MINUTE_ATTEMPTS - 1, 0.5)

async function reached(steps: readonly Step[], stored: SignInRecord | null = null): Promise<Rig> {
  const machine = rig(stored)
  for (const step of steps) {
    step(machine)
    await settle(1)
  }
  return machine
}

describe('transitions', () => {
  const steps = {
    JOIN: join(7),
    WITHDRAW: withdraw(9),
    'WITHDRAW of the one that is accepted': withdraw(1),
    'WITHDRAW of none': withdraw(99),
    ACCEPTED: accepted(9),
    'ACCEPTED by another hub': accepted(9, other),
    REFUSED: refused(9),
    DISCONNECT: disconnect,
    CLOSE: close,
    'the sign-in is on disk': written,
    'the sign-in cannot be written': notWritten,
    'the sign-in is off the disk': removed,
    'the sign-in cannot be taken off': notRemoved,
    dialled: dialled,
    unreachable: unreachable,
    'not a member': notAMember,
    'the link breaks': lost,
    'the link is replaced': replaced,
    'the node is removed': expelled,
    'time passes': pass(firstWait),
    'a list of the servers': list(2n),
    'an older list': list(1n),
    'told to look elsewhere': lookElsewhere,
    'told to stay': stay,
  } as const
  type Name = keyof typeof steps

  // Requests 1 and 9 are made while the node is on no hub; 9 waits for its answer in every state but the first and the last.
  const asking = [join(9)]
  const signingIn = [join(1), join(9), accepted(1)]
  const connected = [...signingIn, written]
  const waiting = [...connected, lost]
  const connecting = [...waiting, pass(firstWait)]
  const leaving = [...connected, disconnect]
  const seeking = [...connected, list(1n), lookElsewhere]
  const dialling = [...seeking, pass(unhurriedWait)]
  // Each state with what is not ignored in it: where it leads, and what is told.
  const table: [string, readonly Step[], Partial<Record<Name, [string, ...string[]]>>][] = [
    ['unauthenticated', [], { JOIN: ['asking'], DISCONNECT: ['leaving'], CLOSE: ['closed'] }],
    [
      'asking',
      asking,
      {
        JOIN: ['asking'],
        WITHDRAW: ['unauthenticated', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['signingIn'],
        REFUSED: ['unauthenticated', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', '9 closed'],
      },
    ],
    [
      'signingIn',
      signingIn,
      {
        JOIN: ['signingIn'],
        WITHDRAW: ['signingIn', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['signingIn'],
        REFUSED: ['signingIn', '9 failed'],
        DISCONNECT: ['signingIn'],
        CLOSE: ['signingIn'],
        'the sign-in is on disk': ['connected', 'link 1 confirmed', '1 joined'],
        'the sign-in cannot be written': ['asking', 'link 1 SHUTDOWN', '1 failed'],
      },
    ],
    [
      'connected',
      connected,
      {
        JOIN: ['connected', '7 signed in already'],
        WITHDRAW: ['connected', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['connected', 'link 9 SHUTDOWN', '9 signed in already'],
        REFUSED: ['connected', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', 'link 1 SHUTDOWN', '9 closed'],
        'the link breaks': ['waiting'],
        'the link is replaced': ['waiting'],
        'the node is removed': ['asking', 'forget'],
        'a list of the servers': ['connected', 'kept 2 undefined'],
        'an older list': ['connected', 'kept 1 undefined'],
        'told to look elsewhere': ['seeking'],
      },
    ],
    [
      'seeking',
      seeking,
      {
        JOIN: ['seeking', '7 signed in already'],
        WITHDRAW: ['seeking', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['seeking', 'link 9 SHUTDOWN', '9 signed in already'],
        REFUSED: ['seeking', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', 'link 1 SHUTDOWN', '9 closed'],
        'the link breaks': ['waiting'],
        'the link is replaced': ['waiting'],
        'the node is removed': ['asking', 'forget'],
        'a list of the servers': ['seeking', 'kept 2 undefined'],
        'told to stay': ['connected'],
      },
    ],
    [
      'dialling',
      dialling,
      {
        JOIN: ['dialling', '7 signed in already'],
        WITHDRAW: ['dialling', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['dialling', 'link 9 SHUTDOWN', '9 signed in already'],
        REFUSED: ['dialling', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', 'link 1 SHUTDOWN', '9 closed'],
        dialled: ['connected', 'kept 1 http://b:1/', 'link 1 REPLACED'],
        unreachable: ['seeking'],
        'not a member': ['asking', 'forget', 'link 1 SHUTDOWN'],
        'the link breaks': ['waiting'],
        'the link is replaced': ['waiting'],
        'the node is removed': ['asking', 'forget'],
        'a list of the servers': ['seeking', 'kept 2 undefined'],
        'told to stay': ['connected'],
      },
    ],
    [
      'waiting',
      waiting,
      {
        JOIN: ['waiting', '7 signed in already'],
        WITHDRAW: ['waiting', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['waiting', 'link 9 SHUTDOWN', '9 signed in already'],
        REFUSED: ['waiting', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', '9 closed'],
        'time passes': ['connecting'],
      },
    ],
    [
      'connecting',
      connecting,
      {
        JOIN: ['connecting', '7 signed in already'],
        WITHDRAW: ['connecting', '9 withdrawn'],
        ACCEPTED: ['signingIn'],
        'ACCEPTED by another hub': ['connecting', 'link 9 SHUTDOWN', '9 signed in already'],
        REFUSED: ['connecting', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['closed', '9 closed'],
        dialled: ['connected', 'kept undefined undefined'],
        unreachable: ['waiting'],
        'not a member': ['asking', 'forget'],
      },
    ],
    [
      'leaving',
      leaving,
      {
        JOIN: ['leaving', '7 signed in already'],
        WITHDRAW: ['leaving', '9 withdrawn'],
        ACCEPTED: ['leaving'],
        'ACCEPTED by another hub': ['leaving'],
        REFUSED: ['leaving', '9 failed'],
        DISCONNECT: ['leaving'],
        CLOSE: ['leaving'],
        'the sign-in is off the disk': ['asking', 'link 1 LEFT', 'left'],
        'the sign-in cannot be taken off': ['connected', 'not left'],
      },
    ],
    ['closed', [close], {}],
  ]
  const rows = table.flatMap(([from, before, leads]) =>
    (Object.keys(steps) as Name[]).map((name) => [from, name, before, leads[name]] as const),
  )
  test.each(rows)('%s: %s', async (from, name, before, leads) => {
    const machine = await reached(before)
    expect(machine.state()).toBe(from)
    machine.told.length = 0
    steps[name](machine)
    await settle(1)
    const [to, ...told] = leads ?? [from]
    expect(machine.state()).toBe(to)
    expect([...machine.told].sort()).toEqual(told.sort())
    const { signIn: held, link } = machine.actor.getSnapshot().context
    if (to === 'unauthenticated' || to === 'asking') expect([held, link]).toEqual([null, null])
    if (to === 'connected') expect([held, link]).toEqual([expect.objectContaining(signIn), expect.any(Link)])
    if (to === 'waiting' || to === 'connecting') expect([held, link]).toEqual([expect.objectContaining(signIn), null])
  })
})

describe('a node that is started', () => {
  test.each<[string, Step[], string, string[]]>([
    ['the hub answers', [dialled], 'connected', ['kept undefined undefined']],
    ['the hub is away', [unreachable], 'waiting', []],
    ['before its time it does not try again', [unreachable, pass(reconnectDelay(1, 0.5) - 1)], 'waiting', []],
    ['in its time it tries again', [unreachable, pass(reconnectDelay(1, 0.5))], 'connecting', []],
    ['removed while it was away', [notAMember], 'unauthenticated', ['forget']],
  ])('signed in: %s', async (_row, steps, state, told) => {
    const machine = await reached(steps, signIn)
    expect(machine.state()).toBe(state)
    expect(machine.told).toEqual(told)
  })

  test('leaving gives up what is being dialled', async () => {
    const { dials } = await reached([disconnect], signIn)
    expect(dials[0]?.signal.aborted).toBe(true)
  })
})

describe('requests that meet', () => {
  test.each<[string, Step[], string, string[]]>([
    [
      'two accepted by one hub: the later link counts',
      [join(1), join(9), accepted(1), accepted(9), written, written],
      'connected',
      ['link 1 confirmed', '1 joined', 'link 1 REPLACED', 'link 9 confirmed', '9 joined'],
    ],
    [
      'two accepted by two hubs: the first counts',
      [join(1), join(9), accepted(1), accepted(9, other), written],
      'connected',
      ['link 1 confirmed', 'link 9 SHUTDOWN', '1 joined', '9 signed in already'],
    ],
    [
      'withdrawn while its turn to be written has not come',
      [join(1), join(9), accepted(1), accepted(9), withdraw(9), written],
      'connected',
      ['link 9 SHUTDOWN', '9 withdrawn', 'link 1 confirmed', '1 joined'],
    ],
    [
      'withdrawn while it is written: it joins',
      [join(1), accepted(1), withdraw(1), written],
      'connected',
      ['link 1 confirmed', '1 joined'],
    ],
    [
      'the first cannot be written, the second can',
      [join(1), join(9), accepted(1), accepted(9), notWritten, written],
      'connected',
      ['link 1 SHUTDOWN', '1 failed', 'link 9 confirmed', '9 joined'],
    ],
    [
      'accepted anew, and not to be written: the old link stays',
      [join(1), join(9), accepted(1), written, accepted(9), notWritten],
      'connected',
      ['link 1 confirmed', '1 joined', 'link 9 SHUTDOWN', '9 failed'],
    ],
    [
      'accepted anew while the node looks for its hub',
      [join(1), join(9), accepted(1), written, lost, accepted(9), written],
      'connected',
      ['link 1 confirmed', '1 joined', 'link 9 confirmed', '9 joined'],
    ],
    [
      'a disconnect while the sign-in is written: joined, then left',
      [join(1), accepted(1), disconnect, written, removed],
      'unauthenticated',
      ['link 1 confirmed', '1 joined', 'link 1 LEFT', 'left'],
    ],
    [
      'a disconnect while the operator thinks: nothing to leave, the request goes on',
      [join(1), disconnect, removed, accepted(1), written],
      'connected',
      ['left', 'link 1 confirmed', '1 joined'],
    ],
    [
      'accepted while the node leaves: it leaves first',
      [join(1), join(9), accepted(1), written, disconnect, accepted(9, other), removed, written],
      'connected',
      ['link 1 confirmed', '1 joined', 'link 1 LEFT', 'left', 'link 9 confirmed', '9 joined'],
    ],
    [
      'the node goes down while the sign-in is written: joined, the hub has it confirmed, then the link ends',
      [join(1), join(9), accepted(1), accepted(9), close, join(7), written],
      'closed',
      ['7 closed', 'link 1 confirmed', 'link 9 SHUTDOWN', 'link 1 SHUTDOWN', '1 joined', '9 closed'],
    ],
    [
      'the node goes down while it leaves: it leaves first',
      [join(1), accepted(1), written, disconnect, close, removed],
      'closed',
      ['link 1 confirmed', '1 joined', 'link 1 LEFT', 'left'],
    ],
  ])('%s', async (_row, steps, state, told) => {
    const machine = await reached(steps)
    expect(machine.told).toEqual(told)
    expect(machine.state()).toBe(state)
  })

  test('a request that is withdrawn, and all when the node goes down, ask no more', async () => {
    const { asked, actor } = await reached([join(1), join(9), withdraw(1)])
    expect([...asked.keys()]).toEqual([9])
    actor.send({ type: 'CLOSE' })
    expect([...asked.keys()]).toEqual([])
  })

  test('while a node that is connected joins anew, it is connected', async () => {
    const { actor, state, link } = await reached([join(1), join(9), accepted(1), written, accepted(9)])
    expect(state()).toBe('signingIn')
    expect(actor.getSnapshot().context).toMatchObject({ signIn, link: link('link 1') })
  })
})

const joined = [join(1), accepted(1), written]

test('a link that stood before counts no more: neither its end nor its removal', async () => {
  const machine = await reached([join(1), join(9), accepted(1), written, accepted(9), written])
  machine.link('link 1').lose('REMOVED')
  await settle(1)
  expect(machine.state()).toBe('connected')
  machine.link('link 9').lose()
  await settle(1)
  expect(machine.state()).toBe('waiting')
})

test('the first list over each link is taken whatever its number, others by a higher one', async () => {
  const machine = await reached([...joined, list(9n), list(2n), lost, pass(MAX_BACK_OFF_MS), dialled])
  const held = () => machine.actor.getSnapshot().context.signIn?.servers?.issue
  expect(held()).toBe(9n)
  for (const [told, issue] of [
    [2n, 2n],
    [1n, 2n],
    [3n, 3n],
  ] as const) {
    list(told)(machine)
    expect(held()).toBe(issue)
  }
  for (const step of [lost, pass(MAX_BACK_OFF_MS), dialled]) {
    step(machine)
    await settle(1)
  }
  machine.told.length = 0
  list(3n)(machine)
  expect(machine.told).toEqual([])
  list(2n)(machine)
  expect(held()).toBe(3n)
})

test('waits grow with failures in a row, and start anew after a healthy link', async () => {
  const machine = rig(signIn)
  const waits: number[] = []
  for (let i = 0; i < 43; i++) {
    unreachable(machine)
    await settle(1)
    const before = machine.clock.now()
    while (machine.state() === 'waiting') machine.clock.increment(250)
    waits.push(machine.clock.now() - before)
  }
  expect(waits).toEqual([...waits].sort((a, b) => a - b))
  expect(waits.at(-1)).toBe(15_250)
  let passed = 0
  expect(
    waits.filter((wait) => {
      passed += wait
      return passed <= 60_000 && wait > 4_000
    }),
    'in the first minute',
  ).toEqual([])
  dialled(machine)
  await settle(1)
  machine.clock.increment(HEALTHY_MS - 1)
  expect(machine.actor.getSnapshot().context.attempts).toBe(43)
  machine.clock.increment(1)
  expect(machine.actor.getSnapshot().context.attempts).toBe(0)
})

test('a link whose place another connection with the same key has taken lengthens the wait', async () => {
  const machine = await reached([...joined, replaced])
  expect(machine.state()).toBe('waiting')
  expect(machine.actor.getSnapshot().context.attempts).toBe(1)
})

test('waits are spread between half a second and their most', () => {
  for (const attempts of [0, 1, 2, 5, 10, 1_000]) {
    expect(reconnectDelay(attempts, 0)).toBe(MIN_BACK_OFF_MS)
    expect(reconnectDelay(attempts, 0.999)).toBeLessThanOrEqual(MAX_BACK_OFF_MS)
  }
  expect(reconnectDelay(1_000, 1)).toBe(MAX_BACK_OFF_MS)
})

test('a hub that was away for a quarter of a minute has every attempt within 2 s, for a minute within 4 s; of one away for longer they come ever less often', () => {
  const most = Array.from({ length: 44 }, (_, attempts) => reconnectDelay(attempts, 1) / 1000)
  expect(most).toEqual([1, ...Array(12).fill(2), ...Array(27).fill(4), 8, 16, 30, 30])
  const shortest = most.findIndex((wait) => wait > 2) * (MIN_BACK_OFF_MS / 1000)
  expect(shortest, 'however the chances fall').toBeGreaterThanOrEqual(4)
  const mean = (attempts: number) =>
    most.slice(0, attempts).reduce((sum, wait) => sum + (wait + MIN_BACK_OFF_MS / 1000) / 2, 0)
  expect(mean(13)).toBeGreaterThan(15)
  // Three standard deviations of the sum above a minute.
  const variance = most.slice(0, 40).reduce((sum, wait) => sum + (wait - MIN_BACK_OFF_MS / 1000) ** 2 / 12, 0)
  expect(mean(40) - 3 * Math.sqrt(variance)).toBeGreaterThan(59)
})
