/** Packet memory and waiting for the addon's tests and benches. */
import { AEAD_OUTCOMES } from './cipher-calls.ts'
import { PASS, PASS_WORDS } from './code-calls.ts'
import { native, type PacketMemory, REMOTE_BYTES, TRAIN_BYTES } from './native.ts'
import { IO_COUNTERS } from './socket-calls.ts'

/** Shared packet memory with every slot free; slot 0 is the first to be taken. */
export function packetMemory(slots: number, slotBytes = 2048, headroom = 128, tailroom = 64, trains = 0): PacketMemory {
  const memory: PacketMemory = {
    data: new Uint8Array(new SharedArrayBuffer(slots * slotBytes + trains * TRAIN_BYTES)),
    offset: new Int32Array(new SharedArrayBuffer(slots * 4)),
    length: new Int32Array(new SharedArrayBuffer(slots * 4)),
    arrival: new Float64Array(new SharedArrayBuffer(slots * 8)),
    remote: new Uint8Array(new SharedArrayBuffer(slots * REMOTE_BYTES)),
    client: new Float64Array(new SharedArrayBuffer(slots * 8)).fill(-1),
    free: new Int32Array(new SharedArrayBuffer((slots + 1) * 4)),
    train: new Int32Array(new SharedArrayBuffer(slots * 4)),
    trainReferences: new Int32Array(new SharedArrayBuffer(trains * 4)),
    trainFree: new Int32Array(new SharedArrayBuffer((trains + 1) * 4)),
    slotBytes,
    headroom,
    tailroom,
  }
  memory.trainFree[0] = trains
  memory.free[0] = slots
  return memory
}

/** Takes a free slot for a packet holding `bytes`. */
export function packetOf(memory: PacketMemory, bytes: Uint8Array): number {
  const count = memory.free[0]!
  if (count === 0) throw new Error('no slot is free')
  const handle = memory.free[count]! + memory.offset.length - count
  memory.free[0] = count - 1
  const at = handle * memory.slotBytes + memory.headroom
  memory.offset[handle] = at
  memory.length[handle] = bytes.length
  memory.data.set(bytes, at)
  memory.remote.fill(0, handle * REMOTE_BYTES, (handle + 1) * REMOTE_BYTES)
  return handle
}

/** A copy of a packet's bytes. */
export function bytesOf(memory: PacketMemory, handle: number): Uint8Array {
  const at = memory.offset[handle]!
  return memory.data.slice(at, at + memory.length[handle]!)
}

/** Gives a packet's slot back. */
export function freePacket(memory: PacketMemory, handle: number): void {
  const count = memory.free[0]! + 1
  memory.free[count] = handle + count - memory.offset.length
  memory.free[0] = count
}

type Outcome = keyof typeof AEAD_OUTCOMES | 'foreign'

/** Opens packets in place by the context `aead`; what became of each, `foreign` of those with another salt, which stay as they are. */
export function openPackets(aead: number, memory: number, handles: Int32Array): Outcome[] {
  const names = Object.keys(AEAD_OUTCOMES) as Outcome[]
  const codes = new Uint8Array(handles.length)
  const outcomes: Outcome[] = []
  while (outcomes.length < handles.length) {
    const from = outcomes.length
    const at = native.aeadOpenPackets(aead, memory, handles, from, handles.length, codes)
    const stop = at < 0 ? ~at : at
    outcomes.push(...[...codes.subarray(from, stop)].map((code) => names[code] as Outcome))
    if (stop < handles.length) outcomes.push('foreign')
  }
  return outcomes
}

/** `bytes` bytes that tell which packet and which position they are. */
export function pattern(bytes: number, seed: number): Uint8Array {
  const data = new Uint8Array(bytes)
  let state = (seed * 2654435761 + 12345) >>> 0
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    data[i] = state >>> 24
  }
  return data
}

/** A zeroed counter array for one direction of one socket. */
export function ioCounters(): Float64Array {
  return new Float64Array(IO_COUNTERS.length)
}

/** The value of one counter. */
export function counter(counters: Float64Array, name: (typeof IO_COUNTERS)[number]): number {
  return counters[IO_COUNTERS.indexOf(name)]!
}

/** The counters, besides that of what was received, that are not 0. */
export function complaints(counters: Float64Array): string[] {
  return IO_COUNTERS.filter((name, i) => name !== 'receivedBytes' && counters[i] !== 0)
}

/** Writes the remote record of a packet. */
export function setRemote(memory: PacketMemory, handle: number, family: 4 | 6, address: number[], port: number): void {
  const at = handle * REMOTE_BYTES
  memory.remote.fill(0, at, at + REMOTE_BYTES)
  memory.remote[at] = family
  new Uint16Array(memory.remote.buffer, memory.remote.byteOffset + at + 2, 1)[0] = port
  memory.remote.set(address, at + 8)
}

/** Family, port and address bytes of a packet's remote record. */
export function remoteOf(memory: PacketMemory, handle: number): { family: number; port: number; address: number[] } {
  const at = handle * REMOTE_BYTES
  const family = memory.remote[at]!
  const port = new Uint16Array(memory.remote.buffer, memory.remote.byteOffset + at + 2, 1)[0]!
  return { family, port, address: [...memory.remote.subarray(at + 8, at + 8 + (family === 4 ? 4 : 16))] }
}

/** Blocks until `source` is ready for reading; fails after two seconds. */
export function awaitReadable(owner: number, source: number): void {
  const poller = native.pollerOpen(owner)
  native.pollerAdd(poller, source, 7)
  const ready = new Int32Array(4)
  const count = native.pollerWait(poller, 2e9, ready)
  native.close(poller)
  if (count !== 1 || ready[0] !== 7) throw new Error('nothing to read within two seconds')
}

/** The words that `blocksPass` begins with. */
export function passWords(start: {
  run: number
  first: number
  end: number
  most: number
  newest: number
  places: number
  replaces: boolean
  shape: number
  session: number
}): Int32Array {
  const words = new Int32Array(PASS_WORDS)
  words[PASS.run] = start.run
  words[PASS.first] = start.first
  words[PASS.end] = start.end
  words[PASS.most] = start.most
  words[PASS.newest] = start.newest
  words[PASS.places] = start.places
  words[PASS.replaces] = start.replaces ? 1 : 0
  words[PASS.shape] = start.shape
  words[PASS.session] = start.session
  return words
}
