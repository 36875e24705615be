/**
 * How long the rounds of a fuzz test last. PENSTOCK_TEST_SEED repeats one; PENSTOCK_TEST_LONG, seconds shared by all rounds, or
 * PENSTOCK_TEST_INPUTS, inputs of each, make long ones instead of the short ones of the suite; with both, what comes first ends it.
 */
import { randomInt } from 'node:crypto'

export const SEED = Number(process.env.PENSTOCK_TEST_SEED ?? randomInt(2 ** 31))
const SECONDS = Number(process.env.PENSTOCK_TEST_LONG ?? 0)
const INPUTS = Number(process.env.PENSTOCK_TEST_INPUTS ?? 0)
const SETUP_MS = 60_000
/** A slow decoder on a busy machine: 1,000 inputs a second. */
const MS_PER_INPUT = 1

/** One of `shares` rounds that divide the seconds between them, with so many inputs when it is a short one. */
export class FuzzRound {
  readonly inputs: number
  private readonly milliseconds: number

  constructor(shares: number, short: number) {
    const isShort = SECONDS === 0 && INPUTS === 0
    this.inputs = isShort ? short : INPUTS || Number.POSITIVE_INFINITY
    this.milliseconds = SECONDS === 0 ? Number.POSITIVE_INFINITY : (SECONDS * 1000) / shares
  }

  /** What the test runner may wait, ms. */
  get timeout(): number {
    const last = Number.isFinite(this.milliseconds) ? this.milliseconds * 2 : this.inputs * MS_PER_INPUT
    return SETUP_MS + last
  }

  /** The time when a round that begins now is over, of performance.now(). */
  get end(): number {
    return performance.now() + this.milliseconds
  }

  /** Writes what a long round came to. */
  report(what: string): void {
    if (SECONDS > 0 || INPUTS > 0) console.log(what)
  }
}
