/** Simulated networks between runs in threads of their own: who is joined when, idle runs that wake, and runs that die. */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import type { Pipeline } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import { Peer, pinnedThread, sleeps, startRun, type TestRun, testPool } from './running.ts'

const pool = testPool()
const before = native.openDescriptors()
const runs: TestRun[] = []

async function start(pipeline: Pipeline): Promise<TestRun> {
  const run = await startRun(pool, pipeline)
  runs.push(run)
  return run
}

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

const lan = (more: Record<string, unknown>) => ({ simulated_network: { network_name: 'lan', ...more } })

/** What comes from the network goes to `peer`, and the other way round. */
const bridge = (peer: Peer): Pipeline => ({
  front: { udp: { local_address: '127.0.0.1:0', input: 'b', output: 'a', remote_address: peer.address } },
  port: lan({ input: 'a', output: 'b' }),
})

const sink: Pipeline = { port: lan({ output: 'a' }), sink: { traffic_sink: { input: 'a' } } }

/** Sends `total_packets` probes, 0 for no end. */
const source = (seed: number, total: number, interval = 0): Pipeline => ({
  source: { uniform_traffic_source: { output: 'a', interval, total_packets: total, max_packet_size: 1400, seed } },
  port: lan({ input: 'a' }),
})

const members = (run: TestRun): number => run.metrics().port.members as number

describe('runs of one node', () => {
  it('pass packets both ways, also to a run that has slept, and lose sight of one that has ended', async () => {
    const peers = await Promise.all([Peer.open(), Peer.open(), Peer.open()])
    const [left, right, third] = peers as [Peer, Peer, Peer]
    try {
      const [a, b] = [await start(bridge(left)), await start(bridge(right))]
      await until(() => members(a) === 1 && members(b) === 1, 'both know each other')
      for (let i = 1; i <= 20; i++) {
        await left.send(a.port('front'), `there ${i}`)
        await right.hears(i)
        await right.send(b.port('front'), `back ${i}`)
        await left.hears(i)
      }
      expect(right.heard.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, i) => `there ${i + 1}`))
      const c = await start(bridge(third))
      await until(() => members(a) === 2 && members(b) === 2 && members(c) === 2, 'all three know each other')
      await left.send(a.port('front'), 'all')
      await Promise.all([right.hears(21), third.hears(1)])
      await b.stop()
      await until(() => members(a) === 1 && members(c) === 1, 'the two that are left know that')
      await left.send(a.port('front'), 'rest')
      await third.hears(2)
      expect([right.heard.length, third.heard.map(({ text }) => text)]).toEqual([21, ['all', 'rest']])
    } finally {
      for (const peer of peers) peer.close()
    }
  })

  it('a run that starts after its receiver loses nothing, from its first packet on', async () => {
    const receiver = await start(sink)
    for (let seed = 1; seed <= 5; seed++) {
      const sender = await start(source(seed, 200))
      expect(await sender.handle.ended).toEqual({ outcome: 'COMPLETED' })
      await until(() => receiver.metrics().sink.probe_packets === seed * 200, 'all probes arrived')
    }
    expect(receiver.metrics().sink).toMatchObject({ lost_packets: 0, reordered_packets: 0, corrupt_packets: 0 })
  })

  it('several that send as fast as they can: what arrives is intact and in order, what did not is counted on both sides', async () => {
    const receiver = await start(sink)
    const senders = await Promise.all([1, 2, 3].map((seed) => start(source(seed, 30_000))))
    for (const { handle } of senders) expect(await handle.ended).toEqual({ outcome: 'COMPLETED' })
    const full = senders.reduce((sum, run) => sum + (run.metrics().port.ring_full_packets as number), 0)
    await until(() => receiver.metrics().port.received_packets === 90_000, 'all arrived, or was missed')
    const { port, sink: measured } = receiver.metrics()
    expect(port.missed_packets).toBe(full)
    expect(measured).toMatchObject({
      packets: 90_000 - full,
      corrupt_packets: 0,
      duplicate_packets: 0,
      reordered_packets: 0,
    })
  })

  it('one that is killed while it sends hinders nobody and is forgotten', async () => {
    const receiver = await start(sink)
    for (let seed = 1; seed <= 6; seed++) {
      const dying = await start(source(seed, 0))
      const from = receiver.metrics().port.received_packets as number
      await until(() => (receiver.metrics().port.received_packets as number) > from + 5000, 'its packets arrive')
      dying.handle.kill('not wanted any more')
      expect(await dying.handle.ended).toEqual({ outcome: 'FAILED', error: 'not wanted any more' })
    }
    const fresh = await start(sink)
    const last = await start(source(99, 100))
    expect(await last.handle.ended).toEqual({ outcome: 'COMPLETED' })
    await until(() => receiver.metrics().sink.flows === 7, 'a later one is heard')
    await until(() => fresh.metrics().sink.packets === 100, 'by one that has just come, all of it')
    expect(receiver.metrics().sink.corrupt_packets).toBe(0)
  })

  it('one that is killed while it receives: its senders go on', async () => {
    const sender = await start(source(1, 0, 1))
    for (let round = 0; round < 3; round++) {
      const dying = await start(sink)
      await until(() => (dying.metrics().port.received_packets as number) > 10, 'packets arrive')
      dying.handle.kill('not wanted any more')
      await dying.handle.ended
      await until(() => members(sender) === 0, 'the sender knows that it is gone')
    }
    const next = await start(sink)
    await until(() => (next.metrics().port.received_packets as number) > 10, 'packets arrive at the next')
    expect(next.metrics().sink.corrupt_packets).toBe(0)
  })

  it.skipIf(native.affinity().length === 1)('an idle member sleeps, and wakes for a packet', async () => {
    const run = await startRun(pool, sink, { cpu: native.affinity()[0] as number })
    runs.push(run)
    const thread = pinnedThread()
    await until(() => sleeps(thread), 'it sleeps')
    await start(source(1, 1))
    await until(() => run.metrics().sink.probe_packets === 1, 'the packet arrived')
    await until(() => sleeps(thread), 'it sleeps again')
  })
})
