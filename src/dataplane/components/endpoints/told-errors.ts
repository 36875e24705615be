/** What the log of a run says of errors of the kernel's that are counted and end nothing. */
import { NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { Log } from '../../engine/log.ts'
import { errorName, errorText } from '../../engine/system-errors.ts'

/** How long the log says no more of errors of the same cause. */
export const TELL_AGAIN_NS = 60 * NS_PER_S

/** Of one counter: the first error of each cause is told, and one of those that go on once a minute. */
export class ToldErrors {
  private readonly clock: RunClock
  private readonly log: Log
  private readonly what: string
  private readonly metric: string
  private count = 0
  /** When each errno was told last. */
  private readonly told = new Map<number, number>()

  /** `what` happens, and is counted as `metric`. */
  constructor(clock: RunClock, log: Log, what: string, metric: string) {
    this.clock = clock
    this.log = log
    this.what = what
    this.metric = metric
  }

  /** Called now and then, not for each packet: how many errors there were so far, and the errno of the last; 0: not the kernel's. */
  look(count: number, errno: number): void {
    if (count === this.count) return
    this.count = count
    if (errno === 0) return
    this.tell(errno, this.what, `they are counted as ${this.metric}`, { [this.metric]: count })
  }

  /** What was told of is over: should it come back, it is told at once. */
  forget(): void {
    this.told.clear()
  }

  /** Says of a cause, unless the log just has, that `what` is so, and what that means. */
  tell(errno: number, what: string, meaning: string, fields: Record<string, string | number>): void {
    const { now } = this.clock
    const last = this.told.get(errno)
    if (last !== undefined && now - last < TELL_AGAIN_NS) return
    this.told.set(errno, now)
    this.log('WARN', `${what} (${errorText(errno)}): ${meaning}`, { error: errorName(errno), ...fields })
  }
}
