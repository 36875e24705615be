/** parity_2d_encoder: what is on the wire, when blocks are closed, what it does without room. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, refusal } from '../../../../test/harness/component.ts'
import { hex, sizes, wireOf } from '../../../../test/harness/parity.ts'

const MS = 1e6
type Fields = Record<string, unknown>

const encoderOf = (columns: number, rows: number, more: Fields = {}) =>
  drive({ enc: { parity_2d_encoder: { input: 'in', output: 'out', columns, rows, ...more } } })
const decoderOf = () => drive({ dec: { parity_2d_decoder: { input: 'in', output: 'out' } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)

describe('parity_2d_encoder', () => {
  it('puts on the wire what the documentation says, however the packets are spread over batches', () => {
    const sources = [...sizes(11), payload(0), payload(300, 12), ...sizes(11, 90)]
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 24, maxLength: 24 }), (chunks) => {
        const bench = encoderOf(4, 3)
        let at = 0
        for (const chunk of chunks) {
          bench.send('in', sources.slice(at, at + chunk), { remote: '192.0.2.9:99', client: 5 })
          at += chunk
        }
        const out = bench.take('out')
        const session = new DataView(out[0].bytes.buffer).getUint32(4) >>> 8
        const shape = { columns: 4, rows: 3, session }
        const wanted = [...wireOf(sources.slice(0, 12), shape), ...wireOf(sources.slice(12), { ...shape, block: 1 })]
        expect(out.map(({ bytes }) => hex(bytes))).toEqual(wanted.map(hex))
        for (const one of out) expect(one).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
        expect(bench.metrics().enc).toMatchObject({ source_packets: 24, repair_packets: 14 })
        bench.stop()
      }),
      { seed: 1, numRuns: 30 },
    )
  })

  it('closes a short block at FLUSH, and after flush_after_ms of silence, which may change while it runs', () => {
    const bench = encoderOf(3, 3, { flush_after_ms: 8 })
    const parities = () => bench.take('out').filter(({ bytes }) => bytes[0] !== 0xb6)
    const sources = sizes(5)
    bench.send('in', sources, { remote: '192.0.2.9:99', client: 5 })
    expect(parities()).toHaveLength(1)
    bench.notify('in', 'FLUSH')
    const session = new DataView(parities()[0].bytes.buffer).getUint32(4) >>> 8
    for (const count of [1, 2, 3, 4, 7]) {
      const own = sizes(count)
      bench.send('in', own, { remote: '192.0.2.9:99', client: 5 })
      bench.advance(7.999 * MS)
      const before = bench.take('out')
      bench.advance(100 * MS)
      const block = new DataView(before[0].bytes.buffer).getUint32(8)
      const out = [...before, ...bench.take('out')]
      expect(out.map(({ bytes }) => hex(bytes))).toEqual(wireOf(own, { columns: 3, rows: 3, session, block }).map(hex))
      for (const one of out) expect(one).toMatchObject({ remote: '192.0.2.9:99', client: 5 })
    }
    bench.send('in', sizes(1))
    const at = bench.now
    bench.reconfigure({
      enc: { parity_2d_encoder: { input: 'in', output: 'out', columns: 3, rows: 3, flush_after_ms: 30 } },
    })
    bench.advance(100 * MS)
    expect(parities().map(({ time }) => time)).toEqual([at + 30 * MS, at + 30 * MS])
    bench.send('in', sizes(2))
    bench.stop()
  })

  it('goes on without slots: lines without a sum get no parity', () => {
    const bench = encoderOf(2, 2)
    const { packets } = bench
    const taken: number[] = []
    while (packets.available > 2) taken.push(packets.allocate())
    bench.send('in', sizes(1))
    bench.send('in', sizes(1))
    bench.send('in', sizes(1))
    bench.send('in', sizes(1))
    const kinds = bytesOut(bench).map((bytes) => bytes[0])
    expect(kinds.filter((kind) => kind === 0xb6)).toHaveLength(4)
    const { enc } = bench.metrics()
    expect(enc.source_packets).toBe(4)
    expect(enc.repair_packets + enc.unsent_repair_packets).toBe(4)
    expect(enc.unsent_repair_packets).toBeGreaterThan(0)
    for (const one of taken) packets.release(one)
    bench.send('in', sizes(4))
    expect(bytesOut(bench)).toHaveLength(8)
    bench.stop()
  })

  it('takes 2 to 64 columns and rows, and refuses others by name', () => {
    const refused = (columns: number, rows: number) =>
      refusal({ enc: { parity_2d_encoder: { input: 'in', output: 'out', columns, rows } } })
        .pointer.split('/')
        .at(-1)
    expect([refused(1, 2), refused(65, 2), refused(2, 1), refused(2, 65)]).toEqual([
      'columns',
      'columns',
      'rows',
      'rows',
    ])
    const bench = encoderOf(64, 64)
    bench.send('in', sizes(4096))
    const wire = bytesOut(bench)
    expect(wire).toHaveLength(4096 + 128)
    bench.stop()
    const decoder = decoderOf()
    // A burst of as many packets as there are columns.
    decoder.send('in', [...wire.slice(0, 700), ...wire.slice(764)])
    expect(decoder.metrics().dec).toMatchObject({ recovered_packets: 63, unrecovered_packets: 0, held_packets: 0 })
    expect(decoder.packets.held).toBe(0)
    decoder.stop()
  })

  it('has room for its header in a long chain, and for sources of different rooms', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 4 }, (_, n) => [
        `enc${n}`,
        { parity_2d_encoder: { input: `c${n}`, output: `c${n + 1}`, columns: 2, rows: 2 } },
      ]),
    )
    const bench = drive(chain)
    bench.send(
      'c0',
      Array.from({ length: 4 }, () => payload(2048, 1)),
    )
    // Each stage doubles what comes.
    expect(bench.take('c4')).toHaveLength(64)
    for (let n = 0; n < 4; n++) expect(bench.metrics()[`enc${n}`].no_room_packets).toBe(0)
    bench.stop()
  })
})
