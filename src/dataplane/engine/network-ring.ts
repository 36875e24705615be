/** Packets that wait in shared memory for one member of a simulated network: any thread puts them in, the member's takes them out. */
import { BATCH_CAPACITY, type Batch } from './batch.ts'
import type { Packets } from './packets.ts'

/** Packets that wait for one member; a power of two. */
export const RING_PACKETS = 1024

/** Run that is putting packets in, 0 for none. */
const LOCK = 0
/** Packets ever taken out and put in, as wrapping 32-bit counts. */
const HEAD = 1
const TAIL = 2
/** 1 while whoever puts something in is to wake the member. */
const IDLE = 3
/** 1 once the member is gone. */
const CLOSED = 4
/** Packets not put in because the ring was full, or because they were longer than the member takes; wrapping counts. */
const FULL = 5
const OVERSIZE = 6
const MTU = 7
const HEADER_WORDS = 16

/** Tries at the lock before the thread sleeps between two of them, and for how long, ms. */
const SPINS = 200
const LOCK_PAUSE_MS = 0.05

/** Copies `bytes` bytes; a word at a time, for there is no call that copies between two buffers without making a view of them. */
function copy(to: DataView, at: number, from: DataView, start: number, bytes: number): void {
  const whole = bytes & ~3
  let i = 0
  for (; i < whole; i += 4) to.setInt32(at + i, from.getInt32(start + i))
  for (; i < bytes; i++) to.setUint8(at + i, from.getUint8(start + i))
}

/**
 * The memory of a ring, as its owner makes it: `RING_PACKETS` packets of up to `mtu` bytes. It can be handed to other threads.
 */
export function createRing(mtu: number): SharedArrayBuffer {
  const stride = (mtu + 3) & ~3
  const memory = new SharedArrayBuffer((HEADER_WORDS + RING_PACKETS) * 4 + RING_PACKETS * stride)
  const words = new Int32Array(memory, 0, HEADER_WORDS)
  words[MTU] = mtu
  words[IDLE] = 1
  return memory
}

/** Nobody puts anything into the ring any more; from any thread, more than once. */
export function closeRing(memory: SharedArrayBuffer): void {
  Atomics.store(new Int32Array(memory, 0, HEADER_WORDS), CLOSED, 1)
}

/** Gives back what the run `writer`, whose thread has ended, may have locked. What it had not finished putting in is not there. */
export function unlockRing(memory: SharedArrayBuffer, writer: number): void {
  Atomics.compareExchange(new Int32Array(memory, 0, HEADER_WORDS), LOCK, writer, 0)
}

/** One thread's hold on a ring. */
export class NetworkRing {
  readonly mtu: number
  private readonly words: Int32Array
  private readonly lengths: Int32Array
  private readonly view: DataView
  private readonly stride: number
  /** `FULL` and `OVERSIZE` when they were last read. */
  private seenFull = 0
  private seenOversize = 0

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory, 0, HEADER_WORDS)
    this.mtu = this.words[MTU]
    this.stride = (this.mtu + 3) & ~3
    this.lengths = new Int32Array(memory, HEADER_WORDS * 4, RING_PACKETS)
    this.view = new DataView(memory, (HEADER_WORDS + RING_PACKETS) * 4)
  }

  /**
   * Copies a batch's packets in, as the run `writer` (over 0, one thread at a time); they stay the caller's. Returns how many
   * found the ring full; those too long are left out and counted, after its closing all are left out.
   */
  put(writer: number, packets: Packets, { handles, length: count }: Batch): number {
    const { words, lengths, view, stride, mtu } = this
    if (Atomics.load(words, CLOSED) !== 0) return 0
    this.lock(writer)
    const head = Atomics.load(words, HEAD)
    let tail = Atomics.load(words, TAIL)
    let full = 0
    let oversize = 0
    for (let i = 0; i < count; i++) {
      const packet = handles[i]
      const bytes = packets.length[packet]
      if (bytes > mtu) oversize++
      else if (((tail - head) | 0) === RING_PACKETS) full++
      else {
        const place = tail & (RING_PACKETS - 1)
        lengths[place] = bytes
        copy(view, place * stride, packets.view, packets.offset[packet], bytes)
        tail = (tail + 1) | 0
      }
    }
    if (full > 0) Atomics.add(words, FULL, full)
    if (oversize > 0) Atomics.add(words, OVERSIZE, oversize)
    Atomics.store(words, TAIL, tail)
    Atomics.store(words, LOCK, 0)
    return full
  }

  private lock(writer: number): void {
    const { words } = this
    for (let tries = 0; ; tries++) {
      const holder = Atomics.compareExchange(words, LOCK, 0, writer)
      if (holder === 0) return
      // Who holds it copies a batch; it may be waiting for a CPU, or be dead until the main thread notices.
      if (tries >= SPINS) Atomics.wait(words, LOCK, holder, LOCK_PAUSE_MS)
    }
  }

  /** After `put`: whether the member has to be woken, which falls to one of those that ask. */
  claimWake(): boolean {
    const { words } = this
    return Atomics.load(words, IDLE) === 1 && Atomics.load(words, HEAD) !== Atomics.load(words, TAIL)
      ? Atomics.exchange(words, IDLE, 0) === 1
      : false
  }

  /** Whether something waits. If not, whoever puts something in after this is told to wake the member. For the member only. */
  get pending(): boolean {
    const { words } = this
    if (Atomics.load(words, HEAD) !== Atomics.load(words, TAIL)) return true
    if (Atomics.load(words, IDLE) === 0) Atomics.store(words, IDLE, 1)
    return Atomics.load(words, HEAD) !== Atomics.load(words, TAIL)
  }

  /**
   * Moves what waits into fresh packets that arrived at `time`, as many as `batch` holds; returns how many were lost because no
   * slot was free. For the member only.
   */
  take(packets: Packets, batch: Batch, time: number): number {
    const { words, lengths, view, stride } = this
    const tail = Atomics.load(words, TAIL)
    let head = Atomics.load(words, HEAD)
    let lost = 0
    for (let room = BATCH_CAPACITY - batch.length; room > 0 && head !== tail; room--) {
      const place = head & (RING_PACKETS - 1)
      head = (head + 1) | 0
      const packet = packets.allocate()
      if (packet < 0) {
        lost++
        continue
      }
      const bytes = lengths[place]
      copy(packets.view, packets.offset[packet], view, place * stride, bytes)
      packets.length[packet] = bytes
      packets.arrival[packet] = time
      batch.push(packet)
    }
    Atomics.store(words, HEAD, head)
    return lost
  }

  /** How many packets found the ring full since this was last asked for. For the member only. */
  takeFull(): number {
    const now = Atomics.load(this.words, FULL)
    const grown = (now - this.seenFull) | 0
    this.seenFull = now
    return grown
  }

  /** How many packets were too long since this was last asked for. For the member only. */
  takeOversize(): number {
    const now = Atomics.load(this.words, OVERSIZE)
    const grown = (now - this.seenOversize) | 0
    this.seenOversize = now
    return grown
  }
}
