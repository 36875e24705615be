/** The delay that LinkMeter shows, where it is known: on the virtual clock, and to the nanosecond but for rounding. */
import { expect, it } from 'vitest'
import { UNREAD_METRICS } from '../dataplane/components/endpoints/unread-packets.ts'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { Histogram } from '../dataplane/engine/histogram.ts'
import { createRegion, histogram, MetricLayout, RegionWriter } from '../dataplane/engine/metrics.ts'
import { Simulation } from '../dataplane/engine/simulate.ts'
import { observerOf, pipelineOf, type Step } from './impairment.ts'
import { LinkMeter } from './link-meter.ts'

const MS = 1e6

/** A source behind a socket at the one end of the link, a sink behind one at the other. */
function simulationOf(up: readonly Step[], bytes: number, interval: number): Simulation {
  const link = pipelineOf({ up, down: [] }, { listen: '127.0.0.1:1', forward: '127.0.0.1:2', seed: 1 })
  Object.assign(link.engine_config.pipeline, {
    source: {
      uniform_traffic_source: { output: 'sent', interval, total_packets: 0, min_packet_size: bytes },
    },
    client: { udp: { remote_address: '127.0.0.1:1', input: 'sent' } },
    host: { udp: { local_address: '127.0.0.1:2', output: 'arrived' } },
    sink: { traffic_sink: { input: 'arrived' } },
  })
  const { config, problems } = checkPipelineConfig(JSON.stringify(link), components)
  if (!config) throw new Error(JSON.stringify(problems))
  return new Simulation(config, { registry: components })
}

/** The delay of each second, and of all of them. */
function measured(up: readonly Step[], bytes: number, interval: number, seconds: number) {
  const simulation = simulationOf(up, bytes, interval)
  const between = up.map((_, i) => `up ${i + 1}`)
  const ends = { from: 'clients', to: 'server', between, observer: observerOf('up') }
  const meter = new LinkMeter(simulation.metricsRegion, ends)
  const delays: (number | undefined)[] = []
  // Between two packets, not when one leaves.
  for (let second = 1; second <= seconds; second++) {
    simulation.advanceTo((second * 1000 - 0.5) * MS)
    simulation.metrics()
    meter.look()
    delays.push(meter.delay())
  }
  const counts = meter.counts()
  const delay = meter.delay(true)
  simulation.stop()
  return { counts, delays, delay }
}

it.each([2, 100, 1000])('is that of a constant delay, a packet every %i ms', (interval) => {
  const { counts, delays, delay } = measured([{ delay_constant: { delay: 30 } }], 100, interval, 10)
  for (const each of [...delays, delay]) expect(each).toBeCloseTo(30, 6)
  expect(counts.receivedPackets).toBe(counts.sentPackets + counts.heldPackets)
})

it('is that of the packets that came through in an interval, and none in the intervals where none did', () => {
  const { delays, delay } = measured([{ delay_constant: { delay: 1700 } }], 100, 3000, 9)
  // Sent at 0, 3 and 6 s.
  expect(delays.map((each) => each && Math.round(each))).toEqual([
    ...[undefined, 1700, undefined],
    ...[undefined, 1700, undefined],
    ...[undefined, 1700, undefined],
  ])
  expect(delay).toBeCloseTo(1700, 6)
})

it('adds up what waits for a full queue and what is delayed behind it, losses or not', () => {
  // 1,000 bytes at 1 Mbit/s are 8 ms; 10 wait, so each of those that get in has 11 times that, but for the time until the next comes.
  const up = [
    { bandwidth_limit_constant: { bandwidth_limit_mbit: 1, max_queue_size: 10 } },
    { delay_constant: { delay: 30 } },
    { loss_constant: { loss_probability: 0.5 } },
  ]
  const { counts, delays } = measured(up, 1000, 1, 10)
  expect(delays.at(-1)).toBeGreaterThan(30 + 10 * 8)
  expect(delays.at(-1)).toBeLessThanOrEqual(30 + 11 * 8)
  const { receivedPackets, sentPackets, lostPackets, queueFullPackets, droppedPackets, heldPackets } = counts
  expect(sentPackets + lostPackets + queueFullPackets + droppedPackets + heldPackets).toBe(receivedPackets)
  expect(queueFullPackets).toBeGreaterThan(8000)
  expect(Math.abs(lostPackets - sentPackets)).toBeLessThan(150)
})

it('is unknown where nothing came through, and none where nothing is between', () => {
  expect(measured([{ loss_constant: { loss_probability: 1 } }], 100, 500, 2).delays).toEqual([undefined, undefined])
  expect(measured([], 100, 5, 2).delays).toEqual([0, 0])
})

it('has what the kernel drops of what comes to a socket among what the link received and dropped, of its own direction', () => {
  const layout = new MetricLayout()
  const places = ['a', 'b'].map((path) => layout.declare(path, UNREAD_METRICS).get('kernel_dropped_packets') as number)
  const region = createRegion(layout)
  const values = new Float64Array(layout.values)
  values[places[0]] = 5
  values[places[1]] = 7
  new RegionWriter(region).publish(values, 1e9)
  const meter = new LinkMeter(region, { from: 'a', to: 'b', between: [], observer: 'o' })
  meter.look()
  expect(meter.counts()).toMatchObject({ receivedPackets: 5, droppedPackets: 5, sentPackets: 0 })
})

it('is exactly 0 in each interval whose packets came through at once, whatever others took before', () => {
  const layout = new MetricLayout()
  const places = layout.declare('o', { residence: histogram('', 'ns') })
  const region = createRegion(layout)
  const writer = new RegionWriter(region)
  const values = new Float64Array(layout.values)
  const made = new Histogram(values, places.get('residence') as number, 'ns')
  const meter = new LinkMeter(region, { from: 'a', to: 'b', between: [], observer: 'o' })
  const read = () => {
    made.summarise()
    writer.publish(values, 1e9)
    meter.look()
    return meter.delay()
  }
  for (let i = 0; i < 1000; i++) made.record(i * 1237)
  expect(read()).toBeCloseTo(0.6178815, 9)
  for (let i = 0; i < 1000; i++) {
    made.recordMany(0, 1 + ((37 * i) % 500))
    expect(read()).toBe(0)
  }
})
