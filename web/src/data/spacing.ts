/** How far apart the samples are that come to this page, for what passes per second. */
import { SampleSpacing, type TelemetrySample } from '@penstock/client'

/** The page's clocks disagree where their steps differ by more than this, milliseconds. */
const DISAGREEMENT = 1_000

/**
 * The samples of one run. A page has no clock that nobody sets and that goes on while the machine sleeps: performance.now() stands still then in most
 * browsers, and the system's time may be set. Where they disagree, how far apart two samples are is not known.
 */
export class Spacing {
  readonly #steady: () => number
  readonly #system: () => number
  #samples = new SampleSpacing()
  /** By how much the system's time was ahead of the steady clock. */
  #lead: number | undefined

  /** Clocks in milliseconds: one that nobody sets, and the system's. */
  constructor(steady = () => performance.now(), system = () => Date.now()) {
    this.#steady = steady
    this.#system = system
  }

  /** Seconds from the sample before to this one, which has just come; undefined where that is unknown. */
  next({ timestamp }: TelemetrySample): number | undefined {
    const came = this.#steady()
    const lead = this.#system() - came
    if (this.#lead !== undefined && Math.abs(lead - this.#lead) > DISAGREEMENT) this.#samples = new SampleSpacing()
    this.#lead = lead
    return this.#samples.next(timestamp, came)
  }
}
