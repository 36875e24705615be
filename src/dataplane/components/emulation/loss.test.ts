/** Loss models: long-run statistics at 99.9 % confidence with fixed seeds, and the components around them. */
import { describe, expect, test } from 'vitest'
import { drive, payload, type Refused, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'
import { GilbertElliott, UniformLoss } from './loss-models.ts'

/** 99.9 % of a normal distribution lies within this many standard deviations. */
const Z = 3.291

describe('UniformLoss', () => {
  test.each([
    [0.0001, 1],
    [0.01, 2],
    [0.1, 3],
    [0.5, 4],
    [0.97, 5],
  ])('loses a share of %d', (p, seed) => {
    const model = new UniformLoss(p, new Random(seed))
    const n = 1_000_000
    let lost = 0
    for (let i = 0; i < n; i++) if (model.spares(1) === 0) lost++
    expect(Math.abs(lost - n * p)).toBeLessThan(Z * Math.sqrt(n * p * (1 - p)))
  })

  test('losses are independent: runs of them are as long as chance has it', () => {
    const p = 0.2
    const model = new UniformLoss(p, new Random(6))
    const n = 1_000_000
    let pairs = 0
    let before = false
    for (let i = 0; i < n; i++) {
      const lost = model.spares(1) === 0
      if (lost && before) pairs++
      before = lost
    }
    // Variance of the count of adjacent pairs, their overlaps included.
    const variance = n * p * p * (1 - p * p) + 2 * n * (p ** 3 - p ** 4)
    expect(Math.abs(pairs - n * p * p)).toBeLessThan(Z * Math.sqrt(variance))
  })

  test('0 never, 1 always', () => {
    const never = new UniformLoss(0, new Random(1))
    const always = new UniformLoss(1, new Random(1))
    let [lost, kept] = [0, 0]
    for (let i = 0; i < 1_000_000; i++) {
      if (never.spares(1) === 0) lost++
      if (always.spares(1) !== 0) kept++
    }
    expect([lost, kept]).toEqual([0, 0])
  })
})

describe('GilbertElliott', () => {
  test.each([
    [{ goodLoss: 0, badLoss: 1, goodToBad: 0.01, badToGood: 0.25 }, 11],
    [{ goodLoss: 0, badLoss: 1, goodToBad: 0.05, badToGood: 0.5 }, 12],
    [{ goodLoss: 0.01, badLoss: 0.6, goodToBad: 0.002, badToGood: 0.05 }, 13],
    [{ goodLoss: 0.02, badLoss: 0.3, goodToBad: 0.2, badToGood: 0.1 }, 14],
  ])('mean loss of %j', (parameters, seed) => {
    const { goodLoss, badLoss, goodToBad, badToGood } = parameters
    const chain = new GilbertElliott(parameters, new Random(seed))
    const n = 2_000_000
    let lost = 0
    for (let i = 0; i < n; i++) if (chain.spares(1) === 0) lost++
    const bad = goodToBad / (goodToBad + badToGood)
    const mean = bad * badLoss + (1 - bad) * goodLoss
    // States are correlated by c = 1 - goodToBad - badToGood a step, which widens the state's part of the variance.
    const c = 1 - goodToBad - badToGood
    const own = bad * badLoss * (1 - badLoss) + (1 - bad) * goodLoss * (1 - goodLoss)
    const state = (badLoss - goodLoss) ** 2 * bad * (1 - bad) * ((1 + c) / (1 - c))
    expect(Math.abs(lost / n - mean)).toBeLessThan(Z * Math.sqrt((own + state) / n))
  })

  test('bursts and gaps have the mean lengths of the chain', () => {
    const [goodToBad, badToGood] = [0.02, 0.2]
    const chain = new GilbertElliott({ goodLoss: 0, badLoss: 1, goodToBad, badToGood }, new Random(15))
    const lengths = { burst: 0, bursts: 0, gap: 0, gaps: 0 }
    let before = false
    for (let i = 0; i < 2_000_000; i++) {
      const lost = chain.spares(1) === 0
      if (lost) lengths.burst++
      else lengths.gap++
      if (lost && !before) lengths.bursts++
      if (!lost && before) lengths.gaps++
      before = lost
    }
    // Lengths are geometric: mean 1/p, standard deviation sqrt(1-p)/p.
    const within = (mean: number, p: number, count: number) =>
      expect(Math.abs(mean - 1 / p)).toBeLessThan((Z * Math.sqrt(1 - p)) / p / Math.sqrt(count))
    within(lengths.burst / lengths.bursts, badToGood, lengths.bursts)
    within(lengths.gap / lengths.gaps, goodToBad, lengths.gaps)
  })
})

const GILBERT = { good_loss_prob: 0, bad_loss_prob: 1, good_to_bad_prob: 0.05, bad_to_good_prob: 0.3 }

describe.each([
  ['uniform_loss', { loss_prob: 0.3 }, { loss_prob: 0 }],
  ['gilbert_elliot_loss', GILBERT, { ...GILBERT, bad_loss_prob: 0 }],
])('%s', (key, fields, lossless) => {
  const drivenBy = (seed: number) => drive({ loss: { [key]: { input: 'in', output: 'out', seed, ...fields } } })

  test('what is left keeps its order; what is lost is counted as meant', () => {
    const bench = drivenBy(1)
    for (let i = 0; i < 20; i++) {
      bench.send(
        'in',
        Array.from({ length: 100 }, (_, at) => payload(50, i * 100 + at)),
      )
    }
    const tags = bench.take('out').map(({ bytes }) => tagOf(bytes))
    expect(tags).toEqual([...tags].sort((a, b) => a - b))
    const { emulated_loss } = bench.metrics().loss
    expect(emulated_loss).toBe(2000 - tags.length)
    expect(emulated_loss).toBeGreaterThan(100)
    bench.stop()
  })

  test('same seed, same losses; another seed, others', () => {
    const run = (seed: number) => {
      const bench = drivenBy(seed)
      for (let i = 0; i < 500; i++) bench.send('in', payload(40, i))
      return bench.received('out').map(({ bytes }) => tagOf(bytes))
    }
    expect(run(7)).toEqual(run(7))
    expect(run(7)).not.toEqual(run(8))
  })

  test('the seed drawn without one is logged and gives the same run again', () => {
    const bench = drive({ loss: { [key]: { input: 'in', output: 'out', ...fields } } }, { seed: 99 })
    const seed = bench.log.find(({ fields }) => fields.seed !== undefined)?.fields.seed as number
    const again = drivenBy(seed)
    for (let i = 0; i < 300; i++) {
      bench.send('in', payload(40, i))
      again.send('in', payload(40, i))
    }
    expect(again.received('out').map(({ bytes }) => bytes)).toEqual(bench.received('out').map(({ bytes }) => bytes))
  })

  test('probabilities change while running', () => {
    const bench = drivenBy(1)
    bench.reconfigure({ loss: { [key]: { input: 'in', output: 'out', seed: 1, ...fields, ...lossless } } })
    for (let i = 0; i < 500; i++) bench.send('in', payload(40, i))
    expect(bench.received('out')).toHaveLength(500)
    bench.stop()
  })

  test('a percentage in place of a probability is refused with the hint', () => {
    const field = Object.keys(fields)[0]
    try {
      drive({ loss: { [key]: { input: 'in', output: 'out', ...fields, [field]: 5 } } })
      expect.unreachable()
    } catch (error) {
      expect((error as Refused).problems[0]).toMatchObject({
        pointer: `/engine_config/pipeline/loss/${key}/${field}`,
        message: expect.stringContaining('5 % is 0.05'),
      })
    }
  })
})

test('the bad gauge follows the chain', () => {
  const config = { ...GILBERT, input: 'in', output: 'out', good_to_bad_prob: 1, bad_to_good_prob: 0 }
  const bench = drive({ loss: { gilbert_elliot_loss: config } })
  expect(bench.metrics().loss.bad).toBe(0)
  bench.send('in', [payload(40, 0), payload(40, 1), payload(40, 2)])
  expect(bench.metrics().loss).toMatchObject({ bad: 1, emulated_loss: 2 })
  bench.stop()
})
