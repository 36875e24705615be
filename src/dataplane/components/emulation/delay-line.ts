/** Delay lines: each holds the packets of one flow and lets every one out when its time has come. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Notification } from '../../engine/flow.ts'
import type { Histogram } from '../../engine/histogram.ts'
import { held, heldAtEnd, histogram } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import { entryOf, MAX_WAITING_NOTIFICATIONS, notificationOf } from './flows.ts'
import { Heap, Ring, type Waiting } from './waiting.ts'

/** Of the reference page of those whose delay is for single packets. */
export const NEVER_EARLY =
  'No packet leaves early: its time counts from when the kernel took it in, where that is known (udp and udp_local with the LINUX ' +
  'backend, datagrams that come alone), otherwise from when it was read from the kernel.'

/** How long to hold; shared by the lines of one component, may change at any time. */
export interface DelayModel {
  /** ns */
  delay: number
  /** Uniform in ± this many ns; the sum is never below zero. */
  jitter: number
}

export interface DelayLineContext {
  readonly packets: Packets
  readonly clock: RunClock
  timer(fire: () => void): Timer
}

export interface DelayLineOptions {
  /** Draws the jitter; null: the model never has any. */
  readonly random: Random | null
  /** Takes how long after its due time each packet left, ns. */
  readonly lag: Histogram
  /** Whether a packet may overtake one that jitter, or a delay since lowered, holds longer. */
  readonly reorder: boolean
}

/** What every component with delay lines counts. */
export const delayMetrics = {
  held_packets: held('Packets being held.'),
  held_at_end_packets: heldAtEnd(),
  lag: histogram('How long after it was due a packet left.', 'ns'),
}

class DelayLine {
  /** Packets in the line. */
  held = 0
  private readonly model: DelayModel
  private readonly random: Random | null
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly outlet: Outlet
  private readonly lag: Histogram
  private readonly timer: Timer
  private waiting: Waiting
  /** Earliest time for the next packet when order is kept; -Infinity when it need not be. */
  private floor = Number.NEGATIVE_INFINITY
  private ordered: boolean

  constructor(
    context: DelayLineContext,
    model: DelayModel,
    outlet: Outlet,
    { random, lag, reorder }: DelayLineOptions,
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
    const { waiting, model, ordered, random } = this
    const { handles, length } = batch
    if (length === 0) return
    if (model.delay === 0 && model.jitter === 0 && waiting.length === 0) {
      this.outlet.send(batch)
      return
    }
    const { now, waitedFrom } = this.clock
    const { arrival } = this.packets
    for (let i = 0; i < length; i++) {
      // What another component has held does not count from its arrival.
      const since = arrival[handles[i]]
      const start = since > waitedFrom && since < now ? since : now
      let due = start + (model.jitter === 0 || random === null ? model.delay : this.jittered(random))
      if (ordered) {
        if (due < this.floor) due = this.floor
        this.floor = due
      }
      waiting.push(handles[i], due)
    }
    this.held += length
    this.arm()
  }

  private jittered(random: Random): number {
    const { delay, jitter } = this.model
    return Math.max(0, delay + (2 * random.float() - 1) * jitter)
  }

  /** A notification keeps its place among the packets. */
  notify(notification: Notification): void {
    if (this.waiting.length === 0) {
      this.outlet.notify(notification)
      return
    }
    if (this.waiting.length - this.held >= MAX_WAITING_NOTIFICATIONS) return
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

  /** What waits keeps its due times; packets that have overtaken others stay before them. */
  set reorder(allowed: boolean) {
    if (allowed !== this.ordered) return
    const before = this.waiting
    const waiting = allowed ? new Heap() : new Ring()
    let last = Number.NEGATIVE_INFINITY
    for (; before.length > 0; before.shift()) {
      last = before.value
      waiting.push(before.handle, last)
    }
    this.waiting = waiting
    this.ordered = !allowed
    this.floor = allowed ? Number.NEGATIVE_INFINITY : last
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

/** The delay lines of a component, one a flow, under one model. */
export class DelayLines {
  private readonly lines: readonly DelayLine[]

  /** One line for each of `outlets`. */
  constructor(context: DelayLineContext, model: DelayModel, outlets: readonly Outlet[], options: DelayLineOptions) {
    this.lines = outlets.map((outlet) => new DelayLine(context, model, outlet, options))
  }

  /** Packets in all lines. */
  get held(): number {
    let packets = 0
    for (const line of this.lines) packets += line.held
    return packets
  }

  /** Takes every packet of a batch. */
  take(batch: Batch, flow: number): void {
    this.lines[flow].take(batch)
  }

  /** A notification keeps its place among the packets of its flow. */
  notify(notification: Notification, flow: number): void {
    this.lines[flow].notify(notification)
  }

  /** Whether packets may overtake each other; holds for what comes from now on. */
  set reorder(allowed: boolean) {
    for (const line of this.lines) line.reorder = allowed
  }

  /** Gives back every packet; how many there were. */
  stop(): number {
    let packets = 0
    for (const line of this.lines) packets += line.stop()
    return packets
  }
}
