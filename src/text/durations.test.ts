/** Durations: what is read, what is refused, and that what is written is read as the same. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readDuration, writeDuration } from './durations.ts'

test.each([
  ['500ms', 500],
  ['1.5s', 1_500],
  ['10s', 10_000],
  ['1h30m', 5_400_000],
  ['2d', 172_800_000],
  ['0s', 0],
])('%s: %i ms', (text, milliseconds) => expect(readDuration(text)).toBe(milliseconds))

test.each(['', '10', '10 s', '-1s', '1w', 's', '1s1', '.5s', '1e3s', '9007199254740992ms', `${'9'.repeat(400)}s`])(
  '%j is none',
  (text) => expect(readDuration(text)).toBeUndefined(),
)

test.each([
  [0, '0ms'],
  [1_500, '1500ms'],
  [300_000, '5m'],
  [86_400_000, '1d'],
])('%i is written %s', (milliseconds, text) => expect(writeDuration(milliseconds)).toBe(text))

test('what is written is read as the same', () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 40 }), (milliseconds) => {
      expect(readDuration(writeDuration(milliseconds))).toBe(milliseconds)
    }),
    { seed: 7 },
  )
})
