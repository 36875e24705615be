/** How far apart samples of telemetry are, for rates: their timestamps are of the node's clock, which may be set meanwhile. */

/** A sample that comes sooner than any before by more than this, ms, is one of after the node's clock was set forward. */
const SOONER_MS = 1_000

/** How far apart the samples of one run are: by their timestamps, and by when they came where the node's clock was set in between. */
export class SampleSpacing {
  #last: { taken: number; came: number } | undefined
  /** By how much, at most, a timestamp was ahead of when its sample came: what comes late is less so. */
  #lead: number | undefined
  /** How far apart the last two were by their timestamps, milliseconds. */
  #usual = 0

  /**
   * Seconds from the sample before to the one with this timestamp; undefined where that is unknown. `came`: when it came, in milliseconds of a clock that nobody
   * sets, and that goes on while the machine sleeps.
   */
  next(timestamp: string | undefined, came: number): number | undefined {
    const taken = Date.parse(timestamp ?? '')
    if (Number.isNaN(taken)) return undefined
    const last = this.#last
    this.#last = { taken, came }
    if (last === undefined) return undefined
    const passed = taken - last.taken
    const lead = taken - came
    // The first of all may be as old as one interval, so that the second seems sooner by that; and what comes close behind one that was late is on time again.
    const isSooner = this.#lead !== undefined && lead - this.#lead > SOONER_MS && came - last.came >= this.#usual / 2
    const isSet = passed < 0 || isSooner
    if (!isSet) this.#usual = passed
    this.#lead = isSet ? lead : Math.max(lead, this.#lead ?? last.taken - last.came)
    const seconds = (isSet ? came - last.came : passed) / 1000
    return seconds > 0 ? seconds : undefined
  }
}
