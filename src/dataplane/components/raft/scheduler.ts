/** Which carrier takes the next packet: the highest priority that has room, those of equal priority in proportion to it. */

/** What is known of a carrier when a packet is to go. */
export interface Candidate {
  /** Higher is filled first. */
  readonly priority: number
  /** Bytes that may go now; Infinity without limit, 0 or below: none. */
  readonly room: number
  /** What it has had less than its share, bytes; kept here from packet to packet. */
  credit: number
}

/**
 * The index of the carrier for a packet of `bytes` bytes, -1 when none has room. Shares among equals are kept by credit
 * (smooth weighted round robin): each gets its part of the bytes, and the one chosen pays for all.
 */
export function choose(carriers: readonly Candidate[], usable: Uint8Array, bytes: number): number {
  const { length } = carriers
  let top = -1
  for (let i = 0; i < length; i++) {
    if (usable[i] === 1 && carriers[i].room > 0 && carriers[i].priority > top) top = carriers[i].priority
  }
  if (top < 0) return -1
  let rooms = 0
  let unlimited = 0
  for (let i = 0; i < length; i++) {
    if (usable[i] === 0 || carriers[i].priority !== top || carriers[i].room <= 0) continue
    if (carriers[i].room === Number.POSITIVE_INFINITY) unlimited++
    else rooms += carriers[i].room
  }
  let chosen = -1
  for (let i = 0; i < length; i++) {
    const carrier = carriers[i]
    if (usable[i] === 0 || carrier.priority !== top || carrier.room <= 0) continue
    const share = shareOf(carrier.room, rooms, unlimited)
    if (share === 0) continue
    carrier.credit += bytes * share
    if (chosen < 0 || carrier.credit > carriers[chosen].credit) chosen = i
  }
  carriers[chosen].credit -= bytes
  return chosen
}

/** What is known besides of a carrier when a piece is to go again. */
export interface Surety extends Candidate {
  /** Share of what is sent on it that is lost. */
  readonly loss: number
  /** Its round trip, ns. */
  readonly rtt: { readonly smoothed: number }
  /** Whether room comes with time alone, soon; otherwise something has to be reported first. */
  readonly isPaced: boolean
}

/** Round trips until a piece that is lost has come after all: there, the report of those after it, and there again, with an eighth for those that were only reordered. */
const ROUNDS_OF_A_LOSS = 1.625

/**
 * The index of the carrier for a piece that others wait for: of those of the highest priority the one on which it is there soonest on average. -1 when
 * none has room, or that one has it in a moment.
 */
export function chooseAgain(carriers: readonly Surety[], usable: Uint8Array): number {
  let chosen = -1
  for (let i = 0; i < carriers.length; i++) {
    if (usable[i] === 0 || (carriers[i].room <= 0 && !carriers[i].isPaced)) continue
    if (chosen < 0 || isBetter(carriers[i], carriers[chosen])) chosen = i
  }
  return chosen >= 0 && carriers[chosen].room > 0 ? chosen : -1
}

function isBetter(one: Surety, other: Surety): boolean {
  return one.priority === other.priority ? onAverage(one) < onAverage(other) : one.priority > other.priority
}

/** When a piece is there on average, ns: what is lost goes again. */
const onAverage = ({ loss, rtt }: Surety): number => rtt.smoothed * (0.5 + ROUNDS_OF_A_LOSS * loss)

/** Beside those without limit, which share alike, those with one get nothing. */
function shareOf(room: number, rooms: number, unlimited: number): number {
  if (unlimited === 0) return room / rooms
  return room === Number.POSITIVE_INFINITY ? 1 / unlimited : 0
}
