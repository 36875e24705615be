/** traffic_sink: every number it reports, against streams whose faults are known. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive, payload } from '../../../../test/harness/component.ts'
import { crc32c } from '../../codes/crc32c.ts'
import { FLOW_WINDOW, ProbeFlow } from './probe-flow.ts'
import { MAX_FLOWS, MAX_FORMER_FLOWS, ProbeFlows } from './probe-flows.ts'

/** A probe made by hand from docs/wire-formats.md. */
function probe(sequence: number, { source = 1, bytes = 100, sent = 0 } = {}): Uint8Array {
  const made = payload(bytes, sequence)
  const view = new DataView(made.buffer)
  view.setUint32(0, 0x504e534b)
  view.setUint32(4, source)
  view.setBigUint64(8, BigInt(sequence))
  view.setUint32(16, Math.floor(sent / 1e9))
  view.setUint32(20, sent % 1e9)
  view.setUint32(24, bytes)
  view.setUint32(28, 0)
  view.setUint32(28, crc32c(made, 0, bytes))
  return made
}

function sink(config: Record<string, unknown> = {}): Bench {
  return drive({ sink: { traffic_sink: { input: 'in', ...config } } })
}

const of = (bench: Bench) => bench.metrics().sink

describe('traffic_sink', () => {
  test('a clean stream: counts, delay, goodput, nothing amiss', () => {
    const bench = sink()
    for (let i = 0; i < 1000; i++) {
      bench.send('in', probe(i, { bytes: 125, sent: Math.max(0, bench.now - (i < 10 ? 0 : 5_000_000)) }))
      bench.advance(1e6)
    }
    const metrics = of(bench)
    expect(metrics).toMatchObject({
      packets: 1000,
      bytes: 125_000,
      goodput_bytes: 125_000,
      probe_packets: 1000,
      lost_packets: 0,
      duplicate_packets: 0,
      reordered_packets: 0,
      corrupt_packets: 0,
      unmarked_packets: 0,
      late_packets: 0,
      oversize_packets: 0,
      flows: 1,
      delay_count: 1000,
      delay_min: 0,
      delay_max: 5_000_000,
    })
    expect(metrics.delay_mean).toBeCloseTo(0.99 * 5e6, 0)
    expect(Math.abs(metrics.delay_p50 - 5e6)).toBeLessThan(5e6 / 32)
    expect(metrics.goodput).toBeCloseTo(1e6, 0)
    expect(Math.abs(metrics.mean_goodput - 1e6)).toBeLessThan(2000)
    bench.advance(2e9)
    expect(of(bench).goodput).toBe(0)
    bench.stop()
  })

  test('loss goes up with a gap and down again when the missing come late', () => {
    const bench = sink()
    bench.send('in', [probe(3), probe(4), probe(9)])
    expect(of(bench)).toMatchObject({ lost_packets: 7, reordered_packets: 0 })
    bench.send('in', [probe(5), probe(0)])
    expect(of(bench)).toMatchObject({ lost_packets: 5, reordered_packets: 2, duplicate_packets: 0 })
    expect(of(bench).loss).toBeCloseTo(0.5)
    bench.send('in', [probe(5), probe(9), probe(0)])
    expect(of(bench)).toMatchObject({ lost_packets: 5, duplicate_packets: 3, probe_packets: 5, goodput_bytes: 500 })
    bench.stop()
  })

  test('damage is told from foreign packets', () => {
    const bench = sink()
    const flipped = probe(0)
    flipped[60] ^= 4
    const header = probe(1)
    header[13] ^= 1
    const cut = probe(2).subarray(0, 90)
    const huge = probe(3)
    huge[8] = 255
    const view = new DataView(huge.buffer)
    view.setUint32(28, 0)
    view.setUint32(28, crc32c(huge, 0, huge.length))
    const misfit = probe(5)
    const fields = new DataView(misfit.buffer)
    fields.setUint32(24, 99)
    fields.setUint32(28, 0)
    fields.setUint32(28, crc32c(misfit, 0, misfit.length))
    bench.send('in', [flipped, header, cut, huge, misfit, payload(100), new Uint8Array(0), probe(4).subarray(0, 31)])
    expect(of(bench)).toMatchObject({
      corrupt_packets: 5,
      unmarked_packets: 3,
      probe_packets: 0,
      lost_packets: 0,
      flows: 0,
    })
    bench.stop()
  })

  test('late and oversize packets', () => {
    const bench = sink({ mtu: 99, latency_budget: 10 })
    bench.advance(1e9)
    bench.send('in', [
      probe(0, { sent: 1e9 - 10e6 }),
      probe(1, { sent: 1e9 - 10e6 - 1 }),
      probe(2, { sent: 1e9, bytes: 99 }),
    ])
    expect(of(bench)).toMatchObject({ late_packets: 1, oversize_packets: 2, probe_packets: 3 })
    bench.reconfigure({ sink: { traffic_sink: { input: 'in', mtu: 98, latency_budget: 0 } } })
    bench.send('in', [probe(3, { sent: 1e9 - 1, bytes: 99 })])
    expect(of(bench)).toMatchObject({ late_packets: 2, oversize_packets: 3 })
    bench.stop()
  })

  test.each([{}, { mtu: 0 }])('%j: no packet is oversize', (config) => {
    const bench = sink(config)
    bench.send('in', [payload(2048), payload(1501), probe(0, { bytes: 2000 })])
    expect(of(bench)).toMatchObject({ packets: 3, oversize_packets: 0 })
    bench.reconfigure({ sink: { traffic_sink: { input: 'in', mtu: 1999 } } })
    bench.send('in', [payload(2048), payload(1999), probe(1, { bytes: 2000 })])
    expect(of(bench)).toMatchObject({ packets: 6, oversize_packets: 2 })
    bench.stop()
  })

  test('sources are told apart; more than the table holds displace the one silent longest', () => {
    const bench = sink()
    bench.send('in', [probe(0, { source: 1 }), probe(0, { source: 2 }), probe(2, { source: 1 })])
    expect(of(bench)).toMatchObject({ flows: 2, lost_packets: 1, duplicate_packets: 0 })
    for (let source = 3; source < 3 + MAX_FLOWS; source++) {
      bench.advance(1000)
      bench.send('in', probe(1, { source }))
    }
    expect(of(bench)).toMatchObject({ flows: MAX_FLOWS, lost_packets: 1 + MAX_FLOWS, duplicate_packets: 0 })
    bench.stop()
  })

  test('of more sources than the table holds, which send in turn, nothing is missing but what was lost', () => {
    const bench = sink()
    const round = (sequence: number, sources = MAX_FLOWS + 1) => {
      for (let source = 0; source < sources; source++) bench.send('in', probe(sequence, { source }))
      bench.advance(1000)
    }
    for (const sequence of [0, 1, 2]) round(sequence)
    expect(of(bench)).toMatchObject({ flows: MAX_FLOWS, lost_packets: 0, reordered_packets: 0, duplicate_packets: 0 })
    round(5)
    expect(of(bench).lost_packets).toBe(2 * (MAX_FLOWS + 1))
    bench.send('in', [probe(5, { source: 0 }), probe(4, { source: 0 }), probe(6, { source: 0 })])
    expect(of(bench)).toMatchObject({ lost_packets: 2 * (MAX_FLOWS + 1), probe_packets: 4 * (MAX_FLOWS + 1) + 3 })
    bench.stop()
  })

  test('who may have been here before counts from where it is heard', () => {
    const flows = new ProbeFlows()
    const hear = (source: number, sequence: number, now: number) => {
      const flow = flows.of(source, sequence)
      flow.last = now
      flow.take(sequence)
    }
    const sources = MAX_FLOWS + MAX_FORMER_FLOWS + 1
    for (let source = 0; source < sources; source++) hear(source, 1, source)
    expect([flows.size, flows.lost]).toEqual([MAX_FLOWS, sources])
    for (let source = 0; source < sources; source++) hear(source, 2, sources + source)
    expect([flows.size, flows.lost]).toEqual([MAX_FLOWS, sources])
  })

  test('after timeout_ms of silence a flow is finished, in gauges and log, until it is heard again', () => {
    const bench = sink({ timeout_ms: 500 })
    const lines = () => bench.log.filter(({ message }) => message.startsWith('flow 0000')).length
    bench.advance(5e9)
    expect(of(bench).finished).toBe(0)
    bench.send('in', probe(0, { source: 1 }))
    bench.advance(400e6)
    bench.send('in', probe(0, { source: 2 }))
    bench.advance(400e6)
    expect(of(bench)).toMatchObject({ finished: 0, finished_flows: 1 })
    expect(lines()).toBe(1)
    bench.advance(100e6)
    expect(of(bench)).toMatchObject({ finished: 1, finished_flows: 2 })
    expect(lines()).toBe(2)
    bench.send('in', probe(1, { source: 1 }))
    expect(of(bench)).toMatchObject({ finished: 0, finished_flows: 1 })
    bench.advance(500e6)
    expect(of(bench)).toMatchObject({ finished: 1, finished_flows: 2 })
    bench.stop()
  })

  test('a flow that was finished is so no longer when the timeout is raised over its silence, and once more when that is over', () => {
    const bench = sink({ timeout_ms: 500 })
    bench.send('in', probe(0))
    bench.advance(600e6)
    expect(of(bench)).toMatchObject({ finished: 1, finished_flows: 1 })
    bench.reconfigure({ sink: { traffic_sink: { input: 'in', timeout_ms: 2000 } } })
    expect(of(bench)).toMatchObject({ finished: 0, finished_flows: 0 })
    bench.advance(1400e6 - 1)
    expect(of(bench)).toMatchObject({ finished: 0, finished_flows: 0 })
    bench.advance(1)
    expect(of(bench)).toMatchObject({ finished: 1, finished_flows: 1 })
    bench.stop()
  })

  test('a time with a fraction, of which the sum with the timeout is rounded down: the flow is finished when it is due', () => {
    const bench = sink({ timeout_ms: 10_000 })
    bench.advance(12_000_000_000.062502)
    bench.send('in', probe(0))
    bench.advance(10e9)
    expect(of(bench)).toMatchObject({ finished: 1, finished_flows: 1 })
    bench.stop()
  })

  test('a source and its copy, joined again: every second packet is a duplicate', () => {
    const bench = drive({
      source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 5000, seed: 1 } },
      copy: { splitter: { input: 'a', outputs: ['b', 'c'] } },
      join: { flow_combiner: { inputs: ['b', 'c'], output: 'd' } },
      sink: { traffic_sink: { input: 'd' } },
    })
    bench.advance(20e9)
    expect(bench.metrics().sink).toMatchObject({
      packets: 10_000,
      probe_packets: 5000,
      duplicate_packets: 5000,
      lost_packets: 0,
      corrupt_packets: 0,
      unmarked_packets: 0,
    })
    expect(bench.stop()).toEqual({ outcome: 'COMPLETED' })
  })
})

describe('ProbeFlow', () => {
  test('agrees with a set over a long shuffled stream with losses and duplicates', () => {
    const flow = new ProbeFlow()
    const seen = new Set<number>()
    let newest = -1
    let duplicate = 0
    let reordered = 0
    let state = 12345
    const next = (limit: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 4294967296) * limit)
    }
    for (let i = 0; i < 300_000; i++) {
      const sequence = Math.max(0, i - next(next(10) === 0 ? 3000 : 3))
      flow.take(sequence)
      if (seen.has(sequence)) duplicate++
      else if (sequence < newest) reordered++
      seen.add(sequence)
      newest = Math.max(newest, sequence)
    }
    expect(flow.duplicate).toBe(duplicate)
    expect(flow.reordered).toBe(reordered)
    expect(flow.unique).toBe(seen.size)
    expect(flow.lost).toBe(newest + 1 - seen.size)
  })

  test('jumps over the window, sequences over 2^32, and a sink that joins late', () => {
    const flow = new ProbeFlow()
    const base = 2 ** 40
    expect(flow.take(base)).toBe('IN_ORDER')
    expect(flow.lost).toBe(0)
    expect(flow.take(base - 5)).toBe('LATE')
    expect(flow.take(base - 5)).toBe('DUPLICATE')
    expect(flow.lost).toBe(0)
    expect(flow.take(base + 10 * FLOW_WINDOW)).toBe('IN_ORDER')
    expect(flow.lost).toBe(10 * FLOW_WINDOW - 1)
    expect(flow.take(base + 10 * FLOW_WINDOW - 1)).toBe('LATE')
    expect(flow.take(base + 9 * FLOW_WINDOW + 1)).toBe('LATE')
    expect(flow.lost).toBe(10 * FLOW_WINDOW - 3)
    expect(flow.take(base + 1)).toBe('LATE')
    expect(flow.lost).toBe(10 * FLOW_WINDOW - 3)
  })

  test('of a window of which all came nothing is remembered after a jump over it', () => {
    const flow = new ProbeFlow()
    for (let sequence = 0; sequence < FLOW_WINDOW; sequence++) flow.take(sequence)
    expect(flow.take(3 * FLOW_WINDOW)).toBe('IN_ORDER')
    expect([flow.take(3 * FLOW_WINDOW - 1), flow.take(3 * FLOW_WINDOW - 1)]).toEqual(['LATE', 'DUPLICATE'])
    expect(flow).toMatchObject({ lost: 2 * FLOW_WINDOW - 1, duplicate: 1 })
  })
})
