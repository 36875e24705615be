/** The sessions that a decoder follows at once, and how a newcomer gets in when there are as many as can be followed. */
import { BlockWindow, SOURCES_TO_PROVE, SPANNED_SYMBOLS } from './block-window.ts'

/** Well-formed packets that a newcomer needs before another session gives way to it. */
const PACKETS_TO_ENTER = 8

/** What `find` says of a packet that no window takes. */
export const LATE = 1
const UNFOLLOWED = 2

/** A session that would like to be followed. */
class Newcomer {
  session = 0
  k = 0
  r = 0
  /** Packets that came since `first`. */
  packets = 0
  /** Whether a source came, and the newest and the oldest block that one came of. */
  sourced = false
  newest = 0
  oldest = 0
  /** When the first of those packets came, and when the last, by the sessions' count; 0 while nobody is here. */
  first = 0
  last = 0
}

export class BlockSessions {
  /** Those in use, and those that were; made as they are needed. */
  readonly windows: BlockWindow[] = []
  private limit: number
  private readonly newcomers: Newcomer[] = []
  /** Called before a window's session gives way. */
  private readonly leave: (window: BlockWindow) => void
  /** Called before the window of a session gives way that has gone on with the block `start`, far ahead, of which `known` earlier ones are known. */
  private readonly leap: (window: BlockWindow, start: number, known: number) => void
  private count = 0
  /** The last window found; while no session has two of them it is the one for what its session sends next. */
  private last: BlockWindow | null = null
  private twins = false

  /** At most `limit` sessions are followed. */
  constructor(
    limit: number,
    leave: (window: BlockWindow) => void,
    leap: (window: BlockWindow, start: number, known: number) => void,
  ) {
    this.limit = limit
    this.leave = leave
    this.leap = leap
  }

  /** At most `limit` sessions are followed from now on; where there are more, those silent longest leave. */
  follow(limit: number): void {
    this.limit = limit
    const { windows, newcomers } = this
    newcomers.length = Math.min(newcomers.length, limit)
    while (windows.length > limit) {
      const chosen = windows.find(({ active }) => !active) ?? this.silentLongest()
      if (chosen.active) {
        this.leave(chosen)
        const notes = new Newcomer()
        this.note(notes, chosen)
        newcomers.push(notes)
      }
      windows.splice(windows.indexOf(chosen), 1)
      if (this.last === chosen) this.last = null
    }
  }

  /** Notes how far a session has come that leaves, so that what passed of it is not recovered once it is followed again. */
  private note(notes: Newcomer, { session, k, r, sourced, newest, used }: BlockWindow): void {
    notes.session = session
    notes.k = k
    notes.r = r
    notes.packets = 0
    notes.sourced = sourced
    notes.newest = newest
    notes.oldest = newest
    notes.last = used
  }

  /** The window that was found last, where what its session sends next is its too; null otherwise. */
  get usual(): BlockWindow | null {
    return this.last?.active && !this.twins ? this.last : null
  }

  /** A packet of a window has come that `find` was not asked for. */
  heard(window: BlockWindow): void {
    window.used = ++this.count
  }

  /** How many blocks of one session that follow each other need one look: of two windows each block may have another one. */
  get together(): number {
    return this.twins ? 1 : Number.POSITIVE_INFINITY
  }

  /**
   * The window for a packet of `block`, or: LATE, its block has been given up; UNFOLLOWED, there is no place for its session, or,
   * for a repair, nothing of a block so far off has come. A session is known by its id and the shape of its code: what has another
   * shape is another sender's.
   */
  find(session: number, k: number, r: number, block: number, isSource: boolean): BlockWindow | number {
    const { last } = this
    this.count++
    if (last?.is(session, k, r) && !this.twins && last.reaches(block)) {
      last.used = this.count
      return last
    }
    let found: BlockWindow | null = null
    let same: BlockWindow | null = null
    for (const window of this.windows) {
      if (!window.is(session, k, r)) continue
      if (!same || window.used > same.used) same = window
      if (!window.reaches(block)) continue
      // Of two for one session the one that has begun the block, else the one that is there longer, so that a block stays where it is.
      if (!found || (window.knows(block) && !found.knows(block))) found = window
      else if (window.opened < found.opened && window.knows(block) === found.knows(block)) found = window
    }
    const window = found ?? this.enter(session, k, r, block, isSource, same)
    if (typeof window === 'number') return window
    window.used = this.count
    this.last = window
    if (this.twins) this.hearTwin(window, block)
    return window
  }

  /** `window` is heard with a packet of `block`. Of two for one session the one gives way that has been silent since: it is from before an outage, or was junk. */
  private hearTwin(window: BlockWindow, block: number): void {
    let isLeft = false
    for (const other of this.windows) {
      if (other === window || !other.is(window.session, window.k, window.r)) continue
      other.alone = 0
      if (window.ahead(other.newest) < 0) {
        // A block from before the start is one of the earlier ones once it has begun.
        if (window.alone < SOURCES_TO_PROVE || ((block - window.start) | 0) < 0) continue
        this.leap(other, window.start, window.earlier)
      } else {
        if (window.alone < SPANNED_SYMBOLS || other.proven) continue
        this.leave(other)
      }
      window.usual ||= other.usual
      isLeft = true
    }
    if (isLeft) this.twins = this.hasTwins()
  }

  private hasTwins(): boolean {
    return this.windows.some(({ session, k, r }, n) =>
      this.windows.some((other, at) => at > n && this.windows[n].active && other.is(session, k, r)),
    )
  }

  /** `same`: a window of the same session that the block is out of reach of. */
  private enter(
    session: number,
    k: number,
    r: number,
    block: number,
    isSource: boolean,
    same: BlockWindow | null,
  ): BlockWindow | number {
    const behind = same !== null && same.ahead(block) < 0
    if (behind && same.proven) return LATE
    // A leap is believed of sources only: repairs far off would let blocks be given up that are still on their way.
    if (same?.sourced && !isSource) return behind ? LATE : UNFOLLOWED
    const free = this.free()
    if (free) {
      // What a session sends from behind its own window may have been here before.
      const doubtful = behind ? block : this.passedUntil(session, k, r)
      return this.open(free, session, k, r, block, doubtful, same !== null)
    }
    const newcomer = this.newcomer(session, k, r)
    newcomer.last = this.count
    if (isSource) {
      if (!newcomer.sourced || ((block - newcomer.newest) | 0) > 0) newcomer.newest = block
      if (!newcomer.sourced || ((block - newcomer.oldest) | 0) < 0) newcomer.oldest = block
      newcomer.sourced = true
    }
    if (newcomer.packets++ === 0) newcomer.first = this.count
    if (newcomer.packets < PACKETS_TO_ENTER) return UNFOLLOWED
    newcomer.packets = 0
    // After an outage a session has the place that it had.
    const leaps = same !== null && !behind && same.used < newcomer.first
    const silent = leaps ? same : this.silentLongest()
    // Who was heard all the while keeps his place: one of too many senders must not cost all the others theirs in turn.
    if (silent.used >= newcomer.first) return UNFOLLOWED
    const { sourced, newest } = newcomer
    const oldest = sourced ? newcomer.oldest : block
    newcomer.last = 0
    if (leaps) this.leap(silent, oldest, 0)
    else {
      this.leave(silent)
      this.note(newcomer, silent)
    }
    // Where only repairs have come the sources may have passed before: the session has been followed, and gave way since.
    const window = this.open(silent, session, k, r, block, sourced ? newest : block, same !== null && !leaps)
    window.start = oldest
    return window
  }

  private open(
    window: BlockWindow,
    session: number,
    k: number,
    r: number,
    block: number,
    doubtful: number | undefined,
    isTwin: boolean,
  ): BlockWindow {
    window.open(session, k, r, block, doubtful)
    window.opened = this.count
    if (isTwin) this.twins = true
    return window
  }

  private free(): BlockWindow | null {
    for (const window of this.windows) if (!window.active) return window
    if (this.windows.length === this.limit) return null
    const window = new BlockWindow()
    this.windows.push(window)
    return window
  }

  private silentLongest(): BlockWindow {
    let silent = this.windows[0]
    for (const window of this.windows) if (window.used < silent.used) silent = window
    return silent
  }

  /** The notes on a newcomer; where there are too many, those of the one silent longest give their place. */
  private newcomer(session: number, k: number, r: number): Newcomer {
    const { newcomers } = this
    let chosen: Newcomer | null = null
    for (const other of newcomers) {
      if (other.last > 0 && other.session === session && other.k === k && other.r === r) return other
      if (!chosen || other.last < chosen.last) chosen = other
    }
    if (!chosen || (chosen.last > 0 && newcomers.length < this.limit)) {
      chosen = new Newcomer()
      newcomers.push(chosen)
    }
    chosen.session = session
    chosen.k = k
    chosen.r = r
    chosen.packets = 0
    chosen.sourced = false
    return chosen
  }

  /** The newest block of which sources passed while there was no place for the session, which has one now; undefined where none is known. */
  private passedUntil(session: number, k: number, r: number): number | undefined {
    for (const newcomer of this.newcomers) {
      if (newcomer.last === 0 || newcomer.session !== session || newcomer.k !== k || newcomer.r !== r) continue
      newcomer.last = 0
      return newcomer.sourced ? newcomer.newest : undefined
    }
    return undefined
  }

  /** Forgets every session. */
  reset(): void {
    for (const window of this.windows) if (window.active) this.leave(window)
    for (const newcomer of this.newcomers) newcomer.last = 0
    this.twins = false
  }
}
