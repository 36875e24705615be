/** TCP connections and Unix sockets in the addon: frames cut anywhere, kernels that take part of them, ends of all kinds. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Random } from '../engine/random.ts'
import { bytesOf, counter, freePacket, ioCounters, packetMemory, packetOf, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

const { EAGAIN, EPROTO, ENODATA, ECONNRESET, EPIPE } = constants.errno

let owner = 0
let memory: PacketMemory
let id = 0

beforeEach(() => {
  owner = native.ownerOpen()
  memory = packetMemory(300, 66_000)
  id = native.memoryOpen(memory)
})
afterEach(() => {
  native.memoryClose(id)
  native.ownerRelease(owner)
  expect(native.openDescriptors()).toBe(0)
})

/** Waits until `done` gives something, up to two seconds: what leaves one end of loopback is at the other soon after. */
function soon<T>(done: () => T | undefined): T {
  const end = native.now() + 2e9
  for (;;) {
    const result = done()
    if (result !== undefined) return result
    if (native.now() > end) throw new Error(`not within two seconds: ${done}`)
  }
}

/** Two ends of a connection on loopback, framed or not. */
function pair(framedHere: boolean, framedThere: boolean): [number, number] {
  const listener = native.tcpListen(owner, { address: '127.0.0.1', port: 0, framed: framedThere })
  const { port } = native.tcpAddress(listener)
  const here = native.tcpConnect(owner, { address: '127.0.0.1', port, framed: framedHere })
  const there = soon(() => {
    const accepted = native.listenerAccept(owner, listener)
    return accepted > 0 ? accepted : undefined
  })
  expect(native.listenerAccept(owner, listener)).toBe(-EAGAIN)
  soon(() => (native.connectionConnected(here) === 0 ? true : undefined))
  native.close(listener)
  return [here, there]
}

/** Receives once, at most `max` packets, and frees them: copies of their bytes, or the negative errno. */
function receive(connection: number, max = 64, counters = ioCounters()): Uint8Array[] | number {
  const handles = new Int32Array(max)
  const count = native.connectionReceive(connection, id, handles, max, 0, counters)
  if (count < 0) return count
  return [...handles.subarray(0, count)].map((handle) => {
    const bytes = bytesOf(memory, handle)
    freePacket(memory, handle)
    return bytes
  })
}

function send(connection: number, payload: Uint8Array): number {
  const packet = packetOf(memory, payload)
  const sent = native.connectionSend(connection, id, Int32Array.of(packet), 0, 1, ioCounters())
  if (sent !== 1) freePacket(memory, packet)
  return sent
}

const framed = (payload: Uint8Array) =>
  Buffer.concat([Buffer.from([0, 0, payload.length >> 8, payload.length & 255]), payload])

describe('frames', () => {
  test('cut anywhere come whole and in order, up to the first length that none has', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = new Random(seed)
      const [here, there] = pair(false, true)
      const payloads = Array.from({ length: 1 + random.below(40) }, (_, i) =>
        pattern(1 + random.below(random.below(8) === 0 ? 65_535 : 300), seed * 100 + i),
      )
      const bad = random.below(2) === 0
      const wrong = [0, 65_536, 0xffffffff, 0x80000000][random.below(4)] as number
      const junk = Buffer.alloc(4 + random.below(200), 0xff)
      junk.writeUInt32BE(wrong)
      const stream = Buffer.concat([...payloads.map(framed), ...(bad ? [junk] : [])])
      const counters = ioCounters()
      const heard: Uint8Array[] = []
      let end = 0
      const look = () => {
        const came = receive(there, 1 + random.below(20), counters)
        if (typeof came === 'number') end = came
        else heard.push(...came)
      }
      for (let at = 0; at < stream.length; ) {
        const piece = stream.subarray(at, at + 1 + random.below(random.below(3) === 0 ? 9000 : 7))
        if (send(here, piece) === 1) at += piece.length
        if (end === 0) look()
        else break
      }
      soon(() => {
        if (end === 0) look()
        return (bad ? end !== 0 : heard.length === payloads.length) || undefined
      })
      expect(heard.map((bytes) => Buffer.from(bytes).toString('hex'))).toEqual(
        payloads.map((bytes) => Buffer.from(bytes).toString('hex')),
      )
      expect([end, counter(counters, 'malformed')]).toEqual(bad ? [-EPROTO, 1] : [0, 0])
      native.close(here)
      native.close(there)
      expect(memory.free[0]).toBe(300)
    }
  })

  test('of which the kernel takes a part are gone on with where it stopped', () => {
    const random = new Random(5)
    const [here, there] = pair(true, true)
    const heard: Uint8Array[] = []
    const sent: Uint8Array[] = []
    const waiting: number[] = []
    const counters = ioCounters()
    while (heard.length < 2000) {
      if (waiting.length < 40 && sent.length < 2000) {
        sent.push(pattern(1 + random.below(65_535), sent.length))
        waiting.push(packetOf(memory, sent.at(-1) as Uint8Array))
      }
      const done = native.connectionSend(here, id, Int32Array.from(waiting), 0, waiting.length, counters)
      waiting.splice(0, done)
      // Only now and then, so that the kernel's buffers fill.
      if (waiting.length > 30 || sent.length === 2000) {
        const came = receive(there, 1 + random.below(64)) as Uint8Array[]
        for (const bytes of came) expect(Buffer.compare(bytes, sent[heard.push(bytes) - 1] as Uint8Array)).toBe(0)
      }
    }
    expect(counter(counters, 'sendBlocked')).toBeGreaterThan(10)
    expect(memory.free[0]).toBe(300)
  }, 60_000)

  test('without a free slot are dropped whole and counted, longer ones than a slot as well', () => {
    const [here, there] = pair(true, true)
    for (let i = 0; i < 5; i++) send(here, pattern(100, i))
    send(here, pattern(5000, 9))
    send(here, pattern(100, 5))
    const small = packetMemory(3, 1024)
    const smallId = native.memoryOpen(small)
    const counters = ioCounters()
    const handles = new Int32Array(64)
    let taken = 0
    soon(() => {
      taken += native.connectionReceive(there, smallId, handles, 64, 0, counters)
      return counter(counters, 'noSlot') + counter(counters, 'oversize') === 4 || undefined
    })
    expect([taken, counter(counters, 'noSlot'), counter(counters, 'oversize')]).toEqual([3, 3, 1])
    native.memoryClose(smallId)
  })
})

describe('a stream', () => {
  test('is read into free slots only, in pieces of 1,200 bytes; then its end is told, again and again', () => {
    const [here, there] = pair(false, false)
    const content = pattern(10_000, 1)
    send(here, content)
    native.close(here)
    const small = packetMemory(2)
    const smallId = native.memoryOpen(small)
    const handles = new Int32Array(64)
    const counters = ioCounters()
    const heard: Uint8Array[] = []
    let end = 0
    soon(() => {
      const count = native.connectionReceive(there, smallId, handles, 64, 0, counters)
      expect(count).toBeLessThanOrEqual(2)
      for (const handle of handles.subarray(0, Math.max(count, 0))) heard.push(bytesOf(small, handle))
      if (count === 2) expect(native.connectionReceive(there, smallId, handles, 64, 0, counters)).toBe(0)
      for (const handle of handles.subarray(0, Math.max(count, 0))) freePacket(small, handle)
      end = count
      return count < 0 || undefined
    })
    expect(Buffer.compare(Buffer.concat(heard), content)).toBe(0)
    expect(Math.max(...heard.map(({ length }) => length))).toBe(1200)
    expect(counter(counters, 'noSlot')).toBe(0)
    expect([end, receive(there), receive(there)]).toEqual([-ENODATA, -ENODATA, -ENODATA])
    native.memoryClose(smallId)
  })

  test('that is reset says so, and takes nothing more', () => {
    const [here, there] = pair(false, false)
    native.connectionReset(here)
    native.close(here)
    expect(soon(() => (receive(there) as number) || undefined)).toBe(-ECONNRESET)
    expect(send(there, pattern(10, 1))).toBe(-EPIPE)
    expect(memory.free[0]).toBe(300)
  })
})

describe('a poller', () => {
  const ready = new Int32Array(4)

  /** What this process has open of them. */
  function pollers(): string[] {
    return readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:[eventpoll]'
      } catch {
        // That by which the directory was read is closed.
        return false
      }
    })
  }

  test('says nothing of a connection that is not watched, even when its other end has gone', () => {
    const [here, there] = pair(false, false)
    const poller = native.pollerOpen(owner)
    native.pollerAdd(poller, there, 5)
    send(here, pattern(10, 1))
    expect([native.pollerWait(poller, 2e9, ready), ready[0]]).toEqual([1, 5])
    native.pollerWatchRead(poller, there, false)
    native.connectionReset(here)
    native.close(here)
    expect(native.pollerWait(poller, 20e6, ready)).toBe(0)
    // Watched for writing only, its end is told, and not as room to write.
    native.pollerWatchWrite(poller, there, true)
    expect([native.pollerWait(poller, 2e9, ready), ready[0]]).toEqual([1, 5])
    native.pollerWatchWrite(poller, there, false)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    native.pollerWatchRead(poller, there, true)
    expect([native.pollerWait(poller, 2e9, ready), ready[0]]).toEqual([1, 5])
    native.pollerWatchRead(poller, there, false)
    native.pollerRemove(poller, there)
    native.pollerAdd(poller, there, 6)
    expect([native.pollerWait(poller, 2e9, ready), ready[0]]).toEqual([1, 6])
  })

  test('keeps its place for a connection that is not watched for now: the kernel may have none later', () => {
    const [here, there] = pair(false, false)
    const before = new Set(pollers())
    const poller = native.pollerOpen(owner)
    const [fd] = pollers().filter((one) => !before.has(one))
    const watched = () => readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1').match(/tfd:/g)?.length ?? 0
    native.pollerAdd(poller, there, 5)
    native.pollerWatchRead(poller, there, false)
    expect(watched()).toBe(1)
    native.pollerWatchRead(poller, there, true)
    send(here, pattern(10, 1))
    expect([native.pollerWait(poller, 2e9, ready), ready[0]]).toEqual([1, 5])
    native.pollerRemove(poller, there)
    expect(watched()).toBe(0)
  })

  test('tells of frames that a receive had no place for, and of the end after the last of them', () => {
    const [here, there] = pair(false, true)
    const poller = native.pollerOpen(owner)
    native.pollerAdd(poller, there, 5)
    const frames = Buffer.concat([1, 2, 3].map((n) => framed(pattern(10, n))))
    send(here, Buffer.concat([frames, Buffer.alloc(4)]))
    native.pollerWait(poller, 2e9, ready)
    for (let i = 0; i < 3; i++) {
      expect(native.pollerWait(poller, 0, ready)).toBe(1)
      expect(receive(there, 1)).toEqual([pattern(10, i + 1)])
    }
    expect(native.pollerWait(poller, 0, ready)).toBe(1)
    expect(receive(there, 1)).toBe(-EPROTO)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
  })
})

test('a name of another kind, or none, is refused with the name', () => {
  expect(() => native.unixConnect(owner, { name: '/nowhere/at/all', mtu: 100 })).toThrow('/nowhere/at/all')
  expect(() => native.unixListen(owner, { name: '/nowhere/at/all', mtu: 100 })).toThrow('ENOENT')
  expect(() => native.unixListen(owner, { name: 'x'.repeat(108), mtu: 100 })).toThrow('name')
  expect(() => native.tcpListen(owner, { address: 'localhost', port: 0, framed: false })).toThrow('address')
  expect(() => native.tcpListen(owner, { address: '192.0.2.1', port: 0, framed: false })).toThrow('EADDRNOTAVAIL')
  expect(native.openDescriptors()).toBe(0)
})
