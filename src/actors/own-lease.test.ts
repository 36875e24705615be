/** The lease of this server: every event in every state, and that the clock decides, not the timer. */
import { expect, test } from 'vitest'
import { createActor, SimulatedClock } from 'xstate'
import { isHeld, type OwnLeaseEvent, ownLease } from './own-lease.ts'

function rig() {
  const clock = new SimulatedClock()
  // What the process sees: it may have been stopped, with its timers.
  let skipped = 0
  const now = () => clock.now() + skipped
  const actor = createActor(ownLease, { input: { now }, clock })
  const told: string[] = []
  for (const type of ['held', 'lost'] as const) actor.on(type, () => told.push(type))
  actor.start()
  return {
    actor,
    told,
    clock,
    now,
    stop: (milliseconds: number) => {
      skipped += milliseconds
    },
    state: () => actor.getSnapshot().value,
  }
}

type Rig = ReturnType<typeof rig>
type Step = (rig: Rig) => void
const send =
  (event: (rig: Rig) => OwnLeaseEvent): Step =>
  (of) =>
    of.actor.getSnapshot().status === 'active' && of.actor.send(event(of))
const sentAgo = (milliseconds: number) => send(({ now }) => ({ type: 'ACKNOWLEDGED', sentAt: now() - milliseconds }))
const after =
  (milliseconds: number): Step =>
  ({ clock }) =>
    clock.increment(milliseconds)

const acknowledged = sentAgo(100)
const old = sentAgo(2_900)
const tooOld = sentAgo(3_000)
const taken = send(() => ({ type: 'TAKEN' }))
const close = send(() => ({ type: 'CLOSE' }))

// What led here, the event, the state after it, what was told in all.
test.each<[string, Step[], string, string[]]>([
  ['asked', [], 'asked', []],
  ['asked: an answer in time', [acknowledged], 'held', ['held']],
  ['asked: an answer that comes too late', [tooOld], 'lost', ['lost']],
  ['asked: the key is another’s', [taken], 'lost', ['lost']],
  ['asked: closed', [close], 'lost', ['lost']],
  ['asked: nothing for long', [after(60_000)], 'asked', []],
  ['held: 2,899 ms later', [acknowledged, after(2_899)], 'held', ['held']],
  ['held: 2,900 ms later', [acknowledged, after(2_900)], 'lost', ['held', 'lost']],
  ['held: renewed', [acknowledged, after(1_000), acknowledged, after(2_899)], 'held', ['held']],
  ['held: renewed, and over then', [acknowledged, after(1_000), acknowledged, after(2_900)], 'lost', ['held', 'lost']],
  ['held: an older answer changes nothing', [acknowledged, after(1_000), old, after(1_900)], 'lost', ['held', 'lost']],
  ['held: an older answer ends nothing', [acknowledged, after(1_000), old, after(1_899)], 'held', ['held']],
  ['held: the key is another’s', [acknowledged, taken], 'lost', ['held', 'lost']],
  ['held: closed', [acknowledged, close], 'lost', ['held', 'lost']],
  ['lost: an answer', [acknowledged, taken, acknowledged], 'lost', ['held', 'lost']],
  [
    'held: stopped for 10 s, then an answer',
    [acknowledged, (of) => of.stop(10_000), acknowledged],
    'lost',
    ['held', 'lost'],
  ],
])('%s', (_, steps, state, told) => {
  const lease = rig()
  for (const step of steps) step(lease)
  expect(lease.state()).toBe(state)
  expect(lease.told).toEqual(told)
})

test('a server that was stopped holds nothing, though its timer has not fired', () => {
  const lease = rig()
  acknowledged(lease)
  expect(isHeld(lease.actor.getSnapshot().context)).toBe(true)
  lease.stop(2_900)
  expect(lease.state()).toBe('held')
  expect(isHeld(lease.actor.getSnapshot().context)).toBe(false)
})
