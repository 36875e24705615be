/** The busy time and share of a loop, on times made up. */
import { expect, test } from 'vitest'
import { NS_PER_MS, NS_PER_S } from './clock.ts'
import { LoopMeter } from './loop-meter.ts'
import { bindMetrics, MetricLayout, type Metrics } from './metrics.ts'
import { engineMetrics } from './own-metrics.ts'

function meterAt(now: number) {
  const layout = new MetricLayout()
  const places = layout.declare('/engine', engineMetrics)
  const metrics = bindMetrics(engineMetrics, places, new Float64Array(layout.values), []) as Metrics<
    typeof engineMetrics
  >
  return { metrics, meter: new LoopMeter(metrics, now) }
}

test('busy is the time that was not slept, and the share is of a second at least', () => {
  const { metrics, meter } = meterAt(5 * NS_PER_S)
  meter.breath(0)
  meter.observe(5 * NS_PER_S)
  expect(metrics.busy_share.value).toBe(0)
  for (let i = 1; i <= 100; i++) {
    meter.breath(7 * NS_PER_MS)
    meter.observe(5 * NS_PER_S + i * 10 * NS_PER_MS)
  }
  expect(metrics.busy_share.value).toBeCloseTo(0.3, 9)
  expect(metrics.busy_time.value).toBe(300 * NS_PER_MS)
  expect(metrics.breaths.value).toBe(101)
})

test('a share that tells of work that is over is published once more, and then not', () => {
  const { metrics, meter } = meterAt(0)
  meter.breath(0)
  meter.observe(1.5 * NS_PER_S)
  expect([metrics.busy_share.value, meter.settleAt]).toEqual([1, 2.5 * NS_PER_S])
  meter.breath(NS_PER_S - 1000)
  meter.observe(2.5 * NS_PER_S)
  expect(metrics.busy_share.value).toBeCloseTo(0, 5)
  expect(meter.settleAt).toBe(Number.POSITIVE_INFINITY)
  meter.breath(3600 * NS_PER_S)
  meter.observe(3602.6 * NS_PER_S)
  meter.observe(3602.61 * NS_PER_S)
  expect(meter.settleAt).toBe(3603.6 * NS_PER_S)
  expect(metrics.busy_time.value).toBeCloseTo(1.61 * NS_PER_S, -4)
})
