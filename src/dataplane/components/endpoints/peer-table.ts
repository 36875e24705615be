/** Which remote address each inner IP address is behind: a hash table of bounded size, in typed arrays, the longest unused entry first to go. */
import { REMOTE_BYTES } from '../../native/native.ts'

const REMOTE_WORDS = REMOTE_BYTES / 4
const NONE = -1

/** Mixes a 32-bit word into a hash, as MurmurHash3 (Appleby, 2011) does at its end. */
function mix(hash: number, word: number): number {
  let mixed = Math.imul(hash ^ word, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/** Addresses are 32-bit words as `IpHeader` has them, one for IPv4 and four for IPv6; times are nanoseconds that never fall. */
export class PeerTable {
  /** Entries there are. */
  size = 0
  private readonly capacity: number
  private readonly lifetime: number
  private readonly seed: number
  /** By hash: the first entry of a chain. */
  private readonly buckets: Int32Array
  /** By entry. */
  private readonly chain: Int32Array
  private readonly versions: Uint8Array
  private readonly addresses: Uint32Array
  private readonly remotes: Int32Array
  private readonly used: Float64Array
  /** Entries that were given back, linked by `chain`; entries from `fresh` on were never used. */
  private free = NONE
  private fresh = 0
  /** A ring of the entries by their last use; entry `capacity` stands for both ends: `newer` of it is the oldest. */
  private readonly newer: Int32Array
  private readonly older: Int32Array

  /** At most `capacity` addresses, each forgotten `lifetime` ns after its last use; `seed` makes the hash its own. */
  constructor(capacity: number, lifetime: number, seed: number) {
    this.capacity = capacity
    this.lifetime = lifetime
    this.seed = seed
    this.buckets = new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2))).fill(NONE)
    this.chain = new Int32Array(capacity)
    this.versions = new Uint8Array(capacity)
    this.addresses = new Uint32Array(capacity * 4)
    this.remotes = new Int32Array(capacity * REMOTE_WORDS)
    this.used = new Float64Array(capacity)
    this.newer = new Int32Array(capacity + 1)
    this.older = new Int32Array(capacity + 1)
    this.newer[capacity] = capacity
    this.older[capacity] = capacity
  }

  /** `address` of IP version `version` is behind `remote` from now on. True when it was behind another one before. */
  learn(version: number, address: Uint32Array, remote: Int32Array, now: number): boolean {
    this.expire(now)
    const known = this.entryOf(version, address)
    const entry = known === NONE ? this.add(version, address) : known
    this.touch(entry, now)
    const at = entry * REMOTE_WORDS
    let same = true
    for (let i = 0; i < REMOTE_WORDS; i++) {
      same &&= this.remotes[at + i] === remote[i]
      this.remotes[at + i] = remote[i]
    }
    return known !== NONE && !same
  }

  /** Writes the remote record that `address` is behind to `remote`; false when it is not known. That is a use. */
  find(version: number, address: Uint32Array, remote: Int32Array, now: number): boolean {
    this.expire(now)
    const entry = this.entryOf(version, address)
    if (entry === NONE) return false
    this.touch(entry, now)
    const at = entry * REMOTE_WORDS
    for (let i = 0; i < REMOTE_WORDS; i++) remote[i] = this.remotes[at + i]
    return true
  }

  /** When the entry that was not used for longest is to be forgotten; there must be one. */
  get nextExpiry(): number {
    return this.used[this.newer[this.capacity]] + this.lifetime
  }

  /** Forgets what was not used for the lifetime. */
  expire(now: number): void {
    const { newer, used, capacity, lifetime } = this
    while (this.size > 0) {
      const oldest = newer[capacity]
      if (now - used[oldest] < lifetime) return
      this.remove(oldest)
    }
  }

  private bucketOf(version: number, address: Uint32Array, at = 0): number {
    let hash = mix(this.seed, version)
    const words = version === 4 ? 1 : 4
    for (let i = 0; i < words; i++) hash = mix(hash, address[at + i])
    return hash & (this.buckets.length - 1)
  }

  private entryOf(version: number, address: Uint32Array): number {
    const { chain, versions, addresses } = this
    let entry = this.buckets[this.bucketOf(version, address)]
    for (; entry !== NONE; entry = chain[entry]) {
      if (versions[entry] !== version || addresses[entry * 4] !== address[0]) continue
      if (version === 4) return entry
      const at = entry * 4
      if (addresses[at + 1] === address[1] && addresses[at + 2] === address[2] && addresses[at + 3] === address[3])
        break
    }
    return entry
  }

  /** An entry for an address that has none; the one longest unused gives way where all are taken. */
  private add(version: number, address: Uint32Array): number {
    const { chain, buckets, capacity } = this
    if (this.size === capacity) this.remove(this.newer[capacity])
    let entry = this.free
    if (entry === NONE) entry = this.fresh++
    else this.free = chain[entry]
    this.versions[entry] = version
    for (let i = 0; i < 4; i++) this.addresses[entry * 4 + i] = address[i]
    const bucket = this.bucketOf(version, address)
    chain[entry] = buckets[bucket]
    buckets[bucket] = entry
    // Alone, as `touch` wants it.
    this.newer[entry] = entry
    this.older[entry] = entry
    this.size++
    return entry
  }

  private remove(entry: number): void {
    const { chain, buckets } = this
    this.unlink(entry)
    const bucket = this.bucketOf(this.versions[entry], this.addresses, entry * 4)
    if (buckets[bucket] === entry) buckets[bucket] = chain[entry]
    else {
      let before = buckets[bucket]
      while (chain[before] !== entry) before = chain[before]
      chain[before] = chain[entry]
    }
    chain[entry] = this.free
    this.free = entry
    this.size--
  }

  private unlink(entry: number): void {
    const { newer, older } = this
    newer[older[entry]] = newer[entry]
    older[newer[entry]] = older[entry]
  }

  /** Makes an entry the one used last. */
  private touch(entry: number, now: number): void {
    const { newer, older, capacity } = this
    this.unlink(entry)
    const last = older[capacity]
    newer[last] = entry
    older[entry] = last
    newer[entry] = capacity
    older[capacity] = entry
    this.used[entry] = now
  }
}
