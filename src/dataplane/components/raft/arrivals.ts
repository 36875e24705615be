/** Which carrier sequences have come on a carrier, and the block of a report that says so. */
import { BLOCK_HEADER_BYTES, blockBytes } from './packet.ts'
import { ahead, following } from './serial.ts'

/** Sequences before the highest that a report can tell of. */
const MAX_REPORTED = 2048
const WORDS = MAX_REPORTED / 32
/** A block tells of what came since this many reports, so that one that is lost costs nothing. */
const REPEATED_REPORTS = 4
/** Packets with sequences out of reach after which the carrier counts from there. */
const TO_BEGIN_ANEW = 8

export class Arrivals {
  /** Packets that came since the last report. */
  unreported = 0
  /** Reports that still have to tell of what has come. */
  due = 0
  private started = false
  private highest = 0
  private highestAt = 0
  /** Bit n of the ring: whether the sequence with n as its last bits has come. */
  private readonly came = new Uint32Array(WORDS)
  /** The highest at each of the last reports, the oldest first. */
  private readonly told = new Int32Array(REPEATED_REPORTS)
  private strangers = 0

  /** Takes the arrival of `number` at `now`. False: it had come before. Of one out of reach nobody knows, and it is not told of: what it brought may be new. */
  take(number: number, now: number): boolean {
    if (!this.started) this.begin(number, now)
    let gap = ahead(number, this.highest)
    if (gap >= MAX_REPORTED || gap <= -MAX_REPORTED) {
      if (++this.strangers < TO_BEGIN_ANEW) return true
      this.begin(number, now)
      gap = 0
    }
    this.strangers = 0
    if (gap > 0) {
      for (let i = this.highest + 1; ahead(number, i) >= 0; i++) this.came[(i >>> 5) & (WORDS - 1)] &= ~(1 << (i & 31))
      this.highest = number
      this.highestAt = now
    } else if (this.has(number)) return false
    this.came[(number >>> 5) & (WORDS - 1)] |= 1 << (number & 31)
    this.unreported++
    this.due = REPEATED_REPORTS
    return true
  }

  /** Bytes of the block for a report, `most` at most; 0: there is nothing to say. */
  blockBytes(most: number): number {
    return this.due === 0 ? 0 : blockBytes(this.bits(most))
  }

  /** Writes the block and takes it as told. */
  write(view: DataView, at: number, carrier: number, now: number, most: number): void {
    const bits = this.bits(most)
    view.setInt32(at, carrier)
    view.setInt32(at + 4, this.highest)
    view.setUint32(at + 8, Math.min(Math.round((now - this.highestAt) / 1000), 0xffffffff))
    view.setInt32(at + 12, bits << 16)
    for (let word = 0; word < (bits + 31) >>> 5; word++) {
      let value = 0
      for (let bit = 0; bit < 32 && word * 32 + bit < bits; bit++) {
        if (this.has((this.highest - 1 - word * 32 - bit) | 0)) value |= 1 << (31 - bit)
      }
      view.setInt32(at + BLOCK_HEADER_BYTES + word * 4, value)
    }
    this.told.copyWithin(0, 1)
    this.told[REPEATED_REPORTS - 1] = this.highest
    this.unreported = 0
    this.due--
  }

  reset(): void {
    this.started = false
    this.unreported = 0
    this.due = 0
  }

  private begin(number: number, now: number): void {
    this.started = true
    this.came.fill(0)
    this.highest = number
    this.highestAt = now
    this.told.fill((number - 1) | 0)
    this.strangers = 0
  }

  private has(number: number): boolean {
    return (this.came[(number >>> 5) & (WORDS - 1)] & (1 << (number & 31))) !== 0
  }

  private bits(most: number): number {
    const room = ((most - BLOCK_HEADER_BYTES) >> 2) * 32
    const since = Math.max(ahead(this.highest, following(this.told[0])), 0)
    return Math.min(since, room, MAX_REPORTED - 1)
  }
}
