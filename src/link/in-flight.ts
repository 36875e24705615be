/**
 * What has been sent and not yet been handled by the other side, as far as this one knows: bounded, so that no peer has to cut it off, and the less the slower the
 * connection is, as calls wait behind it.
 */
import type { Clock } from '../contract/clock.ts'

/** Frames that may be in flight before calls and messages wait. */
export const MAX_FRAMES_IN_FLIGHT = 16_384
/** Bytes that may, at most. */
export const MAX_BYTES_IN_FLIGHT = 32 * 1024 * 1024
/** At first, and on a slow connection. */
export const LEAST_BYTES_IN_FLIGHT = 64 * 1024
/** A Pong that was waited for longer halves what may be in flight; one that came within half of that doubles it, where it was too little. Milliseconds. */
const SLOW_MS = 2_000
/** A Ping asks after so much of either: frames are handled in order, so its Pong shows that all before it have been. */
const ASKED_PART = 1 / 4

/** What had been sent when a Ping was. */
interface SentAtPing {
  readonly sequence: number
  readonly frames: number
  readonly bytes: number
  readonly at: number
}

export class InFlight {
  readonly #clock: Pick<Clock, 'now'>
  /** Bytes that may be in flight now. */
  #mostBytes = LEAST_BYTES_IN_FLIGHT
  /** Sent in all when that was made more or less. */
  #bytesAtChange = 0
  /** As many have been in flight since. */
  #wasFull = false
  /** Sent in all. */
  #frames = 0
  #bytes = 0
  /** Of that, known to be handled. */
  #framesHandled = 0
  #bytesHandled = 0
  /** Of that, asked for last. */
  #framesAsked = 0
  #bytesAsked = 0
  /** Pings without their Pongs, the oldest first. */
  readonly #asked: SentAtPing[] = []

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Whether calls and messages have to wait for a Pong. */
  get isFull(): boolean {
    return (
      this.#frames - this.#framesHandled >= MAX_FRAMES_IN_FLIGHT || this.#bytes - this.#bytesHandled >= this.#mostBytes
    )
  }

  /** Whether it is time for a Ping. */
  get isDue(): boolean {
    return (
      this.#frames - this.#framesAsked >= MAX_FRAMES_IN_FLIGHT * ASKED_PART ||
      this.#bytes - this.#bytesAsked >= this.#mostBytes * ASKED_PART
    )
  }

  /** A frame of that length has been sent. */
  sent(length: number): void {
    this.#frames++
    this.#bytes += length
    if (this.#bytes - this.#bytesHandled >= this.#mostBytes) this.#wasFull = true
  }

  /** A Ping of that sequence is sent now. */
  asked(sequence: number): void {
    this.#framesAsked = this.#frames
    this.#bytesAsked = this.#bytes
    this.#asked.push({ sequence, frames: this.#frames, bytes: this.#bytes, at: this.#clock.now() })
  }

  /** The Pong of that sequence has come. Another Ping may be due, as less may be in flight. */
  answered(sequence: number): void {
    for (let first = this.#asked[0]; first !== undefined && first.sequence <= sequence; first = this.#asked[0]) {
      this.#framesHandled = first.frames
      this.#bytesHandled = first.bytes
      this.#asked.shift()
      this.#adapt(first)
    }
  }

  /** A Ping from before the last change tells of what was allowed then: heeding each would double it several times before any effect is seen. */
  #adapt({ bytes, at }: SentAtPing): void {
    if (bytes < this.#bytesAtChange) return
    const waited = this.#clock.now() - at
    if (waited > SLOW_MS) this.#mostBytes = Math.max(LEAST_BYTES_IN_FLIGHT, this.#mostBytes / 2)
    else if (waited <= SLOW_MS / 2 && this.#wasFull)
      this.#mostBytes = Math.min(MAX_BYTES_IN_FLIGHT, this.#mostBytes * 2)
    else return
    this.#bytesAtChange = this.#bytes
    this.#wasFull = false
  }
}
