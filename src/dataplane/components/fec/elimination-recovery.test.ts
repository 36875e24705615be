/** What is recovered of random linear combinations: each source at once when it follows, in any number of blocks. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  blockOf,
  bytesOut,
  decoderOf,
  hex,
  KODOK,
  RLNC,
  repairPacket,
  sizes,
  sorted,
  sourcePacket,
} from '../../../../test/harness/block-codes.ts'
import { coefficients } from '../../../../test/harness/coefficients.ts'
import { payload } from '../../../../test/harness/component.ts'
import { determined } from '../../codes/linear.ts'
import { Random } from '../../engine/random.ts'

describe.each([
  ['rlnc', RLNC],
  ['kodok', KODOK],
])('%s', (_key, code) => {
  it('recovers each source at the moment it follows, and nothing that does not, in any order of arrival', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 20 }),
      r: fc.integer({ min: 1, max: 10 }),
      seed: fc.integer(),
      loss: fc.double({ min: 0.1, max: 0.6, noNaN: true }),
    })
    let recovered = 0
    let lost = 0
    fc.assert(
      fc.property(scenario, ({ k, r, seed, loss }) => {
        const random = new Random(seed)
        const sources = Array.from({ length: k }, (_, i) => payload(random.below(90), i))
        const closings = Array.from({ length: r }, () => (code.progressive ? 1 + random.below(k) : k))
        const seeds = Array.from({ length: r }, () => random.bits())
        const wire = [
          ...sources.map((bytes, i) => sourcePacket(code, bytes, i, { k, r })),
          ...closings.map((closing, j) => repairPacket(code, sources.slice(0, closing), j, seeds[j], { k, r })),
        ]
        const arriving = wire
          .map((packet, n) => ({ packet, n, at: random.float() }))
          .filter(() => !random.chance(loss))
          .sort((a, b) => a.at - b.at)
        const bench = decoderOf(code)
        const had = new Set<number>()
        const came = new Set<number>()
        const rows: Uint8Array[] = []
        for (const { packet, n } of arriving) {
          bench.send('in', packet)
          const wanted: number[] = []
          if (n < k) {
            came.add(n)
            if (!had.has(n)) wanted.push(n)
          } else rows.push(coefficients(seeds[n - k], closings[n - k]))
          for (const i of wanted) had.add(i)
          const unknowns = [...Array(k).keys()].filter((i) => !came.has(i))
          for (const i of determined(rows, unknowns)) {
            if (had.has(i)) continue
            wanted.push(i)
            had.add(i)
            recovered++
          }
          expect(bytesOut(bench).map(hex)).toEqual(wanted.map((i) => hex(sources[i])))
        }
        lost += k - had.size
        expect(bench.metrics().dec).toMatchObject({ malformed_packets: 0, wrong_recoveries: 0, duplicate_packets: 0 })
        bench.stop()
      }),
      { seed: 11, numRuns: 300 },
    )
    expect(recovered).toBeGreaterThan(200)
    expect(lost).toBeGreaterThan(200)
  })
})

it('recovers in as many blocks at once as it keeps, one packet of each at a time', () => {
  const blocks = Array.from({ length: 40 }, (_, block) => ({
    own: sizes(6, 30 + block),
    ...blockOf(RLNC, sizes(6, 30 + block), 3, { block }, 1000 * block),
  }))
  const bench = decoderOf(RLNC)
  for (let n = 0; n < 3; n++) for (const { sources } of blocks) bench.send('in', sources[n + 1])
  for (let n = 0; n < 3; n++) for (const { repairs } of blocks) bench.send('in', repairs[n])
  expect(sorted(bytesOut(bench))).toEqual(sorted(blocks.flatMap(({ own }) => own)))
  expect(bench.metrics().dec).toMatchObject({ recovered_packets: 120, held_packets: 0 })
  bench.stop()
})
