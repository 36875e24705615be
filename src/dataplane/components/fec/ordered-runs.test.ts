/** Packets that come as they were sent: what is passed on and counted is what it is where they are taken packet by packet. */
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  blockOf,
  bytesOut,
  changed,
  decoderOf,
  hex,
  REED_SOLOMON,
  RLNC,
  repairPacket,
  sizes,
} from '../../../../test/harness/block-codes.ts'
import { payload } from '../../../../test/harness/component.ts'
import { Random } from '../../engine/random.ts'
import { PASS } from '../../native/code-calls.ts'
import { native } from '../../native/native.ts'

/** Own counters of a decoder, without those of its ports. */
const counted = (bench: ReturnType<typeof decoderOf>) =>
  Object.entries(bench.metrics().dec).filter(([name]) => !/^in_|^out_|input|output/.test(name))

/** No packet of any code: a block that has it among its packets is taken packet by packet. */
const NO_PACKET = Uint8Array.of(1, 2, 3)

describe.each([
  ['reed_solomon', REED_SOLOMON],
  ['rlnc', RLNC],
])('%s', (_key, code) => {
  it('are passed on as packet by packet, with losses, several senders, packets again, and repairs of other lengths', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 12 }),
      r: fc.integer({ min: 1, max: 6 }),
      seed: fc.integer(),
    })
    let recovered = 0
    fc.assert(
      fc.property(scenario, ({ k, r, seed }) => {
        const random = new Random(seed)
        const arriving: Uint8Array[] = []
        const apart: Uint8Array[] = []
        for (let block = 0; block < 10; block++) {
          const session = 0xabc + (random.chance(0.2) ? 1 : 0)
          const count = random.chance(0.2) ? 1 + random.below(k) : k
          const own = Array.from({ length: count }, (_, i) => payload(random.below(90), 100 * block + i))
          const { sources, repairs } = blockOf(code, own, r, { k, block, session }, 50 * block)
          // Sources of another length than their block's repairs say.
          if (random.chance(0.1))
            repairs[0] = repairPacket(code, [...own.slice(1), payload(95, 1)], 0, 9, { k, r, block, session })
          const sent = [...sources, ...(count < k && random.chance(0.5) ? [] : repairs)].filter(
            () => !random.chance(0.15),
          )
          if (random.chance(0.1) && sent.length > 0) sent.push(sent[random.below(sent.length)])
          arriving.push(...sent)
          if (sent.length > 0) apart.push(sent[0], NO_PACKET, ...sent.slice(1))
        }
        const together = decoderOf(code)
        const alone = decoderOf(code)
        for (let round = 0; round < 2; round++) {
          together.send('in', arriving)
          alone.send('in', apart)
          expect(bytesOut(together).map(hex)).toEqual(bytesOut(alone).map(hex))
          const { malformed_packets: malformed, ...counted } = together.metrics().dec
          const { malformed_packets: more, ...same } = alone.metrics().dec
          const ports = /^in_|^out_|input|output/
          const own = (all: Record<string, number>) => Object.entries(all).filter(([name]) => !ports.test(name))
          expect(own(counted)).toEqual(own(same))
          expect(more - malformed).toBe((round + 1) * apart.filter((packet) => packet === NO_PACKET).length)
        }
        recovered += together.metrics().dec.recovered_packets
        together.stop()
        alone.stop()
      }),
      { seed: 5, numRuns: 150 },
    )
    expect(recovered).toBeGreaterThan(500)
  })

  it('are passed on as packet by packet where blocks begin in one batch and end in another', () => {
    const scenario = fc.record({
      k: fc.integer({ min: 1, max: 12 }),
      r: fc.integer({ min: 1, max: 6 }),
      loss: fc.constantFrom(0, 0, 0.02, 0.2),
      forging: fc.constantFrom(0, 0.05, 0.3),
      batch: fc.constantFrom(3, 20, 60),
      seed: fc.integer(),
    })
    // For all of them the same two: each has memory of its own, a great many of which a process could not have beside each other.
    const together = decoderOf(code)
    const alone = decoderOf(code)
    let held = 0
    fc.assert(
      fc.property(scenario, ({ k, r, loss, forging, batch, seed }) => {
        const random = new Random(seed)
        const arriving = Array.from({ length: 40 }, (_, block) => {
          const count = random.chance(0.05) ? 1 + random.below(k) : k
          const own = Array.from({ length: count }, (_, i) => payload(random.below(90), 100 * block + i))
          const { sources, repairs } = blockOf(code, own, r, { k, block }, 50 * block)
          // Repairs that say the block has another number of sources, or are of another length than the others.
          const forged = repairs.map((repair) => {
            if (!random.chance(forging)) return repair
            if (random.chance(0.5)) return changed(repair, 7, 1 + random.below(k))
            return random.chance(0.5) ? repair.subarray(0, repair.length - 1) : Uint8Array.of(...repair, 7)
          })
          return [...sources, ...forged]
        })
          .flat()
          .filter(() => !random.chance(loss))
        // Now and then one comes late, or again.
        for (let n = arriving.length - 2; loss > 0 && n > 0; n -= 1 + random.below(20)) {
          if (random.chance(0.5)) arriving.splice(n, 2, arriving[n + 1], arriving[n])
          else arriving.splice(n, 0, arriving[random.below(n)])
        }
        for (let from = 0; from < arriving.length; ) {
          const end = Math.min(arriving.length, from + 1 + random.below(batch))
          together.send('in', arriving.slice(from, end))
          // A call that takes nothing, but reads the headers, leaves all to be taken packet by packet.
          const nothing = vi
            .spyOn(native, 'blocksPass')
            .mockImplementation((id, _random, packets, headers, _window, pass, _out, format) => {
              if (format) native.blockHeaders(id, packets, pass[PASS.end], format, headers)
            })
          alone.send('in', arriving.slice(from, end))
          nothing.mockRestore()
          from = end
          expect(bytesOut(together).map(hex)).toEqual(bytesOut(alone).map(hex))
          expect(Object.fromEntries(counted(together))).toEqual(Object.fromEntries(counted(alone)))
          expect(together.packets.held).toBe(alone.packets.held)
          held = Math.max(held, together.packets.held)
        }
        for (const bench of [together, alone]) bench.notify('in', 'RESET')
        expect([together.packets.held, alone.packets.held]).toEqual([0, 0])
      }),
      { seed: 6, numRuns: 150 },
    )
    expect(held).toBeGreaterThan(10)
    expect(together.metrics().dec.recovered_packets).toBeGreaterThan(500)
    together.stop()
    alone.stop()
  })

  it('passes blocks on in their order, each with its recovered sources behind the others, which have the annotations of its last packet', () => {
    const bench = decoderOf(code)
    const blocks = [0, 1, 2].map((block) => ({
      own: sizes(6, 40 + block),
      ...blockOf(code, sizes(6, 40 + block), 2, { block }, 10 * block),
    }))
    const arriving = blocks.flatMap(({ sources, repairs }, n) => [
      ...sources.filter((_, i) => n === 1 || i !== 2),
      ...repairs,
    ])
    bench.send('in', arriving)
    const wanted = blocks.flatMap(({ own }, n) => (n === 1 ? own : [...own.filter((_, i) => i !== 2), own[2]]))
    expect(bytesOut(bench).map(hex)).toEqual(wanted.map(hex))
    expect(bench.metrics().dec).toMatchObject({
      recovered_packets: 2,
      spent_packets: 4,
      redundant_packets: 2,
      held_packets: 0,
    })
    bench.stop()
  })

  it('knows the packets of a whole block again when they come once more', () => {
    const bench = decoderOf(code)
    const own = sizes(6)
    const { sources, repairs } = blockOf(code, own, 2)
    bench.send('in', [...sources.slice(1), ...repairs])
    expect(bytesOut(bench)).toHaveLength(6)
    // The one that was recovered, late; one that came, again; repairs again; and what was recovered with other bytes.
    bench.send('in', [sources[0], sources[3], ...repairs])
    expect(bytesOut(bench)).toHaveLength(0)
    expect(bench.metrics().dec).toMatchObject({ late_packets: 1, duplicate_packets: 3, wrong_recoveries: 0 })
    bench.stop()
  })

  it('passes a source on whose recovery in a whole block was wrong', () => {
    const bench = decoderOf(code)
    const { sources, repairs } = blockOf(code, sizes(6), 1)
    const [repair] = repairs
    bench.send('in', [...sources.slice(1), changed(repair, repair.length - 60, repair[repair.length - 60] ^ 1)])
    expect(bytesOut(bench)).toHaveLength(6)
    bench.send('in', sources[0])
    expect(bytesOut(bench).map(hex)).toEqual([hex(sizes(6)[0])])
    expect(bench.metrics().dec).toMatchObject({ wrong_recoveries: 1 })
    bench.stop()
  })

  it('takes a block packet by packet whose repairs contradict it, between others that are whole', () => {
    const bench = decoderOf(code)
    const shape = { k: 3, r: 2 }
    const [first, second, third] = [0, 1, 2].map((block) => blockOf(code, sizes(3), 2, { block }, 10 * block))
    const forged = repairPacket(code, [payload(95, 1), payload(94, 2), payload(93, 3)], 0, 77, { ...shape, block: 1 })
    bench.send('in', [
      ...first.sources,
      ...first.repairs,
      second.sources[0],
      second.sources[1],
      forged,
      ...third.sources.slice(1),
      ...third.repairs,
    ])
    const own = sizes(3)
    expect(bytesOut(bench).map(hex)).toEqual([...own, own[0], own[1], own[1], own[2], own[0]].map(hex))
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 1, recovered_packets: 1, held_packets: 0 })
    bench.stop()
  })
})
