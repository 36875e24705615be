/** What the addon computes for codes: products over GF(2^8), sums, sliding windows, headers of blocks. */

/** In the words of `blockHeaders`: the packet is a source; the packets of a block begin. */
export const SOURCE_PACKET = 1 << 16
export const BEGINS_RUN = 1 << 17

/** Of a window of blocks as `blocksPass` has it: symbols, places of blocks, and words of all its arrays. */
export const WINDOW_SYMBOLS = 4096
export const WINDOW_PLACES = 512
export const WINDOW_WORDS = 3 * WINDOW_SYMBOLS + 2 * WINDOW_PLACES + (2 + 6) * (WINDOW_PLACES / 4)
/** Indices of the words of `pass` of `blocksPass`. */
export const PASS = {
  run: 0,
  first: 1,
  end: 2,
  most: 3,
  newest: 4,
  places: 5,
  replaces: 6,
  sent: 7,
  bytes: 8,
  sources: 9,
  recovered: 10,
  redundant: 11,
  spent: 12,
  held: 13,
  expected: 14,
  lost: 15,
  usual: 16,
  shape: 17,
  session: 18,
} as const
/** How many there are. */
export const PASS_WORDS = 19

export interface CodeCalls {
  /** Kernels of GF(2^8) with polynomial 0x11D that this CPU runs, fastest first; always ends with 'scalar'. */
  gfKernels(): string[]
  /** The kernel in use; `gfUse` picks one (for tests and benches). */
  gfKernel(): string
  gfUse(kernel: string): void
  /**
   * dst_j = sum_i matrix[j * k + i] * src_i for j < m, over `bytes` bytes, all inside the memory's slab.
   * `places` holds absolute offsets in `data`: those of the k sources, then of the m targets, which are overwritten.
   * With `lengths` (k of them), source i counts as zero from `lengths[i]` on; leaving it out is cheaper than null.
   */
  gfMatrixMultiply(
    memory: number,
    matrix: Uint8Array,
    places: Int32Array,
    k: number,
    m: number,
    bytes: number,
    lengths?: Int32Array | null,
  ): void
  /**
   * Makes packets that are products of packets, block by block. `packets` holds for each of `blocks` blocks k sources and room
   * for m, where fresh packets go: those of symbols that are the products of the sources' symbols with `matrix`, m rows of k. A symbol is a
   * packet's bytes from `skip` on; the first `skip` bytes of what is made are the caller's to write. Its annotations are those of the last
   * source of its block, or of the packet `like` (-1: not given).
   *
   * Symbols made are as long as the longest of their block, or `bytes` (0: not given); shorter sources count as padded with zeros,
   * longer ones as far as that. They lie in their slots where the longest source does, or behind headroom where that lies in a train.
   *
   * With `header`, three words (docs/wire-formats.md), each is written one in the first 12 bytes: product j of block b that with j added to the first word and b to
   * the third. With `framed` the packets that the last call of `blockFrame` has put into `packets` are taken to be where it left them, and not looked up again.
   *
   * Returns how many were made: fewer than blocks · m where slots run out, the last ones missing. Throws, with nothing made, where
   * a source is no packet or shorter than `skip`, or a symbol would not fit a slot.
   */
  gfMultiplyPackets(
    memory: number,
    matrix: Uint8Array,
    packets: Int32Array,
    blocks: number,
    k: number,
    m: number,
    skip: number,
    bytes?: number,
    like?: number,
    header?: Int32Array,
    framed?: boolean,
  ): number
  /**
   * As `gfMultiplyPackets` with random coefficients, as `gfRandomMultiply` has them: product j of block b is that of `seed + b · m + j` (u32).
   * There are `more` bytes more in front of the symbol of what is made than in front of a source's. k and m are at most 255. With `header`, as
   * `gfMultiplyPackets` has it, the seed is written in front of the symbol too.
   */
  gfRandomPackets(
    memory: number,
    seed: number,
    packets: Int32Array,
    blocks: number,
    k: number,
    m: number,
    skip: number,
    more: number,
    header?: Int32Array,
    framed?: boolean,
  ): number
  /**
   * Makes packets of the missing sources of a block of the systematic Cauchy code (codes/cauchy.ts). `symbols` has of the block's k sources
   * and r repairs, from `from` on, the packet of each plus 1, where it is at hand; k + r is at most 255. Of the first `wanted` sources those
   * that are not at hand are computed from those that are and from the first repairs. A symbol is all of its packet and counts up to
   * `bytes`; those made have that many, lie as `gfMultiplyPackets` has it, and have the annotations of packet `like`.
   *
   * Returns how many were made, and writes of each to `made` the index of its source, the packet, and the number that its first two bytes
   * are; -1, with nothing made, where there are too few slots. Throws where fewer than `wanted` symbols are at hand, or one is no packet.
   */
  gfRecover(
    memory: number,
    symbols: Int32Array,
    from: number,
    k: number,
    r: number,
    wanted: number,
    bytes: number,
    like: number,
    made: Int32Array,
  ): number
  /**
   * As `gfRecover` for a block of random combinations (`gfRandomMultiply`) of its first `wanted` sources, at most 255 repairs; the seed of each
   * stands in the four bytes in front of its packet (big-endian). All repairs at hand are looked at; -2, with nothing made, where too many of them
   * follow from others.
   */
  gfRecoverRandom(
    memory: number,
    symbols: Int32Array,
    from: number,
    k: number,
    r: number,
    wanted: number,
    bytes: number,
    like: number,
    made: Int32Array,
  ): number
  /** As `gfMatrixMultiply` on plain arrays: `sources` holds k rows and `targets` m rows of `bytes` bytes, `stride` apart. */
  gfMultiplyRows(
    matrix: Uint8Array,
    sources: Uint8Array,
    targets: Uint8Array,
    k: number,
    m: number,
    bytes: number,
    stride: number,
  ): void
  /**
   * As `gfMatrixMultiply` with random coefficients: that of source i in target j is byte i of the stream that `seed + j` (u32) gives. The
   * stream is the words of xoshiro128** 1.1, least significant byte first, its state filled by SplitMix32(seed), as `Random` has it. k and
   * m are at most 255.
   */
  gfRandomMultiply(
    memory: number,
    seed: number,
    places: Int32Array,
    k: number,
    m: number,
    bytes: number,
    lengths?: Int32Array | null,
  ): void
  /**
   * Reduces the combinations that came since the last call and returns how many sources follow that were neither known nor told. Up to
   * `room` of them are named in `found`; when that is all, their symbols of `bytes` bytes are written to `targets`, and they are told.
   *
   * `table` is a system of at most c sources and r combinations, 255 each: words for c and r, for its sources, for its combinations that have come, two
   * that are this function's, 0 at first (rows, combinations in them), `room` and `bytes`. Then lists: of c sources their places in the slab
   * (-1: not known, -2: told) and bytes, `found`, `targets`; of r combinations their places, bytes, seeds, and how many sources, from the
   * first on, each is one of. Then, this function's, r pivots and r rows of (c + r) bytes, rounded up to 64. `Elimination` keeps all that.
   */
  gfSolve(memory: number, table: Int32Array): number
  /**
   * Writes the headers of sources of block codes (docs/wire-formats.md) in front of `packets[from..end)`, and puts their handles into `symbols`, until the packets
   * or the blocks end. `state`: the first word without the index, session and closing byte, block, index of the next source; bytes that have to be free in front
   * of a payload; sources of a block; where in `symbols` the block's begin, and how far behind it those of the next do; how many blocks may become full;
   * the closing byte behind a full block. All of that is brought up to date, but where the last of those blocks is full the index stays as
   * many as sources. A packet without room, or longer than 65,535 bytes, is released; the next word says how many were. With `copies`, of 255, sources that were added to the block
   * at hand are copied, as `packetsCopy` does, where it has fewer than the next word says: the last word says how many. Returns the index of the first packet that was not
   * taken. Throws, with nothing changed, where a handle is no packet or `state` cannot be.
   */
  blockFrame(
    memory: number,
    packets: Int32Array,
    from: number,
    end: number,
    state: Int32Array,
    symbols: Int32Array,
    copies?: Int32Array,
  ): number
  /**
   * Reads the headers of `count` packets of a block code (docs/wire-formats.md) and cuts them off, up to their symbols. `format`: the
   * first bytes of source and repair packets, bytes of a repair in front of its symbol, most sources and repairs of a block together, and 1
   * where a source's closing byte says how many the block before has.
   *
   * `headers` gets a word for each packet: its index, 256 times its closing byte, plus `SOURCE_PACKET` for a source and `BEGINS_RUN` where
   * another block, session or shape begins than that of the last packet with a header; -1 where it has none, and nothing is cut off.
   * Behind those words follow eight for each that begins, a run of packets: 256 k + r, the session, the block, how many packets and how many
   * sources come, how many sources the block has, bytes of the longest source's symbol and of the last repair's. How many it has is 0 unless as many symbols
   * are in the run, sources in their order before repairs in theirs, with nothing else between them, and go together. It has room
   * for 9 · count words. Throws, with nothing changed, where a handle is no packet.
   */
  blockHeaders(memory: number, packets: Int32Array, count: number, format: Int32Array, headers: Int32Array): void
  /**
   * Copies `packets[from..end)`, bytes and annotations, into slots of their own, where the copies lie as the packets do, or behind headroom where those lie in a
   * train. The handles go into `copies`. Returns how many: fewer where slots run out, or a packet of a train is longer than a slot has room for. Throws, with nothing changed, where a handle is
   * no packet.
   */
  packetsCopy(memory: number, packets: Int32Array, from: number, end: number, copies: Int32Array): number
  /**
   * Takes runs of packets that come as they were sent: whole blocks, sources of a block that goes on in the next batch, the rest of such a block, and repairs of one whose
   * sources have all come. `packets` and `headers` are those of `blockHeaders`, `random` says which code it is, as `gfRecover` or `gfRecoverRandom` have it. `window` has the arrays of a
   * decoder's window of blocks (block-window.ts), which are brought up to date.
   *
   * `pass`: the index in `headers` of the words of the first run, that in `packets` of its first packet, and where the packets end; most runs to take; the newest block of the
   * window; how many places it has, a power of two; and 1 where a recovered source that others have overtaken is REPLACED. The runs taken are those of the session that
   * the last two words name: 256 k + r, and its id. In place of the first two stand then those of the next run, which is as it was: something is missing that is not in it, was overtaken, came again or
   * contradicts what came, or slots are too few. The newest block is brought up to date too. Behind them is said how many packets are in `out`, and their bytes; how many sources came,
   * were recovered, repairs were not needed, or needed; how many copies are kept more than before; of the blocks that left the window how many packets
   * were sent and how many of these did not come, and how many sources the last of them had (as it was where none left).
   *
   * With `format` the headers of all packets are read first, as `blockHeaders` does, and the first run and the first packet are those at the beginning.
   *
   * `out` gets the packets of the payloads, of each block its sources as they came, then those that were recovered, with the annotations of its last packet;
   * repairs are released. Throws at a packet that cannot be, with the runs in front of it taken.
   */
  blocksPass(
    memory: number,
    random: boolean,
    packets: Int32Array,
    headers: Int32Array,
    window: Int32Array,
    pass: Int32Array,
    out: Int32Array,
    format?: Int32Array,
  ): void
  /**
   * Adds regions of the memory's slab to others by exclusive or, one step after the other. A step is four words of `steps`: the target's
   * place and how many bytes it has, the source's place and its bytes; what a target does not have yet counts as zero, and it has as many
   * as the longer of both afterwards. Steps in a row that add a source to one sum and to another, with the first sum the same, are done in one pass: regions of
   * one call that overlap have to begin at the same place, or the sums are none. `widest` bounds the vectors used, in bytes (for tests and benches).
   */
  xorAdd(memory: number, steps: Int32Array, count: number, widest?: number): void

  /**
   * Opens a sliding window (sliding_window.h) of the newest `places` symbols, a power of two, 64 to 8,192, of 2 to `symbolBytes` (at most
   * 65,537) bytes. `kept`, a power of two as well, is how many of those that `slidingEncode` adds outlive it (default: all). It is this thread's, and goes
   * with it when it is not closed. Sequence numbers are 32 bits, signed or not.
   */
  slidingOpen(places: number, symbolBytes: number, kept?: number): number
  slidingClose(window: number): void
  /** Makes room for `places` symbols in all, no fewer than there are. */
  slidingGrow(window: number, places: number): void
  /** Copies `count` symbols out of the slab: `sources` has sequence, place and bytes of each. */
  slidingKeep(window: number, memory: number, sources: Int32Array, count: number): void
  /**
   * Adds `added` symbols, `sources` as of `slidingKeep`, and makes the repairs `from` to `end` (not included) of a list: first source, how many of them
   * (1 to 4,096), key, place and room of each. The bytes of each stand where its room did. The symbols are read where they lie; only the newest are
   * copied. Throws RangeError when a source is not at hand, or longer than the room.
   */
  slidingEncode(
    window: number,
    memory: number,
    sources: Int32Array,
    added: number,
    repairs: Int32Array,
    from: number,
    end: number,
  ): void
  /**
   * Copies `added` symbols as `slidingKeep` does and takes the repair of `bytes` bytes at `at` over `count` sources from `first` on. Returns how many sources it recovered, or -1: it says nothing new,
   * -2: there is no room for it, -3: it contradicts what has come, and the equations may be forgotten. `found[0]` is how many equations
   * there are now, `found[1..]` the sources recovered, in ascending order; it has 4,097 elements.
   */
  slidingTake(
    window: number,
    memory: number,
    sources: Int32Array,
    added: number,
    first: number,
    count: number,
    key: number,
    at: number,
    bytes: number,
    found: Int32Array,
  ): number
  /** Copies the symbol of a source that was missing and uses it in the equations; as `slidingTake`. */
  slidingResolve(window: number, memory: number, sequence: number, at: number, bytes: number, found: Int32Array): number
  /** Writes a symbol to the slab, unless it is longer than `room`; returns its bytes, 0 when it is not at hand. */
  slidingRead(window: number, memory: number, sequence: number, at: number, room: number): number
  /** False when the symbol at hand differs from that in the slab. */
  slidingMatches(window: number, memory: number, sequence: number, at: number, bytes: number): boolean
  /** Forgets the symbol of a source, which takes a place from others. */
  slidingDrop(window: number, sequence: number): void
  /** Gives up what is missing below `sequence`; returns how many equations there are. */
  slidingForget(window: number, sequence: number): number
  /** Forgets every symbol and equation. */
  slidingReset(window: number): void
}
