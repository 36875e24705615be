/** The newest blocks of one encoder's session: which symbols have come, and where those lie that decoding may need. */

import { WINDOW_PLACES, WINDOW_SYMBOLS, WINDOW_WORDS } from '../../native/code-calls.ts'

/** Symbols that a window spans, about; it is at least `MIN_BLOCKS` blocks, at most `MAX_BLOCKS`. */
export const SPANNED_SYMBOLS = WINDOW_SYMBOLS / 4
const MIN_BLOCKS = 4
/** There are as many places again, for blocks ahead of the newest, of which repairs come before the first source. */
const MAX_BLOCKS = WINDOW_PLACES / 2

/** Source packets after which a session is believed, and in a row after which of two windows of one session it is this one. */
export const SOURCES_TO_PROVE = 8
/** Sources in order after which those that are missing are taken for lost, not for late. */
const SOURCES_IN_ORDER = 4096

/** Values of `BlockWindow.symbols`; above 0 it is the packet that holds the symbol, plus 1. */
export const UNSEEN = 0
/** Has come and is not kept. */
export const SEEN = -1
/** Has been recovered, and `sums` says how to know it when it comes after all. */
export const RECOVERED = -2
/** Has been recovered; it will hardly come. */
export const REPLACED = -3

/**
 * Block states: not of this session as far as is known; collecting; all sources there or given up; given up for want of room,
 * its sources pass; from before the session was followed, its sources pass, and nobody knows which of them have passed already.
 */
export const UNKNOWN = 0
export const OPEN = 1
export const DONE = 2
export const SPENT = 3
const PASSING = 4

function spanOf(stride: number): number {
  let blocks = MIN_BLOCKS
  while (blocks < MAX_BLOCKS && blocks * stride < SPANNED_SYMBOLS) blocks *= 2
  return blocks
}

/**
 * A ring of blocks, made once and used for one session after another; a block's place is its id modulo the number of
 * places, a power of two, so that ids wrap around at 2^32. Arrays are indexed by place, `symbols` by place · (k + r) + index, where
 * sources come first. Only sources move the window on: repairs, which anybody may have made up, cannot push blocks out of it.
 */
export class BlockWindow {
  /** In use. */
  active = false
  /** Has had enough sources to be believed. */
  proven = false
  /** Has had a source. */
  sourced = false
  session = 0
  k = 0
  r = 0
  stride = 0
  /** Blocks back from the newest, itself included, that are followed. */
  span = 0
  places = 0
  newest = 0
  /** The block that it began with, and how many before that something has come of since. */
  start = 0
  earlier = 0
  /** Sources that came since another window of its session was heard. */
  alone = 0
  /** When it was taken up and when its last run of packets began, by the sessions' count. */
  opened = 0
  used = 0
  /** Packets kept for decoding, of all its blocks. */
  held = 0
  /** Sources of the last block that was given up and known to have had so many, or of the first of which that is known; 0: of none it is. */
  usual = 0
  private sourcePackets = 0
  /** Sources that came one after the other since one was overtaken. */
  private inOrder = 0
  /** Blocks up to this one are from before the session was followed. */
  private doubtful = 0
  private doubt = false
  /** All of the arrays below one behind the other, for the addon (ordered_runs.cc). */
  readonly words = new Int32Array(WINDOW_WORDS)
  readonly symbols = this.words.subarray(0, WINDOW_SYMBOLS)
  /** CRC-32C of the recovered payloads, as a signed number. */
  readonly sums = this.words.subarray(WINDOW_SYMBOLS, 2 * WINDOW_SYMBOLS)
  /** Of each repair the shape that it came in last, also of one that was dropped since; 0 where none has come. */
  readonly shapes = this.words.subarray(2 * WINDOW_SYMBOLS, 3 * WINDOW_SYMBOLS)
  /** Bytes of the longest source symbol. */
  readonly longest = this.words.subarray(3 * WINDOW_SYMBOLS, 3 * WINDOW_SYMBOLS + WINDOW_PLACES)
  /** Bytes of the shortest repair symbol at hand, 0 where there is none. */
  readonly repairBytes = this.words.subarray(3 * WINDOW_SYMBOLS + WINDOW_PLACES, 3 * WINDOW_SYMBOLS + 2 * WINDOW_PLACES)
  /** Symbols at hand for decoding. */
  readonly kept = new Uint16Array(this.words.buffer, this.repairBytes.byteOffset + 4 * WINDOW_PLACES, WINDOW_PLACES)
  readonly state = this.bytesBehind(this.kept)
  /** Sources that came. */
  readonly sources = this.bytesBehind(this.state)
  /** Repairs that came. */
  readonly repairs = this.bytesBehind(this.sources)
  /** Sources of the block as its repairs say (the most, where they differ), or as the next block says; 0: not known. */
  readonly closing = this.bytesBehind(this.repairs)
  /** Highest index of a source that came, plus 1. */
  readonly top = this.bytesBehind(this.closing)
  /** 1 while the repairs at hand differ in length or in what they say of the block. */
  readonly mixed = this.bytesBehind(this.top)

  private bytesBehind({ buffer, byteOffset, byteLength }: Uint8Array | Uint16Array): Uint8Array {
    return new Uint8Array(buffer, byteOffset + byteLength, WINDOW_PLACES)
  }

  /** Takes up a session; its window begins with `block`. `doubtful`: the last of the blocks that were not followed from their start. */
  open(session: number, k: number, r: number, block: number, doubtful?: number): void {
    this.active = true
    this.proven = false
    this.sourced = false
    this.session = session
    this.k = k
    this.r = r
    this.stride = k + r
    this.usual = 0
    this.span = spanOf(this.stride)
    this.places = 2 * this.span
    this.newest = block
    this.start = block
    this.earlier = 0
    this.alone = 0
    this.sourcePackets = 0
    this.inOrder = 0
    this.doubt = doubtful !== undefined
    this.doubtful = doubtful ?? 0
    this.state.fill(UNKNOWN)
  }

  is(session: number, k: number, r: number): boolean {
    return this.active && this.session === session && this.k === k && this.r === r
  }

  place(block: number): number {
    return block & (this.places - 1)
  }

  /** How far `block` is ahead of the newest, in serial arithmetic (RFC 1982). */
  ahead(block: number): number {
    return (block - this.newest) | 0
  }

  /** Whether `block` is in the window, or at most as far ahead as the window is long. */
  reaches(block: number): boolean {
    const ahead = this.ahead(block)
    return ahead > -this.span && ahead <= this.span
  }

  /** Whether something of `block`, which it reaches, has come. */
  knows(block: number): boolean {
    return this.state[this.place(block)] !== UNKNOWN
  }

  /** Whether the newest block, or the one after it, may be from before the session was followed. */
  get doubtsNext(): boolean {
    return this.isDoubtful(this.newest)
  }

  private isDoubtful(block: number): boolean {
    return this.doubt && ((block - this.doubtful) | 0) <= 0
  }

  /** Counts sources; `overtaken`: one of them by another one of its session. */
  countSources(count: number, overtaken: boolean): void {
    this.sourced = true
    this.sourcePackets += count
    this.alone += count
    if (this.sourcePackets >= SOURCES_TO_PROVE) this.proven = true
    this.inOrder = overtaken ? 0 : this.inOrder + count
  }

  /** Whether nothing says that sources overtake each other here. */
  get orderly(): boolean {
    return this.inOrder > SOURCES_IN_ORDER
  }

  /** A source of `bytes` bytes has come; whether one behind it has come before. */
  noteSource(place: number, index: number, bytes: number): boolean {
    if (bytes > this.longest[place]) this.longest[place] = bytes
    if (index < this.top[place]) return true
    this.top[place] = index + 1
    return false
  }

  /** Makes room for `block`, whose place is that of a block long given up, unless something of it has come. */
  begin(block: number): void {
    const place = this.place(block)
    if (this.state[place] !== UNKNOWN) return
    if (((block - this.start) | 0) < 0) this.earlier++
    const at = place * this.stride
    const { symbols, shapes, stride } = this
    for (let n = at; n < at + stride; n++) {
      symbols[n] = UNSEEN
      shapes[n] = 0
    }
    this.state[place] = this.isDoubtful(block) ? PASSING : OPEN
    this.sources[place] = 0
    this.repairs[place] = 0
    this.kept[place] = 0
    this.closing[place] = 0
    this.top[place] = 0
    this.mixed[place] = 0
    this.longest[place] = 0
    this.repairBytes[place] = 0
  }

  /** Shape of the repair at `at`; 0 where none is at hand. */
  shapeAt(at: number): number {
    return this.symbols[at] > UNSEEN ? this.shapes[at] : 0
  }

  /** Notes the shapes of the repairs at hand, and `another` unless it is 0; returns how many, at most one more than `shapes` has room for. */
  shapesOf(place: number, another: number, shapes: Int32Array): number {
    const from = place * this.stride + this.k
    let count = 0
    for (let at = from; at <= from + this.r; at++) {
      const shape = at < from + this.r ? this.shapeAt(at) : another
      let n = 0
      while (n < count && shapes[n] !== shape) n++
      if (shape === 0 || n < count) continue
      if (count === shapes.length) return count + 1
      shapes[count++] = shape
    }
    return count
  }
}
