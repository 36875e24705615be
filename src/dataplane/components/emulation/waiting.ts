/** Places where packets wait: a ring (first in, first out) and a heap (earliest first). Both grow and never shrink. */

const FIRST_CAPACITY = 256

/** What waits, with one number each: a due time, or the flow it belongs to. */
export interface Waiting {
  readonly length: number
  /** The first entry's handle; there must be one. */
  readonly handle: number
  /** The first entry's number; there must be one. */
  readonly value: number
  push(handle: number, value: number): void
  /** Takes the first entry away; there must be one. */
  shift(): void
}

/** First in, first out. */
export class Ring implements Waiting {
  length = 0
  private head = 0
  private mask = FIRST_CAPACITY - 1
  private handles = new Int32Array(FIRST_CAPACITY)
  private values = new Float64Array(FIRST_CAPACITY)

  get handle(): number {
    return this.handles[this.head]
  }

  get value(): number {
    return this.values[this.head]
  }

  /** The last entry's handle; there must be one. */
  get lastHandle(): number {
    return this.handles[(this.head + this.length - 1) & this.mask]
  }

  /** The last entry's number; there must be one. */
  get lastValue(): number {
    return this.values[(this.head + this.length - 1) & this.mask]
  }

  push(handle: number, value: number): void {
    if (this.length > this.mask) this.grow()
    const at = (this.head + this.length++) & this.mask
    this.handles[at] = handle
    this.values[at] = value
  }

  shift(): void {
    this.head = (this.head + 1) & this.mask
    this.length--
  }

  /** Takes the last entry away; there must be one. */
  pop(): void {
    this.length--
  }

  private grow(): void {
    const { handles, values, head, mask, length } = this
    const capacity = (mask + 1) * 2
    this.handles = new Int32Array(capacity)
    this.values = new Float64Array(capacity)
    const first = length - head
    this.handles.set(handles.subarray(head))
    this.handles.set(handles.subarray(0, head), first)
    this.values.set(values.subarray(head))
    this.values.set(values.subarray(0, head), first)
    this.head = 0
    this.mask = capacity - 1
  }
}

/** Lowest value first; equal values in the order they came. */
export class Heap implements Waiting {
  length = 0
  private serial = 0
  private handles = new Int32Array(FIRST_CAPACITY)
  private values = new Float64Array(FIRST_CAPACITY)
  private serials = new Float64Array(FIRST_CAPACITY)

  get handle(): number {
    return this.handles[0]
  }

  get value(): number {
    return this.values[0]
  }

  push(handle: number, value: number): void {
    if (this.length === this.handles.length) this.grow()
    const { values } = this
    let at = this.length++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (values[parent] <= value) break
      this.move(parent, at)
      at = parent
    }
    this.handles[at] = handle
    values[at] = value
    this.serials[at] = this.serial++
  }

  shift(): void {
    const last = --this.length
    const { handles, values, serials } = this
    const handle = handles[last]
    const value = values[last]
    const serial = serials[last]
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= last) break
      if (child + 1 < last && this.before(child + 1, values[child], serials[child])) child++
      if (!this.before(child, value, serial)) break
      this.move(child, at)
      at = child
    }
    handles[at] = handle
    values[at] = value
    serials[at] = serial
  }

  private before(at: number, value: number, serial: number): boolean {
    const own = this.values[at]
    return own < value || (own === value && this.serials[at] < serial)
  }

  private move(from: number, to: number): void {
    this.handles[to] = this.handles[from]
    this.values[to] = this.values[from]
    this.serials[to] = this.serials[from]
  }

  private grow(): void {
    const { handles, values, serials } = this
    const capacity = handles.length * 2
    this.handles = new Int32Array(capacity)
    this.values = new Float64Array(capacity)
    this.serials = new Float64Array(capacity)
    this.handles.set(handles)
    this.values.set(values)
    this.serials.set(serials)
  }
}
