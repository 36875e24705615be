/** The loop of a run on a clock that moves when it is looked at: when metrics are published, and how long it sleeps. */
import { expect, test } from 'vitest'
import { NS_PER_MS } from './clock.ts'
import { Loop, type LoopHost } from './loop.ts'
import { LoopMeter } from './loop-meter.ts'
import { bindMetrics, MetricLayout, type Metrics } from './metrics.ts'
import { engineMetrics } from './own-metrics.ts'
import { TimerQueue } from './timers.ts'

const LOOK_NS = 200

/**
 * Runs a loop whose timer fires every `every` ns, the first time at `first`, up to `end`; when it fired, published and for how long it
 * slept. Its log is due at `logDueAt`.
 */
function looped(first: number, every: number, end: number, spin = false, logDueAt = Number.POSITIVE_INFINITY) {
  const layout = new MetricLayout()
  const places = layout.declare('/engine', engineMetrics)
  const engine = bindMetrics(engineMetrics, places, new Float64Array(layout.values), []) as Metrics<
    typeof engineMetrics
  >
  const [fired, published, slept, flushed] = [[], [], [], []] as number[][]
  const clock = { now: 0, tick: () => (clock.now += LOOK_NS), beginTimers: () => {} }
  const timers = new TimerQueue()
  const timer = timers.create(() => {
    fired.push(clock.now)
    timer.at(timer.due + every)
  })
  timer.at(first)
  const io = {
    wait(timeoutNs: number): number {
      slept.push(timeoutNs)
      clock.now += timeoutNs
      return 0
    },
    dispatch: () => {},
    receiveFromNetworks: () => false,
  }
  const host: LoopHost = {
    get ending() {
      return clock.now >= end
    },
    obey: () => false,
    flushLog: () => flushed.push(clock.now),
    get logDueAt() {
      return clock.now < logDueAt ? logDueAt : Number.POSITIVE_INFINITY
    },
    publish: () => published.push(clock.now),
  }
  const graph = { timers, sources: [], flush: () => {}, complete: false, engine }
  const stopped = new Loop(host, graph, io, clock, new Int32Array(1), new LoopMeter(engine, 0), spin).run()
  expect(stopped).toBe(false)
  return { fired, published, slept, flushed }
}

test.each([false, true])('a timer that is nearly due does not wait for metrics to be published; spin %s', (spin) => {
  // When it is time to publish a timer is due 20 µs later.
  const { fired, published } = looped(20_000 + LOOK_NS, NS_PER_MS, 200 * NS_PER_MS, spin)
  expect(fired.length).toBeGreaterThanOrEqual(200)
  expect(published.length).toBeGreaterThan(15)
  for (const at of published) {
    const next = fired.find((time) => time > at)
    if (next !== undefined) expect(next - at).toBeGreaterThan(50_000)
  }
})

test.each([false, true])('metrics are published where a timer is always nearly due, too; spin %s', (spin) => {
  const { published } = looped(0, 30_000, 205 * NS_PER_MS, spin)
  expect(published).toHaveLength(10)
})

test('the loop sleeps until the timer, where that is due just after metrics are to be published', () => {
  const first = 10 * NS_PER_MS + 20_000
  const { fired, published, slept } = looped(first, NS_PER_MS, 20 * NS_PER_MS)
  expect(slept[0]).toBe(first - 2 * LOOK_NS)
  expect(published[0]).toBe(fired[0])
})

test('a loop in which nothing happens sends its log when that is due', () => {
  const dueAt = 700 * NS_PER_MS
  const { flushed } = looped(3000 * NS_PER_MS, NS_PER_MS, 3000 * NS_PER_MS, false, dueAt)
  expect(flushed.find((time) => time >= dueAt)).toBe(dueAt + LOOK_NS)
})
