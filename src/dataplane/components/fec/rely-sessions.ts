/** The sessions that a rely_decoder follows at once, and how a newcomer gets in when there are as many as can be followed. */
import type { SlidingWindowOptions } from '../../codes/sliding-window.ts'
import { isNearStart, RelyStream } from './rely-stream.ts'

/** Encoders followed side by side. */
export const MAX_SESSIONS = 64
/** Sources that a newcomer needs before another session gives way to it. */
export const SOURCES_TO_ENTER = 8

/** A session that would like to be followed. */
class Newcomer {
  session = 0
  sources = 0
  /** When the first of those came, and when the last, by the count of packets; 0 while nobody is here. */
  first = 0
  last = 0
}

export class RelySessions {
  /** Those in use, and those that were; made as they are needed. */
  readonly streams: RelyStream[] = []
  /** Sessions followed; once they are closed, how many were. */
  followed = 0
  private readonly options: SlidingWindowOptions
  private readonly newcomers: Newcomer[] = []
  /** Called before a stream's session gives way. */
  private readonly leave: (stream: RelyStream) => void
  private count = 0
  private last: RelyStream | null = null

  constructor(options: SlidingWindowOptions, leave: (stream: RelyStream) => void) {
    this.options = options
    this.leave = leave
  }

  /**
   * The stream for a packet of `session`: a source with the number `first`, or a repair over those from `first` to `last`. Null when there is no place
   * for it, or when nothing but a repair has come of a flow that is under way.
   */
  find(session: number, isSource: boolean, first: number, last: number): RelyStream | null {
    this.count++
    let stream = this.last?.active && this.last.session === session ? this.last : null
    if (!stream) {
      for (const other of this.streams) if (other.active && other.session === session) stream = other
      stream ??= this.enter(session, isSource, first, last)
    }
    if (!stream) return null
    stream.used = this.count
    this.last = stream
    return stream
  }

  private enter(session: number, isSource: boolean, first: number, last: number): RelyStream | null {
    // Nothing says whether the sources that a repair is over are still on their way: with the first of them all would be waited for.
    if (!isSource && !(isNearStart(first) && isNearStart(last))) return null
    const free = this.free()
    if (free) {
      free.begin(session, first)
      this.followed++
      return free
    }
    if (!isSource) return null
    const newcomer = this.newcomer(session)
    newcomer.last = this.count
    if (newcomer.sources++ === 0) newcomer.first = this.count
    if (newcomer.sources < SOURCES_TO_ENTER) return null
    newcomer.sources = 0
    let silent = this.streams[0]
    for (const stream of this.streams) if (stream.used < silent.used) silent = stream
    // Who was heard all the while keeps his place: one of too many senders must not cost all the others theirs in turn.
    if (silent.used >= newcomer.first) return null
    this.leave(silent)
    newcomer.last = 0
    silent.begin(session, first)
    // What it sent before has been passed on already.
    silent.restart(first)
    return silent
  }

  private free(): RelyStream | null {
    for (const stream of this.streams) if (!stream.active) return stream
    if (this.streams.length === MAX_SESSIONS) return null
    const stream = new RelyStream(this.options)
    this.streams.push(stream)
    return stream
  }

  /** The notes on a newcomer; where there are too many, those of the one silent longest give their place. */
  private newcomer(session: number): Newcomer {
    const { newcomers } = this
    let chosen: Newcomer | null = null
    for (const other of newcomers) {
      if (other.last > 0 && other.session === session) return other
      if (!chosen || other.last < chosen.last) chosen = other
    }
    if (!chosen || (chosen.last > 0 && newcomers.length < MAX_SESSIONS)) {
      chosen = new Newcomer()
      newcomers.push(chosen)
    }
    chosen.session = session
    chosen.sources = 0
    return chosen
  }

  /** Forgets every session. */
  reset(): void {
    for (const stream of this.streams) {
      if (!stream.active) continue
      this.leave(stream)
      stream.active = false
    }
    this.followed = 0
    for (const newcomer of this.newcomers) newcomer.last = 0
  }

  /** Gives back the memory of all. */
  close(): void {
    for (const stream of this.streams) stream.decoder.close()
    this.streams.length = 0
    this.last = null
  }
}
