/** The sliding window's decoder: what is recovered from what, what is given up, what is believed. */
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { randomSymbol, repairOf, symbolOf } from '../../../test/harness/symbols.ts'
import { Packets } from '../engine/packets.ts'
import { Random } from '../engine/random.ts'
import { native } from '../native/native.ts'
import { inverse, multiply, multiplyAdd } from './gf256.ts'
import {
  CONTRADICTED,
  DUPLICATE,
  FAR_AHEAD,
  LATE,
  MENDED,
  NEW,
  REDUNDANT,
  SlidingDecoder,
  UNUSABLE,
  USED,
  WRONGLY_MENDED,
} from './sliding-decoder.ts'
import { MAX_WINDOW } from './sliding-window.ts'
import { codingCoefficients } from './tinymt32.ts'

const packets = new Packets({ slots: 8, mtu: 2048 })
const memory = native.memoryOpen(packets)
afterAll(() => native.memoryClose(memory))
const AT = 100
const ROOM = 3000

/** Which of `unknown` the equations, coefficients of each of them, determine. */
function determined(unknown: number, equations: readonly Uint8Array[]): number[] {
  const rows = equations.map((row) => row.slice())
  let rank = 0
  for (let column = 0; column < unknown; column++) {
    const pivot = rows.findIndex((row, r) => r >= rank && row[column] !== 0)
    if (pivot < 0) continue
    const [row] = rows.splice(pivot, 1)
    const scale = inverse(row[column])
    const scaled = row.map((value) => multiply(value, scale))
    for (const other of rows) multiplyAdd(other, 0, scaled, 0, unknown, other[column])
    rows.splice(rank++, 0, scaled)
  }
  const isUnit = (row: Uint8Array) => row.filter((value) => value !== 0).length === 1
  return rows.filter(isUnit).map((row) => row.findIndex((value) => value !== 0))
}

/** A decoder that is given symbols and checks the bytes of what it recovers. */
class Receiver {
  readonly decoder: SlidingDecoder
  readonly known = new Map<number, Uint8Array>()
  private readonly sent: (sequence: number) => Uint8Array

  constructor(sent: (sequence: number) => Uint8Array, window = 64) {
    this.decoder = new SlidingDecoder({ memory, window, symbolBytes: 2000 })
    this.sent = sent
  }

  private put(bytes: Uint8Array): void {
    packets.data.set(bytes, AT)
  }

  private note(): void {
    for (let n = 0; n < this.decoder.recoveredCount; n++) {
      const sequence = this.decoder.recovered[n]
      expect(this.known.has(sequence)).toBe(false)
      const bytes = this.decoder.write(sequence, AT, ROOM)
      const found = packets.data.slice(AT, AT + bytes)
      expect(found).toEqual(this.sent(sequence))
      this.known.set(sequence, found)
    }
  }

  source(sequence: number, symbol = this.sent(sequence)): number {
    this.put(symbol)
    const said = this.decoder.takeSource(sequence, AT, symbol.length)
    this.decoder.keep()
    if (said === NEW) this.known.set(sequence, symbol)
    this.note()
    return said
  }

  repair(first: number, count: number, key: number, bytes?: Uint8Array): number {
    const sources = Array.from({ length: count }, (_, i) => this.sent((first + i) | 0))
    const repair = bytes ?? repairOf(sources, key)
    this.put(repair)
    const said = this.decoder.takeRepair(first, count, key, AT, repair.length)
    this.note()
    return said
  }
}
describe('the decoder', () => {
  it('recovers all that the repairs determine, at once, byte for byte, whatever is lost, late or twice', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 30 }), fc.integer({ min: 1, max: 45 }), (seed, loss) => {
        const random = new Random(seed)
        const start = [0, 2 ** 31 - 30, -20][random.below(3)] as number
        const symbols = new Map<number, Uint8Array>()
        const symbol = (sequence: number) => {
          if (!symbols.has(sequence)) symbols.set(sequence, randomSymbol(random))
          return symbols.get(sequence) as Uint8Array
        }
        const receiver = new Receiver(symbol)
        const lost: number[] = []
        const late: number[] = []
        const equations: { first: number; count: number; key: number }[] = []
        const check = () => {
          const column = new Map(lost.map((sequence, c) => [sequence, c]))
          const rows = equations.map(({ first, count, key }) => {
            const row = new Uint8Array(lost.length)
            codingCoefficients(key, count).forEach((coefficient, i) => {
              const c = column.get((first + i) | 0)
              if (c !== undefined) row[c] = coefficient
            })
            return row
          })
          const wanted = determined(lost.length, rows).map((c) => lost[c] as number)
          for (const sequence of lost) expect(receiver.known.has(sequence)).toBe(wanted.includes(sequence))
        }
        receiver.source(start)
        for (let n = 1; n < 60; n++) {
          const sequence = (start + n) | 0
          if (random.below(100) < loss) {
            lost.push(sequence)
            if (random.chance(0.2)) late.push(sequence)
          } else expect(receiver.source(sequence)).toBe(NEW)
          if (random.chance(0.4)) {
            const count = 1 + random.below(n + 1)
            const repair = { first: (sequence - count + 1) | 0, count, key: random.below(65_536) }
            const said = receiver.repair(repair.first, repair.count, repair.key)
            expect([USED, REDUNDANT]).toContain(said)
            equations.push(repair)
            if (random.chance(0.1)) expect(receiver.repair(repair.first, repair.count, repair.key)).toBe(REDUNDANT)
          }
          if (late.length > 0 && random.chance(0.2)) {
            const [overdue] = late.splice(random.below(late.length), 1) as [number]
            const isThere = receiver.known.has(overdue)
            // What has not been shown to be missing comes in order.
            const said = receiver.source(overdue)
            expect(said).toBe(isThere ? MENDED : NEW)
            equations.push({ first: overdue, count: 1, key: 1 })
            expect(receiver.source(overdue)).toBe(DUPLICATE)
          }
          check()
        }
        const { decoder } = receiver
        const seen = decoder.newest
        let missing = 0
        for (const sequence of lost) if (!receiver.known.has(sequence) && ((seen - sequence) | 0) >= 0) missing++
        expect(decoder.missing).toBe(missing)
        expect(decoder.contradictions).toBe(0)
        decoder.close()
      }),
      { seed: 5, numRuns: 150 },
    )
  })

  it('gives up what is missing below a number, and still recovers what is above', () => {
    const symbol = (n: number) => symbolOf(Uint8Array.of(n, n >> 8))
    const receiver = new Receiver(symbol)
    for (const n of [0, 1, 4, 5]) receiver.source(n)
    expect(receiver.decoder.firstOpen()).toBe(2)
    expect(receiver.repair(0, 6, 9)).toBe(USED)
    receiver.decoder.giveUpBelow(3)
    expect(receiver.decoder).toMatchObject({ givenUp: 1, missing: 1 })
    expect(receiver.source(2)).toBe(LATE)
    expect(receiver.source(1)).toBe(DUPLICATE)
    expect(receiver.repair(0, 6, 10)).toBe(USED)
    expect([...receiver.known.keys()]).toEqual([0, 1, 4, 5, 3])
    expect(receiver.decoder).toMatchObject({ givenUp: 1, missing: 0, rows: 0 })
    expect(receiver.decoder.firstOpen()).toBe(6)
    receiver.decoder.close()
  })

  it('begins with the first number there is when it is not far, else where it comes in', () => {
    const symbol = (n: number) => symbolOf(Uint8Array.of(n, n >> 8))
    const near = new Receiver(symbol)
    near.source(3)
    expect(near.decoder.missing).toBe(3)
    for (const key of [1, 2, 3]) near.repair(0, 4, key)
    expect([...near.known.keys()].sort()).toEqual([0, 1, 2, 3])
    near.decoder.close()
    const far = new Receiver(symbol)
    far.source(5000)
    expect(far.decoder.missing).toBe(0)
    expect(far.source(4999)).toBe(LATE)
    far.decoder.close()
  })

  it('has at most 4,096 missing sources, the oldest given up, and follows no leap beyond that', () => {
    const symbol = () => symbolOf(new Uint8Array(3))
    const { decoder, ...rest } = new Receiver(symbol)
    expect(rest.known.size).toBe(0)
    const take = (n: number) => decoder.takeSource(n, AT, 5)
    packets.data.set(symbol(), AT)
    expect(take(0)).toBe(NEW)
    expect(take(MAX_WINDOW + 1)).toBe(FAR_AHEAD)
    expect(decoder).toMatchObject({ newest: 0, missing: 0 })
    for (let n = 4000; n <= 40_000; n += 4000) {
      expect(take(n)).toBe(NEW)
      expect(decoder.missing).toBeLessThanOrEqual(MAX_WINDOW)
    }
    expect(decoder.missing).toBe(MAX_WINDOW)
    expect(decoder.missing + decoder.givenUp).toBe(40_000 - 10)
    expect(decoder.firstOpen()).toBe(40_000 - MAX_WINDOW - 1)
    decoder.close()
  })

  it('recovers over windows of 4,096', () => {
    const random = new Random(3)
    const symbols = Array.from({ length: 9000 }, () => randomSymbol(random))
    const receiver = new Receiver((n) => symbols[n] as Uint8Array)
    const lost: number[] = []
    for (let n = 0; n < 9000; n++) {
      if (n > 100 && random.chance(0.05)) lost.push(n)
      else receiver.source(n)
      const count = Math.min(n + 1, MAX_WINDOW)
      if (n % 10 === 9) expect([USED, REDUNDANT]).toContain(receiver.repair(n + 1 - count, count, n & 65_535))
    }
    const open = lost.filter((n) => !receiver.known.has(n))
    expect(lost.length).toBeGreaterThan(400)
    expect(open.every((n) => n > 8900)).toBe(true)
    receiver.decoder.close()
  })

  it('drops repairs that contradict what came, and passes on what comes after it was wrongly recovered', () => {
    const symbol = (n: number) => symbolOf(new Uint8Array(20 + (n % 3)).fill(n))
    const receiver = new Receiver(symbol)
    for (const n of [0, 1, 2, 4, 5, 7]) receiver.source(n)
    // Shorter than a source that came.
    expect(receiver.repair(0, 6, 1, new Uint8Array(10))).toBe(CONTRADICTED)
    // The length in front of what comes out is no length of it.
    expect(receiver.repair(3, 1, 1, new Uint8Array(30).fill(200))).toBe(CONTRADICTED)
    const scaled = new Uint8Array(30)
    multiplyAdd(scaled, 0, symbolOf(new Uint8Array(4).fill(66)), 0, 6, codingCoefficients(1, 1)[0])
    packets.data.set(scaled, AT)
    expect(receiver.decoder.takeRepair(3, 1, 1, AT, 30)).toBe(USED)
    expect(receiver.decoder.recoveredCount).toBe(1)
    receiver.repair(4, 4, 2)
    expect(receiver.source(3)).toBe(WRONGLY_MENDED)
    expect(receiver.source(3)).toBe(DUPLICATE)
    expect(receiver.decoder.rows).toBe(0)
    receiver.decoder.close()
  })

  it('tells a repair over known sources that says nothing new from one that is too short for them', () => {
    const sent = (sequence: number) => symbolOf(new Uint8Array(sequence === 3 ? 40 : 10).fill(sequence + 1))
    const receiver = new Receiver(sent)
    for (const sequence of [0, 1, 2, 4, 5]) receiver.source(sequence)
    expect(receiver.repair(0, 3, 7)).toBe(REDUNDANT)
    expect(receiver.repair(0, 3, 7, new Uint8Array(11))).toBe(CONTRADICTED)
    // What is recovered counts as the others do, and a source that a wrong repair had replaced.
    expect(receiver.repair(0, 6, 8)).toBe(USED)
    expect(receiver.known.has(3)).toBe(true)
    expect(receiver.repair(0, 6, 9)).toBe(REDUNDANT)
    expect(receiver.repair(0, 6, 9, new Uint8Array(41))).toBe(CONTRADICTED)
    receiver.source(6)
    const wrong = symbolOf(new Uint8Array(60))
    const forged = new Receiver((sequence) => (sequence === 1 ? wrong : sent(sequence)))
    for (const sequence of [0, 2]) forged.source(sequence)
    expect(forged.repair(0, 3, 5)).toBe(USED)
    const longer = symbolOf(new Uint8Array(70).fill(9))
    expect(forged.source(1, longer)).toBe(WRONGLY_MENDED)
    expect(forged.repair(0, 3, 6, new Uint8Array(65))).toBe(CONTRADICTED)
    receiver.decoder.close()
    forged.decoder.close()
  })

  it('makes nothing of a repair that was cut, though another fills in what it lacks', () => {
    const symbols = [3, 30, 30, 3].map((length, n) => symbolOf(new Uint8Array(length).fill(n + 1)))
    const receiver = new Receiver((n) => symbols[n] as Uint8Array)
    receiver.source(0)
    receiver.source(3)
    expect(receiver.repair(0, 4, 1, repairOf(symbols, 1).slice(0, 10))).toBe(USED)
    expect(receiver.repair(0, 4, 2)).toBe(CONTRADICTED)
    expect([...receiver.known.keys()]).toEqual([0, 3])
    receiver.decoder.close()
  })

  it('keeps an equation as long as its sources have places, wherever those are, not as long as half of them', () => {
    const receiver = new Receiver((n) => symbolOf(Uint8Array.of(n, n >> 8)))
    const { decoder } = receiver
    // Of each window of 128 the last two are missing, and what its repair says of them waits for the next one's.
    const isMissing = (n: number) => n === 9 || n === 130 || n === 250
    for (let n = 0; n <= 250; n++) if (!isMissing(n)) receiver.source(n)
    expect(receiver.repair(3, 128, 1)).toBe(USED)
    expect(receiver.repair(129, 122, 2)).toBe(USED)
    expect(decoder).toMatchObject({ rows: 2, missing: 2 })
    for (let n = 251; n < 264; n++) receiver.source(n)
    expect(receiver.repair(240, 24, 3)).toBe(USED)
    expect([...receiver.known.keys()].slice(-3)).toEqual([9, 130, 250])
    expect(decoder).toMatchObject({ rows: 0, missing: 0 })
    decoder.close()
  })

  it('recovers nothing that there is no place for, as others that were recovered ahead have it', () => {
    const receiver = new Receiver((n) => symbolOf(Uint8Array.of(n, n >> 8)))
    for (let n = 0; n <= 355; n++) if (n !== 100) receiver.source(n)
    expect(receiver.repair(340, 17, 1)).toBe(USED)
    expect(receiver.known.has(356)).toBe(true)
    expect(receiver.repair(100, 20, 2)).toBe(UNUSABLE)
    expect(receiver.repair(101, 20, 3)).toBe(REDUNDANT)
    expect(receiver.decoder).toMatchObject({ missing: 1, rows: 0, newest: 355 })
    receiver.decoder.close()
  })

  it('goes back from a source far ahead, which it knows, as if it had not come, and on to it when that is said', () => {
    const receiver = new Receiver((n) => symbolOf(new Uint8Array(20).fill(n + 1)))
    const { decoder } = receiver
    for (let n = 0; n < 50; n++) if (n !== 40) receiver.source(n)
    for (const stray of [400, 256 + 40, 256 + 44]) {
      expect(receiver.source(stray)).toBe(NEW)
      expect(decoder.newest).toBe(stray)
      decoder.retreat(49)
      expect(decoder).toMatchObject({ newest: 49, missing: 1, givenUp: 0 })
      expect(receiver.source(stray)).toBe(DUPLICATE)
      expect(decoder.newest).toBe(49)
    }
    // One of them had the place of what is missing, another that of one whose symbol has to be determined too.
    expect(receiver.repair(30, 20, 1)).toBe(USED)
    expect(receiver.known.has(40)).toBe(false)
    expect(receiver.repair(30, 20, 2)).toBe(USED)
    expect(receiver.known.has(40)).toBe(true)
    for (let n = 50; n < 60; n++) expect(receiver.source(n)).toBe(NEW)
    expect(decoder).toMatchObject({ newest: 59, missing: 0 })
    decoder.follow(300)
    expect(decoder).toMatchObject({ newest: 300, missing: 239 })
    expect(receiver.source(301)).toBe(NEW)
    decoder.follow(300)
    expect(decoder.newest).toBe(301)
    // It goes back no further than to what is given up.
    expect(receiver.source(2000)).toBe(NEW)
    decoder.giveUpBelow(1000)
    decoder.retreat(301)
    expect(decoder).toMatchObject({ newest: 999, missing: 0 })
    expect(receiver.source(1000)).toBe(NEW)
    expect(decoder.missing).toBe(0)
    decoder.close()
  })

  it('says of repairs far back, far ahead, and before any source that they are of no use', () => {
    const symbol = () => symbolOf(new Uint8Array(3))
    const receiver = new Receiver(symbol)
    expect(receiver.repair(0, 3, 1)).toBe(UNUSABLE)
    for (let n = 0; n < 600; n++) receiver.source(n)
    expect(receiver.repair(0, 3, 1)).toBe(UNUSABLE)
    expect(receiver.repair(5000, 3, 1)).toBe(UNUSABLE)
    expect(receiver.repair(600, 3, 1)).toBe(USED)
    receiver.decoder.reset()
    expect(receiver.decoder.rows).toBe(0)
    expect(receiver.repair(600, 3, 1)).toBe(UNUSABLE)
    receiver.decoder.close()
  })
})
