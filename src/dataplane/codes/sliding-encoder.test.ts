/** The sliding window's encoder: repairs against the mathematics, and what it refuses. */
import { afterAll, describe, expect, it } from 'vitest'
import { randomSymbol, repairOf } from '../../../test/harness/symbols.ts'
import { Packets } from '../engine/packets.ts'
import { Random } from '../engine/random.ts'
import { native } from '../native/native.ts'
import { SlidingEncoder } from './sliding-encoder.ts'

const packets = new Packets({ slots: 8, mtu: 2048 })
const memory = native.memoryOpen(packets)
afterAll(() => native.memoryClose(memory))
const AT = 100
const ROOM = 3000

/** Makes one repair at `AT`. Returns its bytes. */
function make(encoder: SlidingEncoder, first: number, count: number, key: number, room = ROOM): number {
  const n = encoder.askRepair(first, count, key, AT, room)
  encoder.makeRepairs()
  return encoder.repairBytes(n)
}

describe('the encoder', () => {
  it('makes the repairs that the mathematics says, of sources of any length, on every kernel', () => {
    const usual = native.gfKernel()
    for (const kernel of native.gfKernels()) {
      native.gfUse(kernel)
      const random = new Random(7)
      const encoder = new SlidingEncoder({ memory, window: 200, symbolBytes: 2000 })
      const sources: Uint8Array[] = []
      for (let n = 0; n < 600; n++) {
        const symbol = randomSymbol(random, n % 50 === 0 ? 1500 : 60)
        sources.push(symbol)
        packets.data.set(symbol, AT)
        encoder.add(n, AT, symbol.length)
        encoder.makeRepairs()
        const count = Math.min(n + 1, 1 + random.below(200))
        const key = random.below(65_536)
        const bytes = make(encoder, n + 1 - count, count, key)
        expect(packets.data.slice(AT, AT + bytes)).toEqual(repairOf(sources.slice(n + 1 - count), key))
      }
      encoder.close()
    }
    native.gfUse(usual)
  })

  it('makes the same of repairs that are asked for together, whose windows grow, shrink and move on', () => {
    const random = new Random(8)
    const encoder = new SlidingEncoder({ memory, window: 100, symbolBytes: 2000 })
    const sourceAt = (n: number) => 10_000 + (n % 10) * 70
    const repairAt = (n: number) => 500 + n * 70
    const sources: Uint8Array[] = []
    for (let batch = 0; batch < 60; batch++) {
      const wanted: Uint8Array[] = []
      const end = sources.length + 10
      while (sources.length < end) {
        const symbol = randomSymbol(random)
        packets.data.set(symbol, sourceAt(sources.length))
        encoder.add(sources.length, sourceAt(sources.length), symbol.length)
        sources.push(symbol)
        while (random.chance(0.4)) {
          const count = Math.min(sources.length, [90, 91, 99, 100, 5, 60][random.below(6)] as number)
          const key = random.below(65_536)
          const n = encoder.askRepair(sources.length - count, count, key, repairAt(wanted.length), 70)
          expect(n).toBe(wanted.length)
          wanted.push(repairOf(sources.slice(-count), key))
        }
      }
      encoder.makeRepairs()
      wanted.forEach((repair, n) => {
        expect(packets.data.slice(repairAt(n), repairAt(n) + encoder.repairBytes(n))).toEqual(repair)
      })
    }
    encoder.close()
  })

  it('covers sources of this call and of earlier ones alike, more than one call takes, with keys in any order', () => {
    const encoder = new SlidingEncoder({ memory, window: 100, symbolBytes: 2000 })
    const random = new Random(9)
    const sources: Uint8Array[] = []
    const first = 0x7fffff00 | 0
    for (const batch of [1, 30, 700, 5, 256, 99]) {
      const asked: { from: number; count: number; key: number; at: number; n: number }[] = []
      for (let i = 0; i < batch; i++) {
        const symbol = randomSymbol(random, 12)
        const at = AT + i * 14
        packets.data.set(symbol, at)
        encoder.add((first + sources.length) | 0, at, symbol.length)
        sources.push(symbol)
        if (i % 37 > 0 && i !== batch - 1) continue
        const count = 1 + random.below(Math.min(100, sources.length))
        const key = random.below(65_536)
        const place = AT + 800 * 14 + asked.length * 20
        const from = sources.length - count
        asked.push({ from, count, key, at: place, n: encoder.askRepair((first + from) | 0, count, key, place, 20) })
      }
      encoder.makeRepairs()
      for (const { from, count, key, at, n } of asked) {
        const made = packets.data.slice(at, at + encoder.repairBytes(n))
        expect(made).toEqual(repairOf(sources.slice(from, from + count), key))
      }
      // What was sent may be written over.
      packets.data.fill(0xa5)
    }
    encoder.close()
  })

  it('refuses a repair over what it does not have, or that has no room', () => {
    const encoder = new SlidingEncoder({ memory, window: 64, symbolBytes: 100 })
    for (let n = 0; n < 300; n++) encoder.add(n, AT, 2 + (n === 280 ? 98 : 3))
    expect(() => make(encoder, 100, 64, 1)).toThrow(/not at hand/)
    expect(() => make(encoder, 290, 11, 1)).toThrow(/not at hand/)
    expect(() => make(encoder, 270, 20, 1, 99)).toThrow(/longer than the room/)
    expect(make(encoder, 270, 20, 1, 100)).toBe(100)
    expect(make(encoder, 281, 19, 1, 100)).toBe(5)
    encoder.close()
  })
})
