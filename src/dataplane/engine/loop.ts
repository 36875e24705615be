/** The loop of a run: breath after breath it takes what is ready, fires what is due and says what the metrics are. */
import { type MonotonicClock, NS_PER_MS } from './clock.ts'
import type { Graph } from './graph.ts'
import type { LoopMeter } from './loop-meter.ts'
import type { NativeIo } from './native-io.ts'

const PUBLISH_NS = 10 * NS_PER_MS
/** How near a timer must be for metrics to be published after it, which takes some tens of microseconds; twice `PUBLISH_NS` after the last time, they are before. */
const PUBLISH_ROOM_NS = 50_000
/** In performance mode, how near a timer must be for sockets not to be asked before it; twice that after the last time, they are. */
const NEAR_NS = 3000

/** What a breath says. */
const GOES_ON = 0
const STOPPED = 1
const COMPLETE = 2

/** What the loop needs of a graph, of its I/O and of its clock. */
export type LoopGraph = Pick<Graph, 'timers' | 'sources' | 'flush' | 'complete'> & {
  readonly engine: Pick<Graph['engine'], 'timer_lag'>
}
export type LoopIo = Pick<NativeIo, 'wait' | 'dispatch' | 'receiveFromNetworks'>
export type LoopClock = Pick<MonotonicClock, 'now' | 'tick' | 'beginTimers'>

/** What the loop is part of. */
export interface LoopHost {
  /** It ends by itself. */
  readonly ending: boolean
  /** Carries out what the command word asks for; true to stop. */
  obey(): boolean
  /** Sends the log lines of a breath. */
  flushLog(): void
  /** When that has to be done though nothing happens, ns; infinite where it does not. */
  readonly logDueAt: number
  /** Says what the metrics are. */
  publish(): void
}

export class Loop {
  private readonly host: LoopHost
  private readonly graph: LoopGraph
  private readonly io: LoopIo
  private readonly clock: LoopClock
  private readonly command: Int32Array
  private readonly meter: LoopMeter
  /** It never sleeps. */
  private readonly spin: boolean
  // What one breath leaves to the next are fields: variables of a function that never returns would be new objects in every breath, as numbers.
  private published = 0
  /** When it was last asked what is ready. */
  private asked = 0
  private dirty = true
  private busy = false
  private ready = 0

  constructor(
    host: LoopHost,
    graph: LoopGraph,
    io: LoopIo,
    clock: LoopClock,
    command: Int32Array,
    meter: LoopMeter,
    spin: boolean,
  ) {
    this.host = host
    this.graph = graph
    this.io = io
    this.clock = clock
    this.command = command
    this.meter = meter
    this.spin = spin
  }

  /** Breath after breath; true when it was stopped by command, false when it has ended by itself. */
  run(): boolean {
    this.clock.tick()
    this.published = this.clock.now
    this.asked = this.clock.now
    while (!this.host.ending) {
      const said = this.breath()
      if (said !== GOES_ON) return said === STOPPED
    }
    return false
  }

  private breath(): number {
    const { host, graph, io, clock, meter } = this
    const { timers, sources } = graph
    this.wait()
    if (this.ready > 0) {
      io.dispatch(this.ready)
      this.dirty = true
    }
    // After dispatch, which clears the event: a command whose event has been cleared is never missed.
    if (Atomics.load(this.command, 0) !== 0 && host.obey()) return STOPPED
    let busy = io.receiveFromNetworks()
    for (let i = 0; i < sources.length; i++) if (sources[i]()) busy = true
    this.busy = busy
    const { now } = clock
    if (timers.next <= now) {
      const lag = now - timers.next
      clock.beginTimers()
      timers.fireDue(now)
      graph.engine.timer_lag.record(lag)
      this.dirty = true
    }
    graph.flush()
    host.flushLog()
    if (graph.complete) return COMPLETE
    this.dirty ||= busy || now >= meter.settleAt
    if (this.dirty) this.publish()
    return GOES_ON
  }

  /** Waits until something is ready, or looks at the clock alone; the time is taken. */
  private wait(): void {
    const { io, clock, meter } = this
    const { timers } = this.graph
    // Where something has just come, more is likely: how long to sleep is worth finding out after a breath without.
    const awake = this.busy || this.spin || this.ready > 0
    // Who spins gives a timer its last microseconds: asking what is ready takes longer than it may be late.
    if (this.spin && timers.next - clock.now < NEAR_NS && clock.now - this.asked < 2 * NEAR_NS) {
      this.ready = 0
      // A whole breath takes as long as a timer may be late.
      do clock.tick()
      while (!this.busy && clock.now < timers.next && Atomics.load(this.command, 0) === 0)
      meter.breath(0)
      return
    }
    this.asked = clock.now
    this.ready = io.wait(awake ? 0 : this.idleTime())
    const before = clock.now
    clock.tick()
    meter.breath(awake ? 0 : clock.now - before)
  }

  /** How long the loop may sleep, ns; negative without limit. */
  private idleTime(): number {
    const { next } = this.graph.timers
    const now = this.clock.tick()
    const publishAt = this.dirty ? this.published + PUBLISH_NS : this.meter.settleAt
    const until = Math.min(next - Math.max(publishAt, now) < PUBLISH_ROOM_NS ? next : publishAt, this.host.logDueAt)
    return until === Number.POSITIVE_INFINITY ? -1 : Math.max(0, until - now)
  }

  /** Says what the metrics are where that is due, unless a timer would have to wait for it. */
  private publish(): void {
    const { now } = this.clock
    const since = now - this.published
    if (since < PUBLISH_NS) return
    if (this.graph.timers.next - now < PUBLISH_ROOM_NS && since < 2 * PUBLISH_NS) return
    this.host.publish()
    this.published = now
    this.dirty = false
  }
}
