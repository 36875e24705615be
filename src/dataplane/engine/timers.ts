/** Timers of a run: a binary heap of reusable timer objects, ordered by due time, then by arming order. */
import { NS_PER_MS } from './clock.ts'

/** How often a timer fires at most that has no other work than to have gauges shown that change by time alone: telemetry takes no more. */
export const GAUGE_NS = 100 * NS_PER_MS

/** Made once by a component, armed as often as it likes; arming, cancelling and firing allocate nothing. */
export class Timer {
  /** When it fires, nanoseconds on the run's clock; meaningful while `armed`. */
  due = 0
  /** Position in the heap, -1 when not armed, -2 - index among those put off to the next round. */
  position = -1
  sequence = 0
  readonly fire: () => void
  private readonly timers: TimerQueue

  constructor(timers: TimerQueue, fire: () => void) {
    this.timers = timers
    this.fire = fire
  }

  get armed(): boolean {
    return this.position !== -1
  }

  /** Fires once at `due` (nanoseconds on the run's clock), in place of an earlier arming. A past time fires next breath. */
  at(due: number): void {
    this.timers.arm(this, due)
  }

  cancel(): void {
    if (this.position !== -1) this.timers.disarm(this)
  }
}

export class TimerQueue {
  /** When the next timer is due, Infinity when none is armed. A field: a getter's number would be an object for each breath that asks. */
  next = Number.POSITIVE_INFINITY
  private readonly heap: Timer[] = []
  /** Armed during the present round for a time that is over: they are in the heap again when the round has ended. */
  private readonly putOff: Timer[] = []
  private putOffCount = 0
  private sequence = 0
  /** What the present round fires: timers due up to here; -Infinity between rounds. */
  private round = Number.NEGATIVE_INFINITY

  create(fire: () => void): Timer {
    return new Timer(this, fire)
  }

  /**
   * Fires what is due at `now`, in order. What they arm for `now` or earlier waits for the next call, and holds nobody up: a
   * source behind its schedule asks for the past again and again, and every other timer still fires in its round.
   */
  fireDue(now: number): void {
    const { heap } = this
    this.round = now
    try {
      while (heap.length > 0 && heap[0].due <= now) {
        const timer = heap[0]
        this.disarm(timer)
        timer.fire()
      }
    } finally {
      this.round = Number.NEGATIVE_INFINITY
      this.takeBack()
    }
  }

  arm(timer: Timer, due: number): void {
    if (timer.position !== -1) this.disarm(timer)
    timer.due = due
    timer.sequence = ++this.sequence
    if (due <= this.round) {
      timer.position = -2 - this.putOffCount
      this.putOff[this.putOffCount++] = timer
    } else this.insert(timer)
  }

  disarm(timer: Timer): void {
    const at = timer.position
    timer.position = -1
    if (at < -1) {
      const { putOff } = this
      const last = putOff[--this.putOffCount]
      if (last === timer) return
      putOff[-2 - at] = last
      last.position = at
      return
    }
    const { heap } = this
    const last = heap.pop() as Timer
    if (last !== timer) {
      heap[at] = last
      last.position = at
      this.rise(at)
      this.sink(last.position)
    }
    this.next = heap.length === 0 ? Number.POSITIVE_INFINITY : heap[0].due
  }

  private insert(timer: Timer): void {
    timer.position = this.heap.length
    this.heap.push(timer)
    this.rise(timer.position)
    this.next = this.heap[0].due
  }

  /** Puts what was put off into the heap; due time and order of arming are kept. */
  private takeBack(): void {
    const { putOff } = this
    for (let i = 0; i < this.putOffCount; i++) this.insert(putOff[i])
    this.putOffCount = 0
  }

  private before(a: Timer, b: Timer): boolean {
    return a.due < b.due || (a.due === b.due && a.sequence < b.sequence)
  }

  private rise(start: number): void {
    const { heap } = this
    let at = start
    const timer = heap[at]
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.before(timer, heap[parent])) break
      heap[at] = heap[parent]
      heap[at].position = at
      at = parent
    }
    heap[at] = timer
    timer.position = at
  }

  private sink(start: number): void {
    const { heap } = this
    let at = start
    const timer = heap[at]
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && this.before(heap[child + 1], heap[child])) child++
      if (!this.before(heap[child], timer)) break
      heap[at] = heap[child]
      heap[at].position = at
      at = child
    }
    heap[at] = timer
    timer.position = at
  }
}
