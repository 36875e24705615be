/** The lease of another server: every event in every state, at times of this server's own clock. */
import { expect, test } from 'vitest'
import { createActor } from 'xstate'
import { type SeenLeaseEvent, seenLease } from './seen-lease.ts'

const renewed = (at: number): SeenLeaseEvent => ({ type: 'RENEWED', at })
const current = (asOf: number): SeenLeaseEvent => ({ type: 'CURRENT', asOf })
const resumed = (at: number): SeenLeaseEvent => ({ type: 'RESUMED', at })
const deleted: SeenLeaseEvent = { type: 'DELETED' }

// Seen first at 1,000.
test.each<[string, SeenLeaseEvent[], string]>([
  ['nothing said', [], 'standing'],
  ['5 s seen without a renewal', [current(3_500), current(6_000)], 'ended'],
  ['a moment less', [current(3_500), current(5_999)], 'standing'],
  [
    'a renewal counts from where it was seen',
    [renewed(3_000), current(3_500), current(6_500), current(7_999)],
    'standing',
  ],
  ['and not longer', [renewed(3_000), current(3_500), current(6_500), current(8_000)], 'ended'],
  [
    'nothing was seen for more than 3 s: 5 s from then',
    [current(2_000), current(5_001), current(8_001), current(10_000)],
    'standing',
  ],
  ['and not longer', [current(2_000), current(5_001), current(8_001), current(10_001)], 'ended'],
  ['nothing was seen for 3 s: that counts', [current(3_000), current(6_000)], 'ended'],
  ['nothing is seen: nobody is dead', [renewed(3_000), renewed(900_000)], 'standing'],
  [
    'away for long, back: 5 s from then',
    [resumed(60_000), current(60_500), current(63_000), current(64_999)],
    'standing',
  ],
  ['and not longer', [resumed(60_000), current(60_500), current(63_000), current(65_000)], 'ended'],
  ['what was current before it was away', [resumed(60_000), current(7_000)], 'standing'],
  ['deleted', [deleted], 'ended'],
  ['renewed after its end', [deleted, renewed(2_000)], 'ended'],
  ['seen after its end', [deleted, current(2_000), resumed(3_000), deleted], 'ended'],
])('%s', (_, events, state) => {
  const actor = createActor(seenLease, { input: { at: 1_000 } })
  const told: string[] = []
  actor.on('ended', () => told.push('ended'))
  actor.start()
  for (const event of events) if (actor.getSnapshot().status === 'active') actor.send(event)
  expect(actor.getSnapshot().value).toBe(state)
  expect(told).toEqual(state === 'ended' ? ['ended'] : [])
})
