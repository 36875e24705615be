/**
 * raft: what a transit stream gets of one path, of another, and of both, on the virtual clock: those of examples/bonding, 20 Mbit/s with 5 % loss and
 * 15 ms, 10 Mbit/s and 40 ms. And what a packet costs, through both ends, over one path and over two without limits, beside the same path without raft, in turn; and
 * whether the JavaScript heap grows.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { components } from '../src/dataplane/components/registry.ts'
import { Simulation } from '../src/dataplane/engine/simulate.ts'
import { type Bench, inTurn, runAlone } from './measure.ts'
import { checked } from './support/chain.ts'

const BYTES = 1376
/** Into paths that deliver 29 Mbit/s. */
const OFFERED_MBIT = 44
const START_SECONDS = 5
const SECONDS = 20
/** 10,900 packets/s. */
const COST_MBIT = 120
const COST_SECONDS = 10
const ROUNDS = 5
const HEAP_SECONDS = 60
const FOR_EVER_MS = 1e9

interface Path {
  delay: number
  loss: number
  mbit: number
  queue: number
}

const FAST: Path = { delay: 15, loss: 0.05, mbit: 20, queue: 83 }
const SLOW: Path = { delay: 40, loss: 0, mbit: 10, queue: 41 }
const UNLIMITED: Path = { delay: 15, loss: 0, mbit: 10_000, queue: 4096 }

/** One way of a path. */
function way({ delay, loss, mbit, queue }: Path, from: string, to: string, seed: number): Record<string, unknown> {
  return {
    [`${from} loss`]: { uniform_loss: { input: from, output: `${from} lossy`, loss_prob: loss, seed } },
    [`${from} delay`]: { delay_constant: { flows: [{ input: `${from} lossy`, output: `${from} late` }], delay } },
    [`${from} rate`]: {
      bandwidth_limit_constant: {
        flows: [{ input: `${from} late`, output: to }],
        bandwidth_limit_mbit: mbit,
        max_queue_size: queue,
      },
    },
  }
}

const source = (mbit: number) => ({
  throughput_traffic_source: {
    output: 'sent',
    throughput_mbit: mbit,
    payload_size: BYTES,
    duration_ms: FOR_EVER_MS,
    seed: 1,
  },
})

const sink = { traffic_sink: { input: 'received', mtu: 0 } }

/** A stream from one end of a raft to the other. */
function bonded(mbit: number, paths: readonly Path[], isMeasured: boolean): Simulation {
  const stream = { stream_handle: 1, transit_stream: { bonding_delay: 200 } }
  const end = (name: string, other: string, ports: Record<string, string>) => ({
    raft: {
      streams: [{ ...stream, ...ports }],
      carriers: paths.map((_, i) => ({
        input: `at ${name} ${i}`,
        output: `${name} to ${other} ${i}`,
        carrier_handle: i + 1,
        auto_bandwidth_estimation: isMeasured,
      })),
    },
  })
  const pipeline: Record<string, unknown> = { source: source(mbit), sink }
  pipeline.a = end('a', 'b', { input: 'sent' })
  pipeline.b = end('b', 'a', { output: 'received' })
  paths.forEach((path, i) => {
    Object.assign(
      pipeline,
      way(path, `a to b ${i}`, `at b ${i}`, 2 * i + 1),
      way(path, `b to a ${i}`, `at a ${i}`, 2 * i + 2),
    )
  })
  return new Simulation(checked(pipeline), { registry: components })
}

const plain = (mbit: number, path: Path): Simulation =>
  new Simulation(checked({ source: source(mbit), ...way(path, 'sent', 'received', 1), sink }), { registry: components })

const received = (simulation: Simulation): number => simulation.metrics().sink.input_packets as number

/** Mbit/s of payload that come out once the rates are known. */
function goodput(paths: readonly Path[]): number {
  const simulation = bonded(OFFERED_MBIT, paths, true)
  simulation.advanceTo(START_SECONDS * 1e9)
  const before = received(simulation)
  simulation.advanceTo(SECONDS * 1e9)
  const packets = received(simulation) - before
  simulation.stop()
  return (packets * BYTES * 8) / (SECONDS - START_SECONDS) / 1e6
}

/** Drives a simulation on; gives the microseconds of CPU that a packet takes. */
function costOf(simulation: Simulation): () => number {
  let until = 0
  return () => {
    const packets = received(simulation)
    const start = process.cpuUsage()
    until += COST_SECONDS * 1e9
    simulation.advanceTo(until)
    const { user, system } = process.cpuUsage(start)
    return (user + system) / (received(simulation) - packets)
  }
}

/** Bytes by which the heap grows for each packet. */
function heapGrowth(simulation: Simulation): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  simulation.advanceTo(HEAP_SECONDS * 1e9)
  const packets = received(simulation)
  collect()
  collect()
  const before = process.memoryUsage().heapUsed
  simulation.advanceTo(2 * HEAP_SECONDS * 1e9)
  collect()
  collect()
  return Math.max(process.memoryUsage().heapUsed - before, 0) / (received(simulation) - packets)
}

export const bench: Bench = async () => {
  const fast = goodput([FAST])
  const slow = goodput([SLOW])
  const both = goodput([FAST, SLOW])
  const one = bonded(COST_MBIT, [UNLIMITED], false)
  const two = bonded(COST_MBIT, [UNLIMITED, UNLIMITED], false)
  const none = plain(COST_MBIT, UNLIMITED)
  const costs = await inTurn(ROUNDS + 1, { none: costOf(none), one: costOf(one), two: costOf(two) })
  for (const simulation of [one, two, none]) simulation.stop()
  const lossy = bonded(COST_MBIT, [{ ...UNLIMITED, loss: 0.02 }, UNLIMITED], false)
  const growth = heapGrowth(lossy)
  lossy.stop()
  const delivered = FAST.mbit * (1 - FAST.loss) + SLOW.mbit
  return {
    name: `raft: a transit stream of ${OFFERED_MBIT} Mbit/s, packets of ${BYTES} B, on the virtual clock; CPU through both ends`,
    rows: [
      { label: `over 20 Mbit/s, 5 %, 15 ms`, value: fast, unit: 'Mbit/s', ratio: fast / (FAST.mbit * (1 - FAST.loss)) },
      { label: 'over 10 Mbit/s, 40 ms', value: slow, unit: 'Mbit/s', ratio: slow / SLOW.mbit },
      {
        label: 'over both, against what they deliver',
        value: both,
        unit: 'Mbit/s',
        ratio: both / delivered,
        goal: '≥ 0.85',
      },
      {
        label: 'over both, against the sum of each',
        value: both,
        unit: 'Mbit/s',
        ratio: both / (fast + slow),
        goal: '≥ 0.95',
      },
      { label: 'a path without raft', value: costs.none, unit: 'µs a packet' },
      { label: 'one path, raft alone', value: costs.one - costs.none, unit: 'µs a packet' },
      {
        label: 'two paths, raft alone',
        value: costs.two - costs.none,
        unit: 'µs a packet',
        ratio: (costs.two - costs.none) / (costs.one - costs.none),
      },
      { label: 'growth of the heap, 2 % lost on one of two', value: growth, unit: 'bytes a packet', goal: '≤ 0.1' },
    ],
  }
}

await runAlone(import.meta.url, bench)
