/** Longest-prefix match: the ranges that prefixes cut an address space into, sorted, so that a look-up is a binary search. */

/** The addresses whose first `bits` bits are those of `address`, 32-bit words from the most significant on. */
export interface Prefix {
  readonly address: Uint32Array
  readonly bits: number
}

/** Clears what comes after the prefix. */
export function masked({ address, bits }: Prefix): Uint32Array {
  return address.map((word, i) => (word & maskOf(bits - i * 32)) >>> 0)
}

/** A 32-bit word whose first `bits` bits are set; none for 0 and less, all for 32 and more. */
export function maskOf(bits: number): number {
  if (bits <= 0) return 0
  return bits >= 32 ? 0xffffffff : (0xffffffff << (32 - bits)) >>> 0
}

/** Made once, then only read: a look-up among n prefixes takes about log2(2n) comparisons and allocates nothing. */
export class PrefixTable {
  private readonly words: number
  /** First addresses of the ranges, rising, `words` words each. */
  private readonly starts: Uint32Array
  /** Index of the longest prefix over a range, -1 where there is none. */
  private readonly owners: Int32Array

  /** Of prefixes of addresses of `words` words, no two of them alike. */
  constructor(words: number, prefixes: readonly Prefix[]) {
    this.words = words
    const size = 32n * BigInt(words)
    const sorted = prefixes
      .map((prefix, owner) => {
        const first = masked(prefix).reduce((sum, word) => (sum << 32n) | BigInt(word), 0n)
        return { first, last: first | ((1n << (size - BigInt(prefix.bits))) - 1n), owner }
      })
      .sort((a, b) => (a.first === b.first ? (a.last > b.last ? -1 : 1) : a.first < b.first ? -1 : 1))
    const ranges: [start: bigint, owner: number][] = []
    const begin = (start: bigint, owner: number): void => {
      if (ranges.at(-1)?.[0] === start) ranges.pop()
      ranges.push([start, owner])
    }
    begin(0n, -1)
    const open: typeof sorted = []
    const closeBefore = (first: bigint): void => {
      for (let top = open.at(-1); top && top.last < first; top = open.at(-1)) {
        open.pop()
        begin(top.last + 1n, open.at(-1)?.owner ?? -1)
      }
    }
    for (const prefix of sorted) {
      closeBefore(prefix.first)
      begin(prefix.first, prefix.owner)
      open.push(prefix)
    }
    closeBefore(1n << size)
    if (ranges.at(-1)?.[0] === 1n << size) ranges.pop()
    this.owners = Int32Array.from(ranges, ([, owner]) => owner)
    this.starts = new Uint32Array(ranges.length * words)
    ranges.forEach(([start], i) => {
      for (let word = 0; word < words; word++) {
        this.starts[i * words + word] = Number((start >> (size - 32n * BigInt(word + 1))) & 0xffffffffn)
      }
    })
  }

  /** Index of the longest of the prefixes that has `address` in it, -1 when none has. */
  find(address: Uint32Array): number {
    let low = 0
    let high = this.owners.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.isBefore(address, middle)) high = middle - 1
      else low = middle
    }
    return this.owners[low]
  }

  private isBefore(address: Uint32Array, range: number): boolean {
    const { words, starts } = this
    const at = range * words
    for (let i = 0; i < words; i++) {
      if (address[i] !== starts[at + i]) return address[i] < starts[at + i]
    }
    return false
  }
}
