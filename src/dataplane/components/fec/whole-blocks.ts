/** Blocks of which enough has come in one batch: they are passed on, and what they lack is made, in one call into the addon. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { native } from '../../native/native.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import {
  RUN_BLOCK,
  RUN_LONGEST,
  RUN_PACKETS,
  RUN_REPAIR_BYTES,
  RUN_SESSION,
  RUN_SOURCES,
  RUN_WANTED,
  RUN_WORDS,
} from './block-header.ts'
import type { BlockRetention } from './block-retention.ts'
import { type BlockWindow, DONE } from './block-window.ts'

/** Words of `start`, as `native.blocksPass` has it. */
const RUN = 0
const FIRST = 1
const PLACES = 2
const REPLACES = 3

export class WholeBlocks {
  /** How many packets the blocks have that the last `pass` passed on. */
  packets = 0
  private readonly memory: number
  private readonly random: boolean
  private readonly counters: BlockDecoderCounters
  private readonly retention: BlockRetention
  private readonly outlet: Outlet
  private readonly start = new Int32Array(4)
  /** Their payloads: a block has no more sources than packets that have come. */
  private readonly out = new Int32Array(BATCH_CAPACITY)
  /** The packet with which a block begins at which the last `pass` stopped. */
  private stoppedAt = -1

  /** `random`: repairs are random combinations. */
  constructor(
    memory: number,
    random: boolean,
    counters: BlockDecoderCounters,
    retention: BlockRetention,
    outlet: Outlet,
  ) {
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

  /**
   * Passes on blocks of the window, at most `most`, as long as they follow each other and all of each is in its run: from the run on whose words begin at `run` and
   * whose packets stand from `at` up to `end` in their batch. Returns how many; the next block, where it does not have what it takes, is to be taken packet by packet.
   */
  pass(
    handles: Int32Array,
    words: Int32Array,
    window: BlockWindow,
    run: number,
    at: number,
    end: number,
    most: number,
  ): number {
    const count = at === this.stoppedAt ? 0 : this.ready(words, window, run, at, end, most)
    if (count === 0) return 0
    const { start, out } = this
    start[RUN] = run
    start[FIRST] = at
    start[PLACES] = window.places
    start[REPLACES] = window.orderly ? 1 : 0
    const { symbols, shapes, sums } = window
    const { memory, random } = this
    const passed = native.blocksPass(memory, random, handles, words, start, count, symbols, shapes, sums, out)
    this.outlet.pushAll(out, 0, this.settle(words, window, run, at, passed))
    if (passed < count) this.stoppedAt = at + this.packets
    return passed
  }

  /** How many blocks are whole, with nothing of them come before, each behind the last; the first is the window's newest or the one after. */
  private ready(words: Int32Array, window: BlockWindow, run: number, at: number, end: number, most: number): number {
    const first = words[run + RUN_BLOCK]
    const ahead = window.ahead(first)
    if (ahead !== 0 && ahead !== 1) return 0
    const shape = words[run]
    const session = words[run + RUN_SESSION]
    const limit = Math.min(most, window.span - 1)
    let count = 0
    for (let own = run; at < end && count < limit; own += RUN_WORDS, count++) {
      const block = (first + count) | 0
      if (words[own + RUN_WANTED] === 0 || words[own + RUN_BLOCK] !== block || !window.isNew(block)) break
      if (words[own] !== shape || words[own + RUN_SESSION] !== session) break
      at += words[own + RUN_PACKETS]
    }
    return count
  }

  /** Notes what has come of `count` blocks; returns how many sources they have. */
  private settle(words: Int32Array, window: BlockWindow, run: number, at: number, count: number): number {
    const { counters } = this
    let [packets, sent, redundant, spent, recovered] = [0, 0, 0, 0, 0]
    for (let own = run, n = 0; n < count; n++, own += RUN_WORDS) {
      const sources = words[own + RUN_SOURCES]
      const wanted = words[own + RUN_WANTED]
      const repairs = words[own + RUN_PACKETS] - sources
      const longest = words[own + RUN_LONGEST]
      const block = words[own + RUN_BLOCK]
      const place = window.place(block)
      // What is at its place of a block before has been written over.
      window.state[place] = DONE
      if (block !== window.newest) this.retention.advance(window, block)
      window.sources[place] = sources
      window.repairs[place] = repairs
      window.kept[place] = 0
      window.mixed[place] = 0
      window.top[place] = (words[at + packets + sources - 1] & 255) + 1
      window.longest[place] = longest
      window.closing[place] = wanted
      window.repairBytes[place] = sources < wanted ? words[own + RUN_REPAIR_BYTES] : longest
      window.countSources(sources, false)
      packets += sources + repairs
      sent += wanted
      recovered += wanted - sources
      if (sources === wanted) redundant += repairs
      else spent += repairs
    }
    counters.redundant_packets.add(redundant)
    counters.spent_packets.add(spent)
    counters.recovered_packets.add(recovered)
    this.packets = packets
    return sent
  }
}
