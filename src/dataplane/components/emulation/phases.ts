/** Phases: values that hold one after the other, each for its duration, counted from the first breath of the run. */
import type { RunClock } from '../../engine/clock.ts'
import type { Fault } from '../../engine/component.ts'
import { Bool, Int32Milliseconds, List } from '../../engine/schema.ts'
import { GAUGE_NS, type Timer } from '../../engine/timers.ts'

export interface PhasesContext {
  readonly clock: RunClock
  timer(fire: () => void): Timer
}

/** What holds for `duration` ns, above 0. */
export interface Phase {
  readonly duration: number
}

export class Phases<T extends Phase> {
  /** Index of the phase that holds. */
  index = 0
  /** When it ends, ns; Infinity: never. */
  end = Number.NEGATIVE_INFINITY
  /** When it began, ns. */
  since = 0
  private list: readonly T[]
  private repeat: boolean
  /** Of the whole list, ns. */
  private round = 0
  private begun = false
  private readonly clock: RunClock
  private readonly timer: Timer
  private readonly enter: (() => void) | null

  /**
   * The first phase begins in the first breath. After the last comes the first again, or with `repeat` false the last holds for good.
   * `enter` is called whenever a phase begins, the first included, by a timer if nobody asks, and when the last one holds for good
   * from then on. Without it somebody has to ask; of a run in which nobody does a timer has the metrics say what holds, not in every phase.
   */
  constructor(context: PhasesContext, list: readonly T[], repeat: boolean, enter: (() => void) | null = null) {
    this.clock = context.clock
    this.list = list
    this.repeat = repeat
    this.enter = enter
    this.timer = context.timer(() => this.follow())
    this.timer.at(this.clock.now)
    this.measure()
  }

  private measure(): void {
    this.round = this.list.reduce((sum, { duration }) => sum + duration, 0)
  }

  /** The phase that holds as of the last `follow`. */
  get present(): T {
    return this.list[this.index]
  }

  /** Brings `index` up to the present. */
  follow(): void {
    const { now } = this.clock
    if (now < this.end) return
    if (this.begun) this.move(now)
    else this.begin(now)
    this.arm()
  }

  private begin(now: number): void {
    this.begun = true
    this.index = 0
    this.since = now
    this.end = now + this.list[0].duration
    this.enter?.()
  }

  private move(now: number): void {
    const { repeat, round, enter } = this
    // Whole rounds that nobody wants to know of.
    if (repeat && !enter) this.end += Math.floor((now - this.end) / round) * round
    while (now >= this.end) {
      this.next()
      enter?.()
    }
  }

  private next(): void {
    const { list } = this
    const last = this.index === list.length - 1
    if (last && !this.repeat) {
      this.end = Number.POSITIVE_INFINITY
      return
    }
    this.index = last ? 0 : this.index + 1
    this.since = this.end
    this.end += list[this.index].duration
  }

  private arm(): void {
    const { end, enter, clock, timer } = this
    if (end < Number.POSITIVE_INFINITY) timer.at(enter ? end : Math.max(end, clock.now + GAUGE_NS))
  }

  /**
   * Takes over another list and `repeat`: true when the list differs, which then begins at its first phase now. One that has ended
   * begins again too when it is to repeat.
   */
  change(list: readonly T[], repeat: boolean): boolean {
    if (this.begun) this.follow()
    const ended = this.end === Number.POSITIVE_INFINITY
    const differs = JSON.stringify(list) !== JSON.stringify(this.list)
    this.repeat = repeat
    if (!differs && !(ended && repeat)) return false
    this.list = list
    this.measure()
    if (this.begun) {
      this.begin(this.clock.now)
      this.arm()
    }
    return true
  }
}

/** The `intervals` of a sequencer. */
export const Intervals = () =>
  List(Int32Milliseconds('How long the values of the same place hold.', { minimum: 1 }), 'Intervals, in their order.', {
    unit: 'ms',
  })

/** The `repeat` of a sequencer. */
export const Repeat = () =>
  Bool('Begin again after the last interval; false: its values hold for good.', { default: true })

/** What the page of every sequencer says of its lists. */
export const SEQUENCE_DETAILS =
  'The n-th value holds for the n-th interval, the first from the start of the run; after the last interval comes the first again, ' +
  'or without repeat the last value holds for good. Changed lists begin at their first entry.'

/** One fault for each of the lists `names` of a configuration that has not one entry for each of its intervals. */
export function unequalLists(config: Record<string, unknown>, names: readonly string[]): Fault[] {
  const length = (name: string) => (config[name] as unknown[]).length
  const intervals = length('intervals')
  return names
    .filter((name) => length(name) !== intervals)
    .map((name) => ({
      pointer: `/${name}`,
      message: `${length(name)} of them for ${intervals} intervals: give one for each`,
    }))
}
