/** When connections that have been finished at their other end are closed. */
import { expect, it } from 'vitest'
import { Packets } from '../../engine/packets.ts'
import { TimerQueue } from '../../engine/timers.ts'
import { Connection } from './connection.ts'
import { HalfClosed } from './half-closed.ts'
import { SendQueue } from './send-queue.ts'

const packets = new Packets({ slots: 1, mtu: 100 })
const SECOND = 1e9

/** Connections that have finished at `since`, where the end of number `cause` is that of number `ended` too; which were closed and when, seconds. */
function closed(since: readonly number[], cause = -1, ended = -1): [number, number][] {
  const clock = { now: 0, epoch: 0, waitedFrom: 0, stamp: () => clock.now }
  const timers = new TimerQueue()
  const connections = since.map(() => new Connection(null, new SendQueue(packets, new Int32Array(1))))
  const found: [number, number][] = []
  const half = new HalfClosed({ clock, timer: (fire) => timers.create(fire) }, (connection) => {
    const index = connections.indexOf(connection)
    found.push([index, clock.now / SECOND])
    half.forget(connection)
    if (index === cause) half.forget(connections[ended] as Connection)
  })
  since.forEach((seconds, i) => {
    clock.now = seconds * SECOND
    half.add(connections[i] as Connection)
  })
  while (timers.next < Number.POSITIVE_INFINITY) {
    clock.now = timers.next
    timers.fireDue(clock.now)
  }
  return found
}

it('is ten seconds after they have', () => {
  expect(closed([0, 0, 3])).toEqual([
    [0, 10],
    [1, 10],
    [2, 13],
  ])
})

it.each([
  { cause: 0, ended: 1, left: [0, 2] },
  { cause: 0, ended: 2, left: [0, 1] },
  { cause: 2, ended: 0, left: [0, 1, 2] },
])('is once for each, though the end of number $cause is that of number $ended', ({ cause, ended, left }) => {
  expect(closed([0, 0, 0], cause, ended)).toEqual(left.map((index) => [index, 10]))
})
