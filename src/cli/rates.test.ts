/** Rates between two readings of a region that is being written. */
import { expect, test } from 'vitest'
import { consumed, createRegion, MetricLayout, RegionWriter } from '../dataplane/engine/metrics.ts'
import { RateMeter } from './rates.ts'

test('numbers that cannot be read whole leave the last rates, and the next reading covers the time between', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { taken: consumed('Packets taken.') })
  const region = createRegion(layout)
  const sequence = new Int32Array(region, 8, 1)
  const writer = new RegionWriter(region)
  writer.publish(Float64Array.of(0), 1e9)
  const meter = new RateMeter(region)
  writer.publish(Float64Array.of(100), 2e9)
  expect(meter.read(1).total.consumed).toBe(100)
  sequence[0]++ // the writer begins, and stands still
  new Float64Array(region, region.byteLength - 8)[0] = 1e6
  expect(meter.read(1).total.consumed).toBe(100)
  expect(meter.values()[0]?.value).toBe(100)
  sequence[0]++
  writer.publish(Float64Array.of(700), 4e9)
  expect(meter.read(1).total.consumed).toBe(300)
})
