import { expect, test } from 'vitest'
import { DeliveryRate } from './delivery-rate.ts'

const MS = 1e6
const WHILE = 100 * MS

/** Reports every 10 ms of 10,000 bytes each, sent 15 ms before they come. */
function steady(rate: DeliveryRate, from: number, until: number): boolean {
  let isOver = false
  for (let n = from; n <= until; n++) isOver = rate.take(n * 10 * MS, (n * 10 + 15) * MS, n * 10_000, WHILE)
  return isOver
}

test('says nothing before a while is over, then what came in the last one', () => {
  const rate = new DeliveryRate()
  expect(steady(rate, 0, 6)).toBe(false)
  expect(steady(rate, 7, 40)).toBe(true)
  expect(rate.arriving).toBeGreaterThanOrEqual(WHILE)
  expect(rate.arriving).toBeLessThanOrEqual(1.25 * WHILE)
  expect(rate.sending).toBe(rate.arriving)
  expect(rate.bytes / rate.arriving).toBe(10_000 / (10 * MS))
  expect(rate.since).toBe(400 * MS - rate.sending)
})

test('tells the shortest round trip of the while', () => {
  const rate = new DeliveryRate()
  for (const trip of [20, 40, 60]) {
    rate.meet((trip + 5) * MS)
    rate.meet(trip * MS)
    steady(rate, trip, trip + 9)
  }
  expect(rate.shortest).toBe(60 * MS)
  steady(rate, 70, 90)
  expect(rate.shortest).toBe(0)
})

test('shows that what was sent takes longer to come', () => {
  const rate = new DeliveryRate()
  steady(rate, 0, 20)
  // From here on a queue grows: each 10 ms of sending take 12 ms to come.
  for (let n = 1; n <= 20; n++) rate.take((200 + n * 10) * MS, (215 + n * 12) * MS, (20 + n) * 10_000, WHILE)
  expect(rate.arriving / rate.sending).toBeCloseTo(1.2, 9)
  expect(rate.bytes / rate.arriving).toBeCloseTo(10_000 / (12 * MS), 12)
})
