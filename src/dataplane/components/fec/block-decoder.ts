/** Passes source packets on and recovers missing ones as soon as what has come of their block determines them. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { BEGINS_RUN, SOURCE_PACKET } from '../../native/code-calls.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { type BlockHeaders, LENGTH_BYTES, RUN_BLOCK, RUN_SESSION, RUN_WORDS } from './block-header.ts'
import type { BlockRecovery } from './block-recovery.ts'
import { BlockRetention } from './block-retention.ts'
import { BlockRun } from './block-run.ts'
import { BlockSessions, LATE } from './block-sessions.ts'
import { OrderedRuns } from './ordered-runs.ts'

/** What `findRun` says of a run that has begun. */
const ONE_BY_ONE = 0

/**
 * Packets of one block that follow each other in a batch make a run. Runs with nothing out of its order are taken together.
 *
 * A source that came leaves, once, whatever repairs say: those may be cut short or made up. Where they contradict the sources, or each
 * other, they are dropped.
 */
export class BlockDecoder {
  private readonly packets: Packets
  private readonly outlet: Outlet
  private readonly counters: BlockDecoderCounters
  private readonly headers: BlockHeaders
  private readonly sessions: BlockSessions
  private readonly retention: BlockRetention
  private readonly run: BlockRun
  /** The packets of the batch at hand, how many, and where the words of the run at hand begin. */
  private handles = new Int32Array(0)
  private length = 0
  private said = 0
  private readonly ordered: OrderedRuns

  /** Follows at most `sessions` sessions at once. */
  constructor(
    packets: Packets,
    outlet: Outlet,
    counters: BlockDecoderCounters,
    headers: BlockHeaders,
    recovery: BlockRecovery,
    sessions: number,
  ) {
    const { progressive } = headers.format
    this.packets = packets
    this.outlet = outlet
    this.counters = counters
    this.headers = headers
    this.retention = new BlockRetention(packets, counters, progressive, (window, place) =>
      recovery.forget(window, place),
    )
    this.run = new BlockRun(packets, outlet, counters, recovery, this.retention, progressive)
    this.ordered = new OrderedRuns(packets, recovery.memory, recovery.random, counters, this.retention, outlet)
    this.sessions = new BlockSessions(
      sessions,
      (window) => {
        this.retention.giveUpAll(window, counters.spent_packets)
        window.active = false
      },
      (window, start, known) => {
        this.retention.giveUpForLeap(window, start, known)
        window.active = false
      },
    )
  }

  /** Sessions followed now. */
  get followed(): number {
    let count = 0
    for (const { active } of this.sessions.windows) if (active) count++
    return count
  }

  /** Share of packets, sources and repairs, that did not come before their block left the window. */
  get loss(): number {
    return this.retention.loss.value
  }

  /** Slots of the symbols that unfinished blocks have at hand. */
  get kept(): number {
    return this.retention.kept
  }

  /** Follows at most `sessions` sessions from now on; those silent longest are forgotten where there are more. */
  follow(sessions: number): void {
    this.sessions.follow(sessions)
  }

  /** Takes the packets of a batch. */
  input(batch: Batch): void {
    const { handles, length } = batch
    const { headers, run } = this
    const { words } = headers
    this.handles = handles
    this.length = length
    this.ordered.begin()
    for (let i = this.read(batch); i < length; i++) {
      const word = words[i]
      if (word < 0) {
        this.discard(handles[i], this.counters.malformed_packets)
        continue
      }
      if ((word & BEGINS_RUN) !== 0) {
        run.end()
        this.said += RUN_WORDS
      }
      const isSource = (word & SOURCE_PACKET) !== 0
      if (!run.begun) {
        const found = this.findRun(i, isSource)
        if (found !== ONE_BY_ONE) {
          i += found - 1
          continue
        }
      }
      if (isSource) i = run.takeSources(handles, words, i, length)
      else run.takeRepair(handles[i], word)
    }
    run.end()
    this.outlet.flush()
  }

  /** Reads the headers of a batch; what the session that was heard last goes on with is taken at once. Returns how many packets that was. */
  private read(batch: Batch): number {
    const { headers, sessions, ordered } = this
    const window = headers.format.progressive ? null : sessions.usual
    this.said = batch.length - RUN_WORDS
    if (!window || window.doubtsNext) {
      headers.read(batch)
      return 0
    }
    this.retention.makeRoom(sessions.windows)
    const taken = ordered.read(batch, headers, window)
    if (taken > 0) {
      sessions.heard(window)
      this.said = ordered.next - RUN_WORDS
    }
    return taken
  }

  /** Gives up every block and forgets every session. */
  reset(): void {
    this.sessions.reset()
  }

  /** The run ends. What was followed stays so, for the last sample. */
  stop(): void {
    for (const window of this.sessions.windows) {
      if (window.active) this.retention.giveUpAll(window, this.counters.held_at_end_packets)
    }
  }

  private discard(packet: number, counter: Counter): void {
    this.packets.release(packet)
    counter.add(1)
  }

  /**
   * Begins the run of the packet at `i`, which `ONE_BY_ONE` says; or returns how many packets are taken: all of runs in their order, or one that no window takes.
   */
  private findRun(i: number, isSource: boolean): number {
    const { said, ordered, sessions } = this
    const { words } = this.headers
    const shape = words[said]
    const block = words[said + RUN_BLOCK]
    const found = sessions.find(words[said + RUN_SESSION], shape >> 8, shape & 255, block, isSource)
    if (typeof found !== 'number') {
      this.retention.makeRoom(sessions.windows)
      if ((words[i] & BEGINS_RUN) !== 0 && !this.headers.format.progressive) {
        const taken = ordered.pass(this.handles, words, found, said, i, this.length, sessions.together)
        if (taken > 0) {
          this.said = ordered.next - RUN_WORDS
          return taken
        }
      }
      found.begin(block)
      this.run.begin(found, block)
      return ONE_BY_ONE
    }
    const packet = this.handles[i]
    if (found === LATE) this.discard(packet, this.counters.late_packets)
    else if (!isSource) this.discard(packet, this.counters.unfollowed_repair_packets)
    else {
      this.packets.trimFront(packet, LENGTH_BYTES)
      this.counters.unfollowed_packets.add(1)
      this.outlet.push(packet)
    }
    return 1
  }
}
