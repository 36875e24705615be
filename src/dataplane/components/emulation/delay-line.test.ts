/** From when a delay counts: from the arrival of what has just come, from now on for what another component has held. */
import { expect, test } from 'vitest'
import { Batch } from '../../engine/batch.ts'
import { MonotonicClock, NS_PER_MS } from '../../engine/clock.ts'
import { Histogram } from '../../engine/histogram.ts'
import { Loop } from '../../engine/loop.ts'
import { LoopMeter } from '../../engine/loop-meter.ts'
import { bindMetrics, MetricLayout, type Metrics } from '../../engine/metrics.ts'
import { Outlet } from '../../engine/outlet.ts'
import { engineMetrics } from '../../engine/own-metrics.ts'
import { Packets } from '../../engine/packets.ts'
import { TimerQueue } from '../../engine/timers.ts'
import { DelayLines } from './delay-line.ts'

const DELAY = 1_000_000

/** Lets in packets that arrived at `arrivals`, during a breath that waited from 10,000 and woke at 50,000; when each came out, ns. */
function released(arrivals: readonly number[], reorder = false): number[] {
  const packets = new Packets({ mtu: 100, slots: 16 })
  const clock = { now: 50_000, epoch: 0, waitedFrom: 10_000, stamp: () => clock.now }
  const timers = new TimerQueue()
  const outlet = new Outlet(packets, new Float64Array(2), 0)
  const times: number[] = []
  outlet.connect(
    (batch) => {
      for (let i = 0; i < batch.length; i++) times.push(clock.now)
      packets.releaseAll(batch)
    },
    () => {},
    (thrown) => {
      throw thrown
    },
  )
  const context = { packets, clock, timer: (fire: () => void) => timers.create(fire) }
  const lag = new Histogram(new Float64Array(512), 0, 'ns')
  const lines = new DelayLines(context, { delay: DELAY, jitter: 0 }, [outlet], { random: null, lag, reorder })
  const batch = new Batch(packets)
  for (const arrival of arrivals) {
    const packet = packets.allocate()
    packets.arrival[packet] = arrival
    batch.push(packet)
  }
  lines.take(batch, 0)
  while (timers.next < Number.POSITIVE_INFINITY) {
    clock.now = timers.next
    timers.fireDue(clock.now)
  }
  return times
}

test('what arrived while the breath waited counts from its arrival', () => {
  expect(released([20_000, 30_000, 50_000])).toEqual([1_020_000, 1_030_000, 1_050_000])
})

test('what arrived before, so that an earlier breath has had it, counts from now', () => {
  expect(released([0, 9_000, 10_000])).toEqual([1_050_000, 1_050_000, 1_050_000])
})

test('order is kept: what came first leaves first, however it counts', () => {
  expect(released([9_000, 20_000])).toEqual([1_050_000, 1_050_000])
  expect(released([9_000, 20_000], true)).toEqual([1_020_000, 1_050_000])
})

test('of two delays one behind the other the second counts from now, also in a breath that is later than the first is long', () => {
  const packets = new Packets({ mtu: 100, slots: 16 })
  const clock = new MonotonicClock()
  const timers = new TimerQueue()
  const context = { packets, clock, timer: (fire: () => void) => timers.create(fire) }
  const lag = new Histogram(new Float64Array(512), 0, 'ns')
  const [between, out] = [0, 1].map(() => new Outlet(packets, new Float64Array(2), 0)) as [Outlet, Outlet]
  const line = (delay: number, outlet: Outlet) =>
    new DelayLines(context, { delay, jitter: 0 }, [outlet], { random: null, lag, reorder: false })
  const [first, second] = [line(4 * NS_PER_MS, between), line(20 * NS_PER_MS, out)]
  const refuse = (thrown: unknown) => {
    throw thrown
  }
  let taken = 0
  between.connect(
    (batch) => second.take(batch, 0),
    () => {},
    refuse,
  )
  out.connect(
    (batch) => {
      taken = clock.now - packets.arrival[batch.handles[0] as number]
      packets.releaseAll(batch)
    },
    () => {},
    refuse,
  )
  const layout = new MetricLayout()
  const places = layout.declare('/engine', engineMetrics)
  const engine = bindMetrics(engineMetrics, places, new Float64Array(layout.values), []) as Metrics<
    typeof engineMetrics
  >
  let breaths = 0
  const io = {
    // A loop that was held up: what its socket has came 5 ms ago.
    wait: () => {
      if (breaths++ === 0) while (clock.tick() < 6 * NS_PER_MS);
      return breaths === 1 ? 1 : 0
    },
    dispatch() {
      const packet = packets.allocate()
      packets.arrival[packet] = clock.now - 5 * NS_PER_MS
      clock.arrived(packets.arrival[packet] as number)
      const batch = new Batch(packets)
      batch.push(packet)
      first.take(batch, 0)
    },
    receiveFromNetworks: () => false,
  }
  const host = {
    get ending() {
      return taken > 0
    },
    obey: () => false,
    flushLog: () => {},
    logDueAt: Number.POSITIVE_INFINITY,
    publish: () => {},
  }
  const graph = { timers, sources: [], flush: () => {}, complete: false, engine }
  new Loop(host, graph, io, clock, new Int32Array(1), new LoopMeter(engine, 0), false).run()
  expect(taken).toBeGreaterThanOrEqual(24 * NS_PER_MS)
})
