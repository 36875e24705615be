/** What is lost on all carriers together, and how many repairs a stream has for it. */
import { reportInterval } from './carrier.ts'
import { repairRate } from './protection.ts'
import { ahead } from './serial.ts'
import type { StreamSender } from './stream-sender.ts'

/** Weight of one packet in the share that is lost on all carriers together. */
const LOSS_WEIGHT = 1 / 512
/** Weight of one lost packet in the round trip of the carriers that lose. */
const RTT_WEIGHT = 1 / 64

export class Losses {
  private loss = 0
  /** Smoothed round trip of the carriers that lose packets, ns; 0: nothing was lost yet. */
  private rtt = 0

  /** A packet has come. */
  reported(): void {
    this.loss -= this.loss * LOSS_WEIGHT
  }

  /** A packet was lost on a carrier with the round trip `rtt`, ns. */
  lost(rtt: number): void {
    this.loss += (1 - this.loss) * LOSS_WEIGHT
    this.rtt = this.rtt === 0 ? rtt : this.rtt + (rtt - this.rtt) * RTT_WEIGHT
  }

  /** Repair packets for each piece of a stream; `spare`: the carriers have room that nothing else needs. */
  repairRate({ settings, sent }: StreamSender, spare: boolean): number {
    const { loss, rtt } = this
    if (settings.replicated || loss === 0) return 0
    // There and back, the wait of the report, and an eighth for those that were only reordered; once more for the piece itself.
    const round = rtt * 1.125 + reportInterval(rtt)
    const resends = Math.floor(settings.hold / round)
    return repairRate({ loss, resends, window: ahead(sent.next, sent.base), realtime: settings.realtime, spare })
  }
}
