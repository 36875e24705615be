/** The pieces of one stream that have come, around the next one to be delivered: which are there, which are missing, since when. */
import { ahead, following } from './serial.ts'

/** Pieces beyond the next one to be delivered that are taken, and pieces before it that are remembered. */
const MAX_AHEAD = 8192
const PLACES = MAX_AHEAD * 2
const MASK = PLACES - 1

/** How far out of reach a piece may be for the window to move on to it, at the cost of those that it leaves behind. */
const MAX_MOVE = 1024

/** Where a window begins that has `sequence` and up to `behind` before it: as many as it has room for. */
export const firstOf = (sequence: number, behind = MAX_AHEAD): number =>
  (sequence - Math.min(behind, MAX_AHEAD - 1)) | 0

/** What is known of a sequence. */
export const MISSING = 0
export const HERE = 1
export const DELIVERED = 2
export const GIVEN_UP = 3

export class ReorderWindow {
  started = false
  /** The sequence to be delivered next. */
  next = 0
  /** One more than the highest sequence that has come. */
  end = 0
  /** Pieces that are here. */
  held = 0
  private readonly states = new Uint8Array(PLACES)
  private readonly handles = new Int32Array(PLACES)
  private readonly deadlines = new Float64Array(PLACES)
  private readonly arrivals = new Float64Array(PLACES)
  /** Sequences in the order in which they came; those that are no longer here are passed over. */
  private readonly order = new Int32Array(PLACES)
  private orderHead = 0
  private orderLength = 0
  private firstHere = 0

  /** Begins with `next`. */
  start(next: number): void {
    this.started = true
    this.next = next
    this.end = next
    this.firstHere = next
    this.held = 0
    this.orderLength = 0
    this.states.fill(MISSING)
  }

  /** What is known of a sequence within reach. */
  stateOf(sequence: number): number {
    return this.states[sequence & MASK]
  }

  /** Whether a sequence is within reach: 0; 1: too far ahead; -1: too far behind. */
  reach(sequence: number): number {
    const distance = ahead(sequence, this.next)
    if (distance >= MAX_AHEAD) return 1
    return distance < -MAX_AHEAD ? -1 : 0
  }

  /** Whether a sequence that is too far ahead is so by little: one of a stream that is held up, rather than of another one. */
  isNear(sequence: number): boolean {
    return ahead(sequence, this.next) < MAX_AHEAD + MAX_MOVE
  }

  /** Whether, of a sequence that is too far ahead, pieces before it may be remembered, so that the window has to be moved on to it step by step. */
  remembersBefore(sequence: number): boolean {
    return ahead(sequence, this.next) < MAX_AHEAD + PLACES
  }

  /** Takes a missing piece within reach and not before `next`, which is due at `deadline`, ns. */
  add(sequence: number, packet: number, deadline: number, now: number): void {
    const place = sequence & MASK
    this.states[place] = HERE
    this.handles[place] = packet
    this.deadlines[place] = deadline
    this.arrivals[place] = now
    if (this.held === 0 || ahead(sequence, this.firstHere) < 0) this.firstHere = sequence
    this.held++
    if (ahead(sequence, this.end) >= 0) this.end = following(sequence)
    if (this.orderLength === PLACES) this.passOrder()
    this.order[(this.orderHead + this.orderLength) & MASK] = sequence
    this.orderLength++
  }

  /** A sequence within reach that is missing will not be waited for. */
  giveUp(sequence: number): void {
    this.states[sequence & MASK] = GIVEN_UP
    if (ahead(sequence, this.end) >= 0) this.end = following(sequence)
  }

  /** A sequence that was given up has come and gone. */
  settle(sequence: number): void {
    this.states[sequence & MASK] = DELIVERED
  }

  /** The piece at `next`, which is here, leaves the window; returns its packet. */
  take(): number {
    const place = this.next & MASK
    this.held--
    this.states[place] = DELIVERED
    this.step()
    return this.handles[place]
  }

  /** Goes on to the sequence after `next`, and forgets the one that is out of reach then. */
  step(): void {
    this.states[(this.next + MAX_AHEAD) & MASK] = MISSING
    this.next = following(this.next)
    if (ahead(this.end, this.next) < 0) this.end = this.next
  }

  /** The first sequence from `next` on that is here; one must be. */
  get first(): number {
    let { firstHere } = this
    if (ahead(firstHere, this.next) < 0) firstHere = this.next
    while (this.states[firstHere & MASK] !== HERE) firstHere = following(firstHere)
    this.firstHere = firstHere
    return firstHere
  }

  /** Of those that are here the one that came first; one must be. */
  get earliest(): number {
    this.passOrder()
    return this.order[this.orderHead]
  }

  deadlineOf(sequence: number): number {
    return this.deadlines[sequence & MASK]
  }

  arrivalOf(sequence: number): number {
    return this.arrivals[sequence & MASK]
  }

  /** Calls `give` with the packet of every piece that is here, and forgets all. */
  clear(give: (packet: number) => void): void {
    for (let sequence = this.next; this.held > 0; sequence = following(sequence)) {
      if (this.states[sequence & MASK] !== HERE) continue
      give(this.handles[sequence & MASK])
      this.held--
    }
    this.started = false
    this.orderLength = 0
  }

  private passOrder(): void {
    while (this.orderLength > 0) {
      const sequence = this.order[this.orderHead]
      if (ahead(sequence, this.next) >= 0 && this.states[sequence & MASK] === HERE) return
      this.orderHead = (this.orderHead + 1) & MASK
      this.orderLength--
    }
  }
}
