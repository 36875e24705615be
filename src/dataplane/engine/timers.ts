/** Timers of a run: a binary heap of reusable timer objects, ordered by due time, then by arming order. */

/** Made once by a component, armed as often as it likes; arming, cancelling and firing allocate nothing. */
export class Timer {
  /** When it fires, nanoseconds on the run's clock; meaningful while `armed`. */
  due = 0
  /** Position in the heap, -1 when not armed. */
  position = -1
  sequence = 0
  readonly fire: () => void
  private readonly timers: Timers

  constructor(timers: Timers, fire: () => void) {
    this.timers = timers
    this.fire = fire
  }

  get armed(): boolean {
    return this.position >= 0
  }

  /** Fires once at `due` (nanoseconds on the run's clock), in place of an earlier arming. A past time fires next breath. */
  at(due: number): void {
    this.timers.arm(this, due)
  }

  cancel(): void {
    if (this.position >= 0) this.timers.disarm(this)
  }
}

export class Timers {
  private readonly heap: Timer[] = []
  private sequence = 0

  create(fire: () => void): Timer {
    return new Timer(this, fire)
  }

  /** When the next timer is due, Infinity when none is armed. */
  get next(): number {
    return this.heap.length === 0 ? Number.POSITIVE_INFINITY : this.heap[0].due
  }

  /** Fires what is due at `now`, in order. What they arm for `now` or earlier waits for the next call. */
  fireDue(now: number): void {
    const limit = this.sequence
    while (this.heap.length > 0) {
      const timer = this.heap[0]
      if (timer.due > now || timer.sequence > limit) return
      this.disarm(timer)
      timer.fire()
    }
  }

  arm(timer: Timer, due: number): void {
    if (timer.position >= 0) this.disarm(timer)
    timer.due = due
    timer.sequence = ++this.sequence
    timer.position = this.heap.length
    this.heap.push(timer)
    this.rise(timer.position)
  }

  disarm(timer: Timer): void {
    const { heap } = this
    const at = timer.position
    const last = heap.pop() as Timer
    timer.position = -1
    if (last === timer) return
    heap[at] = last
    last.position = at
    this.rise(at)
    this.sink(last.position)
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
