/** The table of KPIs: a row for each value of every shape, in the width there is. */
import { expect, test } from 'vitest'
import type { Kpi } from '../contract/types.ts'
import { kpisLine, kpisTable } from './kpis-table.ts'

const kpis: Kpi[] = [
  { id: 'v', label: 'Packets', value: { value: 12345.678, unit: 'packets' } },
  { id: 'g', label: '', gauge: { value: 0.256 } },
  { id: 'o', label: 'Delay', valueOverTime: { value: 5, unit: 'ms', min: 1, max: 20_000 } },
  { id: 'c', label: 'Both', valueOverTimeComparison: { value1: 1, value2: 2, value1Text: 'up', value2Max: 3 } },
  { id: 'd', label: 'Rate', dataRate: { goodput: 5e6, overhead: 12, type: 'RATE' } },
  { id: 't', label: 'Total', dataRate: { goodput: 50, overhead: 0, type: 'TOTAL' } },
  { id: 's', label: 'State', valueToText: { text: 'up', color: 'green', value: 1 } },
  {
    id: 'm',
    label: 'Paths',
    multipleValues: {
      unit: 'ms',
      values: [
        { value: 1, label: 'a' },
        { value: 2, label: '' },
      ],
    },
  },
  { id: 'e', label: 'Bad', error: 'the result is no finite number (Infinity)' },
].map((kpi) => ({ description: '', ...kpi })) as Kpi[]

test('every shape', () => {
  expect(kpisTable(kpis).split('\n')).toEqual([
    'KPI             VALUE  UNIT     NOTE',
    'Packets        12,346  packets',
    'g                25.6  %',
    'Delay               5  ms       min 1  max 20.0 k',
    'Both: up            1',
    'Both: 2             2           max 3',
    'Rate      5.00 Mbit/s           and 12 bit/s of overhead',
    'Total        50 bytes',
    'State              up',
    'Paths: a            1  ms',
    'Paths               2  ms',
    'Bad                 –           the result is no finite number (Infinity)',
  ])
})

test('is no wider than the terminal', () => {
  for (const width of [40, 50, 80]) {
    for (const line of kpisTable(kpis, width).split('\n')) expect(line.length).toBeLessThanOrEqual(width)
  }
  expect(kpisTable(kpis, 50)).toContain('finite number')
})

test('in a line', () => {
  expect(kpisLine(kpis.slice(0, 2).concat(kpis.slice(-1)))).toBe(
    'Packets 12,346 packets  g 25.6 %  Bad – (the result is no finite number (Infinity))',
  )
})

test('small fractions are not 0, and 0 has no sign', () => {
  const small = [1e-7, 0.0000015, 0.00012345, -0].map(
    (value, i): Kpi => ({ id: `k${i}`, label: '', description: '', value: { value } }),
  )
  expect(kpisLine(small)).toMatch(/^k0 1e-7 +k1 0\.0000015 +k2 0\.000123 +k3 0$/)
})
