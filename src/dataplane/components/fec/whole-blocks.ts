/** Blocks of which enough has come in one batch: they are passed on, and what they lack is made, in one call into the addon. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { native } from '../../native/native.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { RUN_BLOCK, RUN_LONGEST, RUN_PACKETS, RUN_REPAIR_BYTES, RUN_SOURCES, RUN_WANTED } from './block-header.ts'
import type { BlockRetention } from './block-retention.ts'
import { BlockWindow, DONE, OPEN, RECOVERED } from './block-window.ts'

/** Words of a block, as `native.blocksPass` has them. */
const PACKETS = 1
const SOURCES = 2
const WANTED = 3
const REPAIR_BYTES = 4
const BASE = 5
const JOB_WORDS = 8

/** The blocks that wait follow each other, the first of them the newest of its window or the one after. */
export class WholeBlocks {
  count = 0
  private readonly packets: Packets
  private readonly memory: number
  private readonly random: boolean
  private readonly counters: BlockDecoderCounters
  private readonly retention: BlockRetention
  private readonly outlet: Outlet
  private window = new BlockWindow()
  /** The block of the first that waits. */
  private first = 0
  private readonly jobs = new Int32Array(JOB_WORDS * BATCH_CAPACITY)
  private readonly longest = new Int32Array(BATCH_CAPACITY)
  private readonly out = new Int32Array(BATCH_CAPACITY * 255)

  /** `random`: repairs are random combinations. */
  constructor(
    packets: Packets,
    memory: number,
    random: boolean,
    counters: BlockDecoderCounters,
    retention: BlockRetention,
    outlet: Outlet,
  ) {
    this.packets = packets
    this.memory = memory
    this.random = random
    this.counters = counters
    this.retention = retention
    this.outlet = outlet
  }

  /** Whether the run whose words begin at `run` is the next block of those that wait; where it is not, they are to be passed before it is looked at. */
  continues(words: Int32Array, run: number, session: number, shape: number): boolean {
    const { count, window } = this
    if (count === 0) return true
    return (
      words[run + RUN_WANTED] > 0 &&
      words[run + RUN_BLOCK] === ((this.first + count) | 0) &&
      count < window.span - 1 &&
      window.is(session, shape >> 8, shape & 255)
    )
  }

  /**
   * Takes the block of a run, whose packets stand from `at` on in their batch, into those that wait; false: not all of it is in the run, or something of it has come
   * before. What others that wait are there, it `continues`.
   */
  add(words: Int32Array, run: number, window: BlockWindow, at: number): boolean {
    const wanted = words[run + RUN_WANTED]
    const block = words[run + RUN_BLOCK]
    const place = window.place(block)
    if (wanted === 0 || window.state[place] !== OPEN || window.sources[place] > 0 || window.repairs[place] > 0)
      return false
    const { jobs, count } = this
    if (count > 0 ? window !== this.window : window.ahead(block) !== 0 && window.ahead(block) !== 1) return false
    if (count === 0) {
      this.window = window
      this.first = block
    }
    const job = JOB_WORDS * count
    jobs[job] = at
    jobs[job + PACKETS] = words[run + RUN_PACKETS]
    jobs[job + SOURCES] = words[run + RUN_SOURCES]
    jobs[job + WANTED] = wanted
    jobs[job + REPAIR_BYTES] = words[run + RUN_REPAIR_BYTES]
    jobs[job + BASE] = place * window.stride
    jobs[job + 6] = window.k
    jobs[job + 7] = window.orderly ? 1 : 0
    this.longest[count] = words[run + RUN_LONGEST]
    // Nobody is to give it up for want of room.
    window.state[place] = DONE
    this.count++
    return true
  }

  /**
   * Passes on those that wait, up to one of which what is missing cannot be made at once. Returns the index in the batch of that one's first packet, -1
   * where there is none: `block`, of `size` packets, is to be taken packet by packet, and those behind it wait still.
   */
  pass(handles: Int32Array, words: Int32Array): number {
    const { count, jobs, window, out, outlet } = this
    const passed = native.blocksPass(
      this.memory,
      this.random,
      handles,
      words,
      jobs,
      count,
      window.symbols,
      window.shapes,
      out,
    )
    let sent = 0
    for (let n = 0; n < passed; n++) sent = this.settle(words, n, sent)
    for (let n = 0; n < sent; n++) outlet.push(out[n])
    if (passed === count) {
      this.count = 0
      return -1
    }
    const at = jobs[JOB_WORDS * passed]
    this.size = jobs[JOB_WORDS * passed + PACKETS]
    this.block = (this.first + passed) | 0
    window.state[window.place(this.block)] = OPEN
    jobs.copyWithin(0, JOB_WORDS * (passed + 1), JOB_WORDS * count)
    this.longest.copyWithin(0, passed + 1, count)
    this.count = count - passed - 1
    this.first = (this.block + 1) | 0
    return at
  }

  /** Of the block that `pass` has stopped at. */
  block = 0
  size = 0

  /** The window of the blocks that wait. */
  get owner(): BlockWindow {
    return this.window
  }

  /** Notes what has come of the nth block, whose payloads stand from `sent` on; returns where the next one's do. */
  private settle(words: Int32Array, n: number, sent: number): number {
    const { window, jobs, counters } = this
    const job = JOB_WORDS * n
    const sources = jobs[job + SOURCES]
    const wanted = jobs[job + WANTED]
    const repairs = jobs[job + PACKETS] - sources
    const block = (this.first + n) | 0
    const place = window.place(block)
    const isNewest = block === window.newest
    if (!isNewest) this.retention.advance(window, block)
    const top = (words[jobs[job] + sources - 1] & 255) + 1
    window.sources[place] = sources
    window.repairs[place] = repairs
    window.top[place] = top
    window.longest[place] = this.longest[n]
    window.closing[place] = wanted
    window.repairBytes[place] = sources < wanted ? jobs[job + REPAIR_BYTES] : this.longest[n]
    window.countSources(sources, false)
    if (sources === wanted) counters.redundant_packets.add(repairs)
    else {
      counters.spent_packets.add(repairs)
      counters.recovered_packets.add(wanted - sources)
      this.sum(jobs[job + BASE], wanted, sent + sources)
    }
    return sent + wanted
  }

  /** Notes how to know those recovered again that may still come: their packets stand from `made` on. */
  private sum(base: number, wanted: number, made: number): void {
    const { window, packets, memory, out } = this
    let at = made
    for (let symbol = base; symbol < base + wanted; symbol++) {
      const fate = window.symbols[symbol]
      if (fate > RECOVERED) continue
      const packet = out[at++]
      if (fate === RECOVERED)
        window.sums[symbol] = native.crc32c(memory, packets.offset[packet], packets.length[packet])
    }
  }
}
