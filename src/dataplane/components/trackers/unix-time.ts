/** Times of a run as 64 bits of nanoseconds since the Unix epoch, exact though a double has 53 bits. */
import type { RunClock } from '../../engine/clock.ts'

const TWO_32 = 2 ** 32

export class UnixTime {
  private readonly high: number
  private readonly low: number

  constructor({ epoch }: Pick<RunClock, 'epoch'>) {
    this.low = epoch % TWO_32
    this.high = (epoch - this.low) / TWO_32
  }

  /** Writes what is `time` ns on the run's clock to `at`, 8 bytes. */
  write(view: DataView, at: number, time: number): void {
    const low = this.low + time
    view.setUint32(at, this.high + Math.floor(low / TWO_32))
    view.setUint32(at + 4, low % TWO_32)
  }

  /** What stands at `at`, 8 bytes, as ns on the run's clock: below 0 for a time from before the run. Exact within 104 days of its start. */
  read(view: DataView, at: number): number {
    return (view.getUint32(at) - this.high) * TWO_32 + (view.getUint32(at + 4) - this.low)
  }
}
