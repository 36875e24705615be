import { expect, test } from 'vitest'
import { TokenBucket } from './token-bucket.ts'

const MS = 1e6
/** 8 Mbit/s, bytes per ns. */
const PACE = 1 / 1000

test('fills at the pace, and says when something may go again', () => {
  const bucket = new TokenBucket()
  bucket.spend(4000)
  expect(bucket.bytes).toBe(-1000)
  const at = bucket.nextAt(PACE)
  expect(at).toBe(1001 * 1000)
  bucket.fill(PACE, at)
  expect(bucket.bytes).toBeCloseTo(1, 9)
})

test('after a pause 10 ms of the pace may go at once, 3,000 bytes at least', () => {
  const bucket = new TokenBucket()
  bucket.fill(PACE, 1000 * MS)
  expect(bucket.bytes).toBe(10_000)
  bucket.fill(PACE / 10, 2000 * MS)
  expect(bucket.bytes).toBe(3000)
})

test('without limit it stays as it is, and fills from there when there is one again', () => {
  const bucket = new TokenBucket()
  bucket.spend(3000)
  bucket.fill(Number.POSITIVE_INFINITY, 1000 * MS)
  expect(bucket.bytes).toBe(0)
  bucket.fill(PACE, 1001 * MS)
  expect(bucket.bytes).toBeCloseTo(1000, 6)
})
