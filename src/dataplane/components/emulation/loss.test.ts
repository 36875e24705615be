/** Loss models: long-run statistics at 99.9 % confidence with fixed seeds, and the components around them. */
import { describe, expect, test } from 'vitest'
import { drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'
import { GilbertElliott, type LossModel, PeriodicBursts, RandomBursts, UniformLoss } from './loss-models.ts'

/** 99.9 % of a normal distribution lies within this many standard deviations. */
const Z = 3.291

/** How long the runs of lost and of delivered packets are, whole ones only. */
function runLengths(model: LossModel, packets: number): { lost: number[]; delivered: number[] } {
  const lengths = { lost: [] as number[], delivered: [] as number[] }
  let before = model.spares(1) === 0
  let length = 1
  let first = true
  for (let i = 1; i < packets; i++) {
    const lost = model.spares(1) === 0
    if (lost !== before) {
      if (!first) lengths[before ? 'lost' : 'delivered'].push(length)
      first = false
      length = 0
    }
    length++
    before = lost
  }
  return lengths
}

/**
 * Pearson's chi-square test at 99.9 % that `lengths` are geometric, P(k) = p (1 - p)^(k - 1): classes of about a tenth of the mean
 * length, one length at least, up to where fewer than 20 are expected, and one for the rest. The bound of the distribution is Wilson and Hilferty's (1931).
 */
function expectGeometric(lengths: readonly number[], p: number): void {
  const n = lengths.length
  const width = Math.ceil(0.1 / p)
  const beyond = (1 - p) ** width
  let tail = 1
  let statistic = 0
  let classes = 0
  let counted = 0
  for (let from = 1; n * tail * Math.min(beyond, 1 - beyond) >= 20; from += width) {
    const expected = n * tail * (1 - beyond)
    const seen = lengths.filter((length) => length >= from && length < from + width).length
    statistic += (seen - expected) ** 2 / expected
    tail *= beyond
    counted += seen
    classes++
  }
  statistic += (n - counted - n * tail) ** 2 / (n * tail)
  expect(classes).toBeGreaterThan(2)
  const bound = classes * (1 - 2 / (9 * classes) + 3.0902 * Math.sqrt(2 / (9 * classes))) ** 3
  expect(statistic).toBeLessThan(bound)
}

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

  test('runs of losses, and those between them, are geometric', () => {
    const { lost, delivered } = runLengths(new UniformLoss(0.3, new Random(7)), 300_000)
    expectGeometric(lost, 0.7)
    expectGeometric(delivered, 0.3)
  })

  test('a change of the probability that comes to nothing draws nothing', () => {
    const [changed, same] = [1, 1].map((seed) => new UniformLoss(0.3, new Random(seed)))
    changed.probability = 0.9
    changed.probability = 0.3
    for (let i = 0; i < 1000; i++) {
      changed.probability = 0.3
      expect(changed.spares(1)).toBe(same.spares(1))
    }
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

  test('bursts and gaps are geometric', () => {
    const [goodToBad, badToGood] = [0.05, 0.2]
    const chain = new GilbertElliott({ goodLoss: 0, badLoss: 1, goodToBad, badToGood }, new Random(16))
    const { lost, delivered } = runLengths(chain, 500_000)
    expectGeometric(lost, badToGood)
    expectGeometric(delivered, goodToBad)
  })
})

describe('RandomBursts', () => {
  test.each([
    [0.01, 5, 21],
    [0.2, 3, 22],
    [0.001, 100, 23],
    [0.5, 1, 24],
  ])('p %d, burst %i: a share of pb / (1 - p + pb) is lost, in geometric rows of bursts', (p, burst, seed) => {
    const n = 2_000_000
    const model = new RandomBursts(p, burst, new Random(seed))
    let lost = 0
    for (let i = 0; i < n; i++) if (model.spares(1) === 0) lost++
    const mean = 1 - p + p * burst
    const rate = (p * burst) / mean
    // Renewal-reward: a draw is a delivered packet or a burst; the variance is that of what it loses beyond the rate.
    const variance = ((1 - p) * rate ** 2 + p * (burst * (1 - rate)) ** 2) / mean
    expect(Math.abs(lost / n - rate)).toBeLessThan(Z * Math.sqrt(variance / n))
    const lengths = runLengths(new RandomBursts(p, burst, new Random(seed)), 500_000)
    expect(lengths.lost.filter((length) => length % burst !== 0)).toEqual([])
    expectGeometric(lengths.delivered, p)
    if (p >= 0.1) {
      expectGeometric(
        lengths.lost.map((length) => length / burst),
        1 - p,
      )
    }
  })

  test('probability 1 loses all, burst 0 nothing', () => {
    expect(new RandomBursts(1, 4, new Random(1)).spares(100)).toBe(0)
    expect(new RandomBursts(1, 0, new Random(1)).spares(100)).toBe(100)
  })

  test('a burst that 0 has ended does not go on with the next length', () => {
    const model = new RandomBursts(1, 4, new Random(1))
    expect(model.spares(100)).toBe(0)
    model.burst = 0
    expect(model.spares(100)).toBe(100)
    model.burst = 4
    model.probability = 0
    expect(model.spares(100)).toBe(100)
  })
})

describe('PeriodicBursts', () => {
  /** '1' for each delivered packet, '0' for each lost one. */
  const pattern = (model: LossModel, packets: number) => Array.from({ length: packets }, () => model.spares(1)).join('')

  test.each([
    [3, 2, '111001110011100'],
    [1, 1, '101010'],
    [2, 5, '1100000110000011'],
    [1, 0, '1111'],
  ])('%i delivered, %i lost', (interval, burst, expected) => {
    expect(pattern(new PeriodicBursts(interval, burst), expected.length)).toBe(expected)
  })

  test('a change in the middle: of the burst it goes on, of the interval it counts what has passed', () => {
    const model = new PeriodicBursts(4, 3)
    expect(pattern(model, 5)).toBe('11110')
    model.interval = 6
    expect(pattern(model, 5)).toBe('00111')
    model.interval = 2
    expect(pattern(model, 4)).toBe('0001')
    model.burst = 0
    expect(pattern(model, 10)).toBe('1111111111')
    model.burst = 1
    expect(pattern(model, 4)).toBe('1011')
  })

  test('a burst that 0 has ended does not go on with the next length', () => {
    const model = new PeriodicBursts(3, 4)
    expect(pattern(model, 5)).toBe('11100')
    model.burst = 0
    expect(pattern(model, 5)).toBe('11111')
    model.burst = 4
    expect(pattern(model, 8)).toBe('11100001')
  })
})

test.each<[string, () => LossModel]>([
  ['UniformLoss', () => new UniformLoss(0.2, new Random(1))],
  [
    'GilbertElliott',
    () => new GilbertElliott({ goodLoss: 0.1, badLoss: 0.8, goodToBad: 0.1, badToGood: 0.2 }, new Random(1)),
  ],
  ['RandomBursts', () => new RandomBursts(0.1, 4, new Random(1))],
  ['PeriodicBursts', () => new PeriodicBursts(7, 3)],
])('%s loses the same packets however many are asked about at once', (_, make) => {
  const whole = make()
  const single = make()
  const random = new Random(2)
  for (let i = 0; i < 2000; i++) {
    const count = random.below(20)
    const spared = whole.spares(count)
    for (let k = 0; k < spared; k++) expect(single.spares(1)).toBe(1)
    if (spared < count) expect(single.spares(1)).toBe(0)
  }
})

const GILBERT = { good_loss_prob: 0, bad_loss_prob: 1, good_to_bad_prob: 0.05, bad_to_good_prob: 0.3 }

const LONG_GILBERT = {
  good_loss_probability: 0,
  bad_loss_probability: 1,
  good_to_bad_probability: 0.05,
  bad_to_good_probability: 0.3,
}
const PAIR = { input: 'in', output: 'out' }
const FLOW = { flows: [PAIR] }

describe.each<[string, object, Record<string, unknown>, Record<string, unknown>]>([
  ['uniform_loss', PAIR, { loss_prob: 0.3 }, { loss_prob: 0 }],
  ['gilbert_elliot_loss', PAIR, GILBERT, { ...GILBERT, bad_loss_prob: 0 }],
  ['random_burst_loss', PAIR, { loss_prob: 0.1, burst: 3 }, { burst: 0 }],
  ['uniform_loss_sequencer', PAIR, { loss_probs: [0.3], intervals: [10] }, { loss_probs: [0] }],
  ['loss_constant', FLOW, { loss_probability: 0.3 }, { loss_probability: 0 }],
  ['loss_gilbert_elliot', FLOW, LONG_GILBERT, { bad_loss_probability: 0 }],
  [
    'loss_dynamic',
    FLOW,
    { phases: [{ loss_probability: 0.3, duration: 10 }] },
    { phases: [{ loss_probability: 0, duration: 10 }] },
  ],
])('%s', (key, ports, fields, lossless) => {
  const drivenBy = (seed: number) => drive({ loss: { [key]: { ...ports, seed, ...fields } } })

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
    const bench = drive({ loss: { [key]: { ...ports, ...fields } } }, { seed: 99 })
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
    bench.reconfigure({ loss: { [key]: { ...ports, seed: 1, ...fields, ...lossless } } })
    for (let i = 0; i < 500; i++) bench.send('in', payload(40, i))
    expect(bench.received('out')).toHaveLength(500)
    bench.stop()
  })

  test('a percentage in place of a probability is refused with the hint', () => {
    const text = JSON.stringify({ ...ports, ...fields }).replace(/(prob[a-z]*":|probs":\[)[\d.]+/, '$15')
    const { pointer, message } = refusal({ loss: { [key]: JSON.parse(text) } })
    expect(pointer).toMatch(new RegExp(`^/engine_config/pipeline/loss/${key}/.*prob`))
    expect(message).toContain('5 % is 0.05')
  })
})

describe.each([
  ['loss_constant', { loss_probability: 0.3 }],
  ['loss_gilbert_elliot', LONG_GILBERT],
  ['loss_dynamic', { phases: [{ loss_probability: 0.3, duration: 1000 }] }],
])('%s', (key, fields) => {
  test('flows share one chain: packets of both are lost as if they had come on one', () => {
    const two = drive({
      loss: { [key]: { flows: [PAIR, { input: 'in2', output: 'out2' }], seed: 5, ...fields } },
    })
    const one = drive({ loss: { [key]: { flows: [PAIR], seed: 5, ...fields } } })
    for (let i = 0; i < 1000; i++) {
      two.send(i % 3 === 0 ? 'in2' : 'in', payload(40, i))
      one.send('in', payload(40, i))
    }
    const tags = (bench: typeof two, outputs: string[]) =>
      outputs.flatMap((output) => bench.received(output).map(({ bytes }) => tagOf(bytes))).sort((a, b) => a - b)
    expect(tags(two, ['out', 'out2'])).toEqual(tags(one, ['out']))
    expect(two.received('out2').every(({ bytes }) => tagOf(bytes) % 3 === 0)).toBe(true)
    expect(two.received('out2').length).toBeGreaterThan(100)
  })
})

describe.each([
  [
    'uniform_loss_sequencer',
    (probabilities: number[], intervals: number[]) => ({ ...PAIR, loss_probs: probabilities, intervals }),
  ],
  [
    'loss_dynamic',
    (probabilities: number[], intervals: number[]) => ({
      ...FLOW,
      phases: intervals.map((duration, i) => ({ duration, loss_probability: probabilities[i] })),
    }),
  ],
])('%s', (key, fields) => {
  const config = (probabilities: number[], intervals: number[]) => ({
    loss: { [key]: { ...fields(probabilities, intervals), seed: 4 } },
  })

  /** Sends a packet a millisecond, `count` of them; which came through, '1', and which not, '0'. */
  function passed(bench: ReturnType<typeof drive>, count: number): string {
    let pattern = ''
    for (let i = 0; i < count; i++) {
      bench.send('in', payload(40, i))
      pattern += bench.take('out').length
      bench.advance(1e6)
    }
    return pattern
  }

  test('the n-th probability holds for the n-th interval, to the packet, then again', () => {
    const bench = drive(config([0, 1, 0], [3, 2, 1]))
    expect(passed(bench, 14)).toBe('11100111100111')
    // 999 rounds and what is left of the present one, in which nothing comes.
    bench.advance(999 * 6e6 + 4e6)
    expect(passed(bench, 7)).toBe('1110011')
    bench.stop()
  })

  test('intervals count from the start of the run, not from the first packet', () => {
    const bench = drive(config([0, 1], [10, 10]))
    bench.advance(7e6)
    expect(passed(bench, 15)).toBe('111000000000011')
    expect(bench.metrics().loss).toMatchObject({ emulated_loss: 10, phase: 0 })
    bench.stop()
  })

  test('changed lists begin at their first entry; the same ones go on', () => {
    const bench = drive(config([0, 1], [3, 3]))
    expect(passed(bench, 4)).toBe('1110')
    bench.reconfigure(config([0, 1], [3, 3]))
    expect(passed(bench, 3)).toBe('001')
    bench.reconfigure(config([1, 0], [3, 5]))
    expect(passed(bench, 8)).toBe('00011111')
    bench.stop()
  })

  test('each phase loses its share', () => {
    const bench = drive(config([0.1, 0.4], [100, 50]), { record: false })
    const n = 60_000
    const lost = [0, 0]
    const sent = [0, 0]
    let before = 0
    for (let i = 0; i < n; i++) {
      bench.send('in', payload(40, i))
      const { emulated_loss, phase } = bench.metrics().loss
      sent[phase]++
      lost[phase] += emulated_loss - before
      before = emulated_loss
      bench.advance(1e6)
    }
    expect(sent).toEqual([40_000, 20_000])
    for (const [phase, p] of [0.1, 0.4].entries()) {
      expect(Math.abs(lost[phase] - sent[phase] * p)).toBeLessThan(Z * Math.sqrt(sent[phase] * p * (1 - p)))
    }
    bench.stop()
  })
})

describe('uniform_loss_sequencer', () => {
  const config = (fields: Record<string, unknown>) => ({
    loss: { uniform_loss_sequencer: { ...PAIR, loss_probs: [0, 1], intervals: [10, 20], ...fields } },
  })

  test('without repeat the last probability holds for good', () => {
    const bench = drive(config({ repeat: false }))
    bench.advance(9_999_999)
    bench.send('in', payload(40, 0))
    bench.advance(1)
    for (let i = 0; i < 50; i++) {
      bench.send('in', payload(40, i))
      bench.advance(5e6)
    }
    expect(bench.received('out')).toHaveLength(1)
    bench.reconfigure(config({ repeat: false, loss_probs: [0, 0] }))
    bench.send('in', payload(40, 1))
    expect(bench.received('out')).toHaveLength(2)
    bench.stop()
  })

  test.each([
    [{ loss_probs: [0.1] }, '/loss_probs', '1 of them for 2 intervals: give one for each'],
    [{ intervals: [10, 0] }, '/intervals/1', '0 is below the minimum of 1 ms'],
    [{ loss_probs: [0, 20] }, '/loss_probs/1', '20 is above the maximum of 1 (a probability is 0..1: 5 % is 0.05)'],
    [{ loss_probs: Array(4097).fill(0), intervals: Array(4097).fill(1) }, '/loss_probs', 'takes at most 4096 entries'],
  ])('%o is refused', (fields, pointer, message) => {
    expect(refusal(config(fields))).toEqual({
      pointer: `/engine_config/pipeline/loss/uniform_loss_sequencer${pointer}`,
      message,
    })
  })

  test('a changed list goes round in its own time, while no packet comes', () => {
    const bench = drive(config({}))
    bench.advance(1e6)
    bench.reconfigure(config({ intervals: [10, 10] }))
    bench.advance(45e6)
    expect(bench.metrics().loss.phase).toBe(0)
    bench.advance(10e6)
    expect(bench.metrics().loss.phase).toBe(1)
    bench.stop()
  })

  test('4,096 entries are taken', () => {
    const half = Array.from({ length: 4096 }, (_, i) => i % 2)
    const bench = drive(config({ loss_probs: half, intervals: Array(4096).fill(1) }))
    bench.advance(4095e6)
    expect(bench.metrics().loss.phase).toBe(4095)
    bench.advance(1e6)
    expect(bench.metrics().loss.phase).toBe(0)
    bench.stop()
  })
})

describe('periodic_burst_loss', () => {
  test('drops the burst after every interval delivered, across batches', () => {
    const bench = drive({ loss: { periodic_burst_loss: { ...PAIR, interval: 5, burst: 2 } } })
    for (const count of [3, 256, 1, 40]) {
      bench.send(
        'in',
        Array.from({ length: count }, (_, i) => payload(40, i)),
      )
    }
    expect(bench.metrics().loss.emulated_loss).toBe(2 * Math.floor(300 / 7) + 1)
    bench.stop()
  })

  test.each([
    [{ interval: 0 }, '/interval', '0 is below the minimum of 1 packets'],
    [{ burst: -1 }, '/burst', '-1 is below the minimum of 0 packets'],
  ])('%j is refused', (fields, pointer, message) => {
    expect(refusal({ loss: { periodic_burst_loss: { ...PAIR, interval: 5, burst: 2, ...fields } } })).toEqual({
      pointer: `/engine_config/pipeline/loss/periodic_burst_loss${pointer}`,
      message,
    })
  })
})

describe('timed_burst_loss', () => {
  const config = (fields: Record<string, unknown>) => ({ loss: { timed_burst_loss: { ...PAIR, ...fields } } })

  /** Sends a packet a millisecond from now on, `count` of them; which came through, '1', and which not, '0'. */
  function passed(bench: ReturnType<typeof drive>, count: number): string {
    let pattern = ''
    for (let i = 0; i < count; i++) {
      bench.send('in', payload(40, i))
      pattern += bench.take('out').length
      bench.advance(1e6)
    }
    return pattern
  }

  test('a burst of time, to the nanosecond, again and again', () => {
    const bench = drive(config({ interval_ms: 4, burst_duration_ms: 3 }))
    expect(passed(bench, 16)).toBe('1111000111100011')
    bench.advance(1_999_999)
    expect(bench.metrics().loss.bursting).toBe(0)
    bench.advance(1)
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.advance(2_999_999)
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.advance(1)
    expect(bench.metrics().loss).toMatchObject({ bursting: 0, emulated_loss: 6 })
    bench.advance(7_000_000 * 123_456 + 4_000_000)
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.stop()
  })

  test('a burst of packets waits for them, and the interval begins with the last of them', () => {
    const bench = drive(config({ interval_ms: 4, burst_packets: 3 }))
    bench.advance(100e6)
    expect(bench.metrics().loss.bursting).toBe(1)
    expect(passed(bench, 12)).toBe('000111000111')
    bench.send('in', [payload(40, 0), payload(40, 1), payload(40, 2), payload(40, 3), payload(40, 4)])
    expect(bench.take('out').map(({ bytes }) => tagOf(bytes))).toEqual([3, 4])
    bench.stop()
  })

  test('cancel_timer_ms ends a burst of packets that do not come, with what is left of it', () => {
    const bench = drive(config({ interval_ms: 4, burst_packets: 3, cancel_timer_ms: 2 }))
    // The burst of 4 ms is over at 6 ms with two packets lost, those of 10 ms and so on as well.
    expect(passed(bench, 14)).toBe('11110011110011')
    // Rounds of 6 ms without a packet.
    bench.advance(6e6 * 1000 + 2e6)
    bench.send('in', [payload(40, 0), payload(40, 1), payload(40, 2), payload(40, 3)])
    expect(bench.take('out').map(({ bytes }) => tagOf(bytes))).toEqual([3])
    bench.advance(4e6)
    expect(bench.metrics().loss).toMatchObject({ bursting: 1, emulated_loss: 7 })
    // One packet of a burst counts for none of those after it.
    bench.send('in', payload(40, 0))
    bench.advance(6e6)
    bench.send('in', [payload(40, 0), payload(40, 1), payload(40, 2), payload(40, 3)])
    expect(bench.take('out').map(({ bytes }) => tagOf(bytes))).toEqual([3])
    bench.stop()
  })

  test('live changes: an interval that is over with the new length ends now, so does a burst', () => {
    const bench = drive(config({ interval_ms: 100, burst_duration_ms: 100 }))
    bench.advance(50e6)
    bench.reconfigure(config({ interval_ms: 20, burst_duration_ms: 100 }))
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.advance(99e6)
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.reconfigure(config({ interval_ms: 20, burst_duration_ms: 10 }))
    expect(bench.metrics().loss.bursting).toBe(0)
    bench.advance(20e6)
    expect(bench.metrics().loss.bursting).toBe(1)
    bench.reconfigure(config({ interval_ms: 20, burst_packets: 5 }))
    expect(passed(bench, 3)).toBe('000')
    bench.reconfigure(config({ interval_ms: 20, burst_packets: 2 }))
    expect(passed(bench, 25)).toBe('11111111111111111111' + '00' + '111')
    bench.stop()
  })

  test.each([
    [{}, '', 'a burst has no length: set one of burst_packets and burst_duration_ms above 0'],
    [{ burst_packets: 0 }, '', 'a burst has no length: set one of burst_packets and burst_duration_ms above 0'],
    [
      { burst_packets: 3, burst_duration_ms: 5 },
      '/burst_duration_ms',
      '5 ms besides burst_packets 3: set only one of the two',
    ],
    [
      { burst_duration_ms: 5, cancel_timer_ms: 7 },
      '/cancel_timer_ms',
      '7 ms besides burst_duration_ms 5: it is for burst_packets, leave it out',
    ],
    [{ interval_ms: 0, burst_packets: 1 }, '/interval_ms', '0 is below the minimum of 1 ms'],
  ])('%j is refused', (fields, pointer, message) => {
    expect(refusal(config({ interval_ms: 10, ...fields }))).toEqual({
      pointer: `/engine_config/pipeline/loss/timed_burst_loss${pointer}`,
      message,
    })
  })

  test('0 counts as unset', () => {
    drive(config({ interval_ms: 10, burst_packets: 0, burst_duration_ms: 5, cancel_timer_ms: 0 })).stop()
    drive(config({ interval_ms: 10, burst_packets: 2, burst_duration_ms: 0, cancel_timer_ms: 0 })).stop()
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
