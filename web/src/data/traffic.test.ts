import type { Metric, TelemetrySample } from '@penstock/client'
import { expect, test } from 'vitest'
import { MAX_POINTS, NO_TRAFFIC, trafficAfter } from './traffic.ts'

const counter = (value: number, more: Partial<Metric>): Metric => ({
  kind: 'COUNTER',
  unit: 'packets',
  description: '',
  uint64Value: String(value),
  ...more,
})

/** After so many seconds: packets taken by the sink, lost, and bytes on either connection. */
const sample = (second: number, taken: number, lost: number, bytes: readonly [number, number]): TelemetrySample => ({
  timestamp: new Date(second * 1000).toISOString(),
  kpis: [],
  metricCollections: [
    {
      path: 'loss',
      metrics: {
        input_bytes: counter(bytes[0], { unit: 'bytes', port: { name: 'input', side: 'INPUT' } }),
        output_bytes: counter(bytes[1], { unit: 'bytes', port: { name: 'output', side: 'OUTPUT' } }),
        emulated: counter(lost, { role: 'INTENDED' }),
        unrelated_bytes: counter(1e9 * second, { unit: 'bytes' }),
      },
    },
    { path: 'sink', metrics: { packets: counter(taken, { role: 'CONSUMED' }) } },
  ],
})

test('rates are those between two samples: bits of the busiest connection, the share of packets that was lost', () => {
  const first = trafficAfter(NO_TRAFFIC, sample(10, 1_000, 100, [5_000, 4_000]), undefined)
  expect(first.points).toEqual([])
  const { points } = trafficAfter(first, sample(12, 1_180, 120, [7_000, 5_500]), 2)
  expect(points).toEqual([{ bits: 8_000, packets: 90, loss: 0.1 }])
})

test('where no packet ended nothing was lost', () => {
  const first = trafficAfter(NO_TRAFFIC, sample(0, 5, 5, [10, 10]), undefined)
  expect(trafficAfter(first, sample(1, 5, 5, [10, 10]), 1).points).toEqual([{ bits: 0, packets: 0, loss: 0 }])
})

test('rates are of the time that passed, wherever the clock of the node was set meanwhile', () => {
  const first = trafficAfter(NO_TRAFFIC, sample(10, 1_000, 100, [5_000, 4_000]), undefined)
  for (const then of [3_612, -3_588]) {
    const { points } = trafficAfter(first, sample(then, 1_180, 120, [7_000, 5_500]), 2)
    expect(points).toEqual([{ bits: 8_000, packets: 90, loss: 0.1 }])
  }
})

test('a sample of which it is not known how long after the last it was taken adds no point', () => {
  const first = trafficAfter(NO_TRAFFIC, sample(1, 5, 5, [10, 10]), undefined)
  expect(trafficAfter(first, sample(1, 9, 9, [90, 90]), undefined).points).toEqual([])
})

test('the last minute is kept', () => {
  let traffic = NO_TRAFFIC
  for (let second = 0; second < 2 * MAX_POINTS; second++)
    traffic = trafficAfter(traffic, sample(second, second, 0, [0, 0]), second === 0 ? undefined : 1)
  expect(traffic.points.length).toBe(MAX_POINTS)
})
