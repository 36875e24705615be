import { expect, test } from 'vitest'
import { History, kpiKey, MAX_KPI_SERIES, MAX_SERIES, metricKey, SPAN } from './history.ts'
import { kpiDefinitions } from './kpi-definitions.ts'
import { counter, sampleAt } from './testing.ts'

const key = metricKey('a', 'packets')
const at = (seconds: number, packets: number) => sampleAt(seconds, { a: { packets: counter(packets) } })

test('values and changes per second come in the order of time', () => {
  const history = new History()
  for (const [seconds, packets] of [
    [0, 5],
    [1, 15],
    [3, 55],
  ] as const)
    history.add(at(seconds, packets))
  expect(history.values(key)).toEqual([5, 15, 55])
  expect(history.rates(key)).toEqual([undefined, 10, 20])
  const [first = 0, , last = 0] = history.times()
  expect(last - first).toBe(3)
})

test('a number that falls, or is not there for a while, has no change', () => {
  const history = new History()
  history.add(at(0, 10))
  history.add(at(1, 3))
  history.add(sampleAt(2, { a: {} }))
  history.add(at(3, 5))
  expect(history.values(key)).toEqual([10, 3, undefined, 5])
  expect(history.rates(key)).toEqual([undefined, undefined, undefined, undefined])
})

test('a sample that is no later than the last is passed over', () => {
  const history = new History()
  history.add(at(1, 1))
  history.add(at(1, 2))
  history.add(at(0.7, 3))
  expect(history.values(key)).toEqual([1])
})

test('a clock that is set back begins a new history', () => {
  const history = new History()
  for (const [seconds, packets] of [
    [5000, 10],
    [5001, 20],
    [100, 30],
    [101, 45],
  ] as const)
    history.add(at(seconds, packets))
  expect(history.values(key)).toEqual([30, 45])
  expect(history.rates(key)).toEqual([undefined, 15])
  const [first = 0, last = 0] = history.times()
  expect(last - first).toBe(1)
})

test('changes per second are those of the time that truly passed where a clock is set forward, also within what becomes one point', () => {
  const history = new History()
  for (const [seconds, packets, passed] of [
    [0, 0, undefined],
    [1, 100, 1],
    [302, 200, 1],
    [302.2, 220, 0.2],
    [302.4, 240, 0.2],
    [303.4, 340, 1],
  ] as const)
    history.add(at(seconds, packets), passed)
  expect(history.values(key)).toEqual([0, 100, 200, 340])
  expect(history.rates(key)).toEqual([undefined, ...[100, 100, 100].map((rate) => expect.closeTo(rate))])
})

test('a sample without a time is passed over, and harms no later one', () => {
  const history = new History()
  history.add(at(0, 0))
  history.add({ metricCollections: [], kpis: [] })
  history.add(at(2, 100))
  expect(history.rates(key)).toEqual([undefined, 50])
})

test('a number that is no more there when the clock is set back has no values from before', () => {
  const history = new History()
  history.add(at(5000, 10))
  history.add(at(5001, 20))
  history.add(sampleAt(100, { b: {} }))
  history.add(sampleAt(101, { b: {} }))
  expect(history.values(key)).toEqual([undefined, undefined])
})

test('of samples every 100 ms two a second are kept, the newest always', () => {
  const history = new History()
  for (let i = 0; i <= 23; i++) history.add(at(i / 10, i))
  expect(history.values(key)).toEqual([0, 5, 10, 15, 20, 23])
})

test('what is older than ten minutes is gone, however many samples there were', () => {
  const history = new History()
  for (let i = 0; i <= 3000; i++) history.add(at(i, i))
  expect(history.values(key)[0]).toBe(3000 - SPAN)
  expect(history.values(key)).toHaveLength(SPAN + 1)
  history.add(at(3000 + SPAN + 1, 9999))
  expect(history.values(key)).toEqual([9999])
})

test('the ring holds ten minutes of two samples a second', () => {
  const history = new History()
  for (let i = 0; i <= 5000; i++) history.add(at(i / 2, i))
  expect(history.values(key)).toHaveLength(SPAN * 2)
  expect(history.values(key).at(-1)).toBe(5000)
})

test('the numbers of KPIs are kept in their order', () => {
  const history = new History()
  const kpi = { id: 'k', label: '', description: '', valueOverTime: { value: 2, avg: 1 } }
  history.add(sampleAt(0, {}, { kpis: [kpi] }))
  expect([0, 1, 2, 3].map((i) => history.values(kpiKey('k', i))[0])).toEqual([2, undefined, undefined, 1])
})

test('beyond the most numbers that are kept, others have no values', () => {
  const history = new History()
  const many = Object.fromEntries(Array.from({ length: MAX_SERIES + 1 }, (_, i) => [`m${i}`, counter(i)]))
  history.add(sampleAt(0, { a: many }))
  expect(history.values(metricKey('a', `m${MAX_SERIES - 1}`))).toEqual([MAX_SERIES - 1])
  expect(history.values(metricKey('a', `m${MAX_SERIES}`))).toEqual([undefined])
})

const kpi = (id: string, value: number) => ({ id, label: '', description: '', valueOverTime: { value } })

test('KPIs have places of their own, however many metrics there are', () => {
  const history = new History()
  const many = Object.fromEntries(Array.from({ length: MAX_SERIES + 1 }, (_, i) => [`m${i}`, counter(i)]))
  history.add(sampleAt(0, { a: many }))
  history.add(sampleAt(1, { a: many }, { kpis: [kpi('k', 7)] }))
  expect(history.values(kpiKey('k', 0))).toEqual([undefined, 7])
  expect(history.lacksKpis).toBe(false)
})

test('beyond the most numbers of KPIs that are kept, others are missing, which is told', () => {
  const history = new History()
  const kpis = Array.from({ length: MAX_KPI_SERIES + 1 }, (_, i) => kpi(`k${i}`, i))
  history.add(sampleAt(0, {}, { kpis }))
  expect(history.values(kpiKey(`k${MAX_KPI_SERIES}`, 0))).toEqual([undefined])
  expect(history.lacksKpis).toBe(true)
})

test('a KPI that is changed begins anew, and others go on', () => {
  const history = new History()
  const define = (expression: string, variables = {}): void => {
    const metrics = [
      { id: 'k', value_over_time: { expression } },
      { id: 'k2', value_over_time: { expression: '1' } },
    ]
    history.define(kpiDefinitions(JSON.stringify({ kpis: { metrics, variables } })))
  }
  const both = () => ['k', 'k2'].map((id) => history.values(kpiKey(id, 0)))
  define('1000000')
  history.add(sampleAt(0, {}, { kpis: [kpi('k', 1_000_000), kpi('k2', 1)] }))
  define('1000000')
  define('3')
  history.add(sampleAt(1, {}, { kpis: [kpi('k', 3), kpi('k2', 1)] }))
  expect(both()).toEqual([
    [undefined, 3],
    [1, 1],
  ])
  define('3', { v: '1' })
  expect(both()).toEqual([
    [undefined, undefined],
    [undefined, undefined],
  ])
})
