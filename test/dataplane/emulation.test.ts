/** Emulation in real runs: the decisions of a seed are those of the virtual clock, and phases count from RUNNING. */
import { afterAll, describe, expect, it } from 'vitest'
import type { RunEnd } from '../../src/dataplane/engine/run.ts'
import { Simulation } from '../../src/dataplane/engine/simulate.ts'
import type { Pipeline } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, registry, startRun, testPool } from './running.ts'

const pool = testPool()
afterAll(() => pool.close())

const PACKETS = 400
const PAIR = { input: 'a', output: 'b' }
const FLOWS = { flows: [PAIR] }

/** What `test_attendance` has logged: a digit for each probe, 1 for those that came. */
function attendance(log: readonly { component: string; fields: Record<string, unknown> }[]): string {
  return String(log.find(({ component, fields }) => component === 'end' && 'came' in fields)?.fields.came)
}

async function inReality(pipeline: Pipeline): Promise<{ end: RunEnd; came: string }> {
  const run = await startRun(pool, pipeline)
  const end = await run.handle.ended
  return { end, came: attendance(run.log) }
}

function onTheVirtualClock(pipeline: Pipeline): { end: RunEnd; came: string } {
  const log: Parameters<typeof attendance>[0][number][] = []
  const simulation = new Simulation(configure(pipeline), { registry, onLog: (line) => log.push(line) })
  simulation.advanceTo(60e9)
  const end = simulation.stop()
  return { end, came: attendance(log) }
}

describe('the same seed loses the same packets on the real clock as on the virtual one', () => {
  const gilbert = [0.01, 0.7, 0.1, 0.2]
  const names = ['good_loss', 'bad_loss', 'good_to_bad', 'bad_to_good']
  const states = (suffix: string) => Object.fromEntries(names.map((name, i) => [`${name}_${suffix}`, gilbert[i]]))

  it.each<[string, Record<string, unknown>]>([
    ['uniform_loss', { ...PAIR, loss_prob: 0.2 }],
    ['loss_constant', { ...FLOWS, loss_probability: 0.2 }],
    ['gilbert_elliot_loss', { ...PAIR, ...states('prob') }],
    ['loss_gilbert_elliot', { ...FLOWS, ...states('probability') }],
    ['random_burst_loss', { ...PAIR, loss_prob: 0.05, burst: 4 }],
    ['uniform_loss_sequencer', { ...PAIR, loss_probs: [0.2, 0.2], intervals: [7, 5] }],
    ['loss_dynamic', { ...FLOWS, phases: [{ duration: 3, loss_probability: 0.2 }] }],
  ])('%s', async (key, fields) => {
    const pipeline = {
      // One by one on the virtual clock, as many at once as the machine was busy elsewhere on the real one.
      source: { uniform_traffic_source: { output: 'a', total_packets: PACKETS, interval: 1 } },
      loss: { [key]: { ...fields, seed: 11 } },
      end: { test_attendance: { input: 'b', total: PACKETS } },
    }
    const real = await inReality(pipeline)
    const virtual = onTheVirtualClock(pipeline)
    expect(virtual.end).toEqual({ outcome: 'COMPLETED' })
    expect(real.end).toEqual({ outcome: 'COMPLETED' })
    const lost = virtual.came.split('0').length - 1
    expect(lost).toBeGreaterThan(0.1 * PACKETS)
    expect(lost).toBeLessThan(0.4 * PACKETS)
    expect(real.came).toBe(virtual.came)
  })
})

it.each<[string, Record<string, unknown>]>([
  ['loss_dynamic', { ...FLOWS, phases: [300, 1e6].map((duration, i) => ({ duration, loss_probability: i })) }],
  ['uniform_loss_sequencer', { ...PAIR, loss_probs: [0, 1], intervals: [300, 1e6] }],
  ['timed_burst_loss', { ...PAIR, interval_ms: 300, burst_duration_ms: 1e6 }],
])('time before RUNNING counts for no phase, %s', async (key, fields) => {
  const { came } = await inReality({
    source: { uniform_traffic_source: { output: 'a', total_packets: 100 } },
    loss: { [key]: fields },
    slow: { test_slow: { input: 'b', output: 'c', milliseconds: 0, start_milliseconds: 400 } },
    end: { test_attendance: { input: 'c', total: 100 } },
  })
  expect(came).toBe('1'.repeat(100))
})

it('in a run that is idle the metrics say which phase holds, whether there is a burst, and a rate that falls', async () => {
  const intervals = [300, 1_000_000]
  const phases = intervals.map((duration) => ({ duration, loss_probability: 0 }))
  const run = await startRun(pool, {
    front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    rate: { bandwidth_tracker: { input: 'a', output: 'b', window_ms: 1500, buckets: 3 } },
    loss: { loss_dynamic: { flows: [{ input: 'b', output: 'c' }], phases } },
    sequence: { uniform_loss_sequencer: { input: 'c', output: 'd', loss_probs: [0, 0], intervals } },
    delay: { delay_fixed_sequencer: { input: 'd', output: 'e', delays: [0, 0], intervals } },
    bursts: { timed_burst_loss: { input: 'e', output: 'f', interval_ms: 300, burst_packets: 1 } },
    back: { udp_remote: { input: 'f' } },
  })
  const peer = await Peer.open()
  const send = () => peer.send(run.port('front'), Buffer.alloc(1000))
  const of = (component: string) => run.metrics()[component]
  try {
    for (const component of ['loss', 'sequence', 'delay']) {
      await until(() => of(component).phase === 1, `the second phase of "${component}"`)
    }
    await until(() => of('bursts').bursting === 1, 'a burst')
    await send()
    await until(() => of('bursts').emulated_loss === 1, 'the packet that ends it')
    await until(() => of('bursts').bursting === 1, 'the next one')
    await until(async () => {
      await send()
      return of('rate').bytes_per_second > 0
    }, 'packets in the rate')
    await until(() => of('rate').bytes_per_second === 0, 'a rate of 0')
  } finally {
    await run.stop()
    peer.close()
  }
})
