import { expect, test } from 'vitest'
import { RoundTrip } from './round-trip.ts'

const MS = 1e6
const S = 1e9

test('the first one counts whole, each later one an eighth', () => {
  const rtt = new RoundTrip()
  expect(rtt.known).toBe(false)
  expect(rtt.cautious).toBe(200 * MS)
  expect(rtt.least).toBe(200 * MS)
  rtt.sample(40 * MS, 0)
  expect(rtt.smoothed).toBe(40 * MS)
  rtt.sample(48 * MS, 1)
  expect(rtt.smoothed).toBe(41 * MS)
  // RFC 6298, section 2.3, with alpha = 1/8.
  rtt.sample(41 * MS, 2)
  expect(rtt.smoothed).toBe(41 * MS)
})

test('what is overdue is reckoned from the longer of the mean and the newest', () => {
  const rtt = new RoundTrip()
  rtt.sample(40 * MS, 0)
  rtt.sample(80 * MS, 1)
  expect(rtt.cautious).toBe(80 * MS)
  rtt.sample(20 * MS, 2)
  expect(rtt.cautious).toBe(rtt.smoothed)
})

test('the least one counts for ten seconds at least and for twenty at most', () => {
  const rtt = new RoundTrip()
  rtt.sample(10 * MS, 1)
  for (let at = 1 * S; at <= 10 * S; at += S) {
    rtt.sample(30 * MS, at)
    expect(rtt.least).toBe(10 * MS)
  }
  for (let at = 11 * S; at <= 20 * S; at += S) {
    rtt.sample(30 * MS, at)
    expect(rtt.least).toBe(10 * MS)
  }
  for (let at = 21 * S; at <= 32 * S; at += S) rtt.sample(30 * MS, at)
  expect(rtt.least).toBe(30 * MS)
})

test('a queue is what makes it longer by an eighth, and by 12 ms at least', () => {
  const near = new RoundTrip()
  near.sample(10 * MS, 0)
  expect(near.isQueued(22 * MS)).toBe(false)
  expect(near.isQueued(22.1 * MS)).toBe(true)
  const far = new RoundTrip()
  far.sample(160 * MS, 0)
  expect(far.isQueued(180 * MS)).toBe(false)
  expect(far.isQueued(180.1 * MS)).toBe(true)
})
