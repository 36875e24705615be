import { expect, test } from 'vitest'
import { ratesBetween } from './rates.ts'
import { counter, sampleAt } from './testing.ts'

const port = (name: string, side: 'INPUT' | 'OUTPUT') => ({ port: { name, side } })
const sample = (seconds: number, packets: number) =>
  sampleAt(seconds, {
    link: {
      input_packets: counter(packets, port('input', 'INPUT')),
      input_bytes: counter(packets * 100, { unit: 'bytes', ...port('input', 'INPUT') }),
      output_packets: counter(packets / 2, port('output', 'OUTPUT')),
      lost: counter(packets / 4, { role: 'INTENDED' }),
      full: counter(packets / 4, { role: 'OVERFLOW' }),
      broken: counter(7, { role: 'DROP' }),
      seen: counter(packets),
    },
  })

test('what passes ports, is lost and is counted per second', () => {
  const link = ratesBetween(sample(0, 100), sample(2, 500), 2).get('link')
  expect(link).toMatchObject({
    in: { packets: 200, bits: 160_000 },
    out: { packets: 100, bits: 0 },
    ...{ dropped: 132, dropping: 50, losing: 50 },
  })
  expect(link?.ports.get('output')).toEqual({ packets: 100, bits: 0 })
  expect(link?.counters.get('seen')).toBe(200)
})

test.each([
  ['forward', 3_602],
  ['back', -3_598],
])('a clock that is set %s is nothing to them', (_, now) => {
  expect(ratesBetween(sample(0, 100), sample(now, 500), 2).get('link')?.in.packets).toBe(200)
})

test.each([
  ['without a sample before', undefined, undefined],
  ['where it is not known how long ago the one before was', sample(2, 100), undefined],
  ['where numbers fell', sample(0, 900), 2],
])('%s nothing passes, and drops are counted all the same', (_, before, seconds) => {
  const link = ratesBetween(before, sample(2, 400), seconds).get('link')
  expect(link).toMatchObject({ in: { packets: 0, bits: 0 }, losing: 0, dropping: 0, dropped: 107 })
})
