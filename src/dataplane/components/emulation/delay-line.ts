/** A delay line: holds the packets of one flow and lets each out when its time has come. */
import type { Batch } from '../../engine/batch.ts'
import type { Clock } from '../../engine/clock.ts'
import type { Notification } from '../../engine/component.ts'
import type { Histogram } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import { entryOf, notificationOf } from './flows.ts'
import { Heap, Ring, type Waiting } from './waiting.ts'

/** How long to hold; shared by the lines of one component, may change at any time. */
export interface DelayModel {
  /** ns */
  delay: number
  /** Uniform in ± this many ns; the sum is never below zero. */
  jitter: number
}

export interface DelayLineContext {
  readonly packets: Packets
  readonly clock: Clock
  timer(fire: () => void): Timer
}

export class DelayLine {
  /** Packets in the line. */
  held = 0
  private readonly model: DelayModel
  private readonly random: Random
  private readonly packets: Packets
  private readonly clock: Clock
  private readonly outlet: Outlet
  private readonly lag: Histogram
  private readonly timer: Timer
  private readonly waiting: Waiting
  /** Earliest time for the next packet when order is kept; -Infinity when it need not be. */
  private floor = Number.NEGATIVE_INFINITY
  private readonly ordered: boolean

  /** `lag` records how long after its due time each packet left, ns. */
  constructor(
    context: DelayLineContext,
    model: DelayModel,
    { random, outlet, lag, reorder }: { random: Random; outlet: Outlet; lag: Histogram; reorder: boolean },
  ) {
    this.packets = context.packets
    this.clock = context.clock
    this.model = model
    this.random = random
    this.outlet = outlet
    this.lag = lag
    this.ordered = !reorder
    this.waiting = reorder ? new Heap() : new Ring()
    this.timer = context.timer(() => this.release())
  }

  /** Takes every packet of a batch. */
  take(batch: Batch): void {
    const { waiting, model, ordered } = this
    const { handles, length } = batch
    if (length === 0) return
    if (model.delay === 0 && model.jitter === 0 && waiting.length === 0) {
      this.outlet.send(batch)
      return
    }
    const centre = this.clock.now + model.delay
    for (let i = 0; i < length; i++) {
      let due = model.jitter === 0 ? centre : this.jittered()
      if (ordered) {
        if (due < this.floor) due = this.floor
        this.floor = due
      }
      waiting.push(handles[i], due)
    }
    this.held += length
    this.arm()
  }

  private jittered(): number {
    const { delay, jitter } = this.model
    return this.clock.now + Math.max(0, delay + (2 * this.random.float() - 1) * jitter)
  }

  /** A notification keeps its place among the packets. */
  notify(notification: Notification): void {
    if (this.waiting.length === 0) {
      this.outlet.notify(notification)
      return
    }
    const due = Math.max(this.clock.now + this.model.delay, this.floor)
    if (this.ordered) this.floor = due
    this.waiting.push(entryOf(notification), due)
    this.arm()
  }

  private arm(): void {
    const due = this.waiting.value
    if (!this.timer.armed || this.timer.due > due) this.timer.at(due)
  }

  /** Lets out what is due. */
  private release(): void {
    const { waiting, outlet, lag } = this
    const { now } = this.clock
    let due = -1
    let times = 0
    while (waiting.length > 0 && waiting.value <= now) {
      const { handle, value } = waiting
      waiting.shift()
      if (handle < 0) {
        outlet.notify(notificationOf(handle))
        continue
      }
      if (value !== due) {
        if (times > 0) lag.recordMany(now - due, times)
        due = value
        times = 0
      }
      times++
      this.held--
      outlet.push(handle)
    }
    if (times > 0) lag.recordMany(now - due, times)
    outlet.flush()
    if (waiting.length > 0) this.timer.at(waiting.value)
  }

  /** Gives back every packet; how many there were. */
  stop(): number {
    const { waiting, held } = this
    this.timer.cancel()
    for (; waiting.length > 0; waiting.shift()) if (waiting.handle >= 0) this.packets.release(waiting.handle)
    this.held = 0
    return held
  }
}
