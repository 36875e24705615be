/** The limit of a residual loss: against tables, and how often it holds. */
import { describe, expect, it } from 'vitest'
import { Random } from '../dataplane/engine/random.ts'
import { lossUpperLimit, mean, standardDeviation } from './statistics.ts'

it('mean and sample standard deviation', () => {
  const values = [2, 4, 4, 4, 5, 5, 7, 9]
  expect(mean(values)).toBe(5)
  expect(standardDeviation(values)).toBeCloseTo(Math.sqrt(32 / 7), 12)
  expect(standardDeviation([3])).toBe(0)
})

describe('upper limit of a loss', () => {
  // One-sided 95 % limits of a Poisson mean: half the 95th percentile of chi-square with 2, 4, 12, 22 and 202 degrees of freedom.
  it.each([
    [0, 2.9957],
    [1, 4.7439],
    [5, 10.513],
    [10, 16.962],
    [100, 118.08],
  ])('%i events in a million packets', (lost, limit) => {
    expect(lossUpperLimit({ lost: [lost], sent: 1e6, together: 1 }) * 1e6).toBeCloseTo(limit, -Math.log10(limit / 50))
  })

  it('counts packets that are lost together as one event', () => {
    const [single, together] = [1, 5].map((each) => lossUpperLimit({ lost: [0, 0], sent: 1e5, together: each }))
    expect(together).toBeCloseTo((single as number) * 5, 12)
    const even = lossUpperLimit({ lost: [10, 10, 10, 10], sent: 1e5, together: 1 })
    const uneven = lossUpperLimit({ lost: [0, 40, 0, 0], sent: 1e5, together: 1 })
    expect(uneven).toBeGreaterThan(even * 1.5)
    expect(lossUpperLimit({ lost: [50], sent: 50, together: 1 })).toBe(1)
  })

  it('holds in nine of ten samples at least, with losses of five at a time', () => {
    const random = new Random(1)
    const [chance, each, runs, packets] = [2e-4, 5, 4, 5000]
    let held = 0
    const samples = 400
    for (let sample = 0; sample < samples; sample++) {
      const lost = Array.from({ length: runs }, () => {
        let count = 0
        for (let i = 0; i < packets; i++) if (random.chance(chance)) count += each
        return count
      })
      if (lossUpperLimit({ lost, sent: runs * packets, together: each }) >= chance * each) held++
    }
    expect(held / samples).toBeGreaterThan(0.9)
  })
})
