/** What is Reed-Solomon's own: blocks of 255 symbols, every erasure pattern, and links with loss and delay. */
import { describe, expect, it } from 'vitest'
import {
  blockOf,
  bytesOut,
  decoderOf,
  encoderOf,
  REED_SOLOMON,
  sizes,
  sorted,
} from '../../../../test/harness/block-codes.ts'
import { drive, payload, refusal, tagOf } from '../../../../test/harness/component.ts'

describe('reed_solomon_encoder', () => {
  it('refuses blocks of more than 255 symbols', () => {
    const pointerOf = (symbols: number, repair: number) =>
      refusal({ enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols, repair } } })
        .pointer.split('/')
        .at(-1)
    expect(pointerOf(200, 56)).toBe('repair')
    expect(pointerOf(1, 255)).toBe('repair')
    expect(pointerOf(0, 1)).toBe('symbols')
    expect(pointerOf(1, -1)).toBe('repair')
    encoderOf(REED_SOLOMON, 200, 55).stop()
    encoderOf(REED_SOLOMON, 255, 0).stop()
  })
})

describe('reed_solomon_decoder', () => {
  it('misses nothing of blocks without repairs, whatever FLUSH comes to their encoder', () => {
    const pipeline = {
      enc: { reed_solomon_encoder: { input: 'in', output: 'wire', symbols: 8, repair: 0 } },
      dec: { reed_solomon_decoder: { input: 'wire', output: 'out' } },
    }
    const bench = drive(pipeline)
    // More blocks than a decoder waits for.
    for (let flush = 0; flush < 400; flush++) {
      bench.send('in', sizes(5))
      bench.notify('in', 'FLUSH')
    }
    expect(bytesOut(bench)).toHaveLength(2000)
    expect(bench.metrics().dec).toMatchObject({ unrecovered_packets: 0, measured_loss: 0 })
    bench.stop()
  })

  it('recovers over every erasure pattern that a block must survive', () => {
    let recovered = 0
    for (const [k, r] of [
      [1, 1],
      [1, 3],
      [2, 2],
      [3, 2],
      [4, 3],
      [5, 2],
    ]) {
      const sources = sizes(k)
      const bench = decoderOf(REED_SOLOMON)
      let block = 0
      for (let lost = 0; lost < 1 << (k + r); lost++) {
        const made = blockOf(REED_SOLOMON, sources, r, { block: block++ })
        const arrive = [...made.sources, ...made.repairs].filter((_, n) => ((lost >> n) & 1) === 0)
        const lostSources = sources.filter((_, i) => (lost >> i) & 1).length
        bench.send('in', arrive)
        const got = bytesOut(bench)
        if (arrive.length >= k) {
          expect(sorted(got)).toEqual(sorted(sources))
          recovered += lostSources
        } else expect(got).toEqual(sources.filter((_, i) => ((lost >> i) & 1) === 0))
        bench.check()
      }
      expect(bench.metrics().dec.malformed_packets).toBe(0)
      bench.stop()
    }
    expect(recovered).toBe(154)
  })

  it('makes no packet of a length that is impossible, and recovers with a repair that is good', () => {
    const { sources, repairs } = blockOf(REED_SOLOMON, sizes(2, 50), 2)
    const forged = Uint8Array.from(repairs[0])
    forged[12] ^= 0xff
    const bench = decoderOf(REED_SOLOMON)
    bench.send('in', [sources[0], forged])
    expect(bytesOut(bench)).toHaveLength(1)
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 1, recovered_packets: 0 })
    bench.send('in', repairs[1])
    expect(bytesOut(bench)).toEqual([sizes(2, 50)[1]])
    bench.stop()
  })

  it('gives a block up that it could recover when no slot is free', () => {
    const bench = decoderOf(REED_SOLOMON)
    const { packets } = bench
    const made = blockOf(REED_SOLOMON, sizes(4), 2)
    const taken: number[] = []
    while (packets.available > 4) taken.push(packets.allocate())
    bench.send('in', [made.sources[0], made.sources[1], ...made.repairs])
    expect(bytesOut(bench)).toHaveLength(2)
    expect(bench.metrics().dec.unrecovered_packets).toBe(2)
    for (const packet of taken) packets.release(packet)
    bench.stop()
  })
})

describe('both, through emulated loss', () => {
  it.each([
    [5, true],
    [10, true],
    [10, false],
  ])(
    'a ping every 200 ms through (8,2) with a tenth lost and %i ms each way, flush_after_ms set: %j',
    (path, flushes) => {
      const end = (name: string, seed: number, from: string, to: string) => ({
        [`protect${name}`]: {
          reed_solomon_encoder: {
            input: from,
            output: `coded${name}`,
            symbols: 8,
            repair: 2,
            ...(flushes && { flush_after_ms: 8 }),
          },
        },
        [`loss${name}`]: { uniform_loss: { input: `coded${name}`, output: `left${name}`, loss_prob: 0.1, seed } },
        [`path${name}`]: { delay_constant: { flows: [{ input: `left${name}`, output: `sent${name}` }], delay: path } },
        [`recover${name}`]: { reed_solomon_decoder: { input: `sent${name}`, output: to } },
      })
      const bench = drive({ ...end('A', 1, 'ping', 'heard'), ...end('B', 2, 'heard', 'pong') })
      const pings = 3000
      for (let n = 0; n < pings; n++) {
        bench.send('ping', payload(84, n))
        bench.advance(200e6)
      }
      bench.advance(5e9)
      const times = bench.take('pong').map(({ bytes, time }) => time / 1e6 - tagOf(bytes) * 200)
      const mean = times.reduce((sum, time) => sum + time, 0) / times.length
      if (flushes) {
        expect(times.length).toBeGreaterThan(pings * 0.993)
        expect(mean).toBeLessThan(2 * path + 4)
        // Recovered both ways, each time after the silence.
        expect(Math.max(...times)).toBe(2 * path + 16)
      } else {
        expect(mean).toBeGreaterThan(2 * path + 50)
        expect(Math.max(...times)).toBeGreaterThan(1000)
      }
      bench.stop()
    },
  )

  it('uses no more slots over many packets than at the beginning', () => {
    const encoder = encoderOf(REED_SOLOMON, 10, 4)
    const decoder = decoderOf(REED_SOLOMON)
    const sources = sizes(250)
    for (let round = 0; round < 40; round++) {
      encoder.send('in', sources)
      decoder.send(
        'in',
        bytesOut(encoder).filter((_, n) => (n * 7919 + round) % 10 !== 0),
      )
      decoder.take('out')
      expect(decoder.packets.held).toBeLessThan(1400)
      expect(encoder.packets.held).toBeLessThan(10)
    }
    expect(decoder.metrics().dec.recovered_packets).toBeGreaterThan(900)
    encoder.stop()
    decoder.stop()
  })
})
