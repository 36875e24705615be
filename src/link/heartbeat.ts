/** Notices that the other side of a link has gone: asks when it is quiet, gives up when it stays so. */
import type { Clock } from '../contract/clock.ts'
import { Violation } from './messages.ts'

/** Silence after which a side asks whether the other is there, and how often it asks; milliseconds. */
const PING_MS = 10_000
/** Silence after which the other side counts as dead, milliseconds. */
const DEAD_MS = 30_000

export interface HeartbeatOptions {
  readonly clock: Clock
  /** The last sequence used on this connection; default 0. */
  readonly sequence?: number
  ping(sequence: number): void
  /** Called once; `silence` in milliseconds. */
  dead(silence: number): void
}

/** One timer a link. Starts at once. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #clock: Clock
  #heard: number
  #sequence: number
  #timer: unknown

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#heard = this.#clock.now()
    this.#sequence = options.sequence ?? 0
    this.#wait(PING_MS)
  }

  /** The last one used. */
  get sequence(): number {
    return this.#sequence
  }

  /** Since something arrived last, milliseconds. */
  get silence(): number {
    return this.#clock.now() - this.#heard
  }

  /** The sequence of a Ping that is sent now, for another reason than silence. */
  next(): number {
    this.#sequence++
    return this.#sequence
  }

  /** Something arrived, whatever it was. */
  heard(): void {
    this.#heard = this.#clock.now()
  }

  /** A Pong arrived; throws Violation when it answers no Ping. */
  pong(sequence: number): void {
    if (sequence === 0 || sequence > this.#sequence) throw new Violation(`a pong ${sequence} that answers no ping`)
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer)
  }

  #wait(milliseconds: number): void {
    this.#timer = this.#clock.setTimeout(() => this.#look(), milliseconds)
  }

  #look(): void {
    const { silence } = this
    if (silence >= DEAD_MS) {
      this.#options.dead(silence)
      return
    }
    if (silence < PING_MS) {
      this.#wait(PING_MS - silence)
      return
    }
    // Armed first: a ping that finds the connection broken stops it.
    this.#wait(Math.min(PING_MS, DEAD_MS - silence))
    this.#options.ping(this.next())
  }
}
