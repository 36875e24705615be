import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, refusal } from '../../../../test/harness/component.ts'
import { isRepair, repairPacket, sized, sourcePacket, viewOf, windowOf } from '../../../../test/harness/rely.ts'

const encoderOf = (fields: Record<string, unknown>) =>
  drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)

describe('rely_encoder', () => {
  it('puts on the wire what the documentation and the mathematics say', () => {
    const bench = encoderOf({ repair_target_rate: 0.5 })
    const sources = [payload(10, 1), payload(300, 2), payload(0), payload(77, 3)]
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    const out = bench.take('out')
    const session = viewOf(out[0].bytes).getUint32(0) & 0xffffff
    const wanted = [
      sourcePacket(sources[0], 0, session),
      sourcePacket(sources[1], 1, session),
      repairPacket(sources.slice(0, 2), 0, 0, session),
      sourcePacket(sources[2], 2, session),
      sourcePacket(sources[3], 3, session),
      repairPacket(sources, 0, 1, session),
    ]
    expect(out.map(({ bytes }) => bytes)).toEqual(wanted)
    for (const packet of out) expect(packet).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    expect(bench.metrics().enc).toMatchObject({ source_packets: 4, repair_packets: 2 })
    bench.stop()
  })

  it('puts the repairs of 32 sources that come together behind these, made when they were due', () => {
    const bench = encoderOf({ repair_target_rate: 0.1 })
    bench.send('in', sized(70))
    bench.send('in', sized(31))
    const out = bytesOut(bench)
    const repairs = out.flatMap((bytes, at) => (isRepair(bytes) ? [[at, ...windowOf(bytes).slice(0, 2)]] : []))
    const inBatch = [32, 33, 34, 67, 68, 69, 76]
    const oneByOne = [87, 98, 109]
    expect(repairs).toEqual([...inBatch, ...oneByOne].map((at, n) => [at, 0, 10 * (n + 1)]))
    expect(out).toHaveLength(111)
    bench.stop()
  })

  it('loses and repeats nothing where a source that ends such a group has no room', () => {
    const graph = { enc: { rely_encoder: { input: 'in', output: 'out', repair_target_rate: 4 } } }
    const bench = drive(graph, { mtu: 70_000 })
    const sources = sized(70)
    sources[31] = payload(65_536)
    bench.send('in', sources)
    const out = bytesOut(bench)
    const keys = out.filter(isRepair).map((bytes) => viewOf(bytes).getUint16(10))
    expect(keys).toEqual(Array.from({ length: 69 * 4 }, (_, n) => n))
    expect(out).toHaveLength(69 * 5)
    expect(bench.metrics().enc).toMatchObject({ no_room_packets: 1, source_packets: 69, repair_packets: 276 })
    bench.stop()
  })

  it.each([
    [0, 0],
    [0.1, 100],
    [0.15, 150],
    [1, 1000],
    [2.5, 2500],
    [4, 4000],
  ])('at a rate of %f sends %i repairs for 1,000 sources', (rate, repairs) => {
    const bench = encoderOf({ repair_target_rate: rate, max_payloads: 8 })
    for (let n = 0; n < 10; n++) bench.send('in', sized(100))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(repairs)
    bench.stop()
  })

  it('covers the newest max_payloads that are younger than repair_time_window and timeout', () => {
    const windows = (fields: Record<string, unknown>) => {
      const bench = encoderOf({ repair_target_rate: 1, ...fields })
      for (let n = 0; n < 200; n++) {
        bench.send('in', payload(20, n))
        bench.advance(1e6)
      }
      const last = bytesOut(bench).filter(isRepair).at(-1) as Uint8Array
      bench.stop()
      return windowOf(last).slice(0, 2)
    }
    expect(windows({})).toEqual([100, 100])
    expect(windows({ repair_time_window: 30 })).toEqual([170, 30])
    expect(windows({ repair_time_window: 30, timeout: 20 })).toEqual([180, 20])
    expect(windows({ timeout: 500 })).toEqual([100, 100])
    expect(windows({ max_payloads: 7 })).toEqual([193, 7])
    expect(windows({ repair_time_window: 1000 })).toEqual([0, 200])
  })

  it('protects what is left after flush_after_ms of silence, and at FLUSH, once', () => {
    const bench = encoderOf({ repair_target_rate: 0.25, flush_after_ms: 8 })
    bench.send('in', sized(6), { remote: '192.0.2.9:99', client: 5 })
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[0, 4, 0]])
    bench.advance(7.9e6)
    expect(bytesOut(bench)).toEqual([])
    bench.advance(0.2e6)
    const flushed = bench.take('out')
    expect(flushed).toMatchObject([{ time: 8e6, remote: '192.0.2.9:99', client: 5 }])
    expect(windowOf(flushed[0].bytes)).toEqual([0, 6, 1])
    bench.advance(1e9)
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench)).toEqual([])
    bench.send('in', sized(1))
    bench.notify('in', 'FLUSH')
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[6, 1, 2]])
    expect(bench.notifications('out')).toEqual(['FLUSH', 'FLUSH'])
    bench.stop()
  })

  it('takes changed fields over, another size of the window with a window that begins anew', () => {
    const bench = encoderOf({ repair_target_rate: 0.5, max_payloads: 10 })
    const change = (fields: Record<string, unknown>) =>
      bench.reconfigure({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
    bench.send('in', sized(20))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(10)
    change({ repair_target_rate: 0, max_payloads: 10 })
    bench.send('in', sized(20))
    expect(bytesOut(bench).filter(isRepair)).toHaveLength(0)
    change({ repair_target_rate: 0.25, max_payloads: 10 })
    bench.send('in', sized(4))
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([[40, 4, 10]])
    change({ repair_target_rate: 0.25, max_payloads: 500 })
    bench.send('in', sized(8))
    expect(bytesOut(bench).filter(isRepair).map(windowOf)).toEqual([
      [44, 4, 11],
      [44, 8, 12],
    ])
    bench.stop()
  })

  it('protects what is left after a changed flush_after_ms of silence, counted from the last packet', () => {
    for (const before of [{ flush_after_ms: 8000 }, {}]) {
      const bench = encoderOf({ repair_target_rate: 0.25, ...before })
      const change = (flush_after_ms?: number) =>
        bench.reconfigure({
          enc: { rely_encoder: { input: 'in', output: 'out', repair_target_rate: 0.25, flush_after_ms } },
        })
      bench.send('in', sized(2))
      bench.advance(15e6)
      change(20)
      bench.advance(4.9e6)
      expect(bytesOut(bench).filter(isRepair)).toEqual([])
      bench.advance(0.2e6)
      expect(bench.take('out')).toMatchObject([{ time: 20e6 }])
      bench.send('in', sized(1))
      bench.advance(15e6)
      bench.take('out')
      // The silence is over already.
      change(10)
      bench.advance(0)
      expect(bytesOut(bench).map(windowOf)).toEqual([[0, 3, 1]])
      bench.send('in', sized(1))
      change()
      bench.advance(1e9)
      expect(bytesOut(bench).filter(isRepair)).toHaveLength(1)
      bench.stop()
    }
  })

  it('protects what is left before the window begins anew, where silence would have', () => {
    const bench = encoderOf({ repair_target_rate: 0.25, flush_after_ms: 20, max_payloads: 10 })
    bench.send('in', sized(2))
    bench.take('out')
    const fields = { repair_target_rate: 0.25, flush_after_ms: 20, max_payloads: 50 }
    bench.reconfigure({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
    expect(bytesOut(bench).map(windowOf)).toEqual([[0, 2, 0]])
    bench.advance(1e9)
    expect(bytesOut(bench)).toEqual([])
    bench.stop()
  })

  it('drops what has no room for the header, and says so of repairs when slots have run out', () => {
    const bench = drive(
      { enc: { rely_encoder: { input: 'in', output: 'out', repair_target_rate: 1 } } },
      { mtu: 70_000 },
    )
    bench.send('in', new Uint8Array(65_536))
    expect(bench.metrics().enc).toMatchObject({ no_room_packets: 1, source_packets: 0 })
    bench.stop()
  })

  it.each([
    [{ repair_target_rate: 4.5 }, '/repair_target_rate', /4/],
    [{ repair_target_rate: -0.1 }, '/repair_target_rate', /0/],
    [{ repair_target_rate: 1, max_payloads: 4097 }, '/max_payloads', /4096/],
    [{ repair_target_rate: 1, timeout: -1 }, '/timeout', /0/],
    [{}, '/repair_target_rate', /required|missing/],
  ])('refuses %j', (fields, where, what) => {
    const { pointer, message } = refusal({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
    expect(`${pointer} ${message}`).toContain(where.slice(1))
    expect(message).toMatch(what)
  })
})
