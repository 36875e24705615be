/** How many repair packets a stream gets, from what is lost and from what time there is to send again. */

/** Below this share of loss nothing is added. */
const MIN_LOSS = 0.0005
/** As many repairs as pieces at most. */
const MAX_RATE = 1
/** Standard deviations of the number lost in a window that repairs are made for where nothing can be sent again: what is lost is repaired soon, not only before its time is over. */
const DEVIATIONS = 5

/** What the rate of repair follows. */
export interface Conditions {
  /** Share of what is sent that is lost. */
  loss: number
  /** How often a lost piece can be sent again before its time is over. */
  resends: number
  /** Pieces that a repair covers. */
  window: number
  /** Realtime streams rather have a piece at once from a repair than a round trip later. */
  realtime: boolean
  /** Whether the carriers have room that nothing else needs. */
  spare: boolean
}

/**
 * Repair packets for each piece. Where nothing can be sent again repairs have to do it all: what is lost of a window on average and
 * five standard deviations more. A realtime stream has as many where pieces can be sent again once, which is lost as well now and then; otherwise as many as are
 * lost on average are enough. A transit stream whose pieces can be sent again oftener needs none, but what is lost holds up all after it: where there is room to
 * spare it has as many as if nothing could be sent again.
 */
export function repairRate({ loss, resends, window, realtime, spare }: Conditions): number {
  if (loss < MIN_LOSS) return 0
  if (!realtime && !spare && resends >= 2) return 0
  const haveToDoAll = realtime ? resends < 2 : spare || resends < 1
  if (!haveToDoAll) return Math.min(loss, MAX_RATE)
  const spread = DEVIATIONS * Math.sqrt((loss * (1 - loss)) / Math.max(window, 1))
  return Math.min((loss + spread) / (1 - loss), MAX_RATE)
}
