/** A server's link to another, on a simulated clock: every event in every state. */
import { expect, test } from 'vitest'
import { createActor, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { HEALTHY_MS, reconnectDelay } from './reconnect-delay.ts'
import { type ServerSession, serverLink } from './server-link.ts'

function rig() {
  const clock = new SimulatedClock()
  const dials: { address: string; signal: AbortSignal; resolve(session: ServerSession): void; reject(): void }[] = []
  const told: string[] = []
  const machine = serverLink.provide({
    actors: {
      dial: fromPromise<ServerSession, string>(
        ({ input, signal }) =>
          new Promise((resolve, reject) => {
            dials.push({ address: input, signal, resolve, reject: () => reject(new Error('away')) })
          }),
      ),
    },
  })
  const actor = createActor(machine, { clock, input: { address: 'http://b:1', random: () => 0.5 } })
  actor.start()
  let end: (reason: string) => void = () => {}
  const session: ServerSession = {
    close: () => void told.push('closed'),
    // Of the link that is dialled now.
    get closed() {
      return new Promise<{ reason: string; byPeer: boolean }>((resolve) => {
        end = (reason) => resolve({ reason, byPeer: true })
      })
    },
  }
  return { actor, clock, dials, told, session, end: (why: string) => end(why), state: () => actor.getSnapshot().value }
}
type Step = (machine: ReturnType<typeof rig>) => void

const dialled: Step = ({ dials, session }) => dials.at(-1)?.resolve(session)
const unreachable: Step = ({ dials }) => dials.at(-1)?.reject()
const lost: Step = ({ end }) => end('LOST')
const replaced: Step = ({ end }) => end('REPLACED')
const send =
  (event: { type: 'CLOSE' } | { type: 'MOVED'; address: string }): Step =>
  ({ actor }) => {
    if (actor.getSnapshot().status === 'active') actor.send(event)
  }
const time: Step = ({ clock }) => void clock.increment(reconnectDelay(1, 0.5))

const steps = {
  dialled,
  unreachable,
  lost,
  CLOSE: send({ type: 'CLOSE' }),
  MOVED: send({ type: 'MOVED', address: 'http://c:1' }),
  'MOVED to where it is': send({ type: 'MOVED', address: 'http://b:1' }),
  'time passes': time,
} as const
type Name = keyof typeof steps

// Each state with what is not ignored in it: where it leads, what is told, and what is dialled then.
const table: [string, Step[], Partial<Record<Name, [string, string[], string[]]>>][] = [
  [
    'dialling',
    [],
    {
      dialled: ['standing', [], []],
      unreachable: ['waiting', [], []],
      CLOSE: ['closed', [], []],
      MOVED: ['dialling', [], ['http://c:1']],
    },
  ],
  ['standing', [dialled], { lost: ['waiting', [], []], CLOSE: ['closed', ['closed'], []] }],
  [
    'waiting',
    [unreachable],
    {
      CLOSE: ['closed', [], []],
      MOVED: ['dialling', [], ['http://c:1']],
      'time passes': ['dialling', [], ['http://b:1']],
    },
  ],
  ['closed', [dialled, steps.CLOSE], {}],
]
const rows = table.flatMap(([from, before, leads]) =>
  (Object.keys(steps) as Name[]).map((name) => [from, name, before, leads[name]] as const),
)

test.each(rows)('%s: %s', async (from, name, before, leads) => {
  const machine = rig()
  for (const step of before) {
    step(machine)
    await settle(1)
  }
  expect(machine.state()).toBe(from)
  machine.told.length = 0
  const known = machine.dials.length
  steps[name](machine)
  await settle(1)
  const [to, told, addresses] = leads ?? [from, [], []]
  expect(machine.state()).toBe(to)
  expect(machine.told).toEqual(told)
  expect(machine.dials.slice(known).map(({ address }) => address)).toEqual(addresses)
  expect(machine.actor.getSnapshot().context.session).toBe(
    to === 'standing' || from === 'closed' || (from === 'standing' && to === 'closed') ? machine.session : null,
  )
})

test('what is dialled is given up when it is not wanted any more', async () => {
  for (const name of ['CLOSE', 'MOVED'] as const) {
    const machine = rig()
    steps[name](machine)
    await settle(1)
    expect(machine.dials[0]?.signal.aborted).toBe(true)
  }
})

test('a link that is lost after the server has moved is dialled where it is now', async () => {
  const machine = rig()
  for (const step of [dialled, steps.MOVED, lost, time]) {
    step(machine)
    await settle(1)
  }
  expect(machine.dials.at(-1)?.address).toBe('http://c:1')
})

test.each<[string, Step[]]>([
  ['failures', [unreachable]],
  ['links that another process with this identity takes over', [dialled, replaced]],
])('waits grow with %s in a row; a healthy link ends the row', async (_, failing) => {
  const machine = rig()
  for (const attempts of [1, 2, 3]) {
    for (const step of failing) {
      step(machine)
      await settle(1)
    }
    machine.clock.increment(reconnectDelay(attempts, 0.5) - 1)
    expect(machine.state()).toBe('waiting')
    machine.clock.increment(1)
    expect(machine.state()).toBe('dialling')
  }
  dialled(machine)
  await settle(1)
  machine.clock.increment(HEALTHY_MS)
  expect(machine.actor.getSnapshot().context.attempts).toBe(0)
})
