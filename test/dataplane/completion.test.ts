/** Runs that end by themselves: when their sources are done and their packets are out, and not before. */

import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { components } from '../../src/dataplane/components/registry.ts'
import { simulate, simulateTogether } from '../../src/dataplane/engine/simulate.ts'
import { conservation } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, startRun, type TestRun, testPool } from './running.ts'

const pool = testPool()
const peers: Peer[] = []
const runs: TestRun[] = []

async function peer(): Promise<Peer> {
  peers.push(await Peer.open())
  return peers.at(-1) as Peer
}

async function start(pipeline: Parameters<typeof startRun>[1]): Promise<TestRun> {
  runs.push(await startRun(pool, pipeline))
  return runs.at(-1) as TestRun
}

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  for (const open of peers.splice(0)) open.close()
})
afterAll(() => pool.close())

/** Ten packets, a code whose last block stays open, a delay, a slow link, a sink that would wait ten seconds for more. */
const finite = {
  source: { uniform_traffic_source: { output: 'a', interval: 2, total_packets: 10, min_packet_size: 1000, seed: 1 } },
  encode: { reed_solomon_encoder: { input: 'a', output: 'b', symbols: 4, repair: 2 } },
  loss: { uniform_loss: { input: 'b', output: 'c', loss_prob: 0.2, seed: 5 } },
  decode: { reed_solomon_decoder: { input: 'c', output: 'd' } },
  delay: { delay_constant: { flows: [{ input: 'd', output: 'e' }], delay: 50 } },
  link: { bandwidth_limit_constant: { flows: [{ input: 'e', output: 'f' }], bandwidth_limit_mbit: 4 } },
  sink: { traffic_sink: { input: 'f' } },
}

describe('a run whose sources are done', () => {
  it('ends COMPLETED once its packets are out, on the virtual clock at that very moment', () => {
    const config = configure(finite)
    const { end, metrics, elapsed } = simulate(config, { registry: components, duration: 3600e9 })
    expect(end).toEqual({ outcome: 'COMPLETED' })
    expect(metrics.source.generated_packets).toBe(10)
    expect(metrics.sink.packets).toBe(metrics.link.flows_0_output_packets)
    expect(metrics.sink.packets).toBe(metrics.delay.flows_0_input_packets)
    expect(conservation(config, metrics)).toEqual([])
    // The last of ten leaves at 18 ms, is held for 50 and crosses the link in 2 at most.
    expect(elapsed).toBeGreaterThanOrEqual(18e6)
    expect(elapsed).toBeLessThanOrEqual(18e6 + 50e6 + 10 * 2e6)
    expect(simulate(config, { registry: components, duration: 30e6 }).end).toEqual({ outcome: 'STOPPED' })
  })

  it('has the metrics of its end, however long others with which it is simulated go on', () => {
    const source = { output: 'a', throughput_mbit: 8, payload_size: 1000, duration_ms: 1200, seed: 1 }
    const phases = [1000, 1000, 1000].map((duration, i) => ({ duration, delay: i }))
    const config = configure({
      source: { throughput_traffic_source: source },
      tracker: { bandwidth_tracker: { input: 'a', output: 'b' } },
      delay: { delay_dynamic: { flows: [{ input: 'b', output: 'c' }], phases } },
      sink: { traffic_sink: { input: 'c' } },
    })
    const longer = configure({
      source: { throughput_traffic_source: { ...source, duration_ms: 2500 } },
      sink: { traffic_sink: { input: 'a' } },
    })
    const options = { registry: components, duration: 10e9 }
    const alone = simulate(config, options)
    expect(alone.metrics).toMatchObject({ tracker: { bytes_per_second: 1e6 }, delay: { phase: 1 } })
    const seen: number[] = []
    const onSample = (_region: SharedArrayBuffer, now: number) => seen.push(now)
    const [together] = simulateTogether([{ config, onSample }, { config: longer }], options)
    expect(together).toEqual(alone)
    expect(seen).toEqual([0, 1e9, alone.elapsed])
  })

  it('ends COMPLETED on the real clock too', async () => {
    const run = await start(finite)
    expect(await run.handle.ended).toEqual({ outcome: 'COMPLETED' })
    const metrics = run.metrics()
    expect(metrics.source.generated_packets).toBe(10)
    expect(metrics.sink.packets).toBe(metrics.delay.flows_0_input_packets)
    expect(metrics.sink.delay_min).toBeGreaterThanOrEqual(52e6)
    expect(conservation(configure(finite), metrics)).toEqual([])
    expect(run.log.at(-1)?.message).toBe('ended: COMPLETED')
  })

  it('ends COMPLETED when what it sends has left through a socket that only sends', async () => {
    const far = await peer()
    const run = await start({
      source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 50 } },
      address: { peer_writer: { input: 'a', output: 'b', remote_address: far.address } },
      copy: { splitter: { input: 'b', outputs: ['c', 'd'] } },
      one: { udp_remote: { input: 'c' } },
      other: { udp: { input: 'd', remote_address: far.address } },
    })
    expect(await run.handle.ended).toEqual({ outcome: 'COMPLETED' })
    expect(run.metrics()).toMatchObject({ one: { sent_packets: 50 }, other: { sent_packets: 50 } })
    await far.hears(100)
  })

  it('goes on as long as a socket may bring more', async () => {
    const far = await peer()
    const run = await start({
      source: { uniform_traffic_source: { output: 'a', total_packets: 5 } },
      out: { udp: { input: 'a', output: 'b', local_address: '127.0.0.1:0', remote_address: far.address } },
      sink: { traffic_sink: { input: 'b' } },
    })
    await far.hears(5)
    await until(() => run.metrics().source.finished === 1, 'the source is done')
    for (let i = 1; i <= 3; i++) {
      await far.send(run.port('out'), 'more')
      await until(() => run.metrics().sink.packets === i, 'it came')
    }
    await run.stop()
    expect(await run.handle.ended).toEqual({ outcome: 'STOPPED' })
  })

  it('goes on as long as another source is not done', () => {
    const config = configure({
      short: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 5, seed: 1 } },
      long: { uniform_traffic_source: { output: 'b', interval: 1, seed: 1 } },
      join: { flow_combiner: { inputs: ['a', 'b'], output: 'c' } },
      sink: { traffic_sink: { input: 'c' } },
    })
    const { end, elapsed } = simulate(config, { registry: components, duration: 1e9 })
    expect(end).toEqual({ outcome: 'STOPPED' })
    expect(elapsed).toBe(1e9)
  })
})
