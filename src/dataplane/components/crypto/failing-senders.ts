/** Senders of which nothing opens, by their salts: what the run log is told of them, however many they are. */
import type { RunClock } from '../../engine/clock.ts'
import { NS_PER_S } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import { REMOTE_BYTES } from '../../native/native.ts'

/** Salts that are remembered; the one silent longest gives way. */
const MAX_FAILING_SALTS = 64
/** Failed trials of one salt after which it is worth a word that nothing of it opens. */
const TELLING = 3
/** How long the log says nothing more once it has told of a sender. */
const TELL_NEXT_NS = 60 * NS_PER_S

/** A salt of which no packet was authentic when it was tried. */
class Failure {
  high = 0
  low = 0
  /** Trials that failed, 0 while nothing is noted here. */
  trials = 0
  used = 0
  /** The log has yet to tell of it. */
  waits = false
  /** Who sent the packet that made it worth a word. */
  readonly remote = new Int32Array(REMOTE_BYTES / 4)
}

/** Told of the sender at `remote`, and how many others have failed since the last time, or wait to be told of. */
export type TellFailing = (remote: Int32Array, others: number) => void

export class FailingSenders {
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly tell: TellFailing
  private readonly failures = Array.from({ length: MAX_FAILING_SALTS }, () => new Failure())
  private heard = 0
  private waiting = 0
  /** Of those that waited: given way to others, and not told of. */
  private lost = 0
  private nextTelling = 0

  constructor(packets: Packets, clock: RunClock, tell: TellFailing) {
    this.packets = packets
    this.clock = clock
    this.tell = tell
  }

  /** Whether a trial of this salt has failed lately. */
  has(high: number, low: number): boolean {
    const failure = this.find(high, low)
    if (failure === null) return false
    failure.used = ++this.heard
    return true
  }

  /** A trial has failed. A salt that fails time and again is a sender with another key, and not what a network does to packets now and then. */
  add(packet: number, high: number, low: number): void {
    const failure = this.find(high, low) ?? this.take(high, low)
    failure.used = ++this.heard
    if (++failure.trials === TELLING) {
      failure.waits = true
      this.waiting++
      this.packets.readRemote(packet, failure.remote)
    }
    if (failure.trials >= TELLING) this.tellDue()
  }

  /** A packet of this salt was opened after all. */
  remove(high: number, low: number): void {
    const failure = this.find(high, low)
    if (failure === null) return
    failure.trials = failure.used = 0
    if (failure.waits) this.waiting--
    failure.waits = false
  }

  /** Tells of one that waits, if it is time: the one of which most has failed, which junk of many senders is not. */
  tellDue(): void {
    const { now } = this.clock
    if (this.waiting === 0 || now < this.nextTelling) return
    let worst: Failure | null = null
    for (const failure of this.failures) {
      if (failure.waits && (worst === null || failure.trials > worst.trials)) worst = failure
    }
    if (worst === null) return
    this.nextTelling = now + TELL_NEXT_NS
    const others = this.waiting - 1 + this.lost
    // Counted among the others they have been told of; who goes on is told of by itself later.
    for (const failure of this.failures) {
      if (!failure.waits) continue
      failure.waits = false
      if (failure !== worst) failure.trials = TELLING - 1
    }
    this.waiting = this.lost = 0
    this.tell(worst.remote, others)
  }

  private find(high: number, low: number): Failure | null {
    for (const failure of this.failures) {
      if (failure.trials > 0 && failure.high === high && failure.low === low) return failure
    }
    return null
  }

  /** The place of the one silent longest. */
  private take(high: number, low: number): Failure {
    let silent = this.failures[0]
    for (const failure of this.failures) if (failure.used < silent.used) silent = failure
    if (silent.waits) {
      this.waiting--
      this.lost++
    }
    silent.high = high
    silent.low = low
    silent.trials = 0
    silent.waits = false
    return silent
  }
}
