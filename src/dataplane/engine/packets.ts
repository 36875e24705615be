/** The packets of one run: a slab cut in slots, handles into it, and their annotations in parallel arrays. */
import { native, type PacketMemory, REMOTE_BYTES, TRAIN_BYTES } from '../native/native.ts'

/** Largest packet that runs have slots for whatever brings packets in, bytes: what Ethernet carries. */
export const MIN_PACKET = 1500

export interface PacketsOptions {
  /** How many packets can exist at once. */
  slots: number
  /** Longest packet that a component of the graph brings in, bytes. */
  mtu: number
  /** Room for headers in front of a fresh packet, bytes (default 128). */
  headroom?: number
  /** Room for trailers behind a packet of `mtu` bytes (default 64). */
  tailroom?: number
  /** Trains of `TRAIN_BYTES` that can exist at once (default 0: every packet lies in its own slot). */
  trains?: number
}

const REMOTE_WORDS = REMOTE_BYTES / 4
/** Where a remote record, whose last words say nothing of the address, has the stream and the number in it. */
const STREAM_WORD = REMOTE_WORDS - 2
const CACHE_LINE_BYTES = 64

/** Bytes of the tables that a slot has a place in: three of words beside the stack of free slots, two of doubles, and the remote records. */
const TABLES_BYTES = 4 * 4 + 2 * 8 + REMOTE_BYTES

/** Address space, bytes, that must be left beside the packets of a run: V8 ends the process where the heap of a thread finds none to grow into. */
const HEAP_BYTES = 32 * 1024 * 1024

/** Memory for packets of up to `mtu` bytes. Throws with what to do where the process may not have so much, and the heap's part. */
function reserved(bytes: number, mtu: number): SharedArrayBuffer {
  const whole = bytes + HEAP_BYTES
  try {
    if (native.hasAddressSpace(whole, HEAP_BYTES)) return new SharedArrayBuffer(bytes)
  } catch {
    // Another thread was faster, or the system promises less to write to than it maps.
  }
  const least = `they need less where no component brings in packets of more than ${MIN_PACKET} bytes (mtu; here ${mtu})`
  throw new Error(
    `the packets of the run need ${Math.ceil(whole / 2 ** 20)} MiB of address space, ${HEAP_BYTES / 2 ** 20} for its heap included, which cannot be had: ` +
      `stop other runs, or raise the limits of the process (ulimit -v and -d, LimitAS= and LimitDATA=)${mtu > MIN_PACKET ? `; ${least}` : ''}`,
  )
}

/** The handles of packets that travel together: the first `length` of `handles`. */
interface PacketList {
  readonly handles: Int32Array
  length: number
}

/**
 * A packet is an integer handle, 0 ≤ handle < slots. Whoever holds a handle owns its slot and sends, holds or releases
 * it exactly once. The slab is reserved whole and touched lazily: low handles are used first and reused soonest.
 *
 * The bytes lie in the packet's own slot, or, as they came in with UDP_GRO, side by side with their neighbours in a train,
 * which is free again when its last packet has gone. A packet that grows moves from its train to its slot first, so only
 * graphs that change packets pay for the copy, and those that merely pass on send a train as the one piece it arrived in. What
 * is sealed together moves from slots and trains into other trains, as it is written anew anyway.
 */
export class Packets implements PacketMemory {
  readonly slots: number
  readonly slotBytes: number
  readonly headroom: number
  readonly tailroom: number
  readonly data: Uint8Array
  /** Big-endian access to `data`. */
  readonly view: DataView
  readonly offset: Int32Array
  readonly length: Int32Array
  readonly arrival: Float64Array
  readonly remote: Uint8Array
  /** Client id annotation, any u32; -1 where there is none. Whoever takes a slot sets it. */
  readonly client: Float64Array
  readonly free: Int32Array
  readonly train: Int32Array
  readonly trainReferences: Int32Array
  readonly trainFree: Int32Array
  private readonly remoteWords: Int32Array

  constructor(options: PacketsOptions) {
    this.slots = options.slots
    this.headroom = options.headroom ?? 128
    this.tailroom = options.tailroom ?? 64
    this.slotBytes = (this.headroom + options.mtu + this.tailroom + 63) & ~63
    const trains = options.trains ?? 0
    const bytes = this.slots * this.slotBytes + trains * TRAIN_BYTES
    if (bytes > 0x7fffffff) {
      throw new RangeError(`${this.slots} slots of ${this.slotBytes} bytes exceed the 2 GiB that a slab can hold`)
    }
    const { slots } = this
    // All in one piece: that is too large for malloc to take from memory given back to it, which would have to be made zeros first (mallopt(3),
    // M_MMAP_THRESHOLD).
    const memory = reserved(CACHE_LINE_BYTES - 1 + bytes + slots * TABLES_BYTES + 4 + trains * 8 + 4, options.mtu)
    // What the allocator gives begins 16 bytes behind a cache line, so that every vector over a packet and every copy of one would straddle two.
    const slab = native.bytesToCacheLine(new Uint8Array(memory))
    let end = slab + bytes
    const next = (length: number) => {
      end += length
      return end - length
    }
    const doubles = (count: number) => new Float64Array(memory, next(count * 8), count)
    const words = (count: number) => new Int32Array(memory, next(count * 4), count)
    this.data = new Uint8Array(memory, slab, bytes)
    this.view = new DataView(memory, slab, bytes)
    this.arrival = doubles(slots)
    this.client = doubles(slots)
    this.remoteWords = words(slots * REMOTE_WORDS)
    this.remote = new Uint8Array(memory, this.remoteWords.byteOffset, slots * REMOTE_BYTES)
    this.offset = words(slots)
    this.length = words(slots)
    this.train = words(slots)
    this.free = words(slots + 1)
    this.trainReferences = words(trains)
    this.trainFree = words(trains + 1)
    this.countAll()
  }

  /** Makes every slot and train free again, whoever owned it. */
  reset(): void {
    const { trainFree } = this
    if (this.held !== 0 || trainFree[0] !== trainFree.length - 1) this.freeAll()
  }

  private freeAll(): void {
    for (const words of [this.free, this.train, this.trainFree, this.trainReferences]) words.fill(0)
    this.countAll()
  }

  /** With zeros every slot and train is free once there is their number. */
  private countAll(): void {
    this.free[0] = this.slots
    this.trainFree[0] = this.trainFree.length - 1
  }

  /** Whether packets made with `options` would be like these. */
  fits(options: PacketsOptions): boolean {
    return (
      this.slots === options.slots &&
      this.headroom === (options.headroom ?? 128) &&
      this.tailroom === (options.tailroom ?? 64) &&
      this.slotBytes === ((this.headroom + options.mtu + this.tailroom + 63) & ~63) &&
      this.trainFree.length === (options.trains ?? 0) + 1
    )
  }

  /** Slots that nobody owns. */
  get available(): number {
    return this.free[0]
  }

  /** Slots that somebody owns. */
  get held(): number {
    return this.slots - this.free[0]
  }

  /** A fresh packet of no bytes and no annotations, or -1 when every slot is taken. */
  allocate(): number {
    const top = this.free[0]
    if (top === 0) return -1
    const packet = this.free[top] + this.slots - top
    this.free[0] = top - 1
    this.offset[packet] = packet * this.slotBytes + this.headroom
    this.length[packet] = 0
    this.arrival[packet] = 0
    this.remoteWords[packet * REMOTE_WORDS] = 0
    this.client[packet] = -1
    return packet
  }

  /** Gives a slot back. The caller owned it. */
  release(packet: number): void {
    if (this.train[packet] !== 0) this.leaveTrain(packet)
    const top = this.free[0] + 1
    this.free[top] = packet + top - this.slots
    this.free[0] = top
  }

  /** Gives back every packet of a batch, so that they are taken again in this order, and empties it. */
  releaseAll(batch: PacketList): void {
    const { free, train, slots } = this
    const { handles, length } = batch
    const last = free[0] + length
    let i = 0
    /** The train, counted from 1, that `left` packets have left so far: those of one message to the kernel mostly lie in one. */
    let leaving = 0
    let left = 0
    // Four at a time take two thirds of what they take one by one: what V8 loads again in every round it loads once.
    for (; i + 4 <= length; i += 4) {
      const one = handles[i]
      const two = handles[i + 1]
      const three = handles[i + 2]
      const four = handles[i + 3]
      const of = train[one]
      if (of !== train[two] || of !== train[three] || of !== train[four]) this.leaveTrains(handles, i, i + 4)
      else if (of !== 0) {
        if (of !== leaving) {
          this.dropTrain(leaving, left)
          leaving = of
          left = 0
        }
        left += 4
        train[one] = 0
        train[two] = 0
        train[three] = 0
        train[four] = 0
      }
      const top = last - i
      const place = top - slots
      free[top] = one + place
      free[top - 1] = two + place - 1
      free[top - 2] = three + place - 2
      free[top - 3] = four + place - 3
    }
    this.dropTrain(leaving, left)
    this.leaveTrains(handles, i, length)
    for (; i < length; i++) free[last - i] = handles[i] + last - i - slots
    free[0] = last
    batch.length = 0
  }

  /** The packet's bytes are no longer in its train. */
  private leaveTrain(packet: number): void {
    this.dropTrain(this.train[packet], 1)
    this.train[packet] = 0
  }

  /** `packets` packets have left the train `of`, counted from 1; 0: none has. */
  private dropTrain(of: number, packets: number): void {
    if (of === 0) return
    const { trainReferences, trainFree } = this
    const train = of - 1
    trainReferences[train] -= packets
    if (trainReferences[train] !== 0) return
    const top = ++trainFree[0]
    trainFree[top] = train + top - trainReferences.length
  }

  /** The same of `handles` from `from` up to `to`, those of them that are in one. */
  private leaveTrains(handles: Int32Array, from: number, to: number): void {
    for (let i = from; i < to; i++) if (this.train[handles[i]] !== 0) this.leaveTrain(handles[i])
  }

  /** Moves a packet out of its train into its own slot, where it has head and tail room; nothing to do in a slot. */
  settle(packet: number): void {
    if (this.train[packet] === 0) return
    const from = this.offset[packet]
    const to = packet * this.slotBytes + this.headroom
    this.data.copyWithin(to, from, from + this.length[packet])
    this.offset[packet] = to
    this.leaveTrain(packet)
  }

  /** Bytes that fit in front of a packet. */
  headroomOf(packet: number): number {
    return this.train[packet] === 0 ? this.offset[packet] - packet * this.slotBytes : this.headroom
  }

  /** Bytes that fit behind a packet. */
  tailroomOf(packet: number): number {
    if (this.train[packet] !== 0) return this.slotBytes - this.headroom - this.length[packet]
    return (packet + 1) * this.slotBytes - this.offset[packet] - this.length[packet]
  }

  /** Grows a packet by `bytes` at its front; returns where they start in `data`, or -1 when there is no room. */
  prepend(packet: number, bytes: number): number {
    if (this.train[packet] !== 0) this.settle(packet)
    const at = this.offset[packet] - bytes
    if (at < packet * this.slotBytes) return -1
    this.offset[packet] = at
    this.length[packet] += bytes
    return at
  }

  /** Grows a packet by `bytes` at its end; returns where they start in `data`, or -1 when there is no room. */
  append(packet: number, bytes: number): number {
    if (this.train[packet] !== 0) this.settle(packet)
    const at = this.offset[packet] + this.length[packet]
    if (at + bytes > (packet + 1) * this.slotBytes) return -1
    this.length[packet] += bytes
    return at
  }

  /** Cuts `bytes` off the front; the packet has at least that many. Returns where they started. */
  trimFront(packet: number, bytes: number): number {
    const at = this.offset[packet]
    this.offset[packet] = at + bytes
    this.length[packet] -= bytes
    return at
  }

  /** Cuts `bytes` off the end; the packet has at least that many. Returns where they start. */
  trimBack(packet: number, bytes: number): number {
    this.length[packet] -= bytes
    return this.offset[packet] + this.length[packet]
  }

  /** Copies the annotations of `from` to `to`. */
  annotateAs(to: number, from: number): void {
    this.arrival[to] = this.arrival[from]
    this.client[to] = this.client[from]
    this.copyRemote(to, from)
  }

  /** Copies the remote address annotation of `from` to `to`. */
  copyRemote(to: number, from: number): void {
    const { remoteWords } = this
    const source = from * REMOTE_WORDS
    const target = to * REMOTE_WORDS
    for (let i = 0; i < REMOTE_WORDS; i++) remoteWords[target + i] = remoteWords[source + i]
  }

  /** Annotates a packet with a remote record of `REMOTE_BYTES` bytes. */
  setRemote(packet: number, record: Int32Array): void {
    const at = packet * REMOTE_WORDS
    for (let i = 0; i < REMOTE_WORDS; i++) this.remoteWords[at + i] = record[i]
  }

  /** Annotates a packet that has a remote address with the stream it is part of, over 0, and its number there. They go where the address goes. */
  setStream(packet: number, stream: number, number: number): void {
    const at = packet * REMOTE_WORDS + STREAM_WORD
    this.remoteWords[at] = stream
    this.remoteWords[at + 1] = number
  }

  /** The stream that a packet is part of, 0 for none. */
  streamOf(packet: number): number {
    const at = packet * REMOTE_WORDS
    return this.remoteWords[at] === 0 ? 0 : this.remoteWords[at + STREAM_WORD]
  }

  /** The number of a packet in its stream. */
  numberOf(packet: number): number {
    return this.remoteWords[packet * REMOTE_WORDS + STREAM_WORD + 1]
  }

  /** Reads a packet's remote record into `record`, `REMOTE_BYTES / 4` words. */
  readRemote(packet: number, record: Int32Array): void {
    const at = packet * REMOTE_WORDS
    for (let i = 0; i < REMOTE_WORDS; i++) record[i] = this.remoteWords[at + i]
  }

  /** Whether a packet's remote record equals `record`. */
  remoteIs(packet: number, record: Int32Array): boolean {
    const at = packet * REMOTE_WORDS
    for (let i = 0; i < REMOTE_WORDS - 2; i++) if (this.remoteWords[at + i] !== record[i]) return false
    return true
  }

  /** A copy of a packet, its bytes and annotations, in a slot of its own; -1 when every slot is taken. */
  clone(packet: number): number {
    const copy = this.allocate()
    if (copy < 0) return -1
    const at = copy * this.slotBytes + this.headroomOf(packet)
    this.offset[copy] = at
    this.length[copy] = this.length[packet]
    this.data.copyWithin(at, this.offset[packet], this.offset[packet] + this.length[packet])
    this.annotateAs(copy, packet)
    return copy
  }

  /** Sum of the lengths of a batch's packets, bytes. */
  bytesOf(batch: PacketList): number {
    const { length } = this
    const { handles, length: count } = batch
    let bytes = 0
    let i = 0
    for (; i + 4 <= count; i += 4) {
      const four = length[handles[i]] + length[handles[i + 1]] + length[handles[i + 2]] + length[handles[i + 3]]
      bytes += four
    }
    for (; i < count; i++) bytes += length[handles[i]]
    return bytes
  }
}
