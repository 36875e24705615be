/** GRO trains received in one piece: boundaries, sharing, settling, exhaustion, and what a forged train index meets. */
import { createDecipheriv } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { usableAeadBackends } from '../../../test/harness/aead-backends.ts'
import { Batch } from '../engine/batch.ts'
import { Packets } from '../engine/packets.ts'
import { awaitReadable, bytesOf, counter, ioCounters, openPackets, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const SEGMENTS = 40
const BYTES = 1000

let owner = 0
let sender: { memory: ReturnType<typeof packetMemory>; id: number; socket: number }
let inbox = 0
const opened: number[] = []

beforeEach(() => {
  owner = native.ownerOpen()
  const local = { address: '127.0.0.1', port: 0 }
  inbox = native.udpOpen(owner, { backend: 2, family: 4, local, mtu: 1472, bufferBytes: 4 << 20 })
  const memory = packetMemory(256)
  sender = { memory, id: register(memory), socket: towards(native.udpAddress(inbox).port) }
})

afterEach(() => {
  native.ownerRelease(owner)
  for (const id of opened.splice(0)) native.memoryClose(id)
})

function register(memory: Parameters<typeof native.memoryOpen>[0]): number {
  const id = native.memoryOpen(memory)
  opened.push(id)
  return id
}

function towards(port: number): number {
  const remote = { address: '127.0.0.1', port }
  return native.udpOpen(owner, { backend: 2, family: 4, remote, mtu: 1472, bufferBytes: 4 << 20 })
}

/** One UDP_SEGMENT message of `segments` datagrams, the last one shorter; what is in each. */
function sendTrain(seed: number, segments = SEGMENTS): Uint8Array[] {
  const payloads = Array.from({ length: segments }, (_, i) =>
    pattern(i === segments - 1 ? BYTES - 7 : BYTES, seed * 1000 + i),
  )
  const handles = Int32Array.from(payloads.map((payload) => packetOf(sender.memory, payload)))
  expect(native.udpSend(sender.socket, sender.id, handles, 0, segments, ioCounters())).toBe(segments)
  return payloads
}

/** Receives `count` datagrams, at most `max` a call. */
function receive(id: number, count: number, max = 256): number[] {
  const handles = new Int32Array(256)
  const taken: number[] = []
  while (taken.length < count) {
    awaitReadable(owner, inbox)
    const got = native.udpReceive(inbox, id, handles, max, 0, ioCounters())
    taken.push(...handles.subarray(0, got))
  }
  return taken
}

/** The first train teaches the socket what trains look like; it lands in slots. */
function taught(trains: number, slots = 600): { packets: Packets; id: number } {
  const packets = new Packets({ slots, mtu: 1472, trains })
  const id = register(packets)
  sendTrain(0)
  for (const packet of receive(id, SEGMENTS)) packets.release(packet)
  return { packets, id }
}

test('a train stays in one piece, its packets have the right bytes, and the last to go frees it', () => {
  const { packets, id } = taught(4)
  const payloads = sendTrain(1)
  const taken = receive(id, SEGMENTS)
  expect(taken.map((packet) => bytesOf(packets, packet))).toEqual(payloads)
  expect(new Set(taken.map((packet) => packets.train[packet]))).toEqual(new Set([packets.train[taken[0]]]))
  expect(packets.train[taken[0]]).toBeGreaterThan(0)
  expect(packets.trainFree[0]).toBe(3)
  for (const packet of taken.slice(1)) packets.release(packet)
  expect(packets.trainFree[0]).toBe(3)
  packets.release(taken[0])
  expect(packets.trainFree[0]).toBe(4)
  expect(packets.held).toBe(0)
})

test('a packet that settles leaves its neighbours as they were', () => {
  const { packets, id } = taught(4)
  const payloads = sendTrain(2)
  const taken = receive(id, SEGMENTS)
  const at = packets.prepend(taken[3], 64)
  packets.data.fill(0xee, at, at + 64)
  expect(taken.filter((_, i) => i !== 3).map((packet) => bytesOf(packets, packet))).toEqual(
    payloads.filter((_, i) => i !== 3),
  )
  expect(bytesOf(packets, taken[3]).subarray(64)).toEqual(payloads[3])
  const batch = new Batch(packets)
  for (const packet of taken) batch.push(packet)
  packets.releaseAll(batch)
  expect([packets.held, packets.trainFree[0]]).toEqual([0, 4])
})

test('sealing a packet in a train does not touch its neighbours', () => {
  const { packets, id } = taught(4)
  const payloads = sendTrain(3)
  const taken = receive(id, SEGMENTS)
  const key = new Uint8Array(16).fill(9)
  const aead = native.aeadOpen(owner, 0, key, new Uint8Array(8))
  const sealed = Int32Array.from(taken.filter((_, i) => i % 2 === 0))
  const failed = new Int32Array(sealed.length)
  expect(native.aeadSeal(aead, id, sealed, sealed.length, new Float64Array(1), failed, false)).toBe(0)
  const clear = taken.filter((_, i) => i % 2 === 1)
  expect(clear.map((packet) => bytesOf(packets, packet))).toEqual(payloads.filter((_, i) => i % 2 === 1))
  expect(openPackets(aead, id, sealed)).toEqual([...sealed].map(() => 'opened'))
  expect([...sealed].map((packet) => bytesOf(packets, packet))).toEqual(payloads.filter((_, i) => i % 2 === 0))
})

/** Packets of `bytes` bytes each in slots of `packets`. */
function packetsOf(packets: Packets, count: number, bytes: (i: number) => number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => packetOf(packets, pattern(bytes(i), i)))
}

/** The bytes that a packet has between header and tag, opened by node:crypto. */
function openedBy(key: Uint8Array, sealed: Uint8Array): Buffer {
  const nonce = Buffer.concat([Buffer.alloc(4), sealed.subarray(8, 16)])
  const decipher = createDecipheriv('aes-128-gcm', key, nonce).setAAD(sealed.subarray(0, 16))
  decipher.setAuthTag(sealed.subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(16, -16)), decipher.final()])
}

describe.each(usableAeadBackends)('sealed together by %s', (backend) => {
  const key = pattern(16, 9)
  let aead = 0
  beforeEach(() => {
    native.aeadUse(backend)
    aead = native.aeadOpen(owner, 0, key, new Uint8Array(8))
    native.aeadUse('auto')
  })

  test('many packets lie in trains side by side, as many as fit each, and the last to go frees a train', () => {
    const packets = new Packets({ slots: 100, mtu: 1472, trains: 3 })
    const id = register(packets)
    const bytes = (i: number) => (i % 40 === 39 ? 500 : 1388)
    const handles = packetsOf(packets, 80, bytes)
    const counter = Float64Array.of(7)
    expect(native.aeadSeal(aead, id, handles, 80, counter, new Int32Array(80), true)).toBe(0)
    expect(counter[0]).toBe(87)
    const trains = [...handles].map((handle) => packets.train[handle])
    expect([...new Set(trains)].map((train) => trains.filter((other) => other === train).length)).toEqual([46, 34])
    for (let i = 1; i < 80; i++) {
      if (trains[i] !== trains[i - 1]) continue
      expect(packets.offset[handles[i]]).toBe(packets.offset[handles[i - 1]] + bytes(i - 1) + 32)
    }
    const sealed = [...handles].map((handle) => bytesOf(packets, handle))
    expect(sealed.map((each) => openedBy(key, each))).toEqual(sealed.map((_, i) => Buffer.from(pattern(bytes(i), i))))
    expect(openPackets(aead, id, handles)).toEqual(sealed.map(() => 'opened'))
    for (const handle of handles.subarray(1)) packets.release(handle)
    expect(packets.trainFree[0]).toBe(2)
    packets.release(handles[0])
    expect([packets.held, packets.trainFree[0]]).toEqual([0, 3])
  })

  test('few packets, and those that no train is free for, stay in their slots', () => {
    const packets = new Packets({ slots: 100, mtu: 1472, trains: 1 })
    const id = register(packets)
    const few = packetsOf(packets, 15, () => 1388)
    expect(native.aeadSeal(aead, id, few, 15, new Float64Array(1), new Int32Array(15), true)).toBe(0)
    expect([...few].map((handle) => packets.train[handle])).toEqual([...few].map(() => 0))
    const many = packetsOf(packets, 60, () => 1388)
    expect(native.aeadSeal(aead, id, many, 60, Float64Array.of(15), new Int32Array(60), true)).toBe(0)
    expect([...many].map((handle) => packets.train[handle])).toEqual([...many].map((_, i) => (i < 46 ? 1 : 0)))
    expect(openPackets(aead, id, Int32Array.of(...few, ...many))).toEqual(Array(75).fill('opened'))
    expect([...many].map((handle) => bytesOf(packets, handle))).toEqual([...many].map((_, i) => pattern(1388, i)))
    packets.releaseAll({ handles: many, length: 60 })
    expect(packets.trainFree[0]).toBe(1)
  })

  test('those that came in a train leave it, and it is free again', () => {
    const { packets, id } = taught(4)
    const payloads = sendTrain(5)
    const taken = Int32Array.from(receive(id, SEGMENTS))
    const came = packets.train[taken[0]]
    expect(native.aeadSeal(aead, id, taken, SEGMENTS, new Float64Array(1), new Int32Array(SEGMENTS), true)).toBe(0)
    const trains = new Set([...taken].map((packet) => packets.train[packet]))
    expect([trains.size, trains.has(came), trains.has(0), packets.trainFree[0]]).toEqual([1, false, false, 3])
    const sealed = [...taken].map((packet) => bytesOf(packets, packet))
    expect(sealed.map((each) => openedBy(key, each))).toEqual(payloads.map((payload) => Buffer.from(payload)))
    packets.releaseAll({ handles: taken, length: SEGMENTS })
    expect([packets.held, packets.trainFree[0]]).toEqual([0, 4])
  })

  test('a train that all have left is filled anew, after what was in it has been sealed', () => {
    const { packets, id } = taught(3)
    const payloads = [...sendTrain(6), ...sendTrain(7)]
    const taken = Int32Array.from(receive(id, 2 * SEGMENTS))
    const came = packets.train[taken[0]]
    expect(packets.trainFree[0]).toBe(1)
    const failed = new Int32Array(taken.length)
    expect(native.aeadSeal(aead, id, taken, taken.length, new Float64Array(1), failed, true)).toBe(0)
    expect(packets.train[taken.at(-1) as number]).toBe(came)
    const sealed = [...taken].map((packet) => bytesOf(packets, packet))
    expect(sealed.map((each) => openedBy(key, each))).toEqual(payloads.map((payload) => Buffer.from(payload)))
    expect(openPackets(aead, id, taken)).toEqual(payloads.map(() => 'opened'))
    packets.releaseAll({ handles: taken, length: taken.length })
    expect([packets.held, packets.trainFree[0]]).toEqual([0, 3])
  })

  test('of a signer, whose text stays as it is, they stay in their slots', () => {
    const packets = new Packets({ slots: 100, mtu: 1472, trains: 1 })
    const id = register(packets)
    const signer = native.aeadOpen(owner, 3, new Uint8Array(32), new Uint8Array(8))
    const handles = packetsOf(packets, 40, () => 1000)
    expect(native.aeadSeal(signer, id, handles, 40, new Float64Array(1), new Int32Array(40), true)).toBe(0)
    expect([...handles].map((handle) => packets.train[handle])).toEqual(Array(40).fill(0))
    expect([packets.trainFree[0], bytesOf(packets, handles[3]).subarray(16, -16)]).toEqual([1, pattern(1000, 3)])
  })
})

test('a train passed on as it is arrives as it was, and the addon frees it', () => {
  const { packets, id } = taught(4)
  const payloads = sendTrain(4)
  const taken = Int32Array.from(receive(id, SEGMENTS))
  const outbox = towards(native.udpAddress(inbox).port)
  expect(native.udpSend(outbox, id, taken, 0, taken.length, ioCounters())).toBe(SEGMENTS)
  expect([packets.held, packets.trainFree[0]]).toEqual([0, 4])
  expect(receive(id, SEGMENTS).map((packet) => bytesOf(packets, packet))).toEqual(payloads)
})

test('what was left out of a train, put elsewhere in it, cut or mixed with another goes out in its order and as it is', () => {
  const { packets, id } = taught(4)
  const outbox = towards(native.udpAddress(inbox).port)
  const even = (_: number, i: number) => i % 2 === 0
  const odd = (_: number, i: number) => i % 2 === 1
  const arrangements: ((taken: number[]) => number[])[] = [
    (taken) => [...taken].reverse(),
    (taken) => [...taken.slice(0, 10), taken[11], taken[10], ...taken.slice(12)],
    (taken) => [...taken.slice(0, 20), ...taken.slice(21)],
    (taken) => taken.filter(even).concat(taken.filter(odd)),
    (taken) => {
      packets.trimBack(taken[7], 3)
      packets.trimFront(taken[15], 2)
      packets.settle(taken[25])
      return taken
    },
    // Longer than a message may be, and from one train into the next.
    (taken) => [...taken.slice(0, SEGMENTS - 1), ...taken.slice(SEGMENTS), taken[SEGMENTS - 1]],
  ]
  for (const [number, arrange] of arrangements.entries()) {
    sendTrain(10 + number)
    const trains = number === arrangements.length - 1 ? 2 : 1
    if (trains === 2) sendTrain(30)
    const taken = receive(id, trains * SEGMENTS)
    const sent = arrange(taken)
    for (const packet of taken) if (!sent.includes(packet)) packets.release(packet)
    const payloads = sent.map((packet) => bytesOf(packets, packet))
    expect(native.udpSend(outbox, id, Int32Array.from(sent), 0, sent.length, ioCounters())).toBe(sent.length)
    expect([packets.held, packets.trainFree[0]], `arrangement ${number}`).toEqual([0, 4])
    const back = receive(id, sent.length)
    expect(
      back.map((packet) => bytesOf(packets, packet)),
      `arrangement ${number}`,
    ).toEqual(payloads)
    for (const packet of back) packets.release(packet)
  }
})

test('bytes received are those of the packets given out, call by call', () => {
  const { packets, id } = taught(1)
  sendTrain(1)
  sendTrain(2)
  sendTrain(3, 1)
  const handles = new Int32Array(256)
  const counters = ioCounters()
  let taken = 0
  let bytes = 0
  while (taken < 2 * SEGMENTS + 1) {
    awaitReadable(owner, inbox)
    const got = native.udpReceive(inbox, id, handles, 30, 0, counters)
    for (const packet of handles.subarray(0, got)) bytes += packets.length[packet]
    taken += got
    expect(counter(counters, 'receivedBytes')).toBe(bytes)
  }
  expect(bytes).toBe(2 * (SEGMENTS * BYTES - 7) + BYTES - 7)
})

test('trains that are all taken, and calls with too little room, fall back to slots', () => {
  const { packets, id } = taught(1)
  const expected = [...sendTrain(5), ...sendTrain(6), ...sendTrain(7)]
  const taken = receive(id, 3 * SEGMENTS)
  expect(taken.map((packet) => bytesOf(packets, packet))).toEqual(expected)
  expect(packets.trainFree[0]).toBe(0)
  expect(taken.filter((packet) => packets.train[packet] > 0).length).toBe(SEGMENTS)
  for (const packet of taken) packets.release(packet)
  const small = sendTrain(8)
  expect(receive(id, SEGMENTS, 7).map((packet) => bytesOf(packets, packet))).toEqual(small)
})

/** What one call brings of what waits. */
function receiveOnce(id: number, max: number): number[] {
  const handles = new Int32Array(max)
  awaitReadable(owner, inbox)
  return [...handles.subarray(0, native.udpReceive(inbox, id, handles, max, 0, ioCounters()))]
}

test('a call that does not ask whether more is there takes what follows a train as long as one can be', () => {
  const { packets, id } = taught(8)
  const payloads = [sendTrain(1, 64), sendTrain(2, 64), sendTrain(3, 64), sendTrain(4, 20), sendTrain(5, 20)].flat()
  const first = receiveOnce(id, 256)
  expect(first.length).toBe(3 * 64 + 20)
  const taken = [...first, ...receive(id, 20)]
  expect(taken.map((packet) => bytesOf(packets, packet))).toEqual(payloads)
})

test('where long trains and short ones come in turn, a batch has room for a short one where a long one has none', () => {
  const { packets, id } = taught(8)
  const payloads = [sendTrain(1, 14), sendTrain(2, 4), sendTrain(3, 14), sendTrain(4, 4), sendTrain(5, 14)].flat()
  const first = receiveOnce(id, 18)
  expect(first.length).toBe(14)
  const second = receiveOnce(id, 25)
  expect(second.length).toBe(4 + 14 + 4)
  const third = receiveOnce(id, 256)
  expect(third.length).toBe(14)
  expect(new Set(third.map((packet) => packets.train[packet])).size).toBe(1)
  expect(packets.train[third[0]]).toBeGreaterThan(0)
  expect([...first, ...second, ...third].map((packet) => bytesOf(packets, packet))).toEqual(payloads)
})

/** Bytes as what is compared fast. */
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

test('long trains behind short ones, more of them in a call than it has room for, wait and come in their order', () => {
  const { packets, id } = taught(8)
  for (let i = 0; i < 50; i++) sendTrain(i, 5)
  for (const packet of receive(id, 250)) packets.release(packet)
  const payloads = Array.from({ length: 6 }, (_, i) => sendTrain(100 + i, 64)).flat()
  const taken = receiveOnce(id, 100)
  expect(taken.length).toBe(100)
  expect(packets.trainFree[0]).toBe(7)
  // The kernel has nothing more: what is left waits with the socket, which is ready for reading as long as it does.
  while (taken.length < payloads.length) taken.push(...receiveOnce(id, 100))
  expect(taken.map((packet) => text(bytesOf(packets, packet)))).toEqual(payloads.map(text))
  for (const packet of taken) packets.release(packet)
  expect([packets.held, packets.trainFree[0]]).toEqual([0, 8])
})

test.each([1, 2, 3, 4])('trains of all lengths and calls with all kinds of room, seed %i', (seed) => {
  const random = pattern(600, seed)
  let next = 0
  const below = (most: number) => random[next++ % random.length] % most
  const { packets, id } = taught(5)
  const kept: number[] = []
  const gone: number[] = []
  for (let round = 0; round < 12; round++) {
    const payloads = Array.from({ length: 1 + below(6) }, (_, i) => sendTrain(round * 10 + i, 1 + below(64))).flat()
    const taken: number[] = []
    while (taken.length < payloads.length) taken.push(...receiveOnce(id, 1 + below(255)))
    expect(taken.map((packet) => text(bytesOf(packets, packet)))).toEqual(payloads.map(text))
    // Some stay for a while, so that neither slots nor trains are free in one row.
    for (const packet of taken) (below(20) === 0 ? kept : gone).push(packet)
    gone.push(...kept.splice(0, Math.max(0, kept.length - 60)))
    for (const packet of gone.splice(0)) packets.release(packet)
  }
  for (const packet of kept) packets.release(packet)
  expect([packets.held, packets.trainFree[0]]).toEqual([0, 5])
})

test('packets that have passed through leave their slots to the next ones in the order in which they had them', () => {
  const { id } = taught(4)
  const outbox = towards(9)
  const rounds = [64, 20, 40].map((segments, i) => {
    sendTrain(50 + i, segments)
    const taken = receive(id, segments)
    expect(native.udpSend(outbox, id, Int32Array.from(taken), 0, segments, ioCounters())).toBe(segments)
    return taken
  })
  for (const taken of rounds) expect(taken).toEqual(rounds[0].slice(0, taken.length))
})

test('a socket that is to take no trains puts every packet into a slot of its own', () => {
  const local = { address: '127.0.0.1', port: native.udpAddress(inbox).port }
  native.close(inbox)
  inbox = native.udpOpen(owner, { backend: 2, family: 4, local, mtu: 1472, bufferBytes: 4 << 20, trains: false })
  const { packets, id } = taught(4)
  const payloads = sendTrain(9)
  const taken = receive(id, SEGMENTS)
  expect(taken.map((packet) => bytesOf(packets, packet))).toEqual(payloads)
  expect(taken.map((packet) => packets.train[packet])).toEqual(Array(SEGMENTS).fill(0))
})

test('a forged train index or place is refused before any memory is touched', () => {
  const { packets, id } = taught(2)
  const packet = packets.allocate()
  packets.length[packet] = 10
  const send = () => native.udpSend(sender.socket, id, Int32Array.of(packet), 0, 1, ioCounters())
  packets.train[packet] = 3
  expect(send).toThrow(/is no packet/)
  packets.train[packet] = 2
  expect(send).toThrow(/is no packet/)
  packets.offset[packet] = packets.data.length - 5
  expect(send).toThrow(/is no packet/)
  packets.trainFree[0] = 2
  packets.trainReferences[1] = 1
  packets.offset[packet] = packets.data.length - 10
  expect(send).toThrow(/damaged/)
})
