/** What has been sent and not yet been handled by the other side, as far as this one knows: bounded, so that no peer has to cut it off. */

/** Frames that may be in flight before calls and messages wait. */
export const MAX_FRAMES_IN_FLIGHT = 16_384
/** Bytes that may. */
export const MAX_BYTES_IN_FLIGHT = 32 * 1024 * 1024
/** A Ping asks after so much of either: frames are handled in order, so its Pong shows that all before it have been. */
const ASKED_PART = 1 / 4

/** What had been sent when a Ping was. */
interface SentAtPing {
  readonly sequence: number
  readonly frames: number
  readonly bytes: number
}

export class InFlight {
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

  /** Whether calls and messages have to wait for a Pong. */
  get isFull(): boolean {
    return (
      this.#frames - this.#framesHandled >= MAX_FRAMES_IN_FLIGHT ||
      this.#bytes - this.#bytesHandled >= MAX_BYTES_IN_FLIGHT
    )
  }

  /** Whether it is time for a Ping. */
  get isDue(): boolean {
    return (
      this.#frames - this.#framesAsked >= MAX_FRAMES_IN_FLIGHT * ASKED_PART ||
      this.#bytes - this.#bytesAsked >= MAX_BYTES_IN_FLIGHT * ASKED_PART
    )
  }

  /** A frame of that length has been sent. */
  sent(length: number): void {
    this.#frames++
    this.#bytes += length
  }

  /** A Ping of that sequence is sent now. */
  asked(sequence: number): void {
    this.#framesAsked = this.#frames
    this.#bytesAsked = this.#bytes
    this.#asked.push({ sequence, frames: this.#frames, bytes: this.#bytes })
  }

  /** The Pong of that sequence has come. */
  answered(sequence: number): void {
    for (let first = this.#asked[0]; first !== undefined && first.sequence <= sequence; first = this.#asked[0]) {
      this.#framesHandled = first.frames
      this.#bytesHandled = first.bytes
      this.#asked.shift()
    }
  }
}
