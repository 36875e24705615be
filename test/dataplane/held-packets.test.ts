/** A real run holds 100,000 packets in a 500 ms delay: none is lost, and a stop in the middle ends it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunPool } from '../../src/dataplane/engine/run.ts'
import { conservation } from '../harness/component.ts'
import { configure, startRun, testPool } from './running.ts'

const PACKETS = 100_000

const pipeline = (delay: number) => ({
  source: {
    uniform_traffic_source: { output: 'a', total_packets: PACKETS, min_packet_size: 64, max_packet_size: 1400 },
  },
  delay: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay } },
  sink: { traffic_sink: { input: 'b' } },
})

let pool: RunPool
beforeAll(() => {
  pool = testPool()
})
afterAll(() => pool.close())

test('100,000 packets wait 500 ms and all arrive intact, in order', async () => {
  const run = await startRun(pool, pipeline(500))
  expect(await run.handle.ended).toEqual({ outcome: 'COMPLETED' })
  const { sink, delay } = run.metrics()
  expect(sink).toMatchObject({
    packets: PACKETS,
    probe_packets: PACKETS,
    lost_packets: 0,
    corrupt_packets: 0,
    duplicate_packets: 0,
    reordered_packets: 0,
  })
  expect(sink.delay_min).toBeGreaterThanOrEqual(500e6)
  expect(delay.held_packets).toBe(0)
})

test('a stop while 100,000 packets are held ends the run, and the last metrics say what became of them', async () => {
  const run = await startRun(pool, pipeline(3_600_000))
  await expect.poll(() => run.metrics().delay.held_packets, { timeout: 20_000 }).toBe(PACKETS)
  run.handle.stop()
  expect(await run.handle.ended).toEqual({ outcome: 'STOPPED' })
  const { sink, delay } = run.metrics()
  expect(sink.packets).toBe(0)
  expect(delay).toMatchObject({ held_packets: 0, held_at_end_packets: PACKETS })
  expect(conservation(configure(pipeline(3_600_000)), run.metrics())).toEqual([])
})
