/** A node's standing with its hub, on a simulated clock: every transition of the specification and of the reconnects. */
import { describe, expect, test } from 'vitest'
import { createActor, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import type { SignInRecord } from '../store/sign-in.ts'
import {
  BACK_OFF_LEAST_MS,
  BACK_OFF_MOST_MS,
  HEALTHY_MS,
  type HubLink,
  hubConnection,
  NotAMember,
  reconnectDelay,
} from './hub-connection.ts'

const signIn: SignInRecord = { hubAddress: 'http://hub:1', hubId: 'h', hubKey: new Uint8Array(32) }

class Link implements HubLink {
  readonly name: string
  readonly closings: string[] = []
  #resolve: (closed: { reason: string; byPeer: boolean }) => void = () => {}
  readonly closed = new Promise<{ reason: string; byPeer: boolean }>((resolve) => {
    this.#resolve = resolve
  })
  constructor(name: string) {
    this.name = name
  }
  close(reason: string): void {
    this.closings.push(reason)
  }
  lose(reason = 'LOST', byPeer = true): void {
    this.#resolve({ reason, byPeer })
  }
}

/** What was begun in promises is done. */

function rig(stored: SignInRecord | null) {
  const clock = new SimulatedClock()
  const dials: { resolve: (link: HubLink) => void; reject: (error: Error) => void; signal: AbortSignal }[] = []
  let forgotten = 0
  const machine = hubConnection.provide({
    actors: {
      dial: fromPromise<HubLink, SignInRecord>(
        ({ signal }) => new Promise((resolve, reject) => dials.push({ resolve, reject, signal })),
      ),
    },
    actions: { forget: () => void forgotten++ },
  })
  const actor = createActor(machine, { clock, input: { signIn: stored, random: () => 0.5 } }).start()
  const state = () => {
    const { value } = actor.getSnapshot()
    return typeof value === 'string' ? value : value.disconnected
  }
  const link = new Link('first')
  return { actor, clock, dials, state, link, forgotten: () => forgotten }
}
type Rig = ReturnType<typeof rig>

const joined = (rig: Rig, link: HubLink = rig.link) => rig.actor.send({ type: 'JOINED', signIn, link })
const disconnect = (rig: Rig) => rig.actor.send({ type: 'DISCONNECT' })
const dialled = (rig: Rig) => rig.dials.at(-1)?.resolve(rig.link)
const refused = (rig: Rig) => rig.dials.at(-1)?.reject(new NotAMember('removed'))
const unreachable = (rig: Rig) => rig.dials.at(-1)?.reject(new Error('unreachable'))
const lost = (rig: Rig) => rig.link.lose()
const removed = (rig: Rig) => rig.link.lose('REMOVED')
const pass = (milliseconds: number) => (rig: Rig) => rig.clock.increment(milliseconds)
/** Half of the way from the least to the most of the first wait. */
const firstWait = reconnectDelay(1, 0.5)

type Step = (rig: Rig) => void
const none = null
describe('transitions', () => {
  // With this sign-in on disk, after these steps in this state, a step leads to a state; the sign-in is held, forgotten so often.
  const table: [string, SignInRecord | null, Step[], string, Step, string, boolean, number][] = [
    ['not authenticated: the hub server accepts', none, [], 'unauthenticated', joined, 'connected', true, 0],
    ['not authenticated: disconnect', none, [], 'unauthenticated', disconnect, 'unauthenticated', false, 0],
    ['authenticated: started again, the hub answers', signIn, [], 'connecting', dialled, 'connected', true, 0],
    ['authenticated: started again, the hub is away', signIn, [], 'connecting', unreachable, 'waiting', true, 0],
    ['authenticated: removed while it was away', signIn, [], 'connecting', refused, 'unauthenticated', false, 1],
    ['authenticated, connecting: disconnect', signIn, [], 'connecting', disconnect, 'unauthenticated', false, 0],
    ['authenticated, connecting: accepted once more', signIn, [], 'connecting', joined, 'connected', true, 0],
    [
      'authenticated, waiting: its time passes',
      signIn,
      [unreachable],
      'waiting',
      pass(firstWait),
      'connecting',
      true,
      0,
    ],
    [
      'authenticated, waiting: before its time',
      signIn,
      [unreachable],
      'waiting',
      pass(firstWait - 1),
      'waiting',
      true,
      0,
    ],
    ['authenticated, waiting: disconnect', signIn, [unreachable], 'waiting', disconnect, 'unauthenticated', false, 0],
    ['authenticated, waiting: accepted once more', signIn, [unreachable], 'waiting', joined, 'connected', true, 0],
    ['authenticated, connected: the link breaks', none, [joined], 'connected', lost, 'waiting', true, 0],
    ['authenticated, connected: removeNode', none, [joined], 'connected', removed, 'unauthenticated', false, 1],
    ['authenticated, connected: disconnect', none, [joined], 'connected', disconnect, 'unauthenticated', false, 0],
  ]
  test.each(table)('%s', async (_row, stored, before, from, step, to, signedIn, forgotten) => {
    const machine = rig(stored)
    for (const earlier of before) {
      earlier(machine)
      await settle(1)
    }
    expect(machine.state()).toBe(from)
    step(machine)
    await settle(1)
    expect(machine.state()).toBe(to)
    expect(machine.actor.getSnapshot().context.signIn !== null).toBe(signedIn)
    expect(machine.actor.getSnapshot().context.link !== null).toBe(to === 'connected')
    expect(machine.forgotten()).toBe(forgotten)
  })
})

test('leaving tells the hub and gives up what is being dialled', async () => {
  const machine = rig(null)
  joined(machine)
  disconnect(machine)
  expect(machine.link.closings).toEqual(['LEFT'])
  const dialling = rig(signIn)
  disconnect(dialling)
  expect(dialling.dials[0]?.signal.aborted).toBe(true)
})

test('a link that stood before counts no more: neither its end nor its removal', async () => {
  const machine = rig(null)
  joined(machine)
  const second = new Link('second')
  joined(machine, second)
  expect(machine.link.closings).toEqual(['REPLACED'])
  machine.link.lose('REMOVED')
  await settle(1)
  expect(machine.state()).toBe('connected')
  second.lose()
  await settle(1)
  expect(machine.state()).toBe('waiting')
})

test('waits grow with failures in a row, and start anew after a healthy link', async () => {
  const machine = rig(signIn)
  const waits: number[] = []
  for (let i = 0; i < 9; i++) {
    unreachable(machine)
    await settle(1)
    const before = machine.clock.now()
    while (machine.state() === 'waiting') machine.clock.increment(250)
    waits.push(machine.clock.now() - before)
  }
  expect(waits).toEqual([...waits].sort((a, b) => a - b))
  expect(waits.at(-1)).toBe(15_250)
  dialled(machine)
  await settle(1)
  machine.clock.increment(HEALTHY_MS - 1)
  expect(machine.actor.getSnapshot().context.attempts).toBe(9)
  machine.clock.increment(1)
  expect(machine.actor.getSnapshot().context.attempts).toBe(0)
})

test('a link whose place another connection with the same key has taken lengthens the wait', async () => {
  const machine = rig(null)
  joined(machine)
  machine.link.lose('REPLACED')
  await settle(1)
  expect(machine.state()).toBe('waiting')
  expect(machine.actor.getSnapshot().context.attempts).toBe(1)
})

test('waits are spread between half a second and their most', () => {
  for (const attempts of [0, 1, 2, 5, 10, 1_000]) {
    expect(reconnectDelay(attempts, 0)).toBe(BACK_OFF_LEAST_MS)
    expect(reconnectDelay(attempts, 0.999)).toBeLessThanOrEqual(BACK_OFF_MOST_MS)
  }
  expect(reconnectDelay(1_000, 1)).toBe(BACK_OFF_MOST_MS)
})
