/** The pieces of one stream that were sent and may be needed again, by sequence: a copy of each symbol until it is reported or too old. */

import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { ahead, following } from './serial.ts'

/** Pieces of a stream that are kept. */
const MAX_SENT_PIECES = 16_384
const MASK = MAX_SENT_PIECES - 1

export class SentPieces {
  /** The sequence of the next piece. */
  next = 0
  /** Every piece before it is reported or too old. */
  base = 0
  /** Copies kept. */
  held = 0
  /** One more than the copy; 0: there is none. */
  private readonly copies = new Int32Array(MAX_SENT_PIECES)
  private readonly times = new Float64Array(MAX_SENT_PIECES)
  /** How often a piece was lost; one that goes on several carriers may be lost on each. */
  private readonly losses = new Uint8ClampedArray(MAX_SENT_PIECES)
  /** Copies of a piece that were sent and are neither reported nor lost. */
  private readonly flying = new Uint16Array(MAX_SENT_PIECES)
  /** 1: repairs may cover the piece. */
  private readonly covered = new Uint8Array(MAX_SENT_PIECES)
  private readonly packets: Packets
  private readonly ended: Counter

  /** `ended` counts copies that are given back. */
  constructor(packets: Packets, ended: Counter) {
    this.packets = packets
    this.ended = ended
  }

  /** Takes a copy (or -1) of the next piece, which came in at `time`; the copy is its own from now on. Returns the sequence. */
  add(copy: number, time: number): number {
    if (ahead(this.next, this.base) >= MAX_SENT_PIECES) this.drop(this.base)
    const sequence = this.next
    this.copies[sequence & MASK] = copy + 1
    this.times[sequence & MASK] = time
    this.losses[sequence & MASK] = 0
    this.flying[sequence & MASK] = 0
    this.covered[sequence & MASK] = 0
    if (copy >= 0) this.held++
    this.next = following(sequence)
    this.pass()
    return sequence
  }

  /** The copy of a piece, -1 when there is none. */
  copyOf(sequence: number): number {
    return ahead(sequence, this.base) >= 0 && ahead(this.next, sequence) > 0 ? this.copies[sequence & MASK] - 1 : -1
  }

  /** When the piece, which is kept, came in, ns. */
  timeOf(sequence: number): number {
    return this.times[sequence & MASK]
  }

  /** Repairs may cover the piece, which is kept. */
  cover(sequence: number): void {
    this.covered[sequence & MASK] = 1
  }

  /** Whether repairs may cover the piece, which is kept. */
  isCovered(sequence: number): boolean {
    return this.covered[sequence & MASK] === 1
  }

  /** A copy of the piece was sent. */
  send(sequence: number): void {
    if (this.copyOf(sequence) >= 0) this.flying[sequence & MASK]++
  }

  /** A copy of the piece, which is kept, was lost. */
  lose(sequence: number): void {
    this.losses[sequence & MASK]++
    if (this.flying[sequence & MASK] > 0) this.flying[sequence & MASK]--
  }

  /** How many copies of the piece, which is kept, may still come. */
  flyingOf(sequence: number): number {
    return this.flying[sequence & MASK]
  }

  /** How often the piece, which is kept, was lost. */
  lossesOf(sequence: number): number {
    return this.losses[sequence & MASK]
  }

  /** The piece is not needed any more. */
  drop(sequence: number): void {
    const copy = this.copyOf(sequence)
    if (copy < 0) return
    this.packets.release(copy)
    this.ended.add(1)
    this.copies[sequence & MASK] = 0
    this.held--
    if (sequence === this.base) this.pass()
  }

  /** When the oldest piece that is kept came in, ns; Infinity: none is. */
  get oldest(): number {
    return this.base === this.next ? Number.POSITIVE_INFINITY : this.times[this.base & MASK]
  }

  /** Drops every piece that came in `life` ns ago or earlier. */
  expire(life: number, now: number): void {
    while (this.base !== this.next && this.times[this.base & MASK] + life <= now) this.drop(this.base)
  }

  /** Gives every copy back. */
  clear(): void {
    for (let i = this.base; i !== this.next; i = following(i)) {
      const copy = this.copies[i & MASK] - 1
      if (copy >= 0) this.packets.release(copy)
      this.copies[i & MASK] = 0
    }
    this.base = this.next
    this.held = 0
  }

  private pass(): void {
    let { base } = this
    while (base !== this.next && this.copies[base & MASK] === 0) base = following(base)
    this.base = base
  }
}
