/** Sends bursts of packets, each at a time of its own; who says when and of how many packets is the component. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import { Generator, type GeneratorContext, MAX_LAG_NS, type Sizes } from './generator.ts'

/** When bursts are due and how long they are. Its methods are called in turns, `length` first. */
export interface BurstSchedule {
  /** Bursts are due at times of their own, whenever the last one left: a run can be behind them. */
  readonly keepsTime: boolean
  /** Packets of the burst that is due, 1 or more. */
  length(): number
  /** When the burst after one that was due at `due` and whose last packet left at `last` is due, ns. */
  next(due: number, last: number): number
  /** The run was so late that the burst which is due, or on, counts as due at `due`, later than was said. */
  restart(due: number): void
}

/**
 * A burst leaves at one time, as far as a batch goes; the rest of a longer one, and what follows without silence, as fast as the graph
 * takes it. Behind schedule it sends at most a batch a breath, and when after that it still is more than 20 ms behind, it takes the
 * schedule up again from now.
 */
export class Bursts extends Generator {
  private readonly schedule: BurstSchedule
  private readonly timer: Timer
  private due: number
  /** Packets of the present burst that are still to be sent. */
  private left = 0
  /** There is more to send at once. */
  private pressing = false

  constructor(context: GeneratorContext, random: Random, sizes: Sizes, total: number, schedule: BurstSchedule) {
    super(context, random, sizes, total)
    this.schedule = schedule
    this.due = context.clock.now
    this.timer = context.timer(() => this.fire())
    this.timer.at(this.due)
    context.source(() => this.poll())
  }

  /** What the schedule has said of the burst that is due next holds no longer: it is due at `due`, ns. */
  reschedule(due: number): void {
    this.due = due
    if (!this.done && !this.pressing) this.timer.at(due)
  }

  private fire(): void {
    if (this.pressing && this.context.packets.available === 0) return
    this.send()
    // Sources have been asked already in this breath; from the next on `poll` goes on.
    if (this.pressing) this.timer.at(this.clock.now)
  }

  private poll(): boolean {
    if (!this.pressing) return false
    this.timer.cancel()
    // A breath that finds no slot free waits for one that gives some back.
    if (this.context.packets.available === 0) return false
    this.send()
    return this.pressing
  }

  /** Sends what is due, a batch at most, and arms the timer when no more is. */
  private send(): void {
    const { schedule, clock } = this
    const { now } = clock
    if (this.started < 0) this.started = now
    let room = BATCH_CAPACITY
    while (room > 0 && (this.left > 0 || this.due <= now) && !this.complete) {
      if (this.left === 0) this.left = schedule.length()
      for (; room > 0 && this.left > 0 && !this.complete; room--, this.left--) this.one()
      if (this.left === 0) this.due = schedule.next(this.due, now)
    }
    this.context.outlets.output.flush()
    if (this.complete) {
      this.finish()
      return
    }
    const lag = now - this.due
    if (schedule.keepsTime && lag > MAX_LAG_NS) {
      this.skip(lag)
      this.due = now
      schedule.restart(now)
    }
    this.pressing = this.left > 0 || this.due <= now
    if (!this.pressing) this.timer.at(this.due)
  }

  protected override finish(): void {
    this.pressing = false
    this.timer.cancel()
    super.finish()
  }

  override stop(): void {
    this.pressing = false
    this.timer.cancel()
    super.stop()
  }
}
