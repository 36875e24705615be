/** Runs of packets that come as they were sent are taken in one call into the addon, and what whole blocks lack is made in it. */
import { Batch } from '../../engine/batch.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { PASS, PASS_WORDS } from '../../native/code-calls.ts'
import { native } from '../../native/native.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { type BlockHeaders, RUN_SESSION } from './block-header.ts'
import type { BlockRetention } from './block-retention.ts'
import type { BlockWindow } from './block-window.ts'

export class OrderedRuns {
  private readonly memory: number
  private readonly random: boolean
  private readonly counters: BlockDecoderCounters
  private readonly retention: BlockRetention
  private readonly outlet: Outlet
  private readonly words = new Int32Array(PASS_WORDS)
  /** Their payloads: a block has no more sources than packets that have come. */
  private readonly sent: Batch
  /** The packet with which a run begins at which the last `pass` stopped. */
  private stoppedAt = -1

  /** `random`: repairs are random combinations. */
  constructor(
    packets: Packets,
    memory: number,
    random: boolean,
    counters: BlockDecoderCounters,
    retention: BlockRetention,
    outlet: Outlet,
  ) {
    this.sent = new Batch(packets)
    this.memory = memory
    this.random = random
    this.counters = counters
    this.retention = retention
    this.outlet = outlet
  }

  /** Another batch is looked at. */
  begin(): void {
    this.stoppedAt = -1
  }

  /** Where the words of the run begin that the last `pass` did not take. */
  get next(): number {
    return this.words[PASS.run]
  }

  /**
   * Reads the headers of a batch, and takes its runs as `pass` does where they are the window's. Returns how many packets it took, which is none where nothing was looked at
   * but the headers.
   */
  read({ handles, length }: Batch, headers: BlockHeaders, window: BlockWindow): number {
    this.words[PASS.first] = 0
    this.prepare(window, length, length)
    const { memory, random, words, sent } = this
    native.blocksPass(memory, random, handles, headers.words, window.words, words, sent.handles, headers.shape)
    // The first run of this session has been looked at, taken or not.
    if (headers.words[length + RUN_SESSION] === window.session) this.stoppedAt = words[PASS.first]
    return this.finish(window, 0)
  }

  /**
   * Takes runs of the window, at most `most`, as long as nothing is out of its order: from the run on whose words begin at `run` and whose packets stand from `at` on,
   * before `end`, in their batch. Returns how many packets it took; the next one, where it is not the end, begins a run that has to be taken packet by packet.
   */
  pass(
    handles: Int32Array,
    headers: Int32Array,
    window: BlockWindow,
    run: number,
    at: number,
    end: number,
    most: number,
  ): number {
    if (at === this.stoppedAt || window.doubtsNext) return 0
    const { memory, random, words, sent } = this
    words[PASS.run] = run
    words[PASS.first] = at
    this.prepare(window, end, Math.min(most, end - at))
    native.blocksPass(memory, random, handles, headers, window.words, words, sent.handles)
    return this.finish(window, at)
  }

  private prepare(window: BlockWindow, end: number, most: number): void {
    const { words } = this
    words[PASS.end] = end
    words[PASS.most] = most
    words[PASS.newest] = window.newest
    words[PASS.places] = window.places
    words[PASS.replaces] = window.orderly ? 1 : 0
    words[PASS.usual] = window.usual
    words[PASS.shape] = (window.k << 8) | window.r
    words[PASS.session] = window.session
  }

  /** What was taken from the packet at `at` on is counted and leaves. */
  private finish(window: BlockWindow, at: number): number {
    const { words, sent } = this
    const taken = words[PASS.first] - at
    if (taken === 0) return 0
    this.stoppedAt = words[PASS.first]
    this.note(window)
    sent.length = words[PASS.sent]
    this.outlet.sendOf(sent, words[PASS.bytes])
    return taken
  }

  /** Counts what was done, and what of it the window's arrays do not say. */
  private note(window: BlockWindow): void {
    const { words, counters, retention } = this
    window.newest = words[PASS.newest]
    window.usual = words[PASS.usual]
    if (words[PASS.sources] > 0) window.countSources(words[PASS.sources], false)
    retention.note(window, words[PASS.held], words[PASS.expected], words[PASS.lost])
    counters.redundant_packets.add(words[PASS.redundant])
    counters.spent_packets.add(words[PASS.spent])
    counters.recovered_packets.add(words[PASS.recovered])
  }
}
