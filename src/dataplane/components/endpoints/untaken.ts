/** Packets that came to an endpoint and found no place in the run: received and dropped, and the first for each cause told in the log. */
import type { Log } from '../../engine/log.ts'
import { type Counter, drop } from '../../engine/metrics.ts'

/** What every endpoint may not take; each is counted as received too. */
export const UNTAKEN_METRICS = {
  received_oversize_packets: drop('Packets that came and were longer than the MTU, not taken.'),
  received_without_slot_packets: drop('Packets that came while every packet slot was in use, not taken.'),
} as const

/** Counts those of one cause. */
export class Untaken {
  private readonly received: Counter
  private readonly untaken: Counter
  private readonly tell: () => void
  private isTold = false

  /** `tell` says in the log, once in a run, that there are such packets. */
  constructor(received: Counter, untaken: Counter, tell: () => void) {
    this.received = received
    this.untaken = untaken
    this.tell = tell
  }

  /** So many more; 0 for none. */
  add(count: number): void {
    if (count === 0) return
    this.received.add(count)
    this.untaken.add(count)
    if (this.isTold) return
    this.isTold = true
    this.tell()
  }
}

interface Counters {
  readonly received_packets: Counter
  readonly received_oversize_packets: Counter
  readonly received_without_slot_packets: Counter
}

/** Those that are longer than `mtu`. */
export function oversizeUntaken(
  metrics: Pick<Counters, 'received_packets' | 'received_oversize_packets'>,
  log: Log,
  mtu: number,
): Untaken {
  const metric = 'received_oversize_packets'
  const cure = 'set a longer mtu here, or have shorter ones sent'
  return new Untaken(metrics.received_packets, metrics[metric], () =>
    log('WARN', `packets that come in are longer than the MTU and dropped, counted as ${metric}: ${cure}`, {
      metric,
      mtu,
    }),
  )
}

/** Those for which none of the run's `slots` was free. */
export function slotlessUntaken(
  metrics: Pick<Counters, 'received_packets' | 'received_without_slot_packets'>,
  log: Log,
  slots: number,
): Untaken {
  const metric = 'received_without_slot_packets'
  const what = `packets come in while every one of the run's ${slots} packet slots is in use and are dropped`
  const cure = 'have fewer packets wait in the run, with shorter delays and queues, or fewer sent'
  return new Untaken(metrics.received_packets, metrics[metric], () =>
    log('WARN', `${what}, counted as ${metric}: ${cure}`, { metric, slots }),
  )
}
