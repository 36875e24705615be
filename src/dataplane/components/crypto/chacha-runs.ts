/** The runs of senders whose packets chacha20_decrypt decrypts: a derived key per salt, and who gives way when there are too many. */
import type { RunClock } from '../../engine/clock.ts'
import { native } from '../../native/native.ts'
import { SALT_BYTES } from './suites.ts'
import { Trials } from './trials.ts'

/** Runs with a place of their own, and places that newcomers beyond them share. */
export const MAX_KEPT_RUNS = 64
/** Packets after which a newcomer takes the place of the run silent longest. */
export const MIN_PACKETS_TO_STAY = 8

/** A run of a sender, known by its salt. */
class Run {
  readonly salt = new Uint8Array(SALT_BYTES)
  high = 0
  low = 0
  /** The addon's handle, -1 while nobody is here. */
  chacha = -1
  /** Packets that came since `first`, of a newcomer. */
  packets = 0
  /** When the first of those came, and when the last of all, by the count of `find`. */
  first = 0
  last = 0
}

export class ChachaRuns {
  private readonly settled = Array.from({ length: MAX_KEPT_RUNS }, () => new Run())
  private readonly newcomers = Array.from({ length: MAX_KEPT_RUNS }, () => new Run())
  private readonly trials: Trials
  private readonly open: (salt: Uint8Array) => number
  /** The last settled run found: most often it is the next one too. */
  private latest = this.settled[0]
  private heard = 0
  /** Runs whose keys are kept; once they are closed, how many were. */
  known = 0

  /** `open` derives the key for a salt and gives the addon's handle, which is closed here. */
  constructor(clock: RunClock, open: (salt: Uint8Array) => number) {
    this.trials = new Trials(clock)
    this.open = open
  }

  /** The addon's handle for `packets` packets with the salt (`high`, `low`); -1 when too many unknown salts have come. */
  find(high: number, low: number, packets: number): number {
    const { latest } = this
    this.heard++
    const isLatest = latest.high === high && latest.low === low && latest.chacha >= 0
    let run = isLatest ? latest : among(this.settled, high, low)
    if (run) this.latest = run
    else run = this.newcomer(high, low, packets)
    if (!run) return -1
    run.last = this.heard
    return run.chacha
  }

  /** Makes all keys anew, of the configuration that `open` has now. */
  renew(): void {
    for (const runs of [this.settled, this.newcomers]) {
      for (const run of runs) {
        if (run.chacha < 0) continue
        native.close(run.chacha)
        run.chacha = this.open(run.salt)
      }
    }
  }

  /** Closes every key. */
  close(): void {
    for (const run of this.settled) leave(run)
    for (const run of this.newcomers) leave(run)
  }

  /** One that has no place of its own yet, or gets one now. */
  private newcomer(high: number, low: number, packets: number): Run | null {
    const known = among(this.newcomers, high, low)
    if (!known && !this.trials.take()) return null
    const free = silentLongest(this.settled)
    const run = known ?? (free.chacha < 0 ? free : silentLongest(this.newcomers))
    if (!known) this.enter(run, high, low)
    if (run === free) return run
    run.packets += packets
    if (run.packets < MIN_PACKETS_TO_STAY) return run
    // Who was heard all the while keeps his place: one of too many senders must not cost all the others theirs in turn.
    const { first } = run
    run.packets = 0
    run.first = this.heard
    if (free.last >= first) return run
    leave(free)
    this.known--
    this.latest = run
    this.settled[this.settled.indexOf(free)] = run
    this.newcomers[this.newcomers.indexOf(run)] = free
    return run
  }

  private enter(run: Run, high: number, low: number): void {
    if (run.chacha < 0) this.known++
    leave(run)
    const view = new DataView(run.salt.buffer)
    view.setInt32(0, high)
    view.setInt32(4, low)
    run.high = high
    run.low = low
    run.packets = 0
    run.first = this.heard
    run.chacha = this.open(run.salt)
  }
}

function leave(run: Run): void {
  if (run.chacha >= 0) native.close(run.chacha)
  run.chacha = -1
  run.last = 0
}

function among(runs: readonly Run[], high: number, low: number): Run | null {
  for (const run of runs) if (run.high === high && run.low === low && run.chacha >= 0) return run
  return null
}

/** A place where nobody is counts as silent from the beginning. */
function silentLongest(runs: readonly Run[]): Run {
  let silent = runs[0]
  for (const run of runs) if (run.last < silent.last) silent = run
  return silent
}
