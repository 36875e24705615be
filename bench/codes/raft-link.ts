/** Numbered packets through two ends of a raft over one path that delays and loses both ways. */
import { components } from '../../src/dataplane/components/registry.ts'
import { Simulation } from '../../src/dataplane/engine/simulate.ts'
import { checked } from '../support/chain.ts'
import type { Outcome, Traffic } from '../support/coded-link.ts'
import { Deliveries } from '../support/deliveries.ts'
import { RAFT_TIMEOUT_MS } from './candidates.ts'
import { type LossyLink, lossOf } from './links.ts'

/** One way, ms. */
const PATH_DELAY_MS = 25

function end(name: string, from: string, to: string): Record<string, unknown> {
  const timed = { realtime_stream: { timeout: RAFT_TIMEOUT_MS } }
  return {
    raft: {
      streams: [{ input: `${name} in`, output: `${name} out`, stream_handle: 1, ...timed }],
      carriers: [{ input: from, output: to, carrier_handle: 1 }],
    },
  }
}

/** Loss and delay of one way. */
function way(link: LossyLink, from: string, to: string, seed: number): Record<string, unknown> {
  const [[key, fields]] = Object.entries(lossOf(link, seed))
  return {
    [`${from} loss`]: { [key]: { ...fields, input: from, output: `${from} lossy` } },
    [`${from} delay`]: { delay_constant: { flows: [{ input: `${from} lossy`, output: to }], delay: PATH_DELAY_MS } },
  }
}

/** Sends the traffic from one end to the other; delays are without that of the path. */
export function overRaft({ bytes, interval, packets, tail }: Traffic, link: LossyLink, seed: number): Outcome {
  const deliveries = new Deliveries(bytes, interval, packets + tail)
  const registry = new Map([...components, ...deliveries.components])
  const pipeline = {
    source: { bench_source: { output: 'a in' } },
    a: end('a', 'to a', 'from a'),
    ...way(link, 'from a', 'to b', seed),
    b: end('b', 'to b', 'from b'),
    ...way(link, 'from b', 'to a', seed + 1),
    end: { bench_deliveries: { input: 'b out' } },
    nothing: { uniform_traffic_source: { output: 'b in', total_packets: 1, interval: 1000 } },
    unused: { traffic_sink: { input: 'a out' } },
  }
  const simulation = new Simulation(checked(pipeline, registry), { registry, seed })
  simulation.advanceTo((packets + tail) * interval + 1e9)
  simulation.stop()
  const sent = simulation.metrics().a.carriers_0_sent_packets
  const { lost, delays } = deliveries.inOrder(packets)
  return { lost, delays: delays.map((delay) => delay - PATH_DELAY_MS * 1e6), overhead: sent / (packets + tail) - 1 }
}
