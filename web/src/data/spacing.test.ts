import { expect, test } from 'vitest'
import { Spacing } from './spacing.ts'
import { sampleAt } from './testing.ts'

/** Seconds from each sample to the next: when it was taken, and what the page's steady clock and its system's said when it came, all in seconds. */
function spacings(samples: readonly (readonly [taken: number, steady: number, system: number])[]) {
  let [steady, system] = [0, 0]
  const spacing = new Spacing(
    () => steady * 1000,
    () => system * 1000,
  )
  return samples.map(([taken, ...came]) => {
    ;[steady, system] = came
    return spacing.next(sampleAt(taken, {}))
  })
}

// prettier-ignore
test.each<[string, [number, number, number][], (number | undefined)[]]>([
  [
    'as they were taken',
    [
      [0, 5, 90],
      [2, 7.3, 92.3],
      [4, 9, 94],
    ],
    [undefined, 2, 2],
  ],
  [
    "over a node's clock that is set forward",
    [
      [0, 5, 90],
      [2, 7, 92],
      [3604, 9, 94],
      [3606, 11, 96],
    ],
    [undefined, 2, 2, 2],
  ],
  [
    "over a node's clock that is set back",
    [
      [0, 5, 90],
      [2, 7, 92],
      [-3596, 9, 94],
      [-3594, 11, 96],
    ],
    [undefined, 2, 2, 2],
  ],
  [
    'unknown where the clock of both is set, or both slept',
    [
      [0, 5, 90],
      [2, 7, 92],
      [3604, 9, 3694],
      [3606, 11, 3696],
    ],
    [undefined, 2, undefined, 2],
  ],
  [
    "unknown where the page's machine slept",
    [
      [0, 5, 90],
      [2, 7, 92],
      [302, 7.5, 392],
      [304, 9.5, 394],
    ],
    [undefined, 2, undefined, 2],
  ],
])('%s', (_, samples, seconds) => {
  expect(spacings(samples)).toEqual(seconds)
})
