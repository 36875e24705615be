/** KPIs evaluated from numbers: every shape, functions over time, and what becomes of what has no value. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kpi } from '../../contract/types.ts'
import type { KpiConfig, KpisConfig } from '../../dataplane/engine/kpis.ts'
import { ExpressionError, parseExpression } from '../../text/expressions.ts'
import { Kpis } from './kpis.ts'

const places = [
  { path: 'sink', name: 'packets', index: 0 },
  { path: 'sink', name: 'delay', index: 1 },
  { path: '/engine', name: 'breaths', index: 2 },
]

const kpisOf = (metrics: Omit<KpiConfig, 'id' | 'label' | 'description'>[], variables: Record<string, string> = {}) => {
  const config: KpisConfig = {
    variables,
    metrics: metrics.map((kpi, i) => ({ id: `${i}`, label: '', description: '', ...kpi })),
  }
  return new Kpis(config, places)
}

/** The value of an expression, or its error text, at each of `samples`: time in seconds, and the numbers. */
function values(expression: string, samples: readonly [number, ...number[]][], variables?: Record<string, string>) {
  const kpis = kpisOf([{ value: { expression } }], variables)
  return samples.map(([time, ...numbers]) => {
    const [kpi] = kpis.evaluate(numbers, time) as [Kpi]
    return kpi.value?.value ?? kpi.error
  })
}

const evaluated = (expression: string, variables?: Record<string, string>) =>
  values(expression, [[0, 10, 2.5, 7]], variables)[0]

describe('operators and functions', () => {
  test.each([
    ['{sink/packets} + {sink/delay} * 2', 15],
    ['({sink/packets} + 2) / 4', 3],
    ['{sink/packets} % 4', 2],
    ['-{sink/packets} - -1', -9],
    ['{/engine/breaths}', 7],
    ['{sink/packets} > 9 ? 1 : 2', 1],
    ['if({sink/packets} <= 9, 1, 2)', 2],
    ['({sink/packets} >= 10) + ({sink/packets} < 10) + ({sink/packets} != 10)', 1],
    ['true && 5', 1],
    ['0 || false', 0],
    ['!{sink/packets}', 0],
    ['true == 1', 1],
    ['"a" == "a"', 1],
    ['"1" == 1', 0],
    ['min(3, {sink/delay}, 7)', 2.5],
    ['max(3, {sink/delay}, 7)', 7],
    ['avg(1, 2, 6)', 3],
    ['abs(-{sink/delay})', 2.5],
    ['round({sink/delay})', 3],
    ['round(-2.5)', -3],
    ['round(1.005, 2)', 1.01],
    ['round(1e300, 3)', 1e300],
    ['round(1e-9, 3)', 0],
    ['round(2.5e-7, 7)', 3e-7],
    ['round(9.9e-7, 6)', 1e-6],
    ['round(5e-7, 6)', 1e-6],
    ['round(-5e-7, 6)', -1e-6],
    ['round(4.9e-7, 6)', 0],
    ['round(0.0000005, 15)', 5e-7],
    ['round(1e-7, 7)', 1e-7],
    ['round(1.5e-15, 15)', 2e-15],
    ['round(5e-324, 15)', 0],
    ['round(1.2345e21, 15)', 1.2345e21],
    ['round(9007199254740993, 2)', 9007199254740992],
    ['round(123456789012.345, 2)', 123456789012.35],
    ['round(-0.4)', 0],
    ['round(-0.004, 2)', 0],
    // What is not asked for needs no value.
    ['true || {sink/gone}', 1],
    ['false ? {sink/gone} : 4', 4],
  ])('%s is %d', (expression, value) => {
    expect(evaluated(expression)).toBe(value)
  })

  test.each([
    ['1 / 0', /no finite number \(Infinity\)/],
    ['0 / 0', /no finite number \(NaN\)/],
    ['1e308 * 10', /no finite number/],
    ['"a" + 1', /"a" is a text where a number is needed/],
    ['"a" ? 1 : 2', /is a text/],
    ['(0 / 0) ? 1 : 2', /a condition is not a number/],
    ['"text"', /is a text where a number is needed/],
    ['round(1, {sink/delay})', /0 to 15 decimals, not 2.5/],
    ['round(1, 8 + 8)', /0 to 15 decimals, not 16/],
    ['{sink/packet}', /"sink" has no metric "packet"\. Did you mean "packets"\?/],
    ['{snk/packets}', /no component "snk"\. Did you mean "sink"\?/],
    ['{sink/constructor}', /no metric "constructor"/],
    ['{__proto__/constructor}', /no component "__proto__"/],
    ['constructor', /no variable "constructor"/],
  ])('%s has no value: %s', (expression, why) => {
    expect(evaluated(expression)).toMatch(why)
  })
})

describe('variables', () => {
  test('are parts of expressions by name, in any order, evaluated once a sample', () => {
    const variables = { total: 'doubled + 1', doubled: 'base * 2', base: '{sink/packets}', __proto__x: '1' }
    expect(evaluated('total + base', variables)).toBe(31)
  })

  test('may have names of JavaScript objects', () => {
    const variables = JSON.parse('{"__proto__": "{sink/packets}", "constructor": "__proto__ + 1"}')
    expect(evaluated('constructor', variables)).toBe(11)
  })

  test('a row of them, each twice the one before, is evaluated once each', () => {
    const variables = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`v${i}`, i === 0 ? '1' : `v${i - 1} / 2 + v${i - 1} / 2`]),
    )
    expect(evaluated('v199', variables)).toBe(1)
  })

  test('a fault in one is a fault in what uses it', () => {
    expect(evaluated('x + 1', { x: '1 / {sink/gone}' })).toMatch(/no metric "gone"/)
  })
})

describe('over time', () => {
  test('rate() is the change per second since the sample before, delta() the change', () => {
    const samples: [number, ...number[]][] = [
      [10, 100],
      [11, 150],
      [13, 250],
    ]
    expect(values('rate({sink/packets})', samples)).toEqual([expect.stringMatching(/needs another sample/), 50, 50])
    expect(values('delta({sink/packets})', samples).slice(1)).toEqual([50, 100])
    expect(values('twice', samples, { twice: 'rate({sink/packets}) * 2' }).slice(1)).toEqual([100, 100])
  })

  test('a sample right after another does not make a rate of no time', () => {
    const samples: [number, ...number[]][] = [
      [10, 100],
      [11, 200],
      [11.001, 201],
      [12, 300],
    ]
    const [, , soon, later] = values('rate({sink/packets})', samples)
    expect(soon).toBeCloseTo(101 / 1.001, 9)
    expect(later).toBeCloseTo(99 / 0.999, 9)
  })

  test('a window holds what is no older: min, max, avg, rate and delta', () => {
    const samples = [5, 9, 1, 3, 4, 4, 4].map((value, i): [number, ...number[]] => [i, value])
    expect(values('min({sink/packets}, "3s")', samples)).toEqual([5, 5, 1, 1, 1, 1, 3])
    expect(values('max({sink/packets}, "3s")', samples)).toEqual([5, 9, 9, 9, 9, 4, 4])
    expect(values('avg({sink/packets}, "1s")', samples)).toEqual([5, 7, 5, 2, 3.5, 4, 4])
    expect(values('delta({sink/packets}, "2s")', samples).slice(1)).toEqual([4, -4, -6, 3, 1, 0])
    expect(values('rate({sink/packets}, "2s")', samples).slice(2)).toEqual([-2, -3, 1.5, 0.5, 0])
  })

  describe('what rises by 100 a second, read at uneven times', () => {
    // Late by up to 40 ms each, as on a node that has other things to do too; the last sample follows at once.
    const times = Array.from({ length: 200 }, (_, i) => i + ((i * 17) % 41) / 1000)
    const samples = [...times, 199.02, 199.021].map((time): [number, ...number[]] => [time, 100 * time])

    test.each(['1ms', '50ms', '500ms', '999ms', '1s', '1010ms', '2s', '10s', '1m', '2m'])(
      'rate() over %s is 100',
      (time) => {
        const rates = values(`rate({sink/packets}, "${time}")`, samples)
        expect(rates[0]).toMatch(/needs another sample/)
        for (const rate of rates.slice(1)) expect(rate).toBeCloseTo(100, 6)
      },
    )

    test.each([
      ['50ms', 0.05],
      ['500ms', 0.5],
      ['1s', 1],
      ['2s', 2],
      ['10s', 10],
      ['1m', 60],
    ])(
      'delta() over %s is what comes in that time, before that what has come since the first sample',
      (time, seconds) => {
        const deltas = values(`delta({sink/packets}, "${time}")`, samples)
        samples.slice(1).forEach(([at], i) => {
          expect(deltas[i + 1]).toBeCloseTo(100 * Math.min(seconds, at), 6)
        })
      },
    )
  })

  test('rate() over a time shorter than the interval is that since the last sample, and does not end with samples that stay away', () => {
    const samples: [number, ...number[]][] = [
      [0, 0, 1],
      [1, 100, 1],
      [2.5, 400, 1],
      [4, 500, 0],
      [6, 750, 1],
    ]
    const [, ...rates] = values('rate({sink/packets}, "500ms")', samples)
    for (const [i, rate] of [100, 200, 100 / 1.5, 125].entries()) expect(rates[i]).toBeCloseTo(rate, 9)
    // Without a value at 4 s: from 2.5 to 6 s.
    const gaps = values('rate({sink/packets} / {sink/delay}, "500ms")', samples)
    expect(gaps[3]).toMatch(/no finite number/)
    expect(gaps[4]).toBeCloseTo(100, 9)
  })

  test('of many samples delta() sees to a 64th of the time when something changed', () => {
    const samples = Array.from({ length: 20_000 }, (_, i): [number, ...number[]] => [i / 10, i < 10_000 ? 0 : 1000])
    const deltas = values('delta({sink/packets}, "10m")', samples)
    expect(new Set(deltas.slice(1, 10_000))).toEqual(new Set([0]))
    expect(new Set(deltas.slice(10_000, 16_000 - 6_000 / 64))).toEqual(new Set([1000]))
    expect(new Set(deltas.slice(16_000 + 6_000 / 64))).toEqual(new Set([0]))
  })

  test('a long window takes no more memory than a short one, and is right to a part of it', () => {
    const samples = Array.from({ length: 20_000 }, (_, i): [number, ...number[]] => [i / 10, i])
    const last = values('min({sink/packets}, "10m")', samples).at(-1) as number
    expect(last).toBeGreaterThanOrEqual(19_999 - 6_000 - 6_000 / 64)
    expect(last).toBeLessThanOrEqual(19_999 - 6_000)
  })

  test('functions of functions over time', () => {
    const samples = [0, 10, 30, 60].map((value, i): [number, ...number[]] => [i, value])
    expect(values('max(rate({sink/packets}), "10s")', samples).slice(1)).toEqual([10, 20, 30])
  })

  test('go on over what has no value, which they tell', () => {
    const samples: [number, ...number[]][] = [
      [0, 1],
      [1, 0],
      [2, 0.5],
      [3, 0.25],
    ]
    const heard = values('max(1 / {sink/packets}, "10s")', samples)
    expect(heard).toEqual([1, expect.stringMatching(/no finite number/), 2, 4])
    expect(values('rate(1 / {sink/packets})', samples)[3]).toBe(2)
  })

  test('look back also where their value is not asked for', () => {
    const samples: [number, ...number[]][] = [
      [0, 0, 1],
      [1, 10, 1],
      [2, 30, 0],
    ]
    expect(values('{sink/delay} ? 0 : rate({sink/packets})', samples)).toEqual([0, 0, 20])
  })
})

test('every shape has its numbers and texts', () => {
  const expression = '{sink/packets}'
  const kpis = kpisOf([
    { column_span: 2, value: { expression, unit: 'packets' } },
    { column_span: 0, gauge: { expression: '0.5' } },
    { value_over_time: { expression, unit: 'x', min_expression: '1', avg_expression: '2' } },
    {
      value_over_time_comparison: {
        value1_expression: expression,
        value2_expression: '3',
        value1_text: 'up',
        value2_max_expression: '9',
      },
    },
    { data_rate: { goodput_expression: expression, overhead_expression: '1', type: 'RATE' } },
    { value_to_text: { expression, mapping: { '10': { text: 'ten', color: '#0f0' }, true: { text: 'yes' } } } },
    { value_to_text: { expression: `${expression} > 1`, mapping: { true: { text: 'yes' } } } },
    { value_to_text: { expression: '"up"', mapping: { '"up"': { text: 'Up!' } } } },
    { value_to_text: { expression: '"constructor"', mapping: {} } },
    {
      value_to_text_conditions: {
        conditions: [
          { expression: `${expression} > 100`, text: 'many' },
          { expression: `${expression} > 1`, text: 'some', color: 'red' },
          { expression: 'true', text: 'never' },
        ],
      },
    },
    { value_to_text_conditions: { conditions: [{ expression: 'false', text: 'no' }] } },
    { multiple_values: { unit: 'u', values: [{ expression, label: 'a', color: 'c' }] } },
    { multiple_values_over_time: { values: [{ expression, label: 'a', description: 'd' }], graph_type: 'LINE' } },
  ])
  const results = kpis.evaluate([10], 0).map(({ id, label, description, ...result }) => {
    expect([id, label, description]).toEqual([expect.any(String), '', ''])
    return result
  })
  expect(results).toEqual([
    { columnSpan: 2, value: { value: 10, unit: 'packets' } },
    { gauge: { value: 0.5 } },
    { valueOverTime: { value: 10, unit: 'x', min: 1, avg: 2 } },
    { valueOverTimeComparison: { value1: 10, value2: 3, value1Text: 'up', value2Max: 9 } },
    { dataRate: { goodput: 10, overhead: 1, type: 'RATE' } },
    { valueToText: { text: 'ten', color: '#0f0', value: 10 } },
    { valueToText: { text: 'yes', value: 1 } },
    { valueToText: { text: 'Up!' } },
    { valueToText: { text: '' } },
    { valueToTextConditions: { text: 'some', color: 'red' } },
    { valueToTextConditions: { text: '' } },
    { multipleValues: { unit: 'u', values: [{ value: 10, label: 'a', color: 'c' }] } },
    { multipleValuesOverTime: { values: [{ value: 10, label: 'a', description: 'd' }], graphType: 'LINE' } },
  ])
})

test('a KPI without a value says why, and which of its values; the others are evaluated', () => {
  const kpis = kpisOf([
    {
      multiple_values: {
        values: [
          { expression: '1', label: 'good' },
          { expression: '1 / 0', label: 'bad' },
        ],
      },
    },
    { data_rate: { goodput_expression: '1', overhead_expression: '{gone/x}', type: 'TOTAL' } },
    { value: { expression: '5' } },
  ])
  expect(kpis.evaluate([10], 0)).toMatchObject([
    { id: '0', error: expect.stringMatching(/^bad: the result is no finite number/) },
    { id: '1', error: expect.stringMatching(/no component "gone"/) },
    { id: '2', value: { value: 5 } },
  ])
})

test('the longest row of operators is evaluated', () => {
  expect(evaluated(`${'1+'.repeat(999)}1`)).toBe(1000)
  expect(evaluated(`${'1?'.repeat(98)}1${':1'.repeat(98)}`)).toBe(1)
})

test('whatever is written is refused, has a finite value, or says why it has none', () => {
  const pieces = [
    ...[
      '1',
      '0',
      '.5',
      '1e308',
      '"a"',
      "'10s'",
      'true',
      '{sink/packets}',
      '{sink/gone}',
      '{__proto__/x}',
      'constructor',
      'v',
    ],
    ...[
      '+',
      '-',
      '*',
      '/',
      '%',
      '!',
      '==',
      '<',
      '&&',
      '||',
      '?',
      ':',
      '(',
      ')',
      ',',
      '.',
      '[',
      ']',
      '{',
      '}',
      ';',
      '#',
    ],
    ...['rate(', 'max(', 'if(', 'round(', 'toString(', '__proto__', ' '],
  ]
  const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 24, size: 'max' }).map((parts) => parts.join(''))
  let taken = 0
  fc.assert(
    fc.property(texts, (text) => {
      try {
        parseExpression(text)
      } catch (error) {
        expect(error).toBeInstanceOf(ExpressionError)
        return
      }
      taken++
      const kpis = kpisOf([{ value: { expression: text } }], { v: '{sink/delay}' })
      for (let time = 0; time < 3; time++) {
        const [kpi] = kpis.evaluate([10 * time, 2.5, 7], time) as [Kpi]
        if (kpi.error === undefined) expect(kpi.value?.value).toSatisfy(Number.isFinite)
        else expect(kpi.error).not.toBe('')
      }
    }),
    { numRuns: 5_000, seed: 1 },
  )
  expect(taken).toBeGreaterThan(100)
})
