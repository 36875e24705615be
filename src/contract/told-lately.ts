/** What the log has told of lately, by whom: strangers may bring the same about as often as they like, and a flood of them is no flood of lines. */

/** The same of one is told at most this often, milliseconds; */
export const TELL_MS = 60_000
/** and of so many in that time. */
const MAX_TOLD = 100

export class ToldLately {
  readonly #now: () => number
  /** Whom it was told of → when, milliseconds, and how often it has happened since. */
  readonly #told = new Map<string, { at: number; untold: number }>()

  /** `now`: milliseconds of a clock that is never set. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** It has happened, by `who`. How often since it was told of last, this time included; undefined: it is not to be told now. */
  happened(who: string): number | undefined {
    const now = this.#now()
    const told = this.#told.get(who)
    if (told === undefined) {
      if (this.#told.size >= MAX_TOLD) this.#forget(now)
      if (this.#told.size >= MAX_TOLD) return undefined
    } else if (now - told.at < TELL_MS) {
      told.untold++
      return undefined
    }
    this.#told.set(who, { at: now, untold: 0 })
    return 1 + (told?.untold ?? 0)
  }

  #forget(now: number): void {
    for (const [who, { at, untold }] of this.#told) {
      if (now - at > 2 * TELL_MS || (untold === 0 && now - at > TELL_MS)) this.#told.delete(who)
    }
  }
}
