/** Probes of the other end that wait for their answer, and carriers of which it is in doubt who is there. */
import type { Carrier } from './carrier.ts'
import type { Control } from './control.ts'

/** Probes of one breath that are answered. */
const MAX_ANSWERS = 64
/** A carrier is asked this often at most who is there, ns. */
const DOUBT_NS = 10e6

export class Answers {
  /** Token, session of the prober, index of the carrier. */
  private readonly probes = new Int32Array(MAX_ANSWERS * 3)
  private count = 0
  private readonly doubtedAt: Float64Array
  private readonly doubts: Uint8Array

  /** For this many carriers. */
  constructor(carriers: number) {
    this.doubtedAt = new Float64Array(carriers).fill(Number.NEGATIVE_INFINITY)
    this.doubts = new Uint8Array(carriers)
  }

  /** Whether a probe waits for its answer. */
  get waits(): boolean {
    return this.count > 0
  }

  /** A probe with `token` of the session `prober` wants its answer; false: too many do. */
  owe(token: number, prober: number, carrier: Carrier): boolean {
    if (this.count === MAX_ANSWERS) return false
    const at = 3 * this.count++
    this.probes[at] = token
    this.probes[at + 1] = prober
    this.probes[at + 2] = carrier.index
    return true
  }

  /** Who is at the other end of a carrier is in doubt; false: that was asked just now. */
  doubt(carrier: Carrier, now: number): boolean {
    if (now - this.doubtedAt[carrier.index] < DOUBT_NS) return false
    this.doubtedAt[carrier.index] = now
    this.doubts[carrier.index] = 1
    return true
  }

  /** Answers what is owed, and probes where there is doubt. Only from a timer. */
  give(control: Control, carriers: readonly Carrier[]): void {
    const { probes, doubts } = this
    for (let at = 0; at < 3 * this.count; at += 3) {
      control.answer(probes[at], probes[at + 1], carriers[probes[at + 2]])
    }
    this.count = 0
    for (let i = 0; i < doubts.length; i++) {
      if (doubts[i] === 1) control.probe(carriers[i])
      doubts[i] = 0
    }
  }
}
