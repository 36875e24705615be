/** Rates between two readings of a region that is being written. */
import { expect, test } from 'vitest'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { layoutOf } from '../dataplane/engine/layout.ts'
import { consumed, createRegion, MetricLayout, RegionWriter } from '../dataplane/engine/metrics.ts'
import { RatesReader, ratesLine } from './rates.ts'

test('numbers that cannot be read whole leave the last rates, and the next reading covers the time between', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { taken: consumed('Packets taken.') })
  const region = createRegion(layout)
  const sequence = new Int32Array(region, 8, 1)
  const writer = new RegionWriter(region)
  writer.publish(Float64Array.of(0), 1e9)
  const meter = new RatesReader(region, 1000)
  writer.publish(Float64Array.of(100), 2e9)
  expect(meter.read(2000).total.consumed).toBe(100)
  sequence[0]++ // the writer begins, and stands still
  new Float64Array(region, region.byteLength - 8)[0] = 1e6
  expect(meter.read(3000).total.consumed).toBe(100)
  expect(meter.values()[0]?.value).toBe(100)
  sequence[0]++
  writer.publish(Float64Array.of(700), 4e9)
  expect(meter.read(4000).total.consumed).toBe(300)
})

test('what comes after a pause, in which nothing was published, has come in the time since the last reading', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { taken: consumed('Packets taken.') })
  const region = createRegion(layout)
  const writer = new RegionWriter(region)
  const meter = new RatesReader(region, 500)
  writer.publish(Float64Array.of(100), 990e6)
  expect(meter.read(1000).total.consumed).toBeCloseTo(100 / 0.49)
  for (let second = 2; second < 60; second++) expect(meter.read(second * 1000).total.consumed).toBe(0)
  writer.publish(Float64Array.of(600), 59_995e6)
  expect(meter.read(60_000).total.consumed).toBeCloseTo(500 / 0.995)
})

test('what was published as it was read last, and is read a moment later, is no infinite rate: the next reading makes up for it', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { taken: consumed('Packets taken.') })
  const region = createRegion(layout)
  const writer = new RegionWriter(region)
  const meter = new RatesReader(region, 1000)
  expect(meter.read(2000).total.consumed).toBe(0)
  writer.publish(Float64Array.of(100), 1999.9e6)
  expect(meter.read(2001).total.consumed).toBe(0)
  expect(meter.read(3000).total.consumed).toBe(100)
})

test('what passes a port is told by the fields of its counters, whatever their descriptions say', () => {
  const layout = new MetricLayout()
  const common = { path: 'relay', kind: 'counter', integer: true, description: 'Reworded.' } as const
  for (const side of ['input', 'output'] as const) {
    const port = { name: side, side }
    layout.number({ ...common, name: `${side}_packets`, unit: 'packets', port })
    layout.number({ ...common, name: `${side}_bytes`, unit: 'bytes', port })
  }
  // A counter that only reads like one of a port.
  layout.number({ ...common, name: 'odd', unit: 'packets', description: 'Packets that came in at input odd.' })
  const region = createRegion(layout)
  const writer = new RegionWriter(region)
  writer.publish(new Float64Array(5), 1e9)
  const meter = new RatesReader(region, 1000)
  writer.publish(Float64Array.of(10, 1000, 7, 700, 99), 2e9)
  expect(meter.read(2000).components).toMatchObject([{ inPackets: 10, inBits: 8000, outPackets: 7, outBits: 5600 }])
})

test('the engine writes port and side of every port counter, and of nothing else', () => {
  const pipeline = {
    source: {
      throughput_traffic_source: { output: 'sent', throughput_mbit: 1, payload_size: 100, duration_ms: 0, seed: 1 },
    },
    sink: { traffic_sink: { input: 'sent', mtu: 1500, latency_budget: 50 } },
  }
  const { config } = checkPipelineConfig(JSON.stringify({ version: 1, engine_config: { pipeline } }), components)
  const { entries } = layoutOf(config!, components).metrics
  const ports = entries.flatMap(({ path, unit, port }) => (port === undefined ? [] : [{ path, unit, ...port }]))
  expect(ports).toEqual([
    { path: 'source', unit: 'packets', name: 'output', side: 'output' },
    { path: 'source', unit: 'bytes', name: 'output', side: 'output' },
    { path: 'sink', unit: 'packets', name: 'input', side: 'input' },
    { path: 'sink', unit: 'bytes', name: 'input', side: 'input' },
  ])
})

test('a rate stands apart from its unit, with a prefix or none', () => {
  const total = { created: 0, consumed: 0, dropped: 0, drop: 0, overflow: 0, intended: 0, held: 0 } as never
  const one = { path: 'sink', inPackets: 1, outPackets: 0, outBits: 0, roles: total } as const
  expect(ratesLine(total, [])).toMatch(/ busiest 0 bit\/s$/)
  expect(ratesLine(total, [{ ...one, inBits: 1_250_000 }])).toMatch(/ busiest 1\.25 Mbit\/s$/)
})
