/** Sends packets of rely's streams on, at once or each after those before it. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { type RelyStream, STREAM_PLACES } from './rely-stream.ts'

export class RelyRelease {
  /** Whether packets leave in the order of their numbers. */
  inOrder = false
  /** Packets that wait for their turn, of all streams. */
  held = 0
  /** The stream whose sources are at hand, not all of them copied yet. */
  current: RelyStream | null = null
  private readonly outlet: Outlet
  /** Room for all that one packet may set free, so that the packet is still here while others take its annotations. */
  private readonly ready = new Int32Array(BATCH_CAPACITY + 2 * STREAM_PLACES)
  private count = 0

  constructor(outlet: Outlet) {
    this.outlet = outlet
  }

  /** Gathers a packet to send. */
  push(packet: number): void {
    if (this.count === this.ready.length) this.send()
    this.ready[this.count++] = packet
  }

  /** Sends what was gathered when there is little room left. */
  sendSome(): void {
    if (this.count >= BATCH_CAPACITY) this.send()
  }

  /** Sends what was gathered, whose bytes are others' to change from now on. */
  send(): void {
    this.current?.decoder.keep()
    for (let i = 0; i < this.count; i++) this.outlet.push(this.ready[i])
    this.count = 0
    this.outlet.flush()
  }

  /** Takes a packet of a stream, for `release` to send in its turn; returns one that waited with the same number, which is the caller's then, or -1. */
  add(stream: RelyStream, packet: number, sequence: number): number {
    if (!this.inOrder || ((sequence - stream.next) | 0) < 0) {
      this.push(packet)
      return -1
    }
    const before = stream.unhold(sequence)
    stream.hold(sequence, packet)
    if (before < 0) this.held++
    return before
  }

  /** Gathers what waits for nothing any more, once all that is known has been added. */
  release(stream: RelyStream): void {
    const { decoder } = stream
    while (stream.waiting > 0 && (decoder.knows(stream.next) || ((decoder.firstOpen() - stream.next) | 0) > 0)) {
      this.passNext(stream)
    }
  }

  /** Gathers all that waits, in its order. */
  drain(stream: RelyStream): void {
    while (stream.waiting > 0) this.passNext(stream)
  }

  /** Gathers what waits beyond a leap, in its order but not in its turn. */
  drainAhead(stream: RelyStream): void {
    const end = (stream.aheadEnd + 1) | 0
    for (let sequence = (stream.settled + 1) | 0; ((end - sequence) | 0) > 0; sequence = (sequence + 1) | 0) {
      const packet = stream.unhold(sequence)
      if (packet < 0) continue
      this.held--
      this.push(packet)
    }
    stream.aheadSince = Number.POSITIVE_INFINITY
  }

  private passNext(stream: RelyStream): void {
    const packet = stream.unhold(stream.next)
    stream.next = (stream.next + 1) | 0
    if (packet < 0) return
    this.held--
    this.push(packet)
  }
}
