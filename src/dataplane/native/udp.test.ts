/** UDP sockets of every backend over loopback: boundaries, trains, counters, errors. */
import { constants } from 'node:os'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  awaitReadable,
  bytesOf,
  complaints,
  counter,
  freePacket,
  ioCounters,
  packetMemory,
  packetOf,
  pattern,
  remoteOf,
  setRemote,
} from './fixture.ts'
import { native, ORDINAL_BYTE, type PacketMemory, REMOTE_BYTES } from './native.ts'
import type { UdpBackendCode } from './socket-calls.ts'

const LOOPBACK = { 4: '127.0.0.1', 6: '::1' } as const
const LOOPBACK_BYTES = { 4: [127, 0, 0, 1], 6: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }
const SLOTS = 600

let owner = 0
let opened: number[] = []
let before = 0

beforeEach(() => {
  before = native.openDescriptors()
  owner = native.ownerOpen()
  opened = []
})

afterEach(() => {
  native.ownerRelease(owner)
  for (const id of opened) native.memoryClose(id)
  expect(native.openDescriptors()).toBe(before)
})

function register(memory: PacketMemory): number {
  const id = native.memoryOpen(memory)
  opened.push(id)
  return id
}

/** Arrival times count from here. */
const ORIGIN = native.now()

function bound(family: 4 | 6, backend: UdpBackendCode, mtu = 1500): number {
  const local = { address: LOOPBACK[family], port: 0 }
  return native.udpOpen(owner, { backend, family, local, mtu, bufferBytes: 4 << 20 })
}

function connected(family: 4 | 6, backend: UdpBackendCode, to: number, mtu = 1500): number {
  const remote = { address: LOOPBACK[family], port: native.udpAddress(to).port }
  return native.udpOpen(owner, { backend, family, remote, mtu, bufferBytes: 4 << 20 })
}

/** Receives until `count` datagrams came (dropped ones counted too); the handles in order. */
function receiveAll(socket: number, id: number, count: number, counters: Float64Array, max = 256): number[] {
  const handles = new Int32Array(max)
  const all: number[] = []
  const seen = () => all.length + counter(counters, 'oversize') + counter(counters, 'noSlot')
  while (seen() < count) {
    awaitReadable(owner, socket)
    const taken = native.udpReceive(socket, id, handles, max, ORIGIN, counters)
    for (let i = 0; i < taken; i++) all.push(handles[i]!)
  }
  return all
}

function sendAll(socket: number, id: number, handles: number[], counters: Float64Array): void {
  const list = Int32Array.from(handles)
  expect(native.udpSend(socket, id, list, 0, list.length, counters)).toBe(handles.length)
}

const backends: [string, UdpBackendCode][] = [
  ['GENERIC', 0],
  ['LINUX_NO_GRO', 1],
  ['LINUX', 2],
]

for (const [name, backend] of backends) {
  for (const family of [4, 6] as const) {
    describe(`${name} over IPv${family}`, () => {
      test('datagrams of mixed sizes keep their boundaries, their sender and their order', () => {
        const memory = packetMemory(SLOTS)
        const id = register(memory)
        const receiver = bound(family, backend)
        const sender = connected(family, backend, receiver)
        expect(native.udpAddress(receiver)).toEqual({
          address: LOOPBACK[family],
          port: native.udpAddress(receiver).port,
          backend,
        })
        const sizes = [1200, 1200, 1200, 700, 1200, 1, 0, 1400, 1400, 1399, 1400, 0, 0, 20, 20, 20, 20, 1300]
        for (let i = 0; i < 90; i++) sizes.push(500)
        for (let i = 0; i < 30; i++) sizes.push(i % 2 ? 1000 : 1001)
        const counters = ioCounters()
        for (let round = 0; round < 3; round++) {
          let earliest = native.now() - ORIGIN
          sendAll(
            sender,
            id,
            sizes.map((size, i) => packetOf(memory, pattern(size, i + round))),
            counters,
          )
          const handles = receiveAll(receiver, id, sizes.length, counters)
          expect(memory.arrival[handles.at(-1)!]).toBeLessThanOrEqual(native.now() - ORIGIN)
          expect(handles.map((handle) => memory.length[handle])).toEqual(sizes)
          handles.forEach((handle, i) => {
            expect(Buffer.compare(bytesOf(memory, handle), pattern(sizes[i]!, i + round))).toBe(0)
            expect(memory.offset[handle]).toBe(handle * memory.slotBytes + memory.headroom)
            expect(memory.arrival[handle]).toBeGreaterThanOrEqual(earliest)
            earliest = memory.arrival[handle]!
            expect(remoteOf(memory, handle)).toEqual({
              family,
              port: native.udpAddress(sender).port,
              address: LOOPBACK_BYTES[family],
            })
            freePacket(memory, handle)
          })
          expect(memory.free[0]).toBe(SLOTS)
        }
        expect(complaints(counters)).toEqual([])
      })

      test('an unconnected socket sends each packet to its remote record', () => {
        const memory = packetMemory(SLOTS)
        const id = register(memory)
        const receivers = [bound(family, backend), bound(family, backend)]
        const sender = bound(family, backend)
        const counters = ioCounters()
        const handles: number[] = []
        for (let i = 0; i < 40; i++) {
          const handle = packetOf(memory, pattern(300, i))
          const receiver = receivers[i < 20 ? i % 2 : 0]!
          setRemote(memory, handle, family, LOOPBACK_BYTES[family], native.udpAddress(receiver).port)
          handles.push(handle)
        }
        const lost = packetOf(memory, pattern(10, 99))
        handles.splice(25, 0, lost)
        sendAll(sender, id, handles, counters)
        expect(counter(counters, 'sendErrors')).toBe(1)
        expect(counter(counters, 'sendErrno')).toBe(constants.errno.EDESTADDRREQ)
        const first = receiveAll(receivers[0]!, id, 30, ioCounters())
        const second = receiveAll(receivers[1]!, id, 10, ioCounters())
        expect(first.length).toBe(30)
        expect(second.length).toBe(10)
        const firstSeeds = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
        for (let i = 20; i < 40; i++) firstSeeds.push(i)
        first.forEach((handle, i) => {
          expect(Buffer.compare(bytesOf(memory, handle), pattern(300, firstSeeds[i]!))).toBe(0)
        })
        expect(memory.free[0]).toBe(SLOTS - 40)
      })

      test('datagrams over the mtu are dropped and counted', () => {
        const memory = packetMemory(SLOTS)
        const id = register(memory)
        const receiver = bound(family, backend, 1000)
        const sender = connected(family, backend, receiver)
        const sizes = [1000, 1001, 1200, 1200, 1200, 500, 1000, 1000, 1001, 1]
        const sent = ioCounters()
        sendAll(
          sender,
          id,
          sizes.map((size, i) => packetOf(memory, pattern(size, i))),
          sent,
        )
        const counters = ioCounters()
        const handles = receiveAll(receiver, id, sizes.length, counters)
        expect(handles.map((handle) => memory.length[handle])).toEqual([1000, 500, 1000, 1000, 1])
        expect(counter(counters, 'oversize')).toBe(5)
        expect(memory.free[0]).toBe(SLOTS - 5)
      })

      test('without free slots datagrams are read away and counted', () => {
        const sending = packetMemory(SLOTS)
        const sendingId = register(sending)
        const receiving = packetMemory(10)
        const receivingId = register(receiving)
        const receiver = bound(family, backend)
        const sender = connected(family, backend, receiver)
        const packets = Array.from({ length: 100 }, (_, i) => packetOf(sending, pattern(800, i)))
        sendAll(sender, sendingId, packets, ioCounters())
        const counters = ioCounters()
        const handles = receiveAll(receiver, receivingId, 100, counters)
        expect(handles.length).toBe(10)
        handles.forEach((handle, i) => {
          expect(Buffer.compare(bytesOf(receiving, handle), pattern(800, i))).toBe(0)
        })
        expect(counter(counters, 'noSlot')).toBe(90)
        expect(receiving.free[0]).toBe(0)
        expect(native.udpReceive(receiver, receivingId, new Int32Array(64), 64, 0, counters)).toBe(0)
      })

      test('a refused datagram is counted and the next one still leaves', () => {
        const memory = packetMemory(SLOTS)
        const id = register(memory)
        const receiver = bound(family, backend)
        const address = native.udpAddress(receiver)
        const sender = connected(family, backend, receiver)
        native.close(receiver)
        const counters = ioCounters()
        sendAll(sender, id, [packetOf(memory, pattern(10, 1))], counters)
        // Loopback answers with the ICMP error before the send returns.
        const again = native.udpOpen(owner, { backend, family, local: address, mtu: 1500 })
        sendAll(sender, id, [packetOf(memory, pattern(11, 2))], counters)
        expect(counter(counters, 'socketErrors')).toBe(1)
        expect(counter(counters, 'socketErrno')).toBe(constants.errno.ECONNREFUSED)
        expect(counter(counters, 'sendErrno')).toBe(0)
        const handles = receiveAll(again, id, 1, counters)
        expect(handles.map((handle) => memory.length[handle])).toEqual([11])
      })

      test('a socket that only receives says what the network reported', () => {
        const memory = packetMemory(SLOTS)
        const id = register(memory)
        const receiver = bound(family, backend)
        const sender = connected(family, backend, receiver)
        native.close(receiver)
        sendAll(sender, id, [packetOf(memory, pattern(10, 1))], ioCounters())
        const counters = ioCounters()
        expect(native.udpReceive(sender, id, new Int32Array(64), 64, 0, counters)).toBe(0)
        expect(counter(counters, 'socketErrors')).toBe(1)
        expect(counter(counters, 'socketErrno')).toBe(constants.errno.ECONNREFUSED)
      })

      test('a datagram too long for the kernel is consumed and counted', () => {
        const memory = packetMemory(4, 70_000, 128, 64)
        const id = register(memory)
        const receiver = bound(family, backend, 65_535)
        const sender = connected(family, backend, receiver, 65_535)
        const counters = ioCounters()
        const packets = [packetOf(memory, pattern(66_000, 1)), packetOf(memory, pattern(65_000, 2))]
        sendAll(sender, id, packets, counters)
        expect(counter(counters, 'sendErrors')).toBe(1)
        expect(counter(counters, 'sendErrno')).toBe(constants.errno.EMSGSIZE)
        const handles = receiveAll(receiver, id, 1, counters)
        expect(Buffer.compare(bytesOf(memory, handles[0]!), pattern(65_000, 2))).toBe(0)
      })
    })
  }
}

test.each(backends.flatMap(([name, backend]) => ([4, 6] as const).map((family) => [name, family, backend] as const)))(
  '%s over IPv%i at all addresses answers each peer from the one where it was heard',
  (_, family, backend) => {
    const memory = packetMemory(SLOTS)
    const id = register(memory)
    const counters = ioCounters()
    const at = (port: number) => {
      const local = { address: family === 6 ? '::' : '0.0.0.0', port }
      return native.udpOpen(owner, { backend, family, local, mtu: 1500, bufferBytes: 4 << 20 })
    }
    // One at a port of the kernel's choice asks, and answers nobody.
    const asking = at(0)
    const { port } = native.udpAddress(asking)
    native.close(asking)
    const server = at(port)
    // To 127.0.0.1, where both come from, the kernel would answer from there: the sockets would not hear it.
    const clients = ['127.0.0.2', '127.3.2.1', '127.0.0.1'].map((address) =>
      native.udpOpen(owner, { backend, family: 4, remote: { address, port }, mtu: 1500, bufferBytes: 4 << 20 }),
    )
    const sizes = [...Array.from({ length: 40 }, () => 1000), 7, 0, 30]
    for (let round = 0; round < 3; round++) {
      for (const client of clients) {
        const packets = sizes.map((size, i) => packetOf(memory, pattern(size, i + round)))
        sendAll(client, id, packets, counters)
      }
      const answers = receiveAll(server, id, clients.length * sizes.length, counters)
      // As of somebody who comes over TCP too, more than once from the same port: that is nothing to UDP.
      for (const handle of answers) memory.remote[handle * REMOTE_BYTES + ORDINAL_BYTE] = round
      sendAll(server, id, answers, counters)
      for (const client of clients) {
        const handles = receiveAll(client, id, sizes.length, counters)
        expect(handles.map((handle) => memory.length[handle])).toEqual(sizes)
        for (const [i, handle] of handles.entries())
          expect(bytesOf(memory, handle)).toEqual(pattern(sizes[i]!, i + round))
        for (const handle of handles) freePacket(memory, handle)
      }
    }
    expect(complaints(counters)).toEqual([])
  },
)

describe('LINUX trains', () => {
  test('sizes that change from train to train, against the prediction of the last', () => {
    const memory = packetMemory(SLOTS)
    const id = register(memory)
    const receiver = bound(4, 2)
    const sender = connected(4, 2, receiver)
    const counters = ioCounters()
    let seed = 1
    for (const [size, count, last] of [
      [1200, 54, 1200],
      [1200, 54, 3],
      [600, 64, 599],
      [1400, 46, 1400],
      [100, 64, 1],
      [1472, 44, 1000],
      [1472, 1, 1472],
      [1200, 2, 100],
      [1201, 2, 1201],
      [1, 64, 1],
    ] as const) {
      const sizes = [...Array<number>(count - 1).fill(size), last]
      const first = seed
      sendAll(
        sender,
        id,
        sizes.map((bytes) => packetOf(memory, pattern(bytes, seed++))),
        counters,
      )
      const handles = receiveAll(receiver, id, count, counters)
      expect(handles.map((handle) => memory.length[handle])).toEqual(sizes)
      handles.forEach((handle, i) => {
        expect(Buffer.compare(bytesOf(memory, handle), pattern(sizes[i]!, first + i))).toBe(0)
        freePacket(memory, handle)
      })
    }
    expect(complaints(counters)).toEqual([])
  })

  test('a train longer than the call can take waits for the next call, and the poller says so', () => {
    const memory = packetMemory(SLOTS)
    const id = register(memory)
    const receiver = bound(4, 2)
    const sender = connected(4, 2, receiver)
    const counters = ioCounters()
    for (let round = 0; round < 2; round++) {
      sendAll(
        sender,
        id,
        Array.from({ length: 64 }, (_, i) => packetOf(memory, pattern(900, i))),
        counters,
      )
      const handles = receiveAll(receiver, id, 64, counters, 10)
      handles.forEach((handle, i) => {
        expect(Buffer.compare(bytesOf(memory, handle), pattern(900, i))).toBe(0)
        freePacket(memory, handle)
      })
      const poller = native.pollerOpen(owner)
      native.pollerAdd(poller, receiver, 1)
      expect(native.pollerWait(poller, 0, new Int32Array(4))).toBe(0)
      native.close(poller)
    }
  })

  test('a call with 160 packets leaves it to the next to ask for more, unless more waited when the last asked; every sixteenth asks', () => {
    const memory = packetMemory(SLOTS)
    const id = register(memory)
    const receiver = bound(4, 2)
    const sender = connected(4, 2, receiver)
    const counters = ioCounters()
    const handles = new Int32Array(256)
    const send = (trains: number) => {
      for (let train = 0; train < trains; train++) {
        sendAll(
          sender,
          id,
          Array.from({ length: 40 }, (_, i) => packetOf(memory, pattern(1200, i))),
          counters,
        )
      }
    }
    const receive = () => {
      const taken = native.udpReceive(receiver, id, handles, 256, 0, counters)
      for (let i = 0; i < taken; i++) {
        expect(Buffer.compare(bytesOf(memory, handles[i]!), pattern(1200, i % 40))).toBe(0)
        freePacket(memory, handles[i]!)
      }
      return taken / 40
    }
    for (let round = 0; round < 2; round++) {
      send(6)
      awaitReadable(owner, receiver)
      expect([receive(), receive(), receive()]).toEqual([4, 2, 0])
      for (let call = 0; call < 15; call++) {
        send(4)
        expect(receive()).toBe(4)
      }
      send(5)
      expect(receive()).toBe(5)
      send(5)
      expect(receive()).toBe(5)
      send(4)
      expect([receive(), receive()]).toEqual([4, 0])
    }
  })
})

test('a dual-stack socket reports and reaches IPv4 peers as family 4', () => {
  const memory = packetMemory(16)
  const id = register(memory)
  const dual = native.udpOpen(owner, { backend: 2, family: 6, mtu: 1500 })
  const four = native.udpOpen(owner, {
    backend: 2,
    family: 4,
    local: { address: '127.0.0.1', port: 0 },
    remote: { address: '127.0.0.1', port: native.udpAddress(dual).port },
    mtu: 1500,
  })
  const counters = ioCounters()
  sendAll(four, id, [packetOf(memory, pattern(50, 1))], counters)
  const [handle] = receiveAll(dual, id, 1, counters)
  expect(remoteOf(memory, handle!)).toEqual({
    family: 4,
    port: native.udpAddress(four).port,
    address: [127, 0, 0, 1],
  })
  sendAll(dual, id, [handle!], counters)
  const [answer] = receiveAll(four, id, 1, counters)
  expect(Buffer.compare(bytesOf(memory, answer!), pattern(50, 1))).toBe(0)
})

test('a taken port is EADDRINUSE, naming the address', () => {
  const first = bound(4, 2)
  const local = { address: '127.0.0.1', port: native.udpAddress(first).port }
  expect(() => native.udpOpen(owner, { backend: 2, family: 4, local, mtu: 1500 })).toThrow(
    expect.objectContaining({
      code: 'EADDRINUSE',
      syscall: 'bind',
      message: expect.stringContaining(`127.0.0.1:${local.port}`),
    }),
  )
  expect(() => native.udpOpen(owner, { backend: 2, family: 4, interface: 'nosuchif0', mtu: 1500 })).toThrow(
    expect.objectContaining({ code: 'ENODEV', message: expect.stringContaining('nosuchif0') }),
  )
})

test('multicast reaches a member of the group', () => {
  const memory = packetMemory(16)
  const id = register(memory)
  const member = native.udpOpen(owner, {
    backend: 2,
    family: 4,
    local: { address: '0.0.0.0', port: 0 },
    multicastGroup: '239.255.17.3',
    multicastTtl: 0,
    interface: 'lo',
    mtu: 1500,
  })
  const sender = native.udpOpen(owner, {
    backend: 2,
    family: 4,
    interface: 'lo',
    remote: { address: '239.255.17.3', port: native.udpAddress(member).port },
    mtu: 1500,
  })
  const counters = ioCounters()
  sendAll(sender, id, [packetOf(memory, pattern(60, 3))], counters)
  const [handle] = receiveAll(member, id, 1, counters)
  expect(Buffer.compare(bytesOf(memory, handle!), pattern(60, 3))).toBe(0)
})

test('a socket whose way has not changed, or that was given its address, stays where it is', () => {
  const open = (more: object) => native.udpOpen(owner, { backend: 2, family: 4, mtu: 1500, ...more })
  const remote = { address: '127.0.0.1', port: 9 }
  const sockets = [
    open({ remote }),
    open({ remote, local: { address: '0.0.0.0', port: 0 } }),
    open({ remote, local: { address: '127.0.0.2', port: 0 } }),
    open({ remote, local: { address: '::', port: 0 } }),
    open({ remote: { address: '::1', port: 9 } }),
    open({ local: { address: '127.0.0.1', port: 0 } }),
  ]
  for (const socket of sockets) {
    const before = native.udpAddress(socket)
    expect(native.udpFollow(socket)).toBe(0)
    expect(native.udpAddress(socket)).toEqual(before)
  }
})

describe('arrivalTimes', () => {
  /** Waits until `since` is so many milliseconds ago, by the clock that arrivals have. */
  const passed = (since: number, milliseconds: number) => {
    while (native.now() - since < milliseconds * 1e6);
  }
  const open = () =>
    native.udpOpen(owner, {
      backend: 2,
      family: 4,
      local: { address: '127.0.0.1', port: 0 },
      mtu: 1500,
      arrivalTimes: true,
    })

  test('a datagram that comes alone has the time at which the kernel took it in, however late it is read', () => {
    const memory = packetMemory(64)
    const id = register(memory)
    const receiver = open()
    const sender = connected(4, 2, receiver)
    const counters = ioCounters()
    // The kernel begins to take times soon after it was asked, not at once.
    let isBegun = false
    let seen = 0
    for (let round = 0; seen < 3; round++) {
      const before = native.now()
      sendAll(sender, id, [packetOf(memory, pattern(100 + (round % 1000), round))], counters)
      const after = native.now()
      passed(after, 5)
      const [handle] = receiveAll(receiver, id, 1, counters)
      const end = native.now()
      const arrival = memory.arrival[handle!]!
      freePacket(memory, handle!)
      expect(arrival).toBeGreaterThanOrEqual(before - ORIGIN)
      // The machine has held this thread up for longer than the time that is taken for a wait.
      if (end - before > 19e6) continue
      isBegun ||= arrival <= end - ORIGIN - 5e6
      if (!isBegun) continue
      seen++
      expect(arrival).toBeLessThanOrEqual(end - ORIGIN - 5e6)
    }
  })

  test('one that waited longer than anybody waits, and a train, have the time at which they were read', () => {
    const memory = packetMemory(64)
    const id = register(memory)
    const receiver = open()
    const sender = connected(4, 2, receiver)
    const counters = ioCounters()
    for (const [packets, milliseconds] of [
      [1, 25],
      [8, 5],
    ] as const) {
      const handles = Array.from({ length: packets }, (_, i) => packetOf(memory, pattern(500, i)))
      sendAll(sender, id, handles, counters)
      const sent = native.now()
      passed(sent, milliseconds)
      const taken = receiveAll(receiver, id, packets, counters)
      for (const handle of taken) {
        expect(memory.arrival[handle]).toBeGreaterThanOrEqual(sent + milliseconds * 1e6 - ORIGIN)
      }
    }
  })
})
