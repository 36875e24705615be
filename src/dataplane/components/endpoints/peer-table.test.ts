/** The peer_router's table against a Map that does the same slowly. */
import { describe, expect, test } from 'vitest'
import { Random } from '../../engine/random.ts'
import { PeerTable } from './peer-table.ts'

const WORDS = 8

interface Known {
  remote: number
  used: number
}

/** A Map by last use: its first key is the one longest unused. */
class Model {
  readonly known = new Map<string, Known>()
  private readonly capacity: number
  private readonly lifetime: number

  constructor(capacity: number, lifetime: number) {
    this.capacity = capacity
    this.lifetime = lifetime
  }

  expire(now: number): void {
    for (const [key, { used }] of this.known) if (now - used >= this.lifetime) this.known.delete(key)
  }

  learn(key: string, remote: number, now: number): boolean {
    this.expire(now)
    const before = this.known.get(key)
    this.known.delete(key)
    if (this.known.size === this.capacity) this.known.delete(this.known.keys().next().value as string)
    this.known.set(key, { remote, used: now })
    return before !== undefined && before.remote !== remote
  }

  find(key: string, now: number): number | undefined {
    this.expire(now)
    const found = this.known.get(key)
    if (!found) return undefined
    this.known.delete(key)
    this.known.set(key, { ...found, used: now })
    return found.remote
  }
}

describe.each([1, 2, 3])('seed %i', (seed) => {
  test.each([1, 2, 7, 100])('%i addresses', (capacity) => {
    const random = new Random(seed)
    const lifetime = 1000
    const table = new PeerTable(capacity, lifetime, seed)
    const model = new Model(capacity, lifetime)
    const record = new Int32Array(WORDS)
    let now = 0
    for (let step = 0; step < 4000; step++) {
      now += random.chance(0.02) ? random.below(2 * lifetime) : random.below(8)
      const version = random.chance(0.5) ? 4 : 6
      // Words that differ in one place only, and what lies behind the one word of IPv4 is whatever was there before.
      const address = new Uint32Array([0xff000000, random.below(4), random.below(2), random.below(1000)])
      address[random.below(4)] = random.below(capacity * 2)
      const key = version === 4 ? `4 ${address[0]}` : `6 ${address}`
      if (random.chance(0.5)) {
        const remote = 1 + random.below(3)
        record.fill(remote)
        expect(table.learn(version, address, record, now)).toBe(model.learn(key, remote, now))
      } else {
        const remote = model.find(key, now)
        expect(table.find(version, address, record, now)).toBe(remote !== undefined)
        if (remote !== undefined) expect(record).toEqual(new Int32Array(WORDS).fill(remote))
      }
      expect(table.size).toBe(model.known.size)
    }
  })
})
