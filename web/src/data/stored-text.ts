/** The stored text of a configuration, of which a stream tells, and the answer to one's own update, which may be there before that. */

export class StoredText {
  #told: string
  /** Later than what the stream has told. */
  #answered: string | undefined
  /** Texts that the stream has told so far. */
  #count = 0

  constructor(told: string) {
    this.#told = told
  }

  /** The stream tells this text, or goes on telling it. */
  tell(text: string): void {
    if (text === this.#told) return
    this.#told = text
    this.#count++
    // For good: when the text from before the answer is told once more, somebody has stored it again.
    this.#answered = undefined
  }

  /** The last that is known. */
  get text(): string {
    return this.#answered ?? this.#told
  }

  /** Called as an update is sent; what is returned takes its answer, which counts for nothing once the stream has told another text. */
  ask(): (answered: string) => void {
    const count = this.#count
    return (answered) => {
      if (count === this.#count) this.#answered = answered
    }
  }
}
