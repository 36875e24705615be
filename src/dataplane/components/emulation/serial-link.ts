/** A link of limited bandwidth: sends one packet after the other, each taking the time its bytes need; the others wait. */
import type { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { Notification } from '../../engine/flow.ts'
import { type Counter, held, heldAtEnd, queueDrop } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { entryOf, MAX_WAITING_NOTIFICATIONS, notificationOf } from './flows.ts'
import { Ring } from './waiting.ts'

export interface SerialLinkContext {
  readonly packets: Packets
  readonly clock: RunClock
  timer(fire: () => void): Timer
}

/** ns that a byte takes at `mbit` megabit per second. */
const nsPerByte = (mbit: number): number => 8000 / mbit

/** What every component with a link counts. */
export const linkMetrics = {
  queued_packets: held('Packets on the link or waiting for it.'),
  queue_full_packets: queueDrop('Packets dropped because the queue was full.'),
  held_at_end_packets: heldAtEnd(),
}

/** What the page of every component with a link says of it. */
export const LINK_DETAILS =
  'A packet leaves when its last bit has crossed the link. The rate counts the bytes of the packets as they are here. A change holds ' +
  'from then on, also for what is left of the packet on the link; a smaller queue drops the newest packets. A run has 131,072 packet ' +
  'slots, fewer where a component brings in packets over some 7,900 bytes.'

/** What the size of a queue means. */
export const QUEUE_TEXT =
  'Packets that wait while one is on the link; 0: none. Unset: a quarter of the packet slots of the run.'

/** One link that is too slow for what comes takes this part of the run's slots, so that the others are not starved of them. */
const DEFAULT_SHARE = 1 / 4

/** Most packets that wait for a link: what the configuration says, or where it says nothing a quarter of the run's slots. */
export function queueLimit(given: number | undefined, packets: Packets): number {
  return given ?? Math.floor(packets.slots * DEFAULT_SHARE)
}

export class SerialLink {
  /** Packets on the link or waiting for it. */
  held = 0
  /** What crosses after this time, ns, is not let out before the bandwidth has been set anew. */
  horizon = Number.POSITIVE_INFINITY
  /** Packets are being let out, which may come in again as another flow's at once; the bandwidth must not change meanwhile. */
  releasing = false
  private most: number
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly outlets: readonly Outlet[]
  private readonly full: Counter
  private readonly timer: Timer
  /** Packets with their flow, the one on the link first; notifications among them. */
  private readonly queue = new Ring()
  private perByte: number
  /** When the packet on the link began to cross it. */
  private started = 0
  /** When the packet on the link has left it, or the last one had. */
  private due = 0

  /** One link for all `outlets`, in the order packets come. `full` counts what found no room to wait. */
  constructor(context: SerialLinkContext, outlets: readonly Outlet[], full: Counter, mbit: number, limit: number) {
    this.packets = context.packets
    this.clock = context.clock
    this.outlets = outlets
    this.full = full
    this.most = limit
    this.perByte = nsPerByte(mbit)
    this.timer = context.timer(() => this.release())
  }

  /** Takes every packet of a batch, or drops it. */
  take(batch: Batch, flow: number): void {
    const { queue, packets } = this
    const { handles, length } = batch
    // What has crossed but not left yet, because timers come later in this breath, must not take up room.
    if (queue.length > 0 && this.due <= this.clock.now && !this.releasing) this.release()
    const room = this.most + 1 - this.held
    const taken = room < length ? Math.max(0, room) : length
    for (let i = 0; i < taken; i++) {
      const packet = handles[i]
      if (queue.length === 0) this.start(packet)
      queue.push(packet, flow)
      this.held++
    }
    for (let i = taken; i < length; i++) packets.release(handles[i])
    if (taken < length) this.full.add(length - taken)
  }

  /** The link is free for `packet`: from now on, or from when it is while `release` goes on, which then puts the packet on it. */
  private start(packet: number): void {
    const from = Math.max(this.clock.now, this.due)
    if (this.releasing) this.due = from
    else this.put(packet, from)
  }

  /** Puts a packet on the link at the time `start`. */
  private put(packet: number, start: number): void {
    this.started = start
    this.due = start + this.packets.length[packet] * this.perByte
    this.timer.at(this.due)
  }

  /** A notification keeps its place among the packets. */
  notify(notification: Notification, flow: number): void {
    if (this.queue.length === 0) this.outlets[flow].notify(notification)
    else if (this.queue.length - this.held < MAX_WAITING_NOTIFICATIONS) this.queue.push(entryOf(notification), flow)
  }

  /** Lets out what has crossed the link by the time `until`, ns. The next one starts when the one before was due, however late the timer is. */
  private release(until = Math.min(this.clock.now, this.horizon)): void {
    const { queue, outlets } = this
    let last = -1
    this.releasing = true
    while (queue.length > 0 && this.due <= until) {
      const { handle, value: flow } = queue
      // Packets of several flows leave in their order.
      if (last >= 0 && last !== flow) outlets[last].flush()
      last = flow
      queue.shift()
      this.held--
      outlets[flow].push(handle)
      this.next()
    }
    const isFree = queue.length === 0
    // Still letting out: what comes in again must not have others follow into the batch that is on its way.
    if (last >= 0) outlets[last].flush()
    this.releasing = false
    if (isFree && queue.length > 0) this.put(queue.handle, this.due)
  }

  /** Passes on the notifications that are first now, then puts the packet behind them on the link from `due`. */
  private next(): void {
    const { queue, outlets } = this
    while (queue.length > 0 && queue.handle < 0) {
      outlets[queue.value].notify(notificationOf(queue.handle))
      queue.shift()
    }
    if (queue.length > 0) this.put(queue.handle, this.due)
  }

  /** From the time `since` (ns, not to come) on; what is left then of the packet on the link crosses at the new rate. */
  setBandwidth(mbit: number, since = this.clock.now): void {
    this.release(since)
    const before = this.perByte
    this.perByte = nsPerByte(mbit)
    if (this.queue.length === 0 || this.due <= since) return
    const from = Math.max(since, this.started)
    this.due = from + ((this.due - from) / before) * this.perByte
    this.timer.at(this.due)
  }

  /** Most packets that wait, the one on the link not counted; of more the newest are dropped. */
  set limit(limit: number) {
    this.most = limit
    if (this.held > limit + 1) this.dropNewest(this.held - limit - 1)
  }

  private dropNewest(count: number): void {
    const { queue, packets } = this
    const kept: [entry: number, flow: number][] = []
    for (let left = count; left > 0; ) {
      const { lastHandle, lastValue } = queue
      queue.pop()
      if (lastHandle < 0) kept.push([lastHandle, lastValue])
      else {
        packets.release(lastHandle)
        left--
      }
    }
    this.held -= count
    this.full.add(count)
    // Notifications stay, in their order.
    for (let i = kept.length - 1; i >= 0; i--) queue.push(...kept[i])
  }

  /** Gives back every packet; how many there were. */
  stop(): number {
    const { queue, held } = this
    this.timer.cancel()
    for (; queue.length > 0; queue.shift()) if (queue.handle >= 0) this.packets.release(queue.handle)
    this.held = 0
    return held
  }
}
