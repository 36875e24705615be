/** What a value was before, for functions over time: its last samples, or a window of fixed size in memory. */
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

/** The change since the sample before. */
export class LastSamples implements History {
  #before: { time: number; value: number } | undefined
  #last: { time: number; value: number } | undefined
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
    return change(name, this.#before, this.#last)
  }
}

/** Parts that a window is kept in: what is seen of it ends at most one part too late. */
const PARTS = 64

/** The values of the last so many seconds; of a part of that time what they came to. */
export class Window implements History {
  readonly #seconds: number
  /** Which part of all time stands at each place; -1: none. */
  readonly #part = new Float64Array(PARTS + 1).fill(-1)
  readonly #firstTime = new Float64Array(PARTS + 1)
  readonly #first = new Float64Array(PARTS + 1)
  readonly #least = new Float64Array(PARTS + 1)
  readonly #most = new Float64Array(PARTS + 1)
  readonly #sum = new Float64Array(PARTS + 1)
  readonly #count = new Float64Array(PARTS + 1)
  #time = 0
  #last = 0
  #cause: ExpressionError | undefined

  constructor(seconds: number) {
    this.#seconds = seconds
  }

  observe(time: number, value: number | undefined, cause?: ExpressionError): void {
    this.#time = time
    this.#cause = cause
    if (value === undefined) return
    this.#last = value
    const part = this.#partOf(time)
    const at = part % (PARTS + 1)
    if (this.#part[at] !== part) {
      this.#part[at] = part
      this.#firstTime[at] = time
      this.#first[at] = value
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
    let oldest = -1
    let least = Number.POSITIVE_INFINITY
    let most = Number.NEGATIVE_INFINITY
    let sum = 0
    let count = 0
    for (let at = 0; at <= PARTS; at++) {
      const part = this.#part[at] as number
      if (part < 0 || part < now - PARTS) continue
      if (oldest < 0 || part < (this.#part[oldest] as number)) oldest = at
      least = Math.min(least, this.#least[at] as number)
      most = Math.max(most, this.#most[at] as number)
      sum += this.#sum[at] as number
      count += this.#count[at] as number
    }
    if (oldest < 0) throw tooEarly(name)
    if (name === 'min') return least
    if (name === 'max') return most
    if (name === 'avg') return sum / count
    const from = { time: this.#firstTime[oldest] as number, value: this.#first[oldest] as number }
    if (this.#time - from.time < SAME_SAMPLE_MS / 1000) throw tooEarly(name)
    return change(name, from, { time: this.#time, value: this.#last })
  }

  #partOf(time: number): number {
    return Math.floor((time / this.#seconds) * PARTS)
  }
}

function change(
  name: TimeFunction,
  from: { time: number; value: number },
  to: { time: number; value: number },
): number {
  const difference = to.value - from.value
  return name === 'rate' ? difference / (to.time - from.time) : difference
}

function tooEarly(name: TimeFunction): ExpressionError {
  return new ExpressionError(`${name}() has nothing to look back on yet: it needs another sample`)
}
