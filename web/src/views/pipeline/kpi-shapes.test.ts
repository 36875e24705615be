import type { Kpi } from '@penstock/client'
import { expect, test } from 'vitest'
import { History } from '../../data/history.ts'
import { sampleAt } from '../../data/testing.ts'
import { columnsOf, shapeOf } from './kpi-shapes.ts'

const kpi = (result: Partial<Kpi>): Kpi => ({ id: 'k', label: 'K', description: '', ...result })

function shape(result: Partial<Kpi>) {
  const history = new History()
  history.add(sampleAt(0, {}, { kpis: [kpi(result)] }))
  return shapeOf(kpi(result), history)
}

/** Label, last value and whether it is drawn aside of each curve. */
function curves(result: Partial<Kpi>) {
  const drawn = shape(result)
  if (drawn.kind !== 'curves') throw new Error(drawn.kind)
  return drawn.curves.map(({ label, values, isAside = false }) => [label, values[0], isAside])
}

test.each<[string, Partial<Kpi>, object]>([
  ['a value', { value: { value: 5, unit: 'ms' } }, { kind: 'number', value: 5, unit: 'ms' }],
  ['a gauge', { gauge: { value: 0.5 } }, { kind: 'gauge', value: 0.5 }],
  ['a text', { valueToText: { text: 'up', color: 'green' } }, { kind: 'text', text: 'up', colour: 'green' }],
  ['a text of conditions', { valueToTextConditions: { text: '' } }, { kind: 'text', text: '', colour: undefined }],
  ['an error', { error: 'divided by 0' }, { kind: 'nothing', why: 'divided by 0' }],
  ['nothing', {}, { kind: 'nothing' }],
  [
    'numbers',
    { multipleValues: { values: [{ value: 1, label: 'a' }] } },
    { kind: 'numbers', items: [{ label: 'a', value: 1 }] },
  ],
  [
    'a data rate',
    { dataRate: { goodput: 8, overhead: 2, type: 'RATE' } },
    { kind: 'curves', unit: 'bit/s', isStack: true },
  ],
  ['data in all', { dataRate: { goodput: 8, overhead: 2, type: 'TOTAL' } }, { unit: 'bytes', isStack: true }],
  ['areas', { multipleValuesOverTime: { values: [], graphType: 'AREA_STACK' } }, { kind: 'curves', isStack: true }],
  ['lines', { multipleValuesOverTime: { values: [], graphType: 'LINE' } }, { kind: 'curves', isStack: false }],
])('%s', (_, result, expected) => {
  expect(shape(result)).toMatchObject(expected)
})

test('a value over time has its bounds and its mean beside it, those that are asked for', () => {
  expect(curves({ valueOverTime: { value: 2, max: 9, avg: 3 } })).toEqual([
    ['Now', 2, false],
    ['greatest', 9, true],
    ['mean', 3, true],
  ])
})

test('a comparison has two curves, each with its own, and the texts of the configuration', () => {
  const two = { value1: 1, value2: 2, value1Text: 'Sent', value1Min: 0, value2Avg: 5 }
  expect(curves({ valueOverTimeComparison: two })).toEqual([
    ['Sent', 1, false],
    ['Sent, least', 0, true],
    ['Second', 2, false],
    ['Second, mean', 5, true],
  ])
})

test('a curve has the colour of the configuration, else one of its own', () => {
  const values = [
    { value: 1, label: 'a', color: 'red' },
    { value: 2, label: 'b' },
  ]
  expect(shape({ multipleValuesOverTime: { values, graphType: 'LINE' } })).toMatchObject({
    curves: [{ colour: 'red' }, { colour: '--curve-2' }],
  })
})

test.each([
  [{ columnSpan: 3 }, 3],
  [{ columnSpan: 9 }, 4],
  [{ columnSpan: 0, gauge: { value: 1 } }, 1],
  [{ valueOverTime: { value: 1 } }, 2],
])('%j takes %d columns', (result, columns) => {
  expect(columnsOf(kpi(result), shape(result))).toBe(columns)
})
