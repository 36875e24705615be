/** What a value was before, for functions over time: its last samples, or those of a time, within a bound of memory however long that is. */
import { ExpressionError, type TimeFunction } from '../../text/expressions.ts'

/** Keeps what `observe` gives it, once a sample. Times are seconds, rising. */
export interface History {
  /** `value` absent: it had none at that time, for `cause`. */
  observe(time: number, value: number | undefined, cause?: ExpressionError): void
  /** Throws ExpressionError where it has none yet. */
  value(name: TimeFunction): number
}

/** Samples nearer to each other are one: half of the shortest time there is between two ticks of telemetry. */
const SAME_SAMPLE_MS = 50

interface Point {
  readonly time: number
  readonly value: number
}

/** The change since the sample before. */
export class LastSamples implements History {
  #before: Point | undefined
  #last: Point | undefined
  #cause: ExpressionError | undefined

  observe(time: number, value: number | undefined, cause?: ExpressionError): void {
    this.#cause = cause
    if (value === undefined) {
      this.#before = undefined
      this.#last = undefined
      return
    }
    if (this.#last !== undefined && time - this.#last.time >= SAME_SAMPLE_MS / 1000) this.#before = this.#last
    this.#last = { time, value }
  }

  value(name: TimeFunction): number {
    if (this.#cause !== undefined) throw this.#cause
    if (this.#before === undefined || this.#last === undefined) throw tooEarly(name)
    return change(name, this.#last.value - this.#before.value, this.#last.time - this.#before.time)
  }
}

/** Parts that a time to look back is kept in. */
const PARTS = 64

/**
 * The change within the last so many seconds. Samples are seldom taken just when that time begins: the value then is on the line between the
 * samples around its beginning, so that what rises steadily has a steady change, whenever it is looked at.
 */
export class Span implements History {
  readonly #seconds: number
  /** Least time from one of the points to the next, the last apart. */
  readonly #step: number
  /** Rising in time: the newest that is no later than the span's beginning, if there is one, and those after it; some 66 at most. */
  readonly #points: Point[] = []
  #cause: ExpressionError | undefined

  constructor(seconds: number) {
    this.#seconds = Math.max(seconds, SAME_SAMPLE_MS / 1000)
    this.#step = Math.max(seconds / PARTS, SAME_SAMPLE_MS / 1000)
  }

  observe(time: number, value: number | undefined, cause?: ExpressionError): void {
    this.#cause = cause
    if (value === undefined) return
    const points = this.#points
    const last = points.at(-1)
    const before = points.at(-2)
    if (last !== undefined && before !== undefined && last.time - before.time < this.#step) points.pop()
    points.push({ time, value })
    while (points.length > 2 && (points[1] as Point).time <= time - this.#seconds) points.shift()
  }

  value(name: TimeFunction): number {
    if (this.#cause !== undefined) throw this.#cause
    const [first, second] = this.#points
    const last = this.#points.at(-1)
    if (first === undefined || second === undefined || last === undefined) throw tooEarly(name)
    const passed = last.time - first.time
    if (passed < SAME_SAMPLE_MS / 1000) throw tooEarly(name)
    if (passed <= this.#seconds) return change(name, last.value - first.value, passed)
    const slope = (second.value - first.value) / (second.time - first.time)
    return change(name, last.value - (first.value + slope * (passed - this.#seconds)), this.#seconds)
  }
}

/** What the values of the last so many seconds come to, kept by parts of that time: what is seen of it ends at most one part too late. */
export class Window implements History {
  readonly #seconds: number
  /** Which part of all time stands at each place; -1: none. */
  readonly #part = new Float64Array(PARTS + 1).fill(-1)
  readonly #least = new Float64Array(PARTS + 1)
  readonly #most = new Float64Array(PARTS + 1)
  readonly #sum = new Float64Array(PARTS + 1)
  readonly #count = new Float64Array(PARTS + 1)
  #time = 0
  #cause: ExpressionError | undefined

  constructor(seconds: number) {
    this.#seconds = seconds
  }

  observe(time: number, value: number | undefined, cause?: ExpressionError): void {
    this.#time = time
    this.#cause = cause
    if (value === undefined) return
    const part = this.#partOf(time)
    const at = part % (PARTS + 1)
    if (this.#part[at] !== part) {
      this.#part[at] = part
      this.#least[at] = value
      this.#most[at] = value
      this.#sum[at] = 0
      this.#count[at] = 0
    }
    this.#least[at] = Math.min(this.#least[at] as number, value)
    this.#most[at] = Math.max(this.#most[at] as number, value)
    this.#sum[at] += value
    this.#count[at] += 1
  }

  value(name: TimeFunction): number {
    if (this.#cause !== undefined) throw this.#cause
    const now = this.#partOf(this.#time)
    let least = Number.POSITIVE_INFINITY
    let most = Number.NEGATIVE_INFINITY
    let sum = 0
    let count = 0
    for (let at = 0; at <= PARTS; at++) {
      const part = this.#part[at] as number
      if (part < 0 || part < now - PARTS) continue
      least = Math.min(least, this.#least[at] as number)
      most = Math.max(most, this.#most[at] as number)
      sum += this.#sum[at] as number
      count += this.#count[at] as number
    }
    if (count === 0) throw tooEarly(name)
    if (name === 'min') return least
    return name === 'max' ? most : sum / count
  }

  #partOf(time: number): number {
    return Math.floor((time / this.#seconds) * PARTS)
  }
}

function change(name: TimeFunction, difference: number, seconds: number): number {
  return name === 'rate' ? difference / seconds : difference
}

function tooEarly(name: TimeFunction): ExpressionError {
  return new ExpressionError(`${name}() has nothing to look back on yet: it needs another sample`)
}
