/** Numbered packets through an encoder, a loss and a decoder on the virtual clock, and what an ideal code would make of the same losses. */
import { components } from '../../src/dataplane/components/registry.ts'
import { Simulation } from '../../src/dataplane/engine/simulate.ts'
import { checked } from './chain.ts'
import { Deliveries } from './deliveries.ts'

export interface Traffic {
  /** Of each packet. */
  bytes: number
  /** Between packets, ns. */
  interval: number
  /** Packets that are looked at. */
  packets: number
  /** Packets after those, which mend the last of them as those before mended others. */
  tail: number
}

/** `{ key: fields }` of a component without its ports. */
export type Keyed = Record<string, Record<string, unknown>>

export interface Outcome {
  /** Source packets that never came. */
  lost: number
  /** In-order delay of those that came, ns: until it and all before it that come at all are there. */
  delays: Float64Array
  /** Repair packets per source packet, as sent. */
  overhead: number
}

const NS_PER_S = 1e9

function withPorts(keyed: Keyed, input: string, output: string): Keyed {
  return Object.fromEntries(Object.entries(keyed).map(([key, fields]) => [key, { ...fields, input, output }]))
}

/** Sends the traffic through; `seed` is that of the components that have none of their own. Throws where the fields are refused. */
export function simulated(
  { bytes, interval, packets, tail }: Traffic,
  encoder: Keyed,
  loss: Keyed,
  decoder: Keyed,
  seed: number,
): Outcome {
  const deliveries = new Deliveries(bytes, interval, packets + tail)
  const registry = new Map([...components, ...deliveries.components])
  const pipeline = {
    source: { bench_source: { output: 'in' } },
    encoder: withPorts(encoder, 'in', 'wire'),
    loss: withPorts(loss, 'wire', 'lossy'),
    decoder: withPorts(decoder, 'lossy', 'out'),
    end: { bench_deliveries: { input: 'out' } },
  }
  const simulation = new Simulation(checked(pipeline, registry), { registry, seed })
  simulation.advanceTo((packets + tail) * interval + NS_PER_S)
  simulation.stop()
  const { source_packets: sources, repair_packets: repairs } = simulation.metrics().encoder
  return { ...deliveries.inOrder(packets), overhead: repairs / sources }
}

/**
 * What a code without flaw makes of the packets that `loses` says are lost, asked once for each packet sent: as many repairs as packets
 * are missing mend all of those. A repair follows whenever `rate` repairs per packet have come to one. A packet missing for `span`
 * nanoseconds is given up, and takes a repair that counted on it along.
 */
export function ideal({ interval, packets, tail }: Traffic, rate: number, span: number, loses: () => boolean): Outcome {
  const out = new Float64Array(packets + tail).fill(Number.NaN)
  const missing: number[] = []
  let repairs = 0
  let sent = 0
  for (let n = 0; n < packets + tail; n++) {
    const now = n * interval
    while (missing.length > 0 && now - (missing[0] as number) * interval > span) {
      missing.shift()
      repairs = Math.max(0, repairs - 1)
    }
    if (loses()) missing.push(n)
    else out[n] = now
    for (; sent + 1 <= (n + 1) * rate + ROUNDING; sent++) {
      if (loses() || missing.length === 0 || ++repairs < missing.length) continue
      for (const mended of missing) out[mended] = now
      missing.length = 0
      repairs = 0
    }
  }
  return { ...Deliveries.inOrderOf(out.subarray(0, packets), interval), overhead: sent / out.length }
}

/** Sums of rates such as 0.1 fall short of one by less. */
const ROUNDING = 1e-6
