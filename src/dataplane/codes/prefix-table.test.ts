/** Longest-prefix match against a look at every prefix. */
import { describe, expect, test } from 'vitest'
import { Random } from '../engine/random.ts'
import { masked, maskOf, type Prefix, PrefixTable } from './prefix-table.ts'

const has = ({ address, bits }: Prefix, other: Uint32Array) =>
  address.every((word, i) => (((word ^ other[i]) & maskOf(bits - i * 32)) | 0) === 0)

function longest(prefixes: readonly Prefix[], address: Uint32Array): number {
  let best = -1
  prefixes.forEach((prefix, i) => {
    if (has(prefix, address) && (best < 0 || prefix.bits > prefixes[best].bits)) best = i
  })
  return best
}

/** Addresses near each other, so that prefixes lie in one another. */
function near(random: Random, words: number): Uint32Array {
  const clustered = random.chance(0.8)
  return Uint32Array.from({ length: words }, (_, i) => {
    const all = random.bits() >>> 0
    return clustered && i < words - 1 ? all & 1 : clustered ? all & 0x8000000f : all
  })
}

describe.each([1, 4])('addresses of %i words', (words) => {
  test.each([1, 2, 3, 4])('the longest prefix is found, seed %i', (seed) => {
    const random = new Random(seed)
    const unique = new Map<string, Prefix>()
    for (let i = 0; i < 300; i++) {
      const bits = random.chance(0.2) ? 32 * words - random.below(3) : random.below(32 * words + 1)
      const prefix = { address: near(random, words), bits }
      unique.set(`${masked(prefix)}/${bits}`, prefix)
    }
    const prefixes = [...unique.values()]
    const table = new PrefixTable(words, prefixes)
    let found = 0
    for (let i = 0; i < 5000; i++) {
      const address = i < prefixes.length ? prefixes[i].address : near(random, words)
      const expected = longest(prefixes, address)
      expect(table.find(address)).toBe(expected)
      if (expected >= 0) found++
    }
    expect(found).toBeGreaterThan(1000)
  })

  test('both ends of the address space belong to prefixes too', () => {
    const all = (word: number) => new Uint32Array(words).fill(word)
    const most = 32 * words
    expect(new PrefixTable(words, []).find(all(7))).toBe(-1)
    const prefixes = [
      { address: all(0xffffffff), bits: most },
      { address: all(5), bits: 0 },
      { address: all(0), bits: most },
      { address: all(0x80000000), bits: 1 },
    ]
    const table = new PrefixTable(words, prefixes)
    expect([0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff].map((word) => table.find(all(word)))).toEqual([
      2, 1, 1, 3, 3, 0,
    ])
    const half = new PrefixTable(words, [{ address: all(0xffffffff), bits: 1 }])
    expect([half.find(all(0x7fffffff)), half.find(all(0x80000000)), half.find(all(0xffffffff))]).toEqual([-1, 0, 0])
  })
})
