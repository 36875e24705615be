/** Histograms: quantiles against exact ones, and published buckets against their bounds. */
import { expect, test } from 'vitest'
import { bucketsAt, HISTOGRAM_BUCKETS, HISTOGRAM_NUMBERS, Histogram } from './histogram.ts'
import { Random } from './random.ts'

test('quantiles stay within a bucket of the exact ones over nine decades', () => {
  const values = new Float64Array(HISTOGRAM_NUMBERS)
  const made = new Histogram(values, 0, 'bytes')
  const random = new Random(7)
  const exact: number[] = []
  for (let i = 0; i < 20_000; i++) {
    const value = 10 ** (random.float() * 15.9)
    exact.push(value)
    made.record(value)
  }
  made.summarise()
  exact.sort((a, b) => a - b)
  for (const [part, q] of [
    [4, 0.5],
    [5, 0.9],
    [6, 0.99],
  ]) {
    const wanted = exact[Math.ceil(q * exact.length) - 1]
    expect(Math.abs(values[part] - wanted) / wanted).toBeLessThan(1 / 32)
  }
  expect(values[1]).toBe(exact[0])
  expect(values[2]).toBe(exact.at(-1))
})

test.each([
  ['bytes', 0],
  ['ns', 10],
])('a value on the bound of a published bucket is in it, one above is in the next: %s', (unit, exponent) => {
  const values = new Float64Array(3 + HISTOGRAM_NUMBERS)
  const buckets = bucketsAt(3, unit, '')
  expect(buckets.exponent).toBe(exponent)
  const made = new Histogram(values, 3, unit)
  const bucketOf = (value: number) => {
    const before = values.slice()
    made.record(value)
    const risen = [...values.keys()].filter((i) => i >= buckets.first && values[i] !== before[i])
    expect(risen.length).toBeLessThan(2)
    return (risen[0] ?? Number.POSITIVE_INFINITY) - buckets.first
  }
  expect([bucketOf(0), bucketOf(0.5), bucketOf(2 ** exponent)]).toEqual([0, 0, 0])
  for (let n = 1; n < HISTOGRAM_BUCKETS; n++) {
    const bound = 2 ** (exponent + n)
    expect([bucketOf(bound / 2 + 0.001), bucketOf(bound - 0.25), bucketOf(bound)]).toEqual([n, n, n])
  }
  const last = 2 ** (exponent + HISTOGRAM_BUCKETS - 1)
  expect([bucketOf(last + 0.5), bucketOf(2 ** 53), bucketOf(1e300)]).toEqual(Array(3).fill(Number.POSITIVE_INFINITY))
  expect(values.slice(0, 3)).toEqual(new Float64Array(3))
})

test('the sum is that of the values, however often each was recorded', () => {
  const values = new Float64Array(HISTOGRAM_NUMBERS)
  const made = new Histogram(values, 0, 'ns')
  made.recordMany(5, 3)
  made.record(2)
  made.summarise()
  expect(values[bucketsAt(0, 'ns', '').sum]).toBe(17)
  expect([values[0], values[3]]).toEqual([4, 17 / 4])
})
