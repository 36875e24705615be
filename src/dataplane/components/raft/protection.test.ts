import { expect, test } from 'vitest'
import { repairRate } from './protection.ts'

const CONDITIONS = { loss: 0.05, resends: 0, window: 100, realtime: true, spare: false }

test('without loss, or hardly any, there are no repairs', () => {
  expect(repairRate({ ...CONDITIONS, loss: 0 })).toBe(0)
  expect(repairRate({ ...CONDITIONS, loss: 0.0004 })).toBe(0)
})

test('where nothing can be sent again they make up for the loss and five standard deviations of it', () => {
  const spread = 5 * Math.sqrt((0.05 * 0.95) / 100)
  expect(repairRate(CONDITIONS)).toBeCloseTo((0.05 + spread) / 0.95, 12)
  // A shorter window varies more.
  expect(repairRate({ ...CONDITIONS, window: 10 })).toBeGreaterThan(repairRate(CONDITIONS))
})

test('where pieces can be sent again once they are what is lost on average, for a realtime stream as if they could not', () => {
  expect(repairRate({ ...CONDITIONS, resends: 1, realtime: false })).toBe(0.05)
  expect(repairRate({ ...CONDITIONS, resends: 1 })).toBe(repairRate(CONDITIONS))
})

test('where pieces can be sent again oftener a transit stream has none, a realtime stream as many as are lost', () => {
  expect(repairRate({ ...CONDITIONS, resends: 2, realtime: false })).toBe(0)
  expect(repairRate({ ...CONDITIONS, resends: 5 })).toBe(0.05)
})

test('where there is room to spare a transit stream has as many as if nothing could be sent again', () => {
  for (const resends of [1, 2, 5]) {
    expect(repairRate({ ...CONDITIONS, resends, realtime: false, spare: true })).toBe(repairRate(CONDITIONS))
  }
  expect(repairRate({ ...CONDITIONS, resends: 5, spare: true })).toBe(0.05)
})

test('there is never more than one for each piece', () => {
  expect(repairRate({ ...CONDITIONS, loss: 0.9 })).toBe(1)
})
