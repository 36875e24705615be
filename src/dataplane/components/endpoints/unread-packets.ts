/** Packets that the kernel drops before the run reads them: asked for now and then, counted, and told in the log. */
import { NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { PacketIo } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import { type Counter, unreadDrop } from '../../engine/metrics.ts'
import type { Timer } from '../../engine/timers.ts'
import { TELL_AGAIN_NS } from './told-errors.ts'

/** How long after packets were read the kernel is asked what it has dropped. */
const ASK_NS = NS_PER_S

/** What the kernel drops of what comes to a socket or an interface. */
export const UNREAD_METRICS = {
  kernel_dropped_packets: unreadDrop(
    'Packets that the kernel dropped before the run read them, most likely since they came faster than it reads; what the kernel has joined to one piece counts once. They are in no other figure.',
  ),
} as const

interface UnreadOptions {
  clock: RunClock
  log: Log
  timer(fire: () => void): Timer
  counter: Counter
  /** What there is to do besides having the run read faster. */
  cure: string
}

export class UnreadPackets {
  private readonly io: PacketIo
  private readonly clock: RunClock
  private readonly log: Log
  private readonly counter: Counter
  private readonly cure: string
  private readonly asking: Timer
  /** When the log was told last. */
  private told = Number.NEGATIVE_INFINITY

  constructor(io: PacketIo, { clock, log, timer, counter, cure }: UnreadOptions) {
    this.io = io
    this.clock = clock
    this.log = log
    this.counter = counter
    this.cure = cure
    this.asking = timer(() => this.ask())
  }

  /**
   * Packets were read. Where the kernel drops any there are others to read: of a socket to which nothing comes it need not be asked, and its run sleeps.
   */
  read(): void {
    if (this.io.kernelDropped !== undefined && !this.asking.armed) this.asking.at(this.clock.now + ASK_NS)
  }

  /** Counts what was dropped since the last time, and says so. */
  ask(): void {
    const { io, clock, counter } = this
    const more = (io.kernelDropped?.() ?? 0) - counter.value
    if (more <= 0) return
    counter.add(more)
    if (clock.now - this.told < TELL_AGAIN_NS) return
    this.told = clock.now
    const metric = 'kernel_dropped_packets'
    const faster = 'give the run performance mode or a CPU that it shares with fewer runs'
    this.log(
      'WARN',
      `the kernel drops packets before the run reads them, counted as ${metric}: they come faster than it does; ${faster}, or ${this.cure}`,
      { metric, [metric]: counter.value },
    )
  }
}
