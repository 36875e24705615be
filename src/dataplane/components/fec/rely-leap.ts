/** A leap ahead that one source has made, until others say whether the session has gone on there or where it was. */

/** Numbers that a source alone may leave out. */
export const MAX_LEAP = 64
/** Sources beyond a leap, or far off, after which it is followed. */
export const SOURCES_TO_FOLLOW = 8

/** What a source says of a leap: nothing that decides; that it is followed; that it was none; that it was none and there may be another one, to this source. */
export const OPEN = 0
export const FOLLOWED = 1
const UNDONE = 2
export const ELSEWHERE = 3

/**
 * One source, which may be damaged or made up, must not cost those before it: they are not given up while they may be on their way. A burst of losses
 * looks the same until more sources have come; the few that may come late before it, or on a slower path, do not make it junk.
 */
export class RelyLeap {
  /** The newest source before it, the one that made it, and when that came. */
  from = 0
  to = 0
  since = 0
  /** The newest of those that came where the session was. */
  newest = 0
  /** The oldest beyond it. */
  private oldest = 0
  /** How many came beyond it, 0 while there is no leap, and how many where the session was. */
  private beyond = 0
  private before = 0

  get pending(): boolean {
    return this.beyond > 0
  }

  begin(from: number, to: number, now: number): void {
    this.from = from
    this.to = to
    this.since = now
    this.newest = from
    this.oldest = to
    this.beyond = 1
    this.before = 0
  }

  end(): void {
    this.beyond = 0
  }

  /** A new source has come while it is pending, at most `MAX_LEAP` ahead of all others. */
  hear(sequence: number): number {
    const behind = (this.oldest - sequence) | 0
    const ahead = (sequence - this.from) | 0
    if (ahead <= 0) return OPEN
    if (behind <= MAX_LEAP && behind < ahead) {
      if (behind > 0) this.oldest = sequence
      return ++this.beyond < SOURCES_TO_FOLLOW ? OPEN : FOLLOWED
    }
    if (ahead > MAX_LEAP) return ELSEWHERE
    if (((sequence - this.newest) | 0) > 0) this.newest = sequence
    return ++this.before < 2 * this.beyond ? OPEN : UNDONE
  }
}
