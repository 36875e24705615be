/** The newest blocks of one parity_2d_encoder's session: what has come of each, and the sums of its lines. */
import { ParityGrid } from '../../codes/parity-grid.ts'
import { LineSums } from './parity-sums.ts'

/** Sources that a window spans, about; it is at least as many blocks. */
const WINDOW_SOURCES = 1024
const MIN_PARITY_BLOCKS = 4
/** Sources after which a session is believed, and sources in a row far ahead after which that is. */
export const SOURCES_TO_BELIEVE = 8

/** States of a source in `ParityBlock.sources`; its block has none at that place. */
export const UNSEEN = 0
export const SEEN = 1
export const RECOVERED = 2
const ABSENT = 3

/**
 * States of a block: nothing of it has come; sources are missing; all are there; given up for want of room, its sources pass; from before
 * the session was followed, its sources pass, and nobody knows which of them have passed already.
 */
export const UNKNOWN = 0
export const OPEN = 1
export const DONE = 2
export const SPENT = 3
export const PASSING = 4

/** How many parities a block of so many sources has. */
export function linesOf(sources: number, columns: number): number {
  return Math.ceil(sources / columns) + Math.min(columns, sources)
}

export class ParityBlock {
  state = UNKNOWN
  block = 0
  readonly grid: ParityGrid
  readonly sums: LineSums
  readonly sources: Uint8Array
  /** CRC-32C of the recovered payloads. */
  readonly crc: Uint32Array
  /** Parity packets at hand, plus 1; -1: one has come and is not kept. */
  readonly parities: Int32Array
  /** Sources that came, highest index of one plus 1, and how many there are as far as is known. */
  arrived = 0
  top = 0
  end = 0
  /** Parities that came, and most sources that one of them says its block had so far. */
  parityCount = 0
  covered = 0

  constructor(columns: number, rows: number) {
    this.grid = new ParityGrid(columns, rows)
    this.sums = new LineSums(columns + rows)
    this.sources = new Uint8Array(columns * rows)
    this.crc = new Uint32Array(columns * rows)
    this.parities = new Int32Array(columns + rows)
  }

  /** Nothing of the block with this id has come. */
  begin(block: number): void {
    this.state = OPEN
    this.block = block
    this.grid.begin()
    this.sources.fill(UNSEEN)
    this.parities.fill(0)
    this.arrived = 0
    this.top = 0
    this.end = this.sources.length
    this.parityCount = 0
    this.covered = 0
  }

  /** Whether it is known that it has `end` sources. */
  get isEndKnown(): boolean {
    const most = this.sources.length
    return this.state !== UNKNOWN && (this.end < most || this.top === most || this.covered === most)
  }

  /** How many of its first `sources` have neither come nor been recovered. */
  missing(sources: number): number {
    let count = 0
    for (let i = 0; i < sources; i++) if (this.sources[i] === UNSEEN) count++
    return count
  }

  /** The block has `end` sources and no more. False: a later one has come. */
  endAt(end: number): boolean {
    if (end < this.top) return false
    for (let i = end; i < this.end; i++) {
      if (this.sources[i] !== UNSEEN) continue
      this.sources[i] = ABSENT
      this.grid.fill(i)
    }
    this.end = Math.min(this.end, end)
    return true
  }
}

/**
 * A ring of blocks whose place is their id modulo its size, a power of two; ids are compared in serial arithmetic (RFC 1982). Only sources
 * move the window on: parities, which anybody may have made up, find places of their own for blocks ahead of the newest.
 */
export class ParityWindow {
  readonly session: number
  readonly columns: number
  readonly rows: number
  /** Blocks back from the newest, itself included, that are followed, and as many ahead. */
  readonly span: number
  readonly blocks: ParityBlock[]
  newest = 0
  /** Blocks up to this one are from before the session was followed, if there is a doubt. */
  private doubtful = 0
  private doubt = false
  /** Sources that came, and those in a row that were far off, near each other. */
  heard = 0
  leaping = 0
  /** The first block of the latter. */
  leapTo = 0
  used = 0
  /** Sources of the last block that was given up and known to have had so many, or of the first of which that is known; 0: of none it is. */
  usual = 0

  constructor(session: number, columns: number, rows: number) {
    this.session = session
    this.columns = columns
    this.rows = rows
    let span = MIN_PARITY_BLOCKS
    while (span * columns * rows < WINDOW_SOURCES) span *= 2
    this.span = span
    this.blocks = Array.from({ length: 2 * span }, () => new ParityBlock(columns, rows))
  }

  is(session: number, columns: number, rows: number): boolean {
    return this.session === session && this.columns === columns && this.rows === rows
  }

  /** Whether enough has come of the session to believe it. */
  get proven(): boolean {
    return this.heard >= SOURCES_TO_BELIEVE
  }

  /** A source far off has come, of this block; those near each other are of one leap. */
  noteLeap(id: number): void {
    const ahead = (id - this.leapTo) | 0
    if (Math.abs(ahead) > this.span) this.leaping = 0
    if (this.leaping++ === 0 || ahead < 0) this.leapTo = id
  }

  /** The window begins with this block. `doubtful`: of it or of earlier ones sources may have passed already. */
  open(id: number, doubtful: boolean): void {
    this.newest = id
    this.doubt = doubtful
    this.doubtful = id
  }

  /** The block with this id; when something of it has come, as it is. */
  begin(id: number): ParityBlock {
    const block = this.at(id)
    if (block.state !== UNKNOWN) return block
    block.begin(id)
    if (this.doubt && ((id - this.doubtful) | 0) <= 0) block.state = PASSING
    return block
  }

  at(block: number): ParityBlock {
    return this.blocks[block & (this.blocks.length - 1)]
  }

  /** How far `block` is ahead of the newest. */
  ahead(block: number): number {
    return (block - this.newest) | 0
  }
}
