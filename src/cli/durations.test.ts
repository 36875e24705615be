/** Times and spans as people read them. */
import { expect, test } from 'vitest'
import { spanText, timeText, typedDuration } from './durations.ts'

test.each([
  [0, 'ns', '0'],
  [450, 'ns', '450 ns'],
  [999.6, 'ns', '1 µs'],
  [12_345, 'ns', '12.3 µs'],
  [7_612_345, 'ns', '7.61 ms'],
  [999_960_000, 'ns', '1 s'],
  [1.5, 'ms', '1.5 ms'],
  [0.25, 'ms', '250 µs'],
  [20, 's', '20 s'],
  [125e9, 'ns', '2 min 5 s'],
  [-3, 'ms', '-3 ms'],
])('%d %s is %s', (value, unit, text) => {
  expect(timeText(value, unit)).toBe(text)
})

test.each([
  [0, '0 s'],
  [0.304, '0.3 s'],
  [3.014, '3.01 s'],
  [59.99, '59.99 s'],
  [59.996, '1 min'],
  [65, '1 min 5 s'],
  [3_600, '1 h'],
  [3_605, '1 h'],
  [5_400, '1 h 30 min'],
  [183_600, '2 d 3 h'],
])('%d s is %s', (seconds, text) => {
  expect(spanText(seconds)).toBe(text)
})

test.each([
  ['100msec', 100],
  ['1sec', 1000],
  ['2secs', 2000],
  ['1min5sec', 65_000],
  ['1h30m', 5_400_000],
  ['1ms', 1],
  ['10usec', undefined],
  ['sec', undefined],
  ['1secms', undefined],
  ['1 sec', undefined],
])('%s typed is %s ms', (text, milliseconds) => {
  expect(typedDuration(text)).toBe(milliseconds)
})
