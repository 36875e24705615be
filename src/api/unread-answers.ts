/** The answers of one listener that wait for their clients to read them: what a node keeps for those that are slow has an end, however many there are. */
import { ServiceError } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'

/** Length of an answer, bytes or characters, beyond which it is kept until it is read: shorter ones the transport takes at once. */
export const LONG_ANSWER = 16 * 1024
/** Bytes of all that wait, beyond which no more long answers are given to those who ask for something. */
export const MAX_ALL_UNREAD_BYTES = 256 * 1024 * 1024

export class UnreadAnswers {
  #bytes = 0

  /** `bytes` more wait; negative: fewer. */
  hold(bytes: number): void {
    this.#bytes += bytes
  }

  get areTooMany(): boolean {
    return this.#bytes > MAX_ALL_UNREAD_BYTES
  }

  /**
   * Throws RESOURCE_EXHAUSTED where too many wait for another of `length`, bytes or characters, to be given. Of an operation that changes something the answer is given all the
   * same: it has happened.
   */
  admit(operation: Operation, length: number): void {
    if (length <= LONG_ANSWER || !this.areTooMany || !operation.http.some(({ verb }) => verb === 'GET')) return
    throw new ServiceError(
      'RESOURCE_EXHAUSTED',
      `answers of more than ${MAX_ALL_UNREAD_BYTES / 1024 / 1024} MiB wait for those who asked for them, who read them slowly or not at all: try again later`,
    )
  }
}
