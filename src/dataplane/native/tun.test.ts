/** TUN and TAP devices against the kernel's own sockets; needs root and /dev/net/tun. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { constants, release } from 'node:os'
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
} from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

/** Why TUN cannot be tested here, or undefined. */
function obstacle(): string | undefined {
  const owner = native.ownerOpen()
  try {
    native.tunOpen(owner, {
      kind: 'tun',
      name: '',
      address: '127.66.0.1',
      prefix: 32,
      mtu: 1280,
      defaultRoute: false,
      offload: false,
    })
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    native.ownerRelease(owner)
  }
}

const missing = obstacle()
if (missing) console.warn(`TUN TESTS ARE SKIPPED: ${missing}`)

// Networks and names of this process's own: several test runs may share the machine.
const high = 64 + ((process.pid >> 8) & 63)
const low = process.pid & 255
const NAME = `pst${process.pid}`
const HERE = { 4: `100.${high}.${low}.1`, 6: `fd${high.toString(16)}:${low.toString(16)}::1` } as const
const PEER = { 4: `100.${high}.${low}.2`, 6: `fd${high.toString(16)}:${low.toString(16)}::2` } as const
const HERE_BYTES = { 4: [100, high, low, 1], 6: [0xfd, high, 0, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }
const PEER_BYTES = { 4: [100, high, low, 2], 6: [0xfd, high, 0, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] }
const MTU = 1280
const [major, minor] = release().split('.').map(Number) as [number, number]
/** The kernel has USO: UDP is joined. */
const JOINS_UDP = major > 6 || (major === 6 && minor >= 2)

/** Ones' complement sum, big-endian words. */
function onesSum(bytes: Uint8Array, start = 0): number {
  let sum = start
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) + (bytes[i + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return sum
}

function transportSum(packet: Uint8Array): number {
  const six = packet[0]! >> 4 === 6
  const transport = packet.subarray(six ? 40 : (packet[0]! & 15) * 4)
  const protocol = six ? packet[6]! : packet[9]!
  const addresses = six ? packet.subarray(8, 40) : packet.subarray(12, 20)
  return onesSum(transport, onesSum(addresses) + protocol + transport.length)
}

/** Every length and checksum of an IP packet is right. */
function expectValid(packet: Uint8Array): void {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length)
  if (packet[0]! >> 4 === 6) {
    expect(view.getUint16(4) + 40).toBe(packet.length)
    expect(packet[6] === 6 || packet[6] === 17 ? transportSum(packet) : 0xffff).toBe(0xffff)
  } else {
    expect(view.getUint16(2)).toBe(packet.length)
    expect(onesSum(packet.subarray(0, (packet[0]! & 15) * 4))).toBe(0xffff)
    expect(packet[9] === 6 || packet[9] === 17 ? transportSum(packet) : 0xffff).toBe(0xffff)
  }
}

/** A UDP packet from the peer to here. */
function udpPacket(family: 4 | 6, from: number, to: number, payload: Uint8Array, id = 0): Uint8Array {
  const header = family === 4 ? 20 : 40
  const packet = new Uint8Array(header + 8 + payload.length)
  const view = new DataView(packet.buffer)
  if (family === 4) {
    packet[0] = 0x45
    view.setUint16(2, packet.length)
    view.setUint16(4, id)
    view.setUint16(6, 0x4000)
    packet[8] = 64
    packet[9] = 17
    packet.set(PEER_BYTES[4], 12)
    packet.set(HERE_BYTES[4], 16)
    view.setUint16(10, ~onesSum(packet.subarray(0, 20)) & 0xffff)
  } else {
    packet[0] = 0x60
    view.setUint16(4, packet.length - 40)
    packet[6] = 17
    packet[7] = 64
    packet.set(PEER_BYTES[6], 8)
    packet.set(HERE_BYTES[6], 24)
  }
  view.setUint16(header, from)
  view.setUint16(header + 2, to)
  view.setUint16(header + 4, 8 + payload.length)
  packet.set(payload, header + 8)
  view.setUint16(header + 6, ~transportSum(packet) & 0xffff || 0xffff)
  return packet
}

let owner = 0
let memory: PacketMemory
let id = 0

beforeEach(() => {
  owner = native.ownerOpen()
  memory = packetMemory(1000)
  id = native.memoryOpen(memory)
})

afterEach(() => {
  native.ownerRelease(owner)
  native.memoryClose(id)
  expect(native.openDescriptors()).toBe(0)
})

function openTun(family: 4 | 6, offload: boolean, name = NAME): number {
  const prefix = family === 4 ? 24 : 64
  return native.tunOpen(owner, {
    kind: 'tun',
    name,
    address: HERE[family],
    prefix,
    mtu: MTU,
    defaultRoute: false,
    offload,
  })
}

function boundUdp(family: 4 | 6): number {
  return native.udpOpen(owner, {
    backend: 2,
    family,
    local: { address: HERE[family], port: 0 },
    remote: { address: PEER[family], port: 7777 },
    mtu: 1500,
    bufferBytes: 4 << 20,
  })
}

/** Arrival times count from here. */
const ORIGIN = native.now()

/** Takes packets from the device until `wanted` of them satisfy `match`; the others are freed. */
function collect(tun: number, wanted: number, match: (packet: Uint8Array) => boolean, max = 256): Uint8Array[] {
  const handles = new Int32Array(max)
  const counters = ioCounters()
  const found: Uint8Array[] = []
  while (found.length < wanted) {
    awaitReadable(owner, tun)
    let earliest = native.now() - ORIGIN
    const taken = native.tunReceive(tun, id, handles, max, ORIGIN, counters)
    for (let i = 0; i < taken; i++) {
      const packet = bytesOf(memory, handles[i]!)
      expect(memory.arrival[handles[i]!]).toBeGreaterThanOrEqual(earliest)
      earliest = memory.arrival[handles[i]!]!
      freePacket(memory, handles[i]!)
      if (match(packet)) found.push(packet)
    }
  }
  expect(complaints(counters)).toEqual([])
  return found
}

const isUdp = (packet: Uint8Array) => (packet[0]! >> 4 === 4 ? packet[9] === 17 : packet[6] === 17)
const payloadOf = (packet: Uint8Array) => packet.subarray(packet[0]! >> 4 === 4 ? 28 : 48)

for (const offload of [false, true]) {
  for (const family of [4, 6] as const) {
    describe(`tun, IPv${family}, ${offload ? 'with' : 'without'} offload`, () => {
      test('datagrams of a socket come out as packets, packets go in as datagrams', (context) => {
        if (missing) return context.skip()
        const tun = openTun(family, offload)
        expect(native.tunState(tun)).toMatchObject({ name: NAME, found: false, up: true })
        const socket = boundUdp(family)
        const port = native.udpAddress(socket).port
        const counters = ioCounters()
        const sizes = [...Array<number>(100).fill(1000), 1, 1200, 1200, 33]
        for (let i = 0; i < 5; i++) sizes.push(1100)
        const out = Int32Array.from(sizes, (size, i) => packetOf(memory, pattern(size, i)))
        expect(native.udpSend(socket, id, out, 0, out.length, counters)).toBe(sizes.length)
        // A call that takes less than a train holds: the rest comes with the next ones.
        const packets = collect(tun, sizes.length, isUdp, family === 4 ? 256 : 7)
        packets.forEach((packet, i) => {
          expectValid(packet)
          expect(packet.length).toBeLessThanOrEqual(MTU)
          expect(Buffer.compare(payloadOf(packet), pattern(sizes[i]!, i))).toBe(0)
        })
        expect(memory.free[0]).toBe(1000)

        const into = Int32Array.from(sizes, (size, i) =>
          packetOf(memory, udpPacket(family, 7777, port, pattern(size, i), i)),
        )
        expect(native.tunSend(tun, id, into, 0, into.length, counters)).toBe(sizes.length)
        const handles = new Int32Array(256)
        const received: Uint8Array[] = []
        while (received.length < sizes.length) {
          awaitReadable(owner, socket)
          const taken = native.udpReceive(socket, id, handles, 256, 0, counters)
          for (let i = 0; i < taken; i++) {
            received.push(bytesOf(memory, handles[i]!))
            expect(remoteOf(memory, handles[i]!)).toEqual({ family, port: 7777, address: PEER_BYTES[family] })
            freePacket(memory, handles[i]!)
          }
        }
        received.forEach((bytes, i) => {
          expect(Buffer.compare(bytes, pattern(sizes[i]!, i))).toBe(0)
        })
        expect(complaints(counters)).toEqual([])
        expect(memory.free[0]).toBe(1000)
        const frames = Number(readFileSync(`/sys/class/net/${NAME}/statistics/rx_packets`, 'utf8'))
        // 65 fit into a frame; a shorter one ends it.
        expect(frames).toBe(offload && JOINS_UDP ? 4 : sizes.length)
      })

      test('a packet with a wrong checksum is not joined with its neighbours', (context) => {
        if (missing) return context.skip()
        const tun = openTun(family, offload)
        const socket = boundUdp(family)
        const port = native.udpAddress(socket).port
        const counters = ioCounters()
        const packets = Array.from({ length: 6 }, (_, i) => udpPacket(family, 7777, port, pattern(500, i), i))
        packets[0]![100]! ^= 1
        packets[3]![100]! ^= 1
        const into = Int32Array.from(packets, (packet) => packetOf(memory, packet))
        expect(native.tunSend(tun, id, into, 0, 6, counters)).toBe(6)
        const handles = new Int32Array(64)
        const received: Uint8Array[] = []
        while (received.length < 4) {
          awaitReadable(owner, socket)
          const taken = native.udpReceive(socket, id, handles, 64, 0, counters)
          for (let i = 0; i < taken; i++) received.push(bytesOf(memory, handles[i]!))
        }
        expect(
          received.map((bytes) => [1, 2, 4, 5].findIndex((i) => Buffer.compare(bytes, pattern(500, i)) === 0)),
        ).toEqual([0, 1, 2, 3])
      })

      if (family === 4) {
        test('a packet with a wrong IPv4 header checksum is not joined: the kernel refuses it', (context) => {
          if (missing) return context.skip()
          const tun = openTun(4, offload)
          const socket = boundUdp(4)
          const port = native.udpAddress(socket).port
          const packets = Array.from({ length: 6 }, (_, i) => udpPacket(4, 7777, port, pattern(500, i), i))
          packets[0]![10]! ^= 1
          packets[3]![11]! ^= 1
          const into = Int32Array.from(packets, (packet) => packetOf(memory, packet))
          expect(native.tunSend(tun, id, into, 0, 6, ioCounters())).toBe(6)
          const handles = new Int32Array(64)
          const received: Uint8Array[] = []
          // The last packet is a good one: once it is here, all are that the kernel has let through.
          while (received.length === 0 || Buffer.compare(received.at(-1)!, pattern(500, 5)) !== 0) {
            awaitReadable(owner, socket)
            const taken = native.udpReceive(socket, id, handles, 64, 0, ioCounters())
            for (let i = 0; i < taken; i++) received.push(bytesOf(memory, handles[i]!))
          }
          const sent = packets.map((_, i) => Buffer.from(pattern(500, i)))
          expect(received.map((bytes) => sent.findIndex((one) => one.equals(bytes)))).toEqual([1, 2, 4, 5])
        })
      }

      // Without offload the kernel cuts them itself.
      if (family === 6 && offload) {
        test('packets on a source route have checksums of where they go at last', (context) => {
          if (missing) return context.skip()
          const tun = openTun(6, true)
          const first = PEER[6].replace('::2', '::9')
          const route = ['-6', 'route', 'add', PEER[6], 'encap', 'seg6', 'mode', 'inline', 'segs', first, 'dev', NAME]
          if (spawnSync('ip', route).status !== 0) {
            console.warn(
              'SKIPPED: packets on a source route need a kernel with IPv6 segment routing (seg6) and iproute2',
            )
            return context.skip()
          }
          const socket = boundUdp(6)
          const out = Int32Array.from({ length: 20 }, (_, i) => packetOf(memory, pattern(i < 19 ? 1000 : 33, i)))
          expect(native.udpSend(socket, id, out, 0, out.length, ioCounters())).toBe(out.length)
          // What the routing header takes: 8 bytes, and two addresses.
          const isRouted = (packet: Uint8Array) => packet[6] === 43 && packet[40] === 17
          collect(tun, out.length, isRouted).forEach((packet, i) => {
            expect(packet[39]).toBe(9)
            const plain = Uint8Array.from([...packet.subarray(0, 40), ...packet.subarray(80)])
            plain.set(PEER_BYTES[6], 24)
            plain[6] = 17
            expect(transportSum(plain)).toBe(0xffff)
            expect(Buffer.compare(payloadOf(plain), pattern(i < 19 ? 1000 : 33, i))).toBe(0)
          })
          expect(memory.free[0]).toBe(1000)
        })
      }

      test('a TCP connection reflected through the device carries megabytes unharmed', async (context) => {
        if (missing) return context.skip()
        const tun = openTun(family, offload)
        const poller = native.pollerOpen(owner)
        native.pollerAdd(poller, tun, 1)
        const ready = new Int32Array(1)
        const handles = new Int32Array(256)
        const counters = ioCounters()
        const address = family === 4 ? 12 : 8
        const width = family === 4 ? 4 : 16
        let packets = 0
        let checked = 0
        let running = true
        // Swapping source and destination changes no checksum and makes both ends one host.
        const reflect = () => {
          if (!running) return
          while (native.pollerWait(poller, 0, ready) > 0) {
            const taken = native.tunReceive(tun, id, handles, 256, 0, counters)
            packets += taken
            for (let i = 0; i < taken; i++) {
              const at = memory.offset[handles[i]!]!
              expect(memory.length[handles[i]!]).toBeLessThanOrEqual(MTU)
              if (checked++ < 3000) expectValid(bytesOf(memory, handles[i]!))
              const source = memory.data.slice(at + address, at + address + width)
              memory.data.copyWithin(at + address, at + address + width, at + address + 2 * width)
              memory.data.set(source, at + address + width)
            }
            let sent = 0
            while (sent < taken) sent += native.tunSend(tun, id, handles, sent, taken - sent, counters)
          }
          setImmediate(reflect)
        }
        const content = Buffer.from(pattern(8 << 20, 1))
        const digest = createHash('sha256')
        const server = createServer((socket) =>
          socket.on('data', (data) => digest.update(data)).on('end', () => socket.end()),
        )
        await new Promise<void>((resolve) => server.listen(0, HERE[family], resolve))
        const { port } = server.address() as { port: number }
        setImmediate(reflect)
        const client = connect({ host: PEER[family], port, localAddress: HERE[family] })
        client.end(content)
        await new Promise<void>((resolve, reject) =>
          client
            .on('error', reject)
            .on('close', () => resolve())
            .resume(),
        )
        running = false
        server.close()
        expect(digest.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'))
        expect(packets).toBeGreaterThan(content.length / MTU)
        expect(counter(counters, 'malformed') + counter(counters, 'oversize') + counter(counters, 'noSlot')).toBe(0)
        const frames = Number(readFileSync(`/sys/class/net/${NAME}/statistics/rx_packets`, 'utf8'))
        if (offload) expect(frames).toBeLessThan(packets / 2)
        else expect(frames).toBe(packets)
      })
    })
  }
}

test('a packet that is none is counted, with what the kernel says of it', (context) => {
  if (missing) return context.skip()
  for (const offload of [false, true]) {
    const tun = openTun(4, offload)
    const counters = ioCounters()
    const packets = Int32Array.from([100, 100, 0], (bytes) => packetOf(memory, new Uint8Array(bytes)))
    expect(native.tunSend(tun, id, packets, 0, 3, counters)).toBe(3)
    expect(counter(counters, 'sendErrors')).toBe(3)
    expect(counter(counters, 'sendErrno')).toBe(constants.errno.EINVAL)
    native.close(tun)
  }
})

test('without slots packets are read away and counted', (context) => {
  if (missing) return context.skip()
  const small = packetMemory(2)
  const smallId = native.memoryOpen(small)
  for (const offload of [false, true]) {
    const tun = openTun(4, offload)
    const socket = boundUdp(4)
    const out = Int32Array.from({ length: 10 }, (_, i) => packetOf(memory, pattern(1000, i)))
    native.udpSend(socket, id, out, 0, 10, ioCounters())
    const counters = ioCounters()
    const handles = new Int32Array(64)
    let taken = 0
    // The kernel's own packets (router solicitations) may take a slot too.
    while (taken + counter(counters, 'noSlot') < 10) {
      awaitReadable(owner, tun)
      taken += native.tunReceive(tun, smallId, handles, 64, 0, counters)
    }
    expect(taken).toBe(2)
    expect(small.free[0]).toBe(0)
    freePacket(small, 0)
    freePacket(small, 1)
    native.close(tun)
    native.close(socket)
  }
  native.memoryClose(smallId)
})

test('a tap device answers ARP for its address', (context) => {
  if (missing) return context.skip()
  const options = { name: `${NAME}a`, address: HERE[4], prefix: 24, mtu: 1400, defaultRoute: false, offload: true }
  const tap = native.tunOpen(owner, { kind: 'tap', ...options })
  const mac = [2, 0, 0, 0, 0, 9]
  const request = Uint8Array.from([
    ...[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ...mac, 0x08, 0x06],
    ...[0, 1, 8, 0, 6, 4, 0, 1, ...mac, ...PEER_BYTES[4], 0, 0, 0, 0, 0, 0, ...HERE_BYTES[4]],
  ])
  expect(native.tunSend(tap, id, Int32Array.of(packetOf(memory, request)), 0, 1, ioCounters())).toBe(1)
  const isReply = (frame: Uint8Array) => frame[12] === 8 && frame[13] === 6 && frame[21] === 2
  const [reply] = collect(tap, 1, isReply)
  expect([...reply!.subarray(0, 6)]).toEqual(mac)
  expect([...reply!.subarray(28, 32)]).toEqual(HERE_BYTES[4])
})

test('errors name the interface and what was wrong', (context) => {
  if (missing) return context.skip()
  openTun(4, false)
  expect(() => openTun(4, false)).toThrow(
    expect.objectContaining({ code: 'EBUSY', message: expect.stringContaining(NAME) }),
  )
  const options = {
    kind: 'tun',
    name: `${NAME}b`,
    address: '10.9.9.9',
    prefix: 33,
    mtu: 1280,
    defaultRoute: false,
  } as const
  expect(() => native.tunOpen(owner, { ...options, offload: false })).toThrow(`${NAME}b 10.9.9.9/33`)
  expect(() => native.tunOpen(owner, { ...options, address: 'ten', prefix: 8, offload: false })).toThrow(
    `${NAME}b ten/8`,
  )
  expect(() => native.tunOpen(owner, { ...options, kind: 'tin' as 'tun', offload: false })).toThrow(TypeError)
  expect(() => readFileSync(`/sys/class/net/${NAME}b/mtu`)).toThrow()
})
