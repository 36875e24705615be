/** The sliding window's decoder: which sources came, which are missing, and which of those the repairs determine. */
import { native } from '../native/native.ts'
import { MAX_WINDOW, placesFor, type SlidingWindowOptions, SymbolKeeper } from './sliding-window.ts'

/** Numbers that a decoder tells apart: a power of two. */
const SEEN_PLACES = 4 * MAX_WINDOW
/** Sources behind the newest that are followed: those ahead of it that a repair may recover have their place too. */
const HISTORY = SEEN_PLACES - MAX_WINDOW - 1
/** Symbols that a decoder keeps at least, so that it can tell sources that come late from what was recovered. */
const DECODER_PLACES = 256

/** What `takeSource` says. NEW: pass it on. DUPLICATE: it came before. MENDED: it was recovered, with the same bytes. */
export const NEW = 0
export const DUPLICATE = 1
export const MENDED = 2
/** It was recovered, with other bytes: a repair was wrong. Pass it on. What repairs said is forgotten. */
export const WRONGLY_MENDED = 3
/** It is below what was given up, or far back. */
export const LATE = 4
/** It is more than `MAX_WINDOW` ahead of the newest, and changed nothing. */
export const FAR_AHEAD = 5

/** What `takeRepair` says. USED: it was, and `recovered` may have something. REDUNDANT: it says nothing new. */
export const USED = 0
export const REDUNDANT = 1
/** It covers sources too far back or too far ahead, or there is no room for it. */
export const UNUSABLE = 2
/** It does not go together with what has come, or makes what cannot have been sent; it, or all that repairs said, is forgotten. */
export const CONTRADICTED = 3

const CAME = 1
const RECOVERED = 2

export class SlidingDecoder {
  /**
   * Sources recovered by the last `takeSource` or `takeRepair`: `recovered[0..recoveredCount)` are their numbers, in ascending order. None
   * of them is below what was given up; some may be ahead of the newest.
   */
  readonly recovered: Int32Array
  recoveredCount = 0
  /** The newest source that came, or was recovered and is followed; one less than the first where none has. */
  newest = -1
  /** Sources up to the newest that are missing and not given up. */
  missing = 0
  /** Missing sources given up so far. */
  givenUp = 0
  /** How often what repairs said was forgotten because it contradicted itself or a source. */
  contradictions = 0
  /** Equations, each made of one repair, that wait for more of them. */
  rows = 0
  private readonly memory: number
  private readonly keeper: SymbolKeeper
  private readonly found = new Int32Array(1 + MAX_WINDOW)
  private readonly numbers = new Int32Array(SEEN_PLACES)
  private readonly how = new Uint8Array(SEEN_PLACES)
  private places: number
  private begun = false
  /** Sources below it are known, or given up. */
  private floor = 0
  /** Where nothing is missing, every source from here to the newest is known; and no known symbol is longer. */
  private unbroken = 0
  private longest = 0
  /** First and last source of the newest repair. */
  private repairFirst = 0
  private repairLast = 0

  constructor({ memory, window, symbolBytes }: SlidingWindowOptions) {
    this.memory = memory
    this.places = placesFor(2 * window, DECODER_PLACES)
    this.keeper = new SymbolKeeper(memory, this.places, symbolBytes)
    this.recovered = this.found.subarray(1)
  }

  /** Whether a source came or was recovered; of those far back nothing is known. */
  knows(sequence: number): boolean {
    const place = sequence & (SEEN_PLACES - 1)
    return this.how[place] !== 0 && this.numbers[place] === sequence
  }

  /** Whether a source came itself; of those far back nothing is known. */
  came(sequence: number): boolean {
    const place = sequence & (SEEN_PLACES - 1)
    return this.how[place] === CAME && this.numbers[place] === sequence
  }

  /**
   * Takes a source. The bytes of a NEW one are read at the next `keep` or `takeRepair`, at once where a repair waits for it. The first one says where
   * the window begins: with number 0 when that is not far.
   */
  takeSource(sequence: number, at: number, bytes: number): number {
    this.recoveredCount = 0
    if (!this.begun) this.begin(sequence)
    const ahead = (sequence - this.newest) | 0
    if (ahead > MAX_WINDOW) return FAR_AHEAD
    if (ahead < -HISTORY) return LATE
    const place = sequence & (SEEN_PLACES - 1)
    const isKnown = this.knows(sequence)
    // Where `retreat` has left it ahead of the newest, too.
    if (isKnown && this.how[place] === CAME) return DUPLICATE
    if (ahead > 0) this.advance(sequence)
    if (isKnown) return this.takeAgain(sequence, at, bytes)
    if (((sequence - this.floor) | 0) < 0) return LATE
    this.numbers[place] = sequence
    this.how[place] = CAME
    if (ahead < 0) this.missing--
    if (bytes > this.longest) this.longest = bytes
    if (this.rows > 0 && ((sequence - this.repairLast) | 0) <= 0) this.resolve(sequence, at, bytes)
    else this.keeper.add(sequence, at, bytes)
    return NEW
  }

  /** Copies the sources taken since the last call: owed before their packets leave. */
  keep(): void {
    this.keeper.keep()
  }

  /** Takes a repair of `bytes` bytes over the `count` sources from `first` on, 1 to `MAX_WINDOW`; it is read before this returns. */
  takeRepair(first: number, count: number, key: number, at: number, bytes: number): number {
    this.recoveredCount = 0
    const last = (first + count - 1) | 0
    const { newest, places } = this
    if (!this.begun || ((last - newest) | 0) > places / 2 || ((newest - first) | 0) >= places)
      return this.unusable(count)
    if (this.isKnown(first, last) && bytes >= this.longest) return REDUNDANT
    if (2 * count > places && this.grow(count) < count) return UNUSABLE
    if (this.rows === 0 || ((first - this.repairFirst) | 0) > 0) this.repairFirst = first
    if (this.rows === 0 || ((last - this.repairLast) | 0) > 0) this.repairLast = last
    this.forgetOld()
    const { window, pending, count: added } = this.keeper
    this.keeper.count = 0
    const result = native.slidingTake(window, this.memory, pending, added, first, count, key, at, bytes, this.found)
    if (result >= 0) {
      // What it recovers is no longer than it.
      if (bytes > this.longest) this.longest = bytes
      this.tell(result)
      return USED
    }
    this.rows = this.found[0]
    if (result === -1) return REDUNDANT
    if (result === -2) return UNUSABLE
    this.contradictions++
    return CONTRADICTED
  }

  /**
   * Writes the symbol of a source that was recovered just now to `at`; returns its bytes, 0 when it is not at hand. When they are more than `room`
   * nothing is written.
   */
  write(sequence: number, at: number, room: number): number {
    return native.slidingRead(this.keeper.window, this.memory, sequence, at, room)
  }

  /** The first source that is neither known nor given up, which is beyond the newest where none is missing; meaningful once one has come. */
  firstOpen(): number {
    while (this.knows(this.floor)) this.floor = (this.floor + 1) | 0
    return this.floor
  }

  /** Gives up the missing sources below `sequence`, at most one more than the newest: they are not recovered, and taken no more. */
  giveUpBelow(sequence: number): void {
    while (((sequence - this.floor) | 0) > 0) {
      if (!this.knows(this.floor)) {
        this.missing--
        this.givenUp++
        this.unbroken = (this.floor + 1) | 0
      }
      this.floor = (this.floor + 1) | 0
    }
  }

  /**
   * What came ahead of `sequence` says nothing of where the window is: that is the newest again, as before it came, or one that has come since. What came
   * is known, but its symbols are not at hand any more, whose places others need; what is missing between is not waited for.
   */
  retreat(sequence: number): void {
    this.keeper.keep()
    // What is given up is not waited for again.
    const newest = ((this.floor - sequence) | 0) > 1 ? (this.floor - 1) | 0 : sequence
    for (let between = (newest + 1) | 0; ((this.newest - between) | 0) >= 0; between = (between + 1) | 0) {
      if (this.knows(between)) native.slidingDrop(this.keeper.window, between)
      else this.missing--
    }
    this.newest = newest
  }

  /** The newest is `sequence`, which was recovered, or came before a `retreat`, ahead of it, or is behind it. */
  follow(sequence: number): void {
    if (((sequence - this.newest) | 0) > 0) this.advance(sequence)
  }

  /** A source that the window does not take has been passed on all the same: it is a DUPLICATE when it comes again, unless it is far off. */
  notePassed(sequence: number): void {
    const ahead = (sequence - this.newest) | 0
    if (ahead > MAX_WINDOW || ahead < -HISTORY) return
    const place = sequence & (SEEN_PLACES - 1)
    this.numbers[place] = sequence
    this.how[place] = CAME
  }

  /** Forgets everything; the next source says where the window begins, or `from`, whose predecessors are too late then. */
  reset(from?: number): void {
    this.keeper.keep()
    native.slidingReset(this.keeper.window)
    this.how.fill(0)
    this.begun = from !== undefined
    this.floor = from ?? 0
    this.newest = (this.floor - 1) | 0
    this.unbroken = this.floor
    this.longest = 0
    this.rows = 0
    this.missing = 0
    this.recoveredCount = 0
  }

  /** Gives its memory back. */
  close(): void {
    native.slidingClose(this.keeper.window)
  }

  private begin(sequence: number): void {
    this.begun = true
    this.floor = sequence >= 0 && sequence < MAX_WINDOW ? 0 : sequence
    this.unbroken = this.floor
    this.newest = (this.floor - 1) | 0
  }

  /** The newest is `sequence` now; what lies between is missing unless it was recovered. */
  private advance(sequence: number): void {
    for (let between = (this.newest + 1) | 0; between !== sequence; between = (between + 1) | 0) {
      if (!this.knows(between)) this.missing++
    }
    this.newest = sequence
    if (((sequence - this.unbroken) | 0) > HISTORY) this.unbroken = (sequence - HISTORY) | 0
    if (((sequence - this.floor) | 0) > HISTORY) this.giveUpBelow((sequence - HISTORY) | 0)
    while (this.missing > MAX_WINDOW) this.giveUpBelow((this.firstOpen() + 1) | 0)
  }

  /** A source that was recovered. */
  private takeAgain(sequence: number, at: number, bytes: number): number {
    this.how[sequence & (SEEN_PLACES - 1)] = CAME
    this.keeper.keep()
    if (native.slidingMatches(this.keeper.window, this.memory, sequence, at, bytes)) return MENDED
    this.rows = native.slidingForget(this.keeper.window, (this.newest + MAX_WINDOW + 1) | 0)
    if (bytes > this.longest) this.longest = bytes
    this.keeper.add(sequence, at, bytes)
    return WRONGLY_MENDED
  }

  /** A source that equations may have is known now. */
  private resolve(sequence: number, at: number, bytes: number): void {
    this.keeper.keep()
    this.forgetOld()
    const result = native.slidingResolve(this.keeper.window, this.memory, sequence, at, bytes, this.found)
    if (result >= 0) this.tell(result)
    else {
      this.rows = this.found[0]
      this.contradictions++
    }
  }

  /** Gives up equations for sources that no later repair covers, where they are given up, and for those whose symbols have no place any more. */
  private forgetOld(): void {
    if (this.rows === 0) return
    const { floor, repairFirst, repairLast, newest, places } = this
    let below = ((repairFirst - floor) | 0) < 0 ? repairFirst : floor
    const last = ((repairLast - newest) | 0) > 0 ? repairLast : newest
    const oldest = (last - places + 1) | 0
    if (((oldest - below) | 0) > 0) below = oldest
    this.rows = native.slidingForget(this.keeper.window, below)
  }

  /** Notes what was found, less what nobody waits for. */
  private tell(count: number): void {
    const { recovered, floor } = this
    this.rows = this.found[0]
    let kept = 0
    for (let n = 0; n < count; n++) {
      const sequence = recovered[n]
      if (((sequence - floor) | 0) < 0 || this.knows(sequence)) continue
      const place = sequence & (SEEN_PLACES - 1)
      this.numbers[place] = sequence
      this.how[place] = RECOVERED
      if (((sequence - this.newest) | 0) < 0) this.missing--
      recovered[kept++] = sequence
    }
    this.recoveredCount = kept
  }

  /** Whether all sources from `first` to `last` are known, as is seen without looking at each. */
  private isKnown(first: number, last: number): boolean {
    return this.missing === 0 && ((last - this.newest) | 0) <= 0 && ((first - this.unbroken) | 0) >= 0
  }

  private unusable(count: number): number {
    if (this.begun) this.grow(count)
    return UNUSABLE
  }

  /** Makes room for repairs over `count` sources; returns how many it is enough for. */
  private grow(count: number): number {
    const wanted = placesFor(2 * count, this.places)
    if (wanted > this.places) native.slidingGrow(this.keeper.window, wanted)
    this.places = wanted
    return wanted / 2
  }
}
