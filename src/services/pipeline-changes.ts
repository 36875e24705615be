/** What those who follow are still to be told of one pipeline: every state of its runs, in order and once, whatever operation is under way. */
import type { Pipeline } from '../contract/types.ts'

export interface PipelineChangesOptions {
  /** The pipeline as callers see it now. */
  readonly view: () => Pipeline
  /** An operation is about to be answered: nothing is told before that. */
  readonly isHeld: () => boolean
  readonly tell: (pipeline: Pipeline) => void
}

export class PipelineChanges {
  readonly #options: PipelineChangesOptions
  /** As the pipeline was in each state of a run that is not told yet, the last one as it is. */
  #untold: Pipeline[] = []
  #isDue = false

  constructor(options: PipelineChangesOptions) {
    this.#options = options
  }

  /** Something that a caller can see has changed. */
  note(): void {
    const now = this.#options.view()
    const last = this.#untold.at(-1)
    if (last !== undefined && isSameState(last, now)) this.#untold.pop()
    this.#untold.push(now)
    if (this.#isDue) return
    this.#isDue = true
    // Changes of one turn are told together.
    setImmediate(() => {
      this.#isDue = false
      this.#tell()
    })
  }

  /** An operation is over: its answer is on the way. */
  answered(): void {
    this.#tell()
  }

  #tell(): void {
    if (this.#options.isHeld()) return
    const untold = this.#untold
    this.#untold = []
    for (const pipeline of untold) this.#options.tell(pipeline)
  }
}

/** Whether `later` shows the run in the state that `earlier` shows. */
function isSameState(earlier: Pipeline, later: Pipeline): boolean {
  return earlier.currentRun?.id === later.currentRun?.id && earlier.currentRun?.state === later.currentRun?.state
}
