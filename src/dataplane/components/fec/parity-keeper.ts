/** What a parity decoder keeps of unfinished blocks: the sums of lines and parities at hand, how much of them, what is given up first. */
import type { Counter } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { type BlockDecoderCounters, LossShare, lostInOutage } from './block-counters.ts'
import type { ParitySums } from './parity-sums.ts'
import { DONE, linesOf, OPEN, PASSING, type ParityBlock, type ParityWindow, SPENT, UNKNOWN } from './parity-window.ts'

export class ParityKeeper {
  /** Share of packets, sources and parities, that did not come before their block left the window. */
  readonly loss = new LossShare()
  private readonly packets: Packets
  private readonly counters: BlockDecoderCounters
  private readonly adding: ParitySums
  /** Parity packets at hand, and how many slots those and the sums may take. */
  private parities = 0
  private readonly most: number

  constructor(packets: Packets, counters: BlockDecoderCounters, adding: ParitySums) {
    this.packets = packets
    this.counters = counters
    this.adding = adding
    this.most = packets.slots >> 2
  }

  /** Slots of sums and parities of unfinished blocks. */
  get kept(): number {
    return this.adding.held + this.parities
  }

  keepParity(block: ParityBlock, line: number, packet: number): void {
    block.parities[line] = packet + 1
    this.parities++
    this.counters.held_packets.add(1)
  }

  /** The parity of a line is no longer at hand; its packet is the caller's. */
  takeParity(block: ParityBlock, line: number): number {
    const packet = block.parities[line] - 1
    block.parities[line] = -1
    this.parities--
    this.counters.held_packets.add(-1)
    return packet
  }

  dropParity(block: ParityBlock, line: number, counter: Counter): void {
    this.packets.release(this.takeParity(block, line))
    counter.add(1)
  }

  /** Nothing of a line is needed any more; `counter` counts its parity. */
  closeLine(block: ParityBlock, line: number, counter: Counter): void {
    this.adding.release(block.sums, line)
    if (block.parities[line] > 0) this.dropParity(block, line, counter)
  }

  /** All of a block is there, or it is given up. */
  close(block: ParityBlock, state: number, counter: Counter): void {
    if (block.state === OPEN) {
      for (let line = 0; line < block.parities.length; line++) this.closeLine(block, line, counter)
    }
    block.state = state
  }

  /** Gives up blocks when too much is kept: the oldest of the session silent longest first, until an eighth of what may be is free. */
  makeRoom(windows: readonly (ParityWindow | null)[]): void {
    if (this.kept <= this.most) return
    const goal = this.most - (this.most >> 3)
    while (this.kept > goal) {
      let oldest: ParityBlock | null = null
      let used = Number.POSITIVE_INFINITY
      for (const window of windows) {
        if (!window || window.used >= used) continue
        const found = this.oldestKept(window)
        if (!found) continue
        oldest = found
        used = window.used
      }
      if (!oldest) break
      this.close(oldest, SPENT, this.counters.spent_packets)
    }
    this.adding.run()
  }

  private oldestKept(window: ParityWindow): ParityBlock | null {
    for (let n = 1; n <= window.blocks.length; n++) {
      const block = window.at(window.newest + window.span + n)
      if (block.state !== OPEN) continue
      for (let line = 0; line < block.parities.length; line++) {
        if (block.parities[line] > 0 || block.sums.slot[line] > 0) return block
      }
    }
    return null
  }

  /** Moves the window on by one block, giving up the one that falls out of it. */
  advance(window: ParityWindow): void {
    window.newest = (window.newest + 1) | 0
    this.giveUp(window, window.newest - window.span, window.proven)
    window.begin(window.newest)
  }

  /** Gives up all blocks of a session. `kept` counts the parities that were still kept. */
  leave(window: ParityWindow, kept = this.counters.spent_packets): void {
    // Of the newest block more may be on its way, so nothing is counted as lost there.
    this.giveUpBefore(window, window.newest, kept)
  }

  /** Gives up all blocks of a session that has gone on with the block `start`, far ahead, after an outage: what those between lack counts as lost. */
  leap(window: ParityWindow, start: number): void {
    const { newest, span, columns, rows } = window
    let blocks = window.ahead(start) - 1
    for (let ahead = 1; ahead <= span; ahead++) if (window.at(newest + ahead).state !== UNKNOWN) blocks--
    this.giveUpBefore(window, start, this.counters.spent_packets)
    const usual = window.usual || columns * rows
    const lost = window.proven ? lostInOutage(blocks * usual) : 0
    if (lost === 0) return
    const expected = lost + blocks * linesOf(usual, columns)
    this.loss.add(expected, expected)
    this.counters.unrecovered_packets.add(lost)
  }

  /** Gives up all blocks; what those before `end` lack is counted. */
  private giveUpBefore(window: ParityWindow, end: number, kept: Counter): void {
    const { newest, span, proven } = window
    const before = window.ahead(end)
    for (let ahead = 1 - span; ahead <= span; ahead++)
      this.giveUp(window, newest + ahead, proven && ahead < before, kept)
  }

  /** Counts what a block lacks, when that is to be `counted`, and lets go of what is kept of it. */
  private giveUp(window: ParityWindow, id: number, counted: boolean, kept = this.counters.spent_packets): void {
    const block = window.at(id)
    if (block.state === UNKNOWN) return
    if (counted && block.state !== PASSING) {
      const sources = this.sourcesOf(window, block, id)
      const expected = sources + linesOf(sources, window.columns)
      this.loss.add(expected, Math.max(0, expected - block.arrived - block.parityCount))
      if (block.state !== DONE) this.counters.unrecovered_packets.add(block.missing(sources))
    }
    this.close(block, UNKNOWN, kept)
  }

  /** How many sources a block had. Where nothing says it, it is taken for one like those before, or like the first of which it is known. */
  private sourcesOf(window: ParityWindow, block: ParityBlock, id: number): number {
    if (block.isEndKnown) {
      window.usual = block.end
      return block.end
    }
    for (let next = id + 1; window.usual === 0 && window.ahead(next) <= 0; next++) {
      if (window.at(next).isEndKnown) window.usual = window.at(next).end
    }
    return Math.max(block.top, window.usual || block.end, block.covered)
  }
}
