/** Which packets of a sender an AEAD context takes for new, and where it stops at those of another. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AEAD_OUTCOMES, REPLAY_WINDOW } from './cipher-calls.ts'
import { bytesOf, freePacket, openPackets, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

const KEY = pattern(16, 1)
const SALT = pattern(8, 2)
const TEXT = pattern(5, 3)

let owner = 0
let memory: PacketMemory
let id = 0
beforeEach(() => {
  owner = native.ownerOpen()
  memory = packetMemory(64, 256, 64, 64)
  id = native.memoryOpen(memory)
})
afterEach(() => {
  native.memoryClose(id)
  native.ownerRelease(owner)
})

/** A packet of `sender` with the counter. */
function sealedBy(sender: number, counter: number): number {
  const handle = packetOf(memory, TEXT)
  expect(
    native.aeadSeal(sender, id, Int32Array.of(handle), 1, Float64Array.of(counter), new Int32Array(1), false),
  ).toBe(0)
  return handle
}

describe('a replay window', () => {
  it('behaves as a set of all counters with an age limit', () => {
    const sender = native.aeadOpen(owner, 0, KEY, SALT)
    const far = fc.constantFrom(1000, REPLAY_WINDOW - 1, REPLAY_WINDOW, 5000, 2 ** 31, 2 ** 40)
    const jump = fc.oneof({ weight: 9, arbitrary: fc.nat(2) }, far)
    // Mostly what was seen shortly before, and the edge of the window.
    const back = fc.oneof(fc.nat(5), fc.integer({ min: REPLAY_WINDOW - 2, max: REPLAY_WINDOW + 1 }), fc.nat(3000))
    fc.assert(
      fc.property(
        fc.array(fc.tuple(jump, back), { maxLength: 300, size: 'max' }),
        fc.constantFrom(0, 2 ** 31 - 500, 2 ** 32 - 500, 2 ** 52),
        (steps, start) => {
          const receiver = native.aeadOpen(owner, 0, KEY, SALT)
          const seen = new Set<number>()
          let highest = -1
          let base = start
          for (const [ahead, back] of steps) {
            base = Math.min(base + ahead, 2 ** 53 - 2)
            const counter = Math.max(0, base - back)
            const isNew = counter > highest || (highest - counter < REPLAY_WINDOW && !seen.has(counter))
            const packet = Int32Array.of(sealedBy(sender, counter))
            expect(openPackets(receiver, id, packet)).toEqual([isNew ? 'opened' : 'replayed'])
            expect(bytesOf(memory, packet[0])).toEqual(TEXT)
            freePacket(memory, packet[0])
            if (isNew) seen.add(counter)
            highest = Math.max(highest, counter)
          }
          native.close(receiver)
        },
      ),
      { seed: 9, numRuns: 40 },
    )
  })

  it('takes each of a row longer than it is, and the last of them once', () => {
    const [sender, receiver] = [native.aeadOpen(owner, 0, KEY, SALT), native.aeadOpen(owner, 0, KEY, SALT)]
    const outcomeOf = (counter: number) => {
      const packet = sealedBy(sender, counter)
      const [outcome] = openPackets(receiver, id, Int32Array.of(packet))
      freePacket(memory, packet)
      return outcome
    }
    const row = Array.from({ length: 2 * REPLAY_WINDOW }, (_, counter) => counter)
    expect(new Set(row.map(outcomeOf))).toEqual(new Set(['opened']))
    expect(new Set(row.map(outcomeOf))).toEqual(new Set(['replayed']))
  })

  it('takes no note of a packet that is forged', () => {
    const [sender, receiver] = [native.aeadOpen(owner, 0, KEY, SALT), native.aeadOpen(owner, 0, KEY, SALT)]
    const forged = sealedBy(sender, 5000)
    memory.data[memory.offset[forged] + 20] ^= 1
    const packets = Int32Array.of(sealedBy(sender, 1), forged, sealedBy(sender, 2), sealedBy(sender, 5000))
    expect(openPackets(receiver, id, packets)).toEqual(['opened', 'forged', 'opened', 'opened'])
  })
})

it('a call stops at the first packet with another salt, looks at none behind it, and begins where it is told', () => {
  const [one, other] = [SALT, pattern(8, 4)].map((salt) => native.aeadOpen(owner, 0, KEY, salt))
  const short = packetOf(memory, new Uint8Array(31))
  const packets = Int32Array.of(sealedBy(one, 1), short, sealedBy(one, 2), sealedBy(other, 7), sealedBy(one, 3), -1)
  const outcome = new Uint8Array(6).fill(99)
  const { opened, malformed } = AEAD_OUTCOMES
  expect(native.aeadOpenPackets(one, id, packets, 0, 6, outcome)).toBe(~3)
  expect([...outcome]).toEqual([opened, malformed, opened, 99, 99, 99])
  expect(memory.length[packets[3]]).toBe(TEXT.length + 32)
  expect(native.aeadOpenPackets(other, id, packets, 3, 6, outcome)).toBe(4)
  expect(native.aeadOpenPackets(one, id, packets, 4, 5, outcome)).toBe(5)
  expect([...outcome]).toEqual([opened, malformed, opened, opened, opened, 99])
  expect(() => native.aeadOpenPackets(one, id, packets, 5, 6, outcome)).toThrow(RangeError)
  expect(() => native.aeadOpenPackets(one, id, packets, 3, 2, outcome)).toThrow(RangeError)
  expect(() => native.aeadOpenPackets(one, id, packets, 0, 6, outcome.subarray(1))).toThrow(RangeError)
})
