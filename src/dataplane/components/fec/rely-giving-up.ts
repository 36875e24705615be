/** Gives up what rely's streams have waited for too long, or with too many packets behind it. */
import type { RunClock } from '../../engine/clock.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Timer } from '../../engine/timers.ts'
import type { RelyRelease } from './rely-release.ts'
import type { RelyStream } from './rely-stream.ts'

export class RelyGivingUp {
  /** How long a source is waited for after a later one came, ns. */
  timeout = 0
  private readonly streams: readonly RelyStream[]
  private readonly release: RelyRelease
  private readonly clock: RunClock
  private readonly timer: Timer
  private readonly unrecovered: Counter
  /** Packets that may wait for their turn: they are slots that the run's other components go without. */
  private readonly mostHeld: number

  constructor(
    streams: readonly RelyStream[],
    release: RelyRelease,
    clock: RunClock,
    timer: (fire: () => void) => Timer,
    unrecovered: Counter,
    mostHeld: number,
  ) {
    this.streams = streams
    this.release = release
    this.clock = clock
    this.timer = timer(() => this.giveUpOverdue())
    this.unrecovered = unrecovered
    this.mostHeld = mostHeld
  }

  /** Gathers what a stream waits for no more, and gives up what too many packets wait for. */
  releaseDue(stream: RelyStream): void {
    this.release.release(stream)
    this.passOverdue(stream)
    if (this.release.held > this.mostHeld) this.makeRoom()
  }

  /** What came beyond a leap waits no longer than others do, though what it leaves out is not given up before the leap is followed. */
  private passOverdue(stream: RelyStream): void {
    const { aheadSince } = stream
    if (aheadSince !== Number.POSITIVE_INFINITY && aheadSince + this.timeout <= this.clock.now) {
      this.release.drainAhead(stream)
    }
  }

  /** Gives up what the stream with the most packets waits for, until an eighth of what may wait is free. */
  private makeRoom(): void {
    const goal = this.mostHeld - (this.mostHeld >> 3)
    while (this.release.held > goal) {
      let most: RelyStream | null = null
      for (const stream of this.streams) if (!most || stream.waiting > most.waiting) most = stream
      if (!most || most.decoder.missing === 0) return
      this.giveUp(most, (most.decoder.firstOpen() + 1) | 0)
    }
  }

  private giveUp(stream: RelyStream, below: number): void {
    const { decoder } = stream
    const { givenUp } = decoder
    decoder.giveUpBelow(below)
    this.unrecovered.add(decoder.givenUp - givenUp)
    this.release.release(stream)
  }

  /** Gives up what is overdue and sends what waited for it. The timer is armed once in a while, not for each gap: it looks what is overdue by now. */
  giveUpOverdue(): void {
    const { timeout } = this
    for (const stream of this.streams) {
      while (stream.active && stream.missingSince + timeout <= this.clock.now) {
        this.giveUp(stream, (stream.decoder.firstOpen() + 1) | 0)
      }
      if (stream.active) this.passOverdue(stream)
    }
    this.release.send()
    this.arm()
  }

  /** Sees to it that what is missing is given up in time. */
  arm(): void {
    if (this.timer.armed) return
    let since = Number.POSITIVE_INFINITY
    for (const stream of this.streams) {
      if (stream.active) since = Math.min(since, stream.missingSince, stream.aheadSince)
    }
    if (since !== Number.POSITIVE_INFINITY) this.timer.at(since + this.timeout)
  }

  cancel(): void {
    this.timer.cancel()
  }
}
