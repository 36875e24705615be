/** The delay that LinkMeter makes out of counts of packets under way, where it is known. */
import { expect, it } from 'vitest'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { Simulation } from '../dataplane/engine/simulate.ts'
import { pipelineOf, type Step } from './impairment.ts'
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

function measured(up: readonly Step[], bytes: number, interval: number, milliseconds: number) {
  const simulation = simulationOf(up, bytes, interval)
  const between = up.map((_, i) => `up ${i + 1}`)
  const meter = new LinkMeter(simulation.metricsRegion, { from: 'clients', to: 'server', between }, 0)
  let second: number | undefined
  for (let now = 10; now <= milliseconds; now += 10) {
    simulation.advanceTo(now * MS)
    simulation.metrics()
    meter.look(now)
    if (now === milliseconds - 1000) meter.delay()
    if (now === milliseconds) second = meter.delay()
  }
  const counts = meter.counts()
  const delay = meter.delay(true)
  simulation.stop()
  return { counts, second, delay }
}

it('is that of a constant delay', () => {
  const { counts, second, delay } = measured([{ delay_constant: { delay: 40 } }], 100, 2, 10_000)
  expect(second).toBeGreaterThan(38)
  expect(second).toBeLessThan(42)
  expect(delay).toBeGreaterThan(38)
  expect(delay).toBeLessThan(42)
  expect(counts.receivedPackets).toBe(counts.sentPackets + counts.heldPackets)
})

it('adds up what waits for a full queue and what is delayed behind it, losses or not', () => {
  // 1,000 bytes at 1 Mbit/s are 8 ms; 10 wait, so each of those that get in has 11 times that, but for the time until the next comes.
  const up = [
    { bandwidth_limit_constant: { bandwidth_limit_mbit: 1, max_queue_size: 10 } },
    { delay_constant: { delay: 30 } },
    { loss_constant: { loss_probability: 0.5 } },
  ]
  const { counts, second } = measured(up, 1000, 1, 10_000)
  expect(second).toBeGreaterThan(30 + 10 * 8)
  expect(second).toBeLessThan(30 + 11.5 * 8)
  const { receivedPackets, sentPackets, lostPackets, queueFullPackets, droppedPackets, heldPackets } = counts
  expect(sentPackets + lostPackets + queueFullPackets + droppedPackets + heldPackets).toBe(receivedPackets)
  expect(queueFullPackets).toBeGreaterThan(8000)
  expect(Math.abs(lostPackets - sentPackets)).toBeLessThan(150)
})

it('is unknown where nothing came through, and none where nothing is between', () => {
  expect(measured([{ loss_constant: { loss_probability: 1 } }], 100, 5000, 2000).second).toBeUndefined()
  expect(measured([], 100, 5, 2000).second).toBe(0)
})
