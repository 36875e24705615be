/** Typed face of the native addon: batched sockets and TUN, epoll, CPU affinity, GF(2^8) kernels, AEAD and ChaCha in batches. */
import { workerData } from 'node:worker_threads'
import { packageRoot } from '../../package-root.ts'
import { AddonMissing } from './addon-missing.ts'
import type { CipherCalls } from './cipher-calls.ts'
import type { CodeCalls } from './code-calls.ts'
import type { SocketCalls } from './socket-calls.ts'

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
  /**
   * Free slots: `free[0]` is how many, `free[1..free[0]]` the stack of their handles, the top last, where place `p` holds
   * `handle + p - slots`: with zeros all are free, the lowest on top, and no page of it needs to be written for that.
   */
  readonly free: Int32Array
  /** The train that each packet's bytes lie in plus 1, 0 where they lie in its own slot. */
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
 * A remote address record: u8 family (0 none, 4, 6), u8 ordinal among the connections of a listener that have this address (`ORDINAL_BYTE`; 0 of the first
 * and elsewhere), u16 port (host order), u32 scope id (host order), 16 address bytes (IPv4 uses the first 4), i32 stream and i32 number in it where a
 * connection was read (0 else). Host order means a Uint16Array view reads it.
 */
export const REMOTE_BYTES = 32
export const ORDINAL_BYTE = 1

/** Longest train of datagrams that UDP_GRO brings in one piece, bytes. */
export const TRAIN_BYTES = 65536

export interface Native extends SocketCalls, CodeCalls, CipherCalls {
  /** CLOCK_MONOTONIC in nanoseconds. */
  now(): number
  /** CLOCK_REALTIME, the system's time: nanoseconds since the Unix epoch, exact to 256. */
  unixTime(): number
  /** `now()`, as the first number of `time`: one that is returned would be a new object. */
  readClock(time: Float64Array): void

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
  /** The pages that lie wholly in `bytes` go back to the system at once and read as zeros until they are written again. */
  giveBackPages(bytes: Uint8Array): void
  /** How far behind the start of `bytes` the next cache line of 64 bytes begins, 0..63. */
  bytesToCacheLine(bytes: Uint8Array): number
  /** Gives back to the system what threads that have ended had allocated and freed: glibc keeps it for the next ones (malloc_trim(3)). */
  trimHeap(): void
  /** Whether this process may have `bytes` more of address space, `writable` of them to write to; none of it is kept. */
  hasAddressSpace(bytes: number, writable: number): boolean

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
  /**
   * Makes the file (mode 0600) when it is not there. Throws where its file system does not let processes share it as LMDB does: by a lock
   * on a part of it (fcntl(2)) and by mapping it (mmap(2)). Gives up the locks of this kind that the process has on it.
   */
  fileRequireShared(path: string): void

  /** Closes a socket, device, event, poller, AEAD or ChaCha context or lock, once no thread is inside a call on it. Closing twice throws. */
  close(handle: number): void

  /** CPUs this process could use when the addon was loaded. */
  affinity(): number[]
  /** Those of them that it may use now: cpusets lose CPUs while processes run. */
  usableCpus(): number[]
  /**
   * Pins the calling thread; an empty list gives back what the process had at load. While it is `alone`, the threads of this process that are not pinned use
   * other CPUs, if there are any.
   */
  setAffinity(cpus: number[], alone?: boolean): void
  /** The CPU the calling thread runs on now. */
  currentCpu(): number
  /** CPU time of the calling thread, nanoseconds. */
  threadCpuTime(): number

  /** CRC-32C of `bytes` bytes at `at` in the slab, seeded with 0 (iSCSI's: initial and final inversion included). */
  crc32c(memory: number, at: number, bytes: number): number
  /**
   * The ones' complement sum of RFC 1071, of 16-bit words as they lie in memory, with vectors of at most `widest` bytes (1 to 64; for tests:
   * checksums of packets take the widest that the CPU has). `to` is empty, or as long as `bytes`, of which it gets a copy on the way; the two
   * must not overlap.
   */
  onesSumOf(bytes: Uint8Array, widest: number, to: Uint8Array): number

  /**
   * Calls back, once, when whoever reads the pipe or socket `fd` has gone; at once if that has happened. False when `fd` is neither: nothing
   * is watched then. Does not keep the process alive.
   */
  watchHangup(fd: number, callback: () => void): boolean
  /**
   * Has the system look up a host name on a thread of its own. Gives a descriptor, the caller's to close, from which the answer can be read once it
   * is there, as JSON: the addresses, or the code of what there is against them as a text. Throws where there is no thread or descriptor left.
   */
  hostAsk(host: string): number
}

/** Found as other packages' addons are. `node:module` is loaded for this only: with what it needs that takes 2 ms. */
function findAddon(): string {
  const load = process.getBuiltinModule('node:module').createRequire(import.meta.url)
  const { path } = load('node-gyp-build')
  try {
    return path(packageRoot())
  } catch (error) {
    // Those of the system have a code.
    throw (error as NodeJS.ErrnoException).code === undefined ? new AddonMissing(error as Error) : error
  }
}

/** The file of the addon: a thread is told by who has started it (`addon` of its `workerData`), since finding it takes 2 ms. */
export const addonFile: string = (workerData as { addon?: string } | null)?.addon ?? findAddon()

/** The addon in `file`, without what `require` reads and resolves before it. */
function loadAddon(file: string): Native {
  const module = { exports: {} }
  process.dlopen(module, file)
  // V8 looks a function up in a table, at each call, where an object has so many of its own; not where it is the prototype of one.
  return Object.create(module.exports) as Native
}

export const native: Native = loadAddon(addonFile)
