/** Which long messages go on where a link holds much: one at a time, so that there is room to put each of them together. */
import type { Timers } from '../contract/clock.ts'
import { MAX_HELD_BYTES } from './accounting.ts'

/** A message under way of up to this length waits for no turn. */
export const MAX_SMALL_BYTES = 64 * 1024
/** What a link may hold before messages take turns: those of some 190 streams, which then get a window more each, find room in the rest. */
export const MUCH_HELD_BYTES = MAX_HELD_BYTES / 4
/** A message of which nothing has come for so long gives up its turn, milliseconds. */
const STALLED_MS = 1_000

/** A stream with a long message under way. */
export interface Reading {
  /** Lets its sender go on. */
  proceed(): void
}

export class MessageTurns {
  readonly #clock: Timers
  readonly #held: () => number
  #current: Reading | undefined
  /** Something of the current message has come since the timer was set. */
  #isMoving = false
  readonly #waiting = new Set<Reading>()
  #timer: unknown
  #isWaking = false

  /** `held`: bytes that the link holds now. */
  constructor(clock: Timers, held: () => number) {
    this.#clock = clock
    this.#held = held
  }

  /** A piece of its long message has come: whether its sender may go on; if not, `proceed` is called when it may. */
  take(reading: Reading): boolean {
    if (this.#current === reading) {
      this.#isMoving = true
      return true
    }
    if (this.#held() <= MUCH_HELD_BYTES) return true
    if (this.#current === undefined) {
      this.#current = reading
      this.#isMoving = true
      return true
    }
    this.#waiting.add(reading)
    this.#watch()
    return false
  }

  /** Its message is whole, or will not be. */
  release(reading: Reading): void {
    this.#leave(reading)
    if (this.#current === reading) this.#current = undefined
    this.eased()
  }

  /** The link may hold less than before. Who goes on does so once what is being handled has been. */
  eased(): void {
    if (this.#waiting.size === 0 || this.#isWaking) return
    this.#isWaking = true
    queueMicrotask(() => {
      this.#isWaking = false
      if (this.#current === undefined) this.#next()
      else if (this.#held() <= MUCH_HELD_BYTES) this.#letGo()
    })
  }

  /** The one that has waited longest has the turn. */
  #next(): void {
    this.#current = this.#letGo()
    this.#isMoving = true
  }

  #letGo(): Reading | undefined {
    for (const reading of this.#waiting) {
      this.#leave(reading)
      reading.proceed()
      return reading
    }
    return undefined
  }

  #leave(reading: Reading): void {
    if (!this.#waiting.delete(reading) || this.#waiting.size > 0) return
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Sees to it that one whose sender has stopped holds up nobody. */
  #watch(): void {
    if (this.#timer !== undefined) return
    this.#isMoving = false
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      if (!this.#isMoving) this.#next()
      if (this.#waiting.size > 0) this.#watch()
    }, STALLED_MS)
  }
}
