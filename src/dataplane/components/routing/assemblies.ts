/** Packets of which some fragments are there: bounded, each with a time to become whole, and found without allocating. */
import { NS_PER_S } from '../../engine/clock.ts'
import { MAX_FRAGMENTS } from './fragment-header.ts'

/** Packets put together at once. */
export const MAX_ASSEMBLIES = 1024
/** Bytes of fragments kept in all. */
export const MAX_ASSEMBLY_BYTES = 4 * 1024 * 1024
/** Time that a packet has to become whole after its first fragment, ns. */
export const MAX_ASSEMBLY_NS = NS_PER_S
const NONE = -1
const SEEN_WORDS = Math.ceil((MAX_FRAGMENTS + 1) / 32)

/** What is known of each packet, by its place 0 to `MAX_ASSEMBLIES` - 1; places are kept in the order they were taken. */
export class Assemblies {
  /** Bytes of fragments kept in all. */
  bytes = 0
  /** Packets there are. */
  length = 0
  /** The place taken first, -1 for none. */
  oldest = NONE
  /** The packet slot that the fragments of a place are gathered in. */
  readonly slot = new Int32Array(MAX_ASSEMBLIES)
  readonly count = new Uint8Array(MAX_ASSEMBLIES)
  /** Bytes of every fragment but the last, -1 until one of them has come. */
  readonly piece = new Int32Array(MAX_ASSEMBLIES)
  /** Bytes of the last fragment, -1 until it has come. */
  readonly tail = new Int32Array(MAX_ASSEMBLIES)
  /** Fragments that have come. */
  readonly arrived = new Uint8Array(MAX_ASSEMBLIES)
  /** When the first fragment came, ns. */
  readonly born = new Float64Array(MAX_ASSEMBLIES)
  private readonly sender = new Int32Array(MAX_ASSEMBLIES)
  private readonly packet = new Int32Array(MAX_ASSEMBLIES)
  private readonly kept = new Int32Array(MAX_ASSEMBLIES)
  private readonly seen = new Int32Array(MAX_ASSEMBLIES * SEEN_WORDS)
  private newest = NONE
  private readonly older = new Int32Array(MAX_ASSEMBLIES)
  private readonly newer = new Int32Array(MAX_ASSEMBLIES)
  /** First place of each hash value, and the next one of the same value. */
  private readonly heads = new Int32Array(MAX_ASSEMBLIES).fill(NONE)
  private readonly next = new Int32Array(MAX_ASSEMBLIES)
  private readonly free = Int32Array.from({ length: MAX_ASSEMBLIES }, (_, place) => place)
  /** The last packet of each hash value that is over, whole or dropped, and when. */
  private readonly overSender = new Int32Array(MAX_ASSEMBLIES)
  private readonly overPacket = new Int32Array(MAX_ASSEMBLIES)
  private readonly overTime = new Float64Array(MAX_ASSEMBLIES).fill(Number.NEGATIVE_INFINITY)

  /** The place of a packet, -1 when it has none. */
  find(sender: number, packet: number): number {
    let place = this.heads[hash(sender, packet)]
    while (place !== NONE && (this.sender[place] !== sender || this.packet[place] !== packet)) place = this.next[place]
    return place
  }

  /** Takes a place for a packet that has none; one must be free. */
  open(sender: number, packet: number, count: number, slot: number, now: number): number {
    const place = this.free[this.length++]
    const value = hash(sender, packet)
    this.sender[place] = sender
    this.packet[place] = packet
    this.count[place] = count
    this.slot[place] = slot
    this.piece[place] = NONE
    this.tail[place] = NONE
    this.arrived[place] = 0
    this.kept[place] = 0
    this.born[place] = now
    this.seen.fill(0, place * SEEN_WORDS, (place + 1) * SEEN_WORDS)
    this.next[place] = this.heads[value]
    this.heads[value] = place
    this.older[place] = this.newest
    this.newer[place] = NONE
    if (this.newest === NONE) this.oldest = place
    else this.newer[this.newest] = place
    this.newest = place
    return place
  }

  /** Notes that the fragment `index` with `bytes` bytes has come. */
  add(place: number, index: number, bytes: number): void {
    this.seen[place * SEEN_WORDS + (index >> 5)] |= 1 << (index & 31)
    this.arrived[place]++
    this.kept[place] += bytes
    this.bytes += bytes
  }

  has(place: number, index: number): boolean {
    return (this.seen[place * SEEN_WORDS + (index >> 5)] & (1 << (index & 31))) !== 0
  }

  /** Gives a place back; what still comes of its packet for a while `isOver`. */
  close(place: number, now: number): void {
    const value = hash(this.sender[place], this.packet[place])
    if (this.heads[value] === place) this.heads[value] = this.next[place]
    else {
      let before = this.heads[value]
      while (this.next[before] !== place) before = this.next[before]
      this.next[before] = this.next[place]
    }
    const older = this.older[place]
    const newer = this.newer[place]
    if (older === NONE) this.oldest = newer
    else this.newer[older] = newer
    if (newer === NONE) this.newest = older
    else this.older[newer] = older
    this.bytes -= this.kept[place]
    this.free[--this.length] = place
    this.overSender[value] = this.sender[place]
    this.overPacket[value] = this.packet[place]
    this.overTime[value] = now
  }

  /** Whether a packet was whole or dropped a short time ago. */
  isOver(sender: number, packet: number, now: number): boolean {
    const value = hash(sender, packet)
    if (this.overSender[value] !== sender || this.overPacket[value] !== packet) return false
    return now - this.overTime[value] < MAX_ASSEMBLY_NS
  }

  /** Forgets which packets are over. */
  forget(): void {
    this.overTime.fill(Number.NEGATIVE_INFINITY)
  }
}

/** Packets of one sender that follow each other have values that follow each other. */
function hash(sender: number, packet: number): number {
  return (packet + Math.imul(sender, 0x9e3779b1)) & (MAX_ASSEMBLIES - 1)
}
