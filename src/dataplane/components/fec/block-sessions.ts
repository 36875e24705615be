/** The sessions that a decoder follows at once, and how far it trusts each: junk must not displace what has proved itself. */
import { BlockWindow } from './block-window.ts'

/** Sessions followed at once: at most two that are believed, the others newcomers on trial. */
const SESSIONS = 4
const MOST_CONFIRMED = 2
/** Packets after which a session is believed. */
const PACKETS_TO_CONFIRM = 8

/** What `match` says of a packet that no window can take. */
export const UNHEARD = 1
export const CONTRADICTORY = 2
export const LATE = 3

export class BlockSessions {
  readonly windows: readonly BlockWindow[] = Array.from({ length: SESSIONS }, () => new BlockWindow())

  /**
   * The window that a packet belongs to, or: UNHEARD, its session is not known, or it leaps so far ahead that it is as
   * hard to believe; CONTRADICTORY, its session has another k or r; LATE, its block has been given up.
   */
  match(session: number, k: number, r: number, block: number): BlockWindow | number {
    const { windows } = this
    let latest: BlockWindow | null = null
    for (let n = 0; n < SESSIONS; n++) {
      const window = windows[n]
      if (!window.active || window.session !== session) continue
      if (window.k !== k || window.r !== r) return CONTRADICTORY
      if (window.reaches(block)) return window
      if (window.proven && (!latest || window.used > latest.used)) latest = window
    }
    return latest && latest.ahead(block) < 0 ? LATE : UNHEARD
  }

  /** A free window, else the one longest unused of those not believed, which the caller leaves first. */
  leastTrusted(): BlockWindow {
    let chosen: BlockWindow | null = null
    for (const window of this.windows) {
      if (!window.active) return window
      if (!window.confirmed && (!chosen || window.used < chosen.used)) chosen = window
    }
    return chosen as BlockWindow
  }

  /** Counts a good packet of `window`; enough of them and it is believed, the longest unused of three such no longer. */
  count(window: BlockWindow): void {
    if (++window.packets !== PACKETS_TO_CONFIRM) return
    window.confirmed = true
    window.proven = true
    let oldest = window
    let confirmed = 0
    for (const other of this.windows) {
      if (!other.active || !other.confirmed) continue
      confirmed++
      if (other.used < oldest.used) oldest = other
    }
    if (confirmed > MOST_CONFIRMED) oldest.confirmed = false
  }
}
