/** The stored text of a configuration, of which a stream tells, and the answer to one's own update, which may be there before that. */
import type { Pipeline } from '@penstock/client'
import { textNumber } from './changes.ts'

export class StoredText {
  /** As the stream has told it. */
  #told: Pipeline
  /** Later than what the stream has told. */
  #answered: string | undefined

  constructor(told: Pipeline) {
    this.#told = told
  }

  /** The stream tells of the pipeline as it is here, or goes on telling it. */
  tell(pipeline: Pipeline): void {
    const isSame = textNumber(pipeline) === textNumber(this.#told)
    this.#told = pipeline
    // For good: when the text from before the answer is told once more, somebody has stored it again.
    if (!isSame) this.#answered = undefined
  }

  /** The last that is known. */
  get text(): string {
    return this.#answered ?? this.#told.jsonConfig
  }

  /** Called as an update is sent; what is returned takes its answer, which counts for nothing once the stream has told another text. */
  ask(): (answered: string) => void {
    const count = textNumber(this.#told)
    return (answered) => {
      if (count === textNumber(this.#told)) this.#answered = answered
    }
  }
}
