import { describe, expect, test } from 'vitest'
import { type Candidate, choose, chooseAgain, type Surety } from './scheduler.ts'

const carrier = (fields: Partial<Surety>): Surety => ({
  priority: 0,
  room: 10_000,
  credit: 0,
  loss: 0,
  rtt: { smoothed: 30e6 },
  isPaced: false,
  ...fields,
})
const all = (carriers: readonly Candidate[]): Uint8Array => new Uint8Array(carriers.length).fill(1)

/** How many of `count` packets of 1,000 bytes each carrier gets while its room stays what it is. */
function shares(carriers: readonly Candidate[], count: number): number[] {
  const taken = carriers.map(() => 0)
  for (let n = 0; n < count; n++) taken[choose(carriers, all(carriers), 1000)]++
  return taken
}

describe('a packet goes', () => {
  test('on the highest priority that has room, and to the next when it has none', () => {
    const carriers = [carrier({ priority: 1 }), carrier({ priority: 7 }), carrier({ priority: 3 })]
    expect(shares(carriers, 10)).toEqual([0, 10, 0])
    carriers[1] = carrier({ priority: 7, room: 0 })
    expect(shares(carriers, 10)).toEqual([0, 0, 10])
    carriers[2] = carrier({ priority: 3, room: -200 })
    expect(shares(carriers, 10)).toEqual([10, 0, 0])
  })

  test('on equals in proportion to their room', () => {
    expect(shares([carrier({ room: 20_000 }), carrier({ room: 10_000 }), carrier({ room: 30_000 })], 600)).toEqual([
      200, 100, 300,
    ])
  })

  test('in the same proportion beside those that cannot take it', () => {
    const without = [carrier({ priority: 9, room: 0 }), carrier({ room: -1 }), carrier({ priority: -1 })]
    const carriers = [...without, carrier({ room: 20_000 }), carrier({ room: 10_000 })]
    expect(shares(carriers, 300)).toEqual([0, 0, 0, 200, 100])
  })

  test('on those without limit alike, and on none with one beside them', () => {
    const unlimited = { room: Number.POSITIVE_INFINITY }
    expect(shares([carrier(unlimited), carrier({}), carrier(unlimited)], 100)).toEqual([50, 0, 50])
  })

  test('on none where none is usable or has room', () => {
    expect(choose([carrier({}), carrier({})], new Uint8Array(2), 1000)).toBe(-1)
    expect(choose([carrier({ room: 0 })], all([carrier({})]), 1000)).toBe(-1)
    expect(chooseAgain([carrier({})], new Uint8Array(1))).toBe(-1)
  })
})

describe('a piece that goes again', () => {
  const chosen = (carriers: readonly Surety[]): number => chooseAgain(carriers, all(carriers))

  test('goes where it is there soonest on average, what is lost again included', () => {
    const longer = { rtt: { smoothed: 80e6 } }
    expect(chosen([carrier({ loss: 0.05, rtt: { smoothed: 30e6 } }), carrier({ loss: 0, ...longer })])).toBe(0)
    expect(
      chosen([carrier({ loss: 0.6, rtt: { smoothed: 30e6 } }), carrier({ loss: 0, rtt: { smoothed: 60e6 } })]),
    ).toBe(1)
    expect(chosen([carrier({ loss: 0.01, ...longer }), carrier({ loss: 0, ...longer })])).toBe(1)
  })

  test('goes on a lower priority only where the higher has no room', () => {
    expect(chosen([carrier({ loss: 0.05, priority: 1 }), carrier({ loss: 0 })])).toBe(0)
    expect(chosen([carrier({ loss: 0.05, priority: 1, room: 0 }), carrier({ loss: 0 })])).toBe(1)
  })

  test('goes where there is room', () => {
    expect(chosen([carrier({ loss: 0.05 }), carrier({ loss: 0, room: 0 })])).toBe(0)
  })

  test('waits for the best carrier where only its pace leaves that without room', () => {
    const slow = carrier({ rtt: { smoothed: 100e6 } })
    expect(chosen([carrier({ room: 0, isPaced: true }), slow])).toBe(-1)
    expect(chosen([carrier({ room: 0 }), slow])).toBe(1)
    expect(chosen([carrier({ room: 1, isPaced: true }), slow])).toBe(0)
  })
})
