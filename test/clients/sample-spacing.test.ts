/** How far apart samples are, whatever becomes of the clock of the node that takes them and of the way that they come. */

import { SampleSpacing } from '@penstock/client'
import { expect, test } from 'vitest'

const START = 1_700_000_000_000

/** Seconds from each sample to the next, `samples` being when each was taken by the node's clock and when it came, both in seconds. */
function spacings(samples: readonly (readonly [number, number])[]): (number | undefined)[] {
  const spacing = new SampleSpacing()
  return samples
    .map(([taken, came]) => {
      const timestamp = Number.isNaN(taken) ? undefined : new Date(START + taken * 1000).toISOString()
      return spacing.next(timestamp, came * 1000)
    })
    .slice(1)
}

// prettier-ignore
test.each<[string, (readonly [number, number])[], (number | undefined)[]]>([
  [
    'as they were taken',
    [
      [0, 5],
      [1, 6.2],
      [2, 7.1],
    ],
    [1, 1],
  ],
  [
    'the first being an old one',
    [
      [0, 59],
      [60, 60],
      [120, 120],
    ],
    [60, 60],
  ],
  [
    'over a clock that is set forward',
    [
      [0, 0],
      [1, 1],
      [3602, 2],
      [3603, 3.1],
    ],
    [1, 1, 1],
  ],
  [
    'over a clock that is set back',
    [
      [0, 0],
      [1, 1],
      [-3598, 2],
      [-3597, 3.1],
    ],
    [1, 1, 1],
  ],
  [
    'over one that is set forward again and again',
    [
      [0, 0],
      [1, 1],
      [62, 2],
      [123, 3],
      [124, 4],
    ],
    [1, 1, 1, 1],
  ],
  [
    'where they come late',
    [
      [0, 0],
      [1, 1],
      [2, 62],
      [3, 62.01],
      [60, 62.02],
      [63, 63],
    ],
    [1, 1, 1, 57, 3],
  ],
  [
    'where the first ones come late',
    [
      [0, 20],
      [5, 25],
      [10, 25.01],
      [15, 25.02],
      [20, 25.1],
      [25, 30],
    ],
    [5, 5, 5, 5, 5],
  ],
  [
    'as if one without a time had not come',
    [
      [0, 0],
      [1, 1],
      [Number.NaN, 2],
      [3, 3],
      [3604, 4],
      [3605, 5],
    ],
    [1, undefined, 2, 1, 1],
  ],
  [
    'unknown where it is the same one',
    [
      [0, 0],
      [1, 1],
      [1, 2],
      [3, 3],
    ],
    [1, undefined, 2],
  ],
])('%s', (_, samples, seconds) => {
  expect(spacings(samples)).toEqual(seconds)
})
