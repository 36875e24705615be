/** What share of a carrier's packets is lost, and how much more is sent for it. */

/** Weight of one packet in the share that is lost. */
const LOSS_WEIGHT = 1 / 256
/** The same of what is lost where no queue stood; as much as that is sent more, this at most: more is rather too much for the path. */
const PATH_LOSS_WEIGHT = 1 / 1024
const MAX_MADE_UP = 0.1

export class CarrierLoss {
  /** Share of packets that is lost lately. */
  share = 0
  /** The same where no queue stood: what the path loses anyway, not what is too much for it. */
  private ofPath = 0
  /** What both were when something was heard last. */
  private heardShare = 0
  private heardOfPath = 0

  /** A packet has come; `isQueued`: a queue stands on the path. */
  reported(isQueued: boolean): void {
    this.share -= this.share * LOSS_WEIGHT
    if (!isQueued) this.ofPath -= this.ofPath * PATH_LOSS_WEIGHT
  }

  /** A packet was lost. */
  lost(isQueued: boolean): void {
    this.share += (1 - this.share) * LOSS_WEIGHT
    if (!isQueued) this.ofPath += (1 - this.ofPath) * PATH_LOSS_WEIGHT
  }

  /** How many times as much has to be sent as is to be delivered. */
  get surplus(): number {
    return 1 / (1 - Math.min(this.ofPath, MAX_MADE_UP))
  }

  /** Something was heard of the carrier. */
  heard(): void {
    this.heardShare = this.share
    this.heardOfPath = this.ofPath
  }

  /** The path was dead since something was heard: it lost all, which says nothing of what it loses when it is back. */
  forgetUnheard(): void {
    this.share = this.heardShare
    this.ofPath = this.heardOfPath
  }

  /** Nothing is known of the path. */
  reset(): void {
    this.share = 0
    this.ofPath = 0
  }
}
