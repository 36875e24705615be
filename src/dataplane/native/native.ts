/** Typed face of the native addon: batched sockets and TUN, epoll, CPU affinity, GF(2^8) kernels, AEAD and ChaCha in batches. */
import { createRequire } from 'node:module'
import { workerData } from 'node:worker_threads'
import { packageRoot } from '../../package-root.ts'

/**
 * The memory of one run's packets, as typed arrays over SharedArrayBuffers. Slot `h` owns the bytes
 * `[h * slotBytes, (h + 1) * slotBytes)` of `data`; its packet lies at `offset[h]` (absolute in `data`) and is
 * `length[h]` bytes long. Fresh packets start at `h * slotBytes + headroom` and end `tailroom` before the slot's end.
 */
export interface PacketMemory {
  /** Slab bytes: `slots * slotBytes` of the slots, then `trains * TRAIN_BYTES` of the trains. */
  readonly data: Uint8Array
  /** First byte of each packet, absolute in `data`. */
  readonly offset: Int32Array
  /** Bytes of each packet. */
  readonly length: Int32Array
  /** Arrival time of each packet, nanoseconds on the run's clock. */
  readonly arrival: Float64Array
  /** Remote address of each packet: 32-byte records, see `REMOTE_BYTES`. */
  readonly remote: Uint8Array
  /** Client id of each packet, -1 where it has none. */
  readonly client: Float64Array
  /** Free slots: `free[0]` is how many, `free[1..free[0]]` the stack of handles, the top last. */
  readonly free: Int32Array
  /** The train each packet's bytes lie in, -1 where they lie in its own slot. */
  readonly train: Int32Array
  /** Packets in each train. Train `t` owns the `TRAIN_BYTES` bytes of `data` from `slots * slotBytes + t * TRAIN_BYTES` on. */
  readonly trainReferences: Int32Array
  /** Free trains: a stack like `free`. */
  readonly trainFree: Int32Array
  readonly slotBytes: number
  readonly headroom: number
  readonly tailroom: number
}

/**
 * A remote address record: u8 family (0 none, 4, 6), u8 reserved, u16 port (host order), u32 scope id (host order),
 * 16 address bytes (IPv4 uses the first 4), 8 reserved. Host order means a Uint16Array view reads it.
 */
export const REMOTE_BYTES = 32

/** Longest train of datagrams that UDP_GRO brings in one piece, bytes. */
export const TRAIN_BYTES = 65536

/** UDP_GRO/UDP_SEGMENT (2), recvmmsg/sendmmsg (1), recvfrom/sendto one by one (0). */
export type UdpBackendCode = 0 | 1 | 2

export interface UdpOpenOptions {
  /** `UdpBackend` of the configuration. */
  backend: UdpBackendCode
  /** Bound here; absent: an ephemeral port of `family`. */
  local?: { address: string; port: number }
  /** Connected to this; absent: unconnected, `udpSend` uses each packet's remote record. */
  remote?: { address: string; port: number }
  /** 4 or 6, used when neither address says. */
  family: 4 | 6
  /** SO_BINDTODEVICE. */
  interface?: string
  /** SO_RCVBUF and SO_SNDBUF, bytes (the FORCE twins are tried first). */
  bufferBytes?: number
  multicastGroup?: string
  multicastTtl?: number
  /** Longest datagram taken; longer ones are dropped and counted by `udpReceive`. */
  mtu: number
  /** Of the backend 2: packets that come alone carry the time at which the kernel took them in, not that of the call that brings them. */
  arrivalTimes?: boolean
}

export interface TcpOptions {
  /** Numeric. */
  address: string
  port: number
  /** Packets travel as frames: u32 length, big-endian, 1 to 65,535, then as many bytes. Else the bytes are a stream without bounds. */
  framed: boolean
}

export interface UnixOptions {
  /** A path, or `@name` in the abstract namespace; 107 bytes at most. */
  name: string
  /** Longest packet taken; longer ones are dropped and counted. */
  mtu: number
}

export interface TunOpenOptions {
  /** 'tun' carries IP packets, 'tap' Ethernet frames. */
  kind: 'tun' | 'tap'
  name: string
  /** Addresses to put on the interface. */
  address: string
  /** Prefix length; from `netmask`. */
  prefix: number
  mtu: number
  defaultRoute: boolean
  /** IFF_VNET_HDR with checksum, TSO4/6 and USO offloads: GSO frames are split and GRO runs joined in the addon. */
  offload: boolean
}

/** A network interface as it is now. */
export interface InterfaceState {
  mtu: number
  up: boolean
  addresses: string[]
}

/** In the words of `blockHeaders`: the packet is a source; the packets of a block begin. */
export const SOURCE_PACKET = 1 << 16
export const BEGINS_RUN = 1 << 17

/** Packets, the newest of a sender and those before it, among which `aeadOpenPackets` knows what has come. */
export const REPLAY_WINDOW = 1024

/** What became of a packet, as `aeadOpenPackets` writes it. */
export const AEAD_OUTCOMES = { opened: 0, forged: 1, replayed: 2, malformed: 3 } as const

/** Counters a receive or send call adds to; a Float64Array of `IO_COUNTERS.length`. */
export const IO_COUNTERS = [
  'oversize', // datagrams longer than the mtu, dropped
  'noSlot', // datagrams dropped because no slot was free
  'socketErrors', // ECONNREFUSED and its like
  'sendErrors', // packets the kernel refused for good (EMSGSIZE, ENETUNREACH, EPERM, no remote address), consumed
  'sendBlocked', // times the kernel's buffer was full (EAGAIN/ENOBUFS): the packets stay with the caller
  'malformed', // frames a TUN device could not split, lengths that no frame of a connection has
] as const

/** What can do authenticated encryption. */
export type AeadBackendName = 'ipsec-mb' | 'openssl'

export interface AeadBackendState {
  name: AeadBackendName
  /** '' where it was not found. */
  version: string
  /** Why it cannot be used; absent where it can. */
  obstacle?: {
    /**
     * The library is not there, is of a version or make that is not known, could not be initialised, gave wrong answers to known
     * vectors, or has nothing to offer on this CPU.
     */
    code: 'missing' | 'version' | 'failed' | 'answers' | 'cpu'
    text: string
  }
}

export interface Native {
  /** CLOCK_MONOTONIC in nanoseconds. */
  now(): number

  /**
   * Owners group what a run opens, so that another thread can close all of it when the run's thread died.
   * Every open below takes an owner; `ownerRelease` closes what is still open and may be called from any thread.
   */
  ownerOpen(): number
  ownerRelease(owner: number): void
  /** How many descriptors all owners hold, for leak tests. */
  openDescriptors(): number

  /** Registers a run's memory with the calling thread; every length relation above is checked. Returns its id. */
  memoryOpen(memory: PacketMemory): number
  /** The pages of slab, arrival times and remote records go back to the system at once and read as zeros from then on. */
  memoryClose(memory: number): void
  /** Makes `stack` one like `PacketMemory.free` that holds every handle, the lowest on top. */
  fillStack(stack: Int32Array): void
  /** Gives back to the system what threads that have ended had allocated and freed: glibc keeps it for the next ones (malloc_trim(3)). */
  trimHeap(): void

  /** eventfd: `eventSignal` from any thread makes the poller it was added to ready until `eventClear`. */
  eventOpen(owner: number): number
  eventSignal(event: number): void
  eventClear(event: number): void

  pollerOpen(owner: number): number
  /**
   * Watches a socket, device or event for reading under `token` (0..2^31-1). One poller each: a second one throws EEXIST.
   * A source whose last receive could not take all of a train is ready too, though the kernel has nothing more.
   */
  pollerAdd(poller: number, source: number, token: number): void
  pollerRemove(poller: number, source: number): void
  /** Also (or no longer) reports `source` when it can be written. */
  pollerWatchWrite(poller: number, source: number, on: boolean): void
  /** Reports `source` when it can be read, as it does from `pollerAdd` on, or no longer: then nothing of it but what is left to write. */
  pollerWatchRead(poller: number, source: number, on: boolean): void
  /**
   * Waits for readiness: `timeoutNs` < 0 without limit, 0 not at all, else that long (epoll_pwait2, timer slack 1 ns).
   * Writes up to `ready.length` tokens (256 at most) and returns how many. The thread cannot be terminated meanwhile: wake it
   * with an event. A token ready for writing only is written as `-token - 1`.
   */
  pollerWait(poller: number, timeoutNs: number, ready: Int32Array): number

  udpOpen(owner: number, options: UdpOpenOptions): number
  /** `{address, port, backend}` really bound and used. */
  udpAddress(socket: number): { address: string; port: number; backend: UdpBackendCode }
  /**
   * The kernel's number of the interface the socket was bound to when it was opened, and of the one that has that name now; 0
   * where there is none. An interface deleted and made anew has another number, and sockets bound to the former stay dead.
   */
  udpInterface(socket: number): { bound: number; present: number }
  /** The kernel's number of the interface of that name (at most 15 bytes), 0 where there is none. */
  interfaceIndex(name: string): number
  /**
   * Receives up to `max` datagrams into fresh slots; writes their handles to `handles[0..]`, their `arrival`, which is the time
   * read after the kernel handed them over less `origin` (of `now()`) and never falls within `handles`, their remote record, and
   * that no client id is known. With LINUX one call takes several GRO trains; `max` is at least 64 then. Returns how many packets
   * were taken; more may wait, and then the socket is still readable. Never blocks.
   */
  udpReceive(
    socket: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  /**
   * Sends `handles[from..from+count)` and frees the slots of what was sent or refused for good; returns how many that
   * were, in order. Fewer than `count`: the kernel's buffer is full, the rest still belongs to the caller. With LINUX,
   * neighbours of equal size (the last may be shorter) and equal destination leave as one UDP_SEGMENT message.
   */
  udpSend(
    socket: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number

  /** Throws EPERM without CAP_NET_ADMIN. The interface goes away when it is closed, unless it was there before, to last. */
  tunOpen(owner: number, options: TunOpenOptions): number
  /** `found`: somebody else had made it; then nothing of the options but `offload` was applied, and it stays when it is closed. */
  tunState(device: number): { name: string; found: boolean } & InterfaceState
  /** As `udpReceive`. */
  tunReceive(
    device: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  tunSend(
    device: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number

  /** Bound to the address, port 0 for any, and listening; [::] takes IPv4 too. */
  tcpListen(owner: number, options: TcpOptions): number
  /** Begins to connect and does not wait: writable (or broken) is when `connectionConnected` tells how that went. */
  tcpConnect(owner: number, options: TcpOptions): number
  /** The own address of a listener or connection. */
  tcpAddress(socket: number): { address: string; port: number }
  /**
   * SOCK_SEQPACKET. A path is made with mode 0600 and taken away at the close; a socket file that nobody listens at, as a killed
   * process leaves it, is replaced. EADDRINUSE where somebody does, or the path is no socket.
   */
  unixListen(owner: number, options: UnixOptions): number
  /** `bind`: the abstract name of this end. Connected at once; throws ENOENT or ECONNREFUSED where nobody listens, EAGAIN where too many wait. */
  unixConnect(owner: number, options: UnixOptions & { bind?: string }): number
  /** Name of the other end ('' where it has none) and the user it ran as when it connected or listened (SO_PEERCRED). */
  unixPeer(connection: number): { name: string; user: number }
  /** A connection that waits, or `-errno`: EAGAIN where none does. Throws EMFILE when the table of descriptors is full. */
  listenerAccept(owner: number, listener: number): number
  /** 0 once connected, else `-errno`: EINPROGRESS while that takes its time, ECONNREFUSED of a connection to itself, too. */
  connectionConnected(connection: number): number
  /** Writes the peer's remote record, all zero on a Unix socket. */
  connectionRemote(connection: number, record: Uint8Array): void
  /** The close to come resets a TCP connection, that the peer does not take what it got for the whole. */
  connectionReset(connection: number): void
  /**
   * Receives up to `max` packets, annotated with the peer's remote record, as `udpReceive` does: pieces of a stream of at most 1,200
   * bytes, frames, or the packets of a Unix socket. A stream is read only into free slots; frames and packets without one are counted.
   * Returns how many; when there are none 0 as long as some may come, then `-errno`: ENODATA is the peer's end of the stream, EPROTO a
   * length that no frame has. Never throws over what the network does.
   */
  connectionReceive(
    connection: number,
    memory: number,
    handles: Int32Array,
    max: number,
    origin: number,
    counters: Float64Array,
  ): number
  /**
   * Sends `handles[from..from+count)` as `udpSend` does; returns how many were consumed, or `-errno` when the connection is over and none
   * was. Part of the first that was not consumed may have left: the next call begins with the same packet.
   */
  connectionSend(
    connection: number,
    memory: number,
    handles: Int32Array,
    from: number,
    count: number,
    counters: Float64Array,
  ): number

  /**
   * Of the descriptors that this process has open now, no process that it starts gets one, but those it is given by name and standard
   * input, output and error (close_range(2)): libraries open theirs without O_CLOEXEC.
   */
  closeOnExec(): void
  /**
   * Makes the file (mode 0600) when it is not there and takes an exclusive lock on it (flock(2)), which lasts until it is closed or the
   * process is gone; no child inherits it. Throws EAGAIN when somebody else has it, ENOLCK where the file system has no locks.
   */
  lockOpen(owner: number, path: string): number
  /**
   * Makes the file (mode 0600) when it is not there and sees to it that its first `bytes` bytes have room on the disk, written or not;
   * its size stays. False where the file system cannot. Throws ENOSPC or EDQUOT when there is no room, EFBIG beyond what
   * this process may write.
   */
  fileReserve(path: string, bytes: number): boolean

  /** Closes a socket, device, event, poller, AEAD or ChaCha context or lock, once no thread is inside a call on it. Closing twice throws. */
  close(handle: number): void

  /** CPUs this process may use. */
  affinity(): number[]
  /** Pins the calling thread; an empty list gives back what the process had at load. */
  setAffinity(cpus: number[]): void
  /** The CPU the calling thread runs on now. */
  currentCpu(): number
  /** CPU time of the calling thread, nanoseconds. */
  threadCpuTime(): number

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
   * the third.
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
  ): number
  /**
   * As `gfMultiplyPackets` with random coefficients, as `gfRandomMultiply` has them: product j of block b is that of `seeds[b · m + j]`.
   * There are `more` bytes more in front of the symbol of what is made than in front of a source's. k and m are at most 255. With `header`, as
   * `gfMultiplyPackets` has it, the seed is written in front of the symbol too.
   */
  gfRandomPackets(
    memory: number,
    seeds: Int32Array,
    packets: Int32Array,
    blocks: number,
    k: number,
    m: number,
    skip: number,
    more: number,
    header?: Int32Array,
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
   * As `gfMatrixMultiply` with random coefficients: that of source i in target j is byte i of the stream that `seeds[j]` (u32) gives. The
   * stream is the words of xoshiro128** 1.1, least significant byte first, its state filled by SplitMix32(seed), as `Random` has it. k and
   * m are at most 255.
   */
  gfRandomMultiply(
    memory: number,
    seeds: Int32Array,
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
   * many as sources. A packet without room, or longer than 65,535 bytes, is released; one word more says how many were. Returns the index of the first packet that was not
   * taken. Throws, with nothing changed, where a handle is no packet or `state` cannot be.
   */
  blockFrame(
    memory: number,
    packets: Int32Array,
    from: number,
    end: number,
    state: Int32Array,
    symbols: Int32Array,
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
   * Passes blocks on of which enough has come in one batch. `blocks` has eight words for each of `count`: the index of its first packet in `packets`,
   * how many packets, how many of them, the first, are sources, how many sources it has, bytes of its repairs' symbols, the index in `symbols` and `shapes`
   * at which its k sources stand, followed by its repairs, k, and 1 where a recovered source that others have overtaken is REPLACED (block-window.ts). `packets`
   * and `headers` are those of `blockHeaders`; `random` says which code it is, as `gfRecover` or `gfRecoverRandom` have it.
   *
   * `out` gets the packets of each block's payloads, its sources as they came, then those that were recovered, with the annotations of its last packet; its
   * repairs are released, and `symbols` and `shapes` say what has come, where nothing had. Returns how many blocks were passed on. The one
   * behind them is as it was: slots are too few, its repairs follow from each other, or contradict its sources.
   */
  blocksPass(
    memory: number,
    random: boolean,
    packets: Int32Array,
    headers: Int32Array,
    blocks: Int32Array,
    count: number,
    symbols: Int32Array,
    shapes: Int32Array,
    out: Int32Array,
  ): number
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
  /** Gives up what is missing below `sequence`; returns how many equations there are. */
  slidingForget(window: number, sequence: number): number
  /** Forgets every symbol and equation. */
  slidingReset(window: number): void

  /**
   * What can do authenticated encryption, fastest first; always ends with 'openssl', the library that Node exports. The first call
   * loads libIPSec_MB.so.1 where it is installed and tries it with known vectors.
   */
  aeadBackends(): AeadBackendState[]
  /** The one that contexts are opened with from now on: the fastest, or what `aeadUse` has chosen for the process. */
  aeadBackend(): AeadBackendName
  /** Throws a RangeError when it cannot be used. Contexts that are open stay as they are; what one seals the other opens. */
  aeadUse(backend: AeadBackendName | 'auto'): void
  /**
   * AEAD context; suite 0 AES-128-GCM, 1 AES-256-GCM, 2 ChaCha20-Poly1305, 3 the same of an empty text: the payload is associated data,
   * so it stays in clear and the tag signs it. The key is copied and wiped at close. `salt` has 8 bytes and names who seals with the key.
   */
  aeadOpen(owner: number, suite: 0 | 1 | 2 | 3, key: Uint8Array, salt: Uint8Array): number
  /**
   * Seals `handles[0..count)` in place: the packet becomes salt (8) | counter (8, big-endian) | ciphertext | tag (16), the
   * 16-byte header being written into headroom and authenticated as associated data, the tag into tailroom. The nonce is
   * 4 zero bytes followed by the counter; counters run from `counter[0]` (a Float64Array, < 2^53), which is advanced.
   * Packets without the room are left alone, and their index is put into `failed` (count returned).
   */
  aeadSeal(
    aead: number,
    memory: number,
    handles: Int32Array,
    count: number,
    counter: Float64Array,
    failed: Int32Array,
  ): number
  /**
   * Opens `handles[from..end)` in place, up to the first with another salt than this context's; returns where it stopped. `outcome[i]`
   * says what became of each. Opened is a packet that is its plain text now and has come for the first time: the context knows
   * which of the newest `REPLAY_WINDOW` counters it has opened. Replayed is an authentic one that came before, or is older than
   * those. Forged is one whose tag does not match (a text that was decrypted is zeros then), malformed what is too short for header and tag.
   */
  aeadOpenPackets(
    aead: number,
    memory: number,
    handles: Int32Array,
    from: number,
    end: number,
    outcome: Uint8Array,
  ): number
  /**
   * Seals one message in place, with any nonce of 12 bytes and any associated data, as published vectors have them (for tests).
   * `bytes` is the text and room for the tag of 16 bytes behind it; the key has the bytes of its suite, as `aeadOpen` numbers them.
   */
  aeadSealBytes(suite: 0 | 1 | 2, key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, bytes: Uint8Array): void
  /** Opens what `aeadSealBytes` makes, in place; false when the tag is not the message's: then the text is zeros. */
  aeadOpenBytes(
    suite: 0 | 1 | 2,
    key: Uint8Array,
    nonce: Uint8Array,
    associated: Uint8Array,
    bytes: Uint8Array,
  ): boolean

  /** ChaCha kernels that this CPU runs, fastest first; always ends with 'portable'. */
  chachaKernels(): string[]
  /** The kernel in use by all threads; `chachaUse` picks one (for tests and benches). */
  chachaKernel(): string
  chachaUse(kernel: string): void
  /**
   * ChaCha context (RFC 8439, section 2.3) of a key of 32 bytes, a nonce of 12 and a constant of 16, which stands where the RFC has
   * "expand 32-byte k"; `rounds` is even, 8 to 20. All are copied and wiped at close.
   */
  chachaOpen(owner: number, key: Uint8Array, nonce: Uint8Array, constant: Uint8Array, rounds: number): number
  /**
   * Encrypts `handles[0..count)` in place: the packet becomes salt (8) | counter (8, big-endian) | cipher text, the header being written
   * into headroom. The nonce is the context's with its last 8 bytes XORed with the counter, the block counter begins at 0.
   * Counters run from `counter[0]` (a Float64Array, < 2^53), which is advanced. Packets without the room are left alone, and their
   * index is put into `failed` (count returned).
   */
  chachaEncrypt(
    chacha: number,
    memory: number,
    handles: Int32Array,
    count: number,
    salt: Uint8Array,
    counter: Float64Array,
    failed: Int32Array,
  ): number
  /**
   * Decrypts `handles[0..count)` in place, after which the packet is the plain text, if it was encrypted with this context's key: nothing
   * shows that. The caller has checked that all carry its salt. Packets without a header, or with a counter from 2^53 on, are left
   * alone, and their index is put into `failed` (count returned).
   */
  chachaDecrypt(chacha: number, memory: number, handles: Int32Array, count: number, failed: Int32Array): number

  /** CRC-32C of `bytes` bytes at `at` in the slab, seeded with 0 (iSCSI's: initial and final inversion included). */
  crc32c(memory: number, at: number, bytes: number): number
  /**
   * The ones' complement sum of RFC 1071, of 16-bit words as they lie in memory, with vectors of at most `widest` bytes (1 to 64; for tests:
   * checksums of packets take the widest that the CPU has).
   */
  onesSumOf(bytes: Uint8Array, widest: number): number

  /**
   * Calls back, once, when whoever reads the pipe or socket `fd` has gone; at once if that has happened. False when `fd` is neither: nothing
   * is watched then. Does not keep the process alive.
   */
  watchHangup(fd: number, callback: () => void): boolean
}

const load = createRequire(import.meta.url)

/** The file of the addon: a thread is told by who has started it (`addon` of its `workerData`), since finding it takes 2 ms. */
export const addonFile: string =
  (workerData as { addon?: string } | null)?.addon ?? load('node-gyp-build').path(packageRoot())

export const native: Native = load(addonFile)
