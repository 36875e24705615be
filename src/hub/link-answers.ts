/** Answers that come over a link in many pieces, put together in memory that is bounded for each link. */
import { Assembly } from '../link/assembly.ts'

/** Longest answer to a call over a link, bytes. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** An answer up to this long is put together at once; of longer ones a link brings one at a time. */
export const MAX_SMALL_ANSWER_BYTES = 64 * 1024

/** Whose turn it is, on one link, to bring an answer of any length; the others wait, and their senders with them. */
export class AnswerTurns {
  #current: Answer | undefined
  readonly #waiting = new Set<Answer>()

  /** Whether it is this answer's turn; if not, it is told when it is. */
  take(answer: Answer): boolean {
    this.#current ??= answer
    if (this.#current === answer) return true
    this.#waiting.add(answer)
    return false
  }

  /** The answer is over, whatever came of it. */
  release(answer: Answer): void {
    this.#waiting.delete(answer)
    if (this.#current !== answer) return
    this.#current = undefined
    for (const next of this.#waiting) {
      this.#waiting.delete(next)
      this.#current = next
      next.proceed()
      return
    }
  }
}

/**
 * One answer: the bytes of all messages of a call, one after the other. What comes while another has the turn is kept, at most the credit
 * that its sender has left, which the link accounts for until the stream is resumed.
 */
export class Answer {
  readonly #turns: AnswerTurns
  readonly #resume: () => void
  readonly #assembly = new Assembly(() => true)
  #length = 0
  #kept: Uint8Array[] = []
  /** No message has come, or the last one is not complete. */
  #isOpen = true

  /** `resume` lets the sender go on. */
  constructor(turns: AnswerTurns, resume: () => void) {
    this.#turns = turns
    this.#resume = resume
  }

  /** Bytes that came so far. */
  get length(): number {
    return this.#length
  }

  /** Takes a piece; false: the sender should wait. */
  take(bytes: Uint8Array, more: boolean): boolean {
    this.#isOpen = more
    this.#length += bytes.length
    if (this.#length > MAX_SMALL_ANSWER_BYTES && !this.#turns.take(this)) {
      // Copied: a piece is a view of its whole frame.
      this.#kept.push(new Uint8Array(bytes))
      return false
    }
    this.#assembly.add(bytes, true)
    return true
  }

  /** Its turn has come. */
  proceed(): void {
    this.#takeKept()
    this.#resume()
  }

  /** All of it, once the call has ended; undefined when nothing came, or not the whole of it. */
  finish(): Uint8Array | undefined {
    if (this.#isOpen) return undefined
    this.#takeKept()
    return this.#assembly.add(new Uint8Array(0), false)
  }

  /** Nothing more is wanted of it; always called, and after `finish`. */
  release(): void {
    this.#kept = []
    this.#assembly.drop()
    this.#turns.release(this)
  }

  #takeKept(): void {
    for (const bytes of this.#kept) this.#assembly.add(bytes, true)
    this.#kept = []
  }
}
