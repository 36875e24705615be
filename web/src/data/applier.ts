/** Carries values to where they apply as fast as they are taken: gathered for a moment, one call at a time, and the last value wins. */

/** Milliseconds for which values are gathered before a call. */
const GATHER = 120

/** What has been set and is not applied yet, by place. */
export type Values = ReadonlyMap<string, unknown>

const NONE: Values = new Map()

export class Applier {
  readonly #apply: (values: Values) => Promise<void>
  readonly #onChange: (waiting: Values) => void
  readonly #onFailure: (error: unknown) => void
  #waiting: Values = NONE
  #underWay: Values = NONE
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  /**
   * `apply` is called with what is to apply, never twice at once; `onChange` with everything that is not applied yet; `onFailure` when a call
   * failed: what had been set is forgotten then.
   */
  constructor(
    apply: (values: Values) => Promise<void>,
    onChange: (waiting: Values) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.#apply = apply
    this.#onChange = onChange
    this.#onFailure = onFailure
  }

  set(values: Values): void {
    // In the order in which they were set last: one place may be within another.
    const others = [...this.#waiting].filter(([place]) => !values.has(place))
    this.#waiting = new Map([...others, ...values])
    this.#tell()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#run(), GATHER)
  }

  /** Applies at once what waits; only failures are told from then on. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    void this.#run()
  }

  async #run(): Promise<void> {
    // What comes while a call is under way is applied after it.
    while (this.#underWay.size === 0 && this.#waiting.size > 0) {
      this.#underWay = this.#waiting
      this.#waiting = NONE
      let failure: { readonly error: unknown } | undefined
      try {
        await this.#apply(this.#underWay)
      } catch (error) {
        failure = { error }
        this.#waiting = NONE
      }
      this.#underWay = NONE
      this.#tell()
      if (failure !== undefined) this.#onFailure(failure.error)
    }
  }

  #tell(): void {
    if (!this.#isClosed) this.#onChange(new Map([...this.#underWay, ...this.#waiting]))
  }
}
