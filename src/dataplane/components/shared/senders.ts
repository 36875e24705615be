/** Which senders a receiver keeps state for, and how a newcomer gets in when there are as many as it can follow. */

/** Senders followed at once. */
export const MAX_SENDERS = 64
/** Well-formed packets that a newcomer needs before another sender gives way to it. */
const MIN_PACKETS_TO_FOLLOW = 8

export class Senders {
  private readonly ids = new Int32Array(MAX_SENDERS)
  /** When each was heard last, by the count of packets. */
  private readonly heard = new Float64Array(MAX_SENDERS)
  private followed = 0
  private last = 0
  private count = 0
  /** Senders that would like to be followed: their packets, and when the first and the last came. */
  private readonly newcomers = new Int32Array(MAX_SENDERS)
  private readonly came = new Int32Array(MAX_SENDERS)
  private readonly first = new Float64Array(MAX_SENDERS)
  private readonly latest = new Float64Array(MAX_SENDERS)

  /** Whether the sender `id`, of whom a well-formed packet has come, is followed. */
  follows(id: number): boolean {
    return this.place(id) >= 0
  }

  /** The place of the sender `id`, of whom a well-formed packet has come, 0 to 63; -1: it is not followed. A place may have been another's. */
  place(id: number): number {
    const known = this.find(id)
    if (known >= 0) return known
    const place = this.followed < MAX_SENDERS ? this.followed++ : this.placeFor(id)
    if (place >= 0) this.hear(place, id)
    return place
  }

  /** As `place`, but a sender that is not followed yet gets none. */
  find(id: number): number {
    this.count++
    const { last } = this
    const place = last < this.followed && this.ids[last] === id ? last : this.placeOf(id)
    if (place >= 0) this.hear(place, id)
    return place
  }

  /** How many are followed. */
  get length(): number {
    return this.followed
  }

  /** Forgets every sender. */
  reset(): void {
    this.followed = 0
    this.latest.fill(0)
  }

  private hear(place: number, id: number): void {
    this.ids[place] = id
    this.heard[place] = this.count
    this.last = place
  }

  private placeOf(id: number): number {
    const { ids, followed } = this
    for (let i = 0; i < followed; i++) if (ids[i] === id) return i
    return -1
  }

  /** The place of the sender silent longest, if `id` has earned it. */
  private placeFor(id: number): number {
    const at = this.newcomer(id)
    this.latest[at] = this.count
    if (this.came[at]++ === 0) this.first[at] = this.count
    if (this.came[at] < MIN_PACKETS_TO_FOLLOW) return -1
    this.came[at] = 0
    const silent = indexOfLeast(this.heard)
    // Who was heard all the while keeps the place: one of too many senders must not cost all the others theirs in turn.
    if (this.heard[silent] >= this.first[at]) return -1
    this.latest[at] = 0
    return silent
  }

  /** Where the notes on a newcomer are; where there are too many, those on the one silent longest give way. */
  private newcomer(id: number): number {
    const { newcomers, latest } = this
    for (let i = 0; i < MAX_SENDERS; i++) if (latest[i] > 0 && newcomers[i] === id) return i
    const at = indexOfLeast(latest)
    newcomers[at] = id
    this.came[at] = 0
    return at
  }
}

function indexOfLeast(values: Float64Array): number {
  let least = 0
  for (let i = 1; i < values.length; i++) if (values[i] < values[least]) least = i
  return least
}
