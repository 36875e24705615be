/** Handles, owners, pollers and threads of the addon, and what every function does with wrong arguments. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../package-root.ts'
import { BEGINS_RUN, SOURCE_PACKET, WINDOW_WORDS } from './code-calls.ts'
import { freePacket, ioCounters, packetMemory, packetOf, passWords, pattern } from './fixture.ts'
import { native, type PacketMemory } from './native.ts'

let owner = 0
beforeEach(() => {
  owner = native.ownerOpen()
})
afterEach(() => {
  native.ownerRelease(owner)
  expect(native.openDescriptors()).toBe(0)
})

const open = {
  event: () => native.eventOpen(owner),
  poller: () => native.pollerOpen(owner),
  udp: () => native.udpOpen(owner, { backend: 2, family: 4, mtu: 1500 }),
  aead: () => native.aeadOpen(owner, 0, new Uint8Array(16), new Uint8Array(8)),
  chacha: () => native.chachaOpen(owner, new Uint8Array(32), new Uint8Array(12), new Uint8Array(16), 20),
}

/** What a script of another thread or process begins with. */
const load = `const native = require(${JSON.stringify(createRequire(import.meta.url).resolve('node-gyp-build'))})(${JSON.stringify(packageRoot())})
  const { parentPort, workerData } = require('node:worker_threads')`

describe('handles and owners', () => {
  test('openDescriptors counts what is open, close closes once', () => {
    const handles = Object.values(open).map((make) => make())
    expect(native.openDescriptors()).toBe(5)
    expect(new Set(handles).size).toBe(5)
    for (const handle of handles) {
      native.close(handle)
      expect(() => native.close(handle)).toThrow(/closed or was never opened/)
    }
    expect(native.openDescriptors()).toBe(0)
  })

  test('a stale handle never names a later descriptor', () => {
    const stale = open.event()
    native.close(stale)
    const later = Array.from({ length: 50 }, () => open.event())
    expect(later).not.toContain(stale)
    expect(() => native.eventSignal(stale)).toThrow(RangeError)
    expect(() => native.eventClear(stale)).toThrow(RangeError)
    for (const handle of later) native.eventSignal(handle)
  })

  test('a handle that was never opened is refused by every function, also where nothing ever was', () => {
    const script = `${load}
      const refused = []
      const say = (call) => {
        try { call(); refused.push('no error') } catch (error) { refused.push(error.message) }
      }
      const owner = native.ownerOpen()
      for (const round of [0, 1]) {
        for (const handle of [1, 2, 12345, 16383]) {
          say(() => native.close(handle))
          say(() => native.eventSignal(handle))
          say(() => native.pollerWait(handle, 0, new Int32Array(1)))
          say(() => native.udpAddress(handle))
          say(() => native.tunState(handle))
          say(() => native.pollerAdd(native.pollerOpen(owner), handle, 1))
        }
        native.eventOpen(owner)
      }
      console.log(JSON.stringify(refused))`
    const child = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
    expect([child.signal, child.stderr]).toEqual([null, ''])
    const refused = JSON.parse(child.stdout) as string[]
    expect(refused).toHaveLength(48)
    for (const message of refused) expect(message).toMatch(/ is closed or was never opened$/)
  })

  test('an owner closes all of its own and nothing else, once or twice', () => {
    const other = native.ownerOpen()
    const mine = Object.values(open).map((make) => make())
    const theirs = native.eventOpen(other)
    native.ownerRelease(owner)
    native.ownerRelease(owner)
    expect(native.openDescriptors()).toBe(1)
    for (const handle of mine) expect(() => native.close(handle)).toThrow(RangeError)
    native.eventSignal(theirs)
    expect(() => native.eventOpen(owner)).toThrow(/released/)
    native.ownerRelease(other)
    expect(() => native.ownerRelease(2 ** 30)).toThrow(/never opened/)
  })
})

describe('pollers', () => {
  test('an event is ready from signal to clear', () => {
    const poller = open.poller()
    const event = open.event()
    native.pollerAdd(poller, event, 2 ** 31 - 1)
    const ready = new Int32Array(4)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    native.eventSignal(event)
    native.eventSignal(event)
    expect(native.pollerWait(poller, -1, ready)).toBe(1)
    expect(ready[0]).toBe(2 ** 31 - 1)
    native.eventClear(event)
    native.eventClear(event)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    native.eventSignal(event)
    native.pollerRemove(poller, event)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    expect(() => native.pollerRemove(poller, event)).toThrow(expect.objectContaining({ code: 'ENOENT' }))
  })

  test('a timeout ends the wait, not before its time', () => {
    const poller = open.poller()
    const before = native.now()
    expect(native.pollerWait(poller, 300_000, new Int32Array(1))).toBe(0)
    expect(native.now() - before).toBeGreaterThanOrEqual(300_000)
  })

  test("the system's time is JavaScript's, more exact", () => {
    const before = Date.now()
    const time = native.unixTime() / 1e6
    expect(time).toBeGreaterThanOrEqual(before)
    expect(time).toBeLessThan(Date.now() + 1)
  })

  test('the clock is read into an array, as it is returned', () => {
    const time = new Float64Array(2)
    const before = native.now()
    native.readClock(time)
    expect(time[0]).toBeGreaterThanOrEqual(before)
    expect(native.now()).toBeGreaterThanOrEqual(time[0])
    expect(time[1]).toBe(0)
    expect(() => native.readClock(new Float64Array(0))).toThrow('time has 0 elements, at least 1 are needed')
  })

  test('writing is reported as the negative token while watched', () => {
    const poller = open.poller()
    const udp = open.udp()
    const ready = new Int32Array(4)
    native.pollerAdd(poller, udp, 5)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    native.pollerWatchWrite(poller, udp, true)
    expect(native.pollerWait(poller, 0, ready)).toBe(1)
    expect(ready[0]).toBe(-6)
    native.pollerWatchWrite(poller, udp, false)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
    expect(() => native.pollerAdd(poller, udp, 5)).toThrow(expect.objectContaining({ code: 'EEXIST' }))
    native.close(udp)
    expect(native.pollerWait(poller, 0, ready)).toBe(0)
  })

  test('at most as many tokens as there is room for', () => {
    const poller = open.poller()
    for (let i = 0; i < 10; i++) {
      const event = open.event()
      native.eventSignal(event)
      native.pollerAdd(poller, event, i)
    }
    expect(native.pollerWait(poller, 0, new Int32Array(3))).toBe(3)
    const all = new Int32Array(20)
    expect(native.pollerWait(poller, 0, all)).toBe(10)
    expect([...all.subarray(0, 10)].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('a source outlives its poller and can be given to another', () => {
    const event = open.event()
    const first = open.poller()
    native.pollerAdd(first, event, 1)
    native.close(first)
    const second = open.poller()
    native.pollerAdd(second, event, 2)
    native.eventSignal(event)
    const ready = new Int32Array(1)
    expect(native.pollerWait(second, 0, ready)).toBe(1)
    expect(ready[0]).toBe(2)
    expect(() => native.pollerAdd(second, open.aead(), 1)).toThrow(TypeError)
    expect(() => native.pollerAdd(second, open.poller(), 1)).toThrow(TypeError)
  })
})

describe('threads', () => {
  test('the parent closes what a dead worker left open', async () => {
    const worker = new Worker(
      `${load}
      native.udpOpen(workerData, { backend: 2, family: 4, mtu: 1500 })
      native.pollerAdd(native.pollerOpen(workerData), native.eventOpen(workerData), 1)
      native.aeadOpen(workerData, 0, new Uint8Array(16), new Uint8Array(8))
      process.exit(3)`,
      { eval: true, workerData: owner },
    )
    const [code] = await once(worker, 'exit')
    expect(code).toBe(3)
    expect(native.openDescriptors()).toBe(4)
    native.ownerRelease(owner)
    expect(native.openDescriptors()).toBe(0)
  })

  test('an event wakes a worker that waits without limit, and releasing its owner meanwhile is safe', async () => {
    const poller = open.poller()
    const event = open.event()
    native.pollerAdd(poller, event, 77)
    const worker = new Worker(
      `${load}
      parentPort.postMessage('waiting')
      const ready = new Int32Array(1)
      native.pollerWait(workerData, -1, ready)
      parentPort.postMessage(ready[0])
      try { native.pollerWait(workerData, -1, ready) } catch (error) { parentPort.postMessage(error.name) }`,
      { eval: true, workerData: poller },
    )
    const messages: unknown[] = []
    worker.on('message', (message) => messages.push(message))
    // Asked for now: its end may be told in one go with its last message.
    const gone = once(worker, 'exit')
    await once(worker, 'message')
    native.eventSignal(event)
    await once(worker, 'message')
    // The worker may be inside the poller: it is closed when the worker leaves it.
    native.close(poller)
    await gone
    expect(messages.slice(0, 2)).toEqual(['waiting', 77])
  })

  test('CPUs that a worker has for itself, and gives back, are usable all the time', async () => {
    const all = native.affinity()
    const over = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(
      `${load}
      parentPort.postMessage('turns')
      while (Atomics.load(workerData.over, 0) === 0) {
        native.setAffinity([workerData.cpu], true)
        native.setAffinity([])
      }`,
      { eval: true, workerData: { cpu: all[0], over } },
    )
    await once(worker, 'message')
    const found = new Set(Array.from({ length: 5000 }, () => native.usableCpus().join()))
    const gone = once(worker, 'exit')
    Atomics.store(over, 0, 1)
    await gone
    expect([...found]).toEqual([all.join()])
  })

  test('a socket, an owner and the clock are shared between threads, memory is not', async () => {
    const memory = packetMemory(4)
    const id = native.memoryOpen(memory)
    const worker = new Worker(
      `${load}
      const messages = []
      for (const call of [() => native.memoryClose(workerData.id), () => native.crc32c(workerData.id, 0, 1)]) {
        try { call(); messages.push('no error') } catch (error) { messages.push(error.message) }
      }
      messages.push(native.udpAddress(workerData.udp).port, native.gfKernel())
      native.setAffinity([native.affinity()[0]])
      parentPort.postMessage([...messages, native.currentCpu()])`,
      { eval: true, workerData: { id, udp: open.udp() } },
    )
    const gone = once(worker, 'exit')
    const [[first, second, port, kernel, cpu]] = await once(worker, 'message')
    expect(first).toMatch(/not open in this thread/)
    expect(second).toMatch(/not open in this thread/)
    expect(port).toBeGreaterThan(0)
    expect(kernel).toBe(native.gfKernel())
    expect(cpu).toBe(native.affinity()[0])
    await gone
    native.memoryClose(id)
  })
})

test('affinity pins, reports and gives back', () => {
  const all = native.affinity()
  expect(all.length).toBeGreaterThan(0)
  native.setAffinity([all.at(-1)!])
  expect(native.currentCpu()).toBe(all.at(-1))
  native.setAffinity([])
  expect(native.affinity()).toEqual(all)
  expect(native.usableCpus()).toEqual(all)
  expect(() => native.setAffinity([8000])).toThrow(expect.objectContaining({ code: 'EINVAL' }))
  expect(() => native.setAffinity([-1])).toThrow(RangeError)
  expect(() => native.setAffinity(['a' as unknown as number])).toThrow(TypeError)
  expect(() => native.setAffinity([], 1 as unknown as boolean)).toThrow(TypeError)
  const before = native.threadCpuTime()
  for (let i = 0; i < 1e5; i++) Math.sqrt(i)
  expect(native.threadCpuTime()).toBeGreaterThan(before)
})

describe('memory', () => {
  const damaged = (change: (memory: Record<string, unknown>) => void) => {
    const memory = { ...packetMemory(4) } as unknown as Record<string, unknown>
    change(memory)
    return () => native.memoryOpen(memory as unknown as PacketMemory)
  }
  const shared = (bytes: number) => new SharedArrayBuffer(bytes)

  test('every array is checked for type, length and sharing', () => {
    expect(() => native.memoryOpen(null as unknown as PacketMemory)).toThrow(TypeError)
    for (const name of ['data', 'offset', 'length', 'arrival', 'remote', 'free']) {
      expect(damaged((memory) => delete memory[name])).toThrow(TypeError)
      expect(damaged((memory) => (memory[name] = new Int16Array(shared(8))))).toThrow(TypeError)
      expect(damaged((memory) => (memory[name] = (memory[name] as Uint8Array).slice()))).toThrow(/SharedArrayBuffer/)
    }
    expect(damaged((memory) => (memory.data = new Uint8Array(shared(2048 * 4 - 1))))).toThrow(RangeError)
    expect(damaged((memory) => (memory.length = new Int32Array(shared(12))))).toThrow(RangeError)
    expect(damaged((memory) => (memory.arrival = new Float64Array(shared(24))))).toThrow(RangeError)
    expect(damaged((memory) => (memory.remote = new Uint8Array(shared(127))))).toThrow(RangeError)
    expect(damaged((memory) => (memory.free = new Int32Array(shared(16))))).toThrow(RangeError)
    expect(damaged((memory) => (memory.slotBytes = 0))).toThrow(RangeError)
    expect(damaged((memory) => (memory.slotBytes = 2047))).toThrow(RangeError)
    expect(damaged((memory) => (memory.headroom = -1))).toThrow(RangeError)
    expect(damaged((memory) => (memory.tailroom = 2048 - 128))).toThrow(RangeError)
    expect(damaged((memory) => ((memory.free as Int32Array)[0] = 5))).toThrow(/free stack/)
  })

  test('every property is read once: what was checked is what is used', () => {
    const good = packetMemory(4, 2048, 128, 64, 2)
    const reads = new Map<string, number>()
    const shifty = {}
    for (const [name, value] of Object.entries(good)) {
      Object.defineProperty(shifty, name, {
        get() {
          reads.set(name, (reads.get(name) ?? 0) + 1)
          return reads.get(name) === 1 ? value : new Uint8Array(1)
        },
      })
    }
    const id = native.memoryOpen(shifty as PacketMemory)
    expect(Object.fromEntries(reads)).toEqual(Object.fromEntries(Object.keys(good).map((name) => [name, 1])))
    expect(native.crc32c(id, 0, 4 * 2048)).toBeGreaterThan(0)
    native.memoryClose(id)
  })

  test('a packet outside of its slot, a bad handle and a damaged free stack throw, and nothing is sent', () => {
    const memory = packetMemory(4)
    const id = native.memoryOpen(memory)
    const socket = native.udpOpen(owner, {
      backend: 2,
      family: 4,
      remote: { address: '127.0.0.1', port: 9 },
      mtu: 1500,
    })
    const aead = open.aead()
    const chacha = open.chacha()
    const good = packetOf(memory, pattern(10, 1))
    const handles = new Int32Array([good, 0])
    const calls = [
      () => native.udpSend(socket, id, handles, 0, 2, ioCounters()),
      () => native.aeadSeal(aead, id, handles, 2, new Float64Array(1), new Int32Array(2), false),
      () => native.aeadOpenPackets(aead, id, handles, 0, 2, new Uint8Array(2)),
      () => native.chachaEncrypt(chacha, id, handles, 2, new Uint8Array(8), new Float64Array(1), new Int32Array(2)),
      () => native.chachaDecrypt(chacha, id, handles, 2, new Int32Array(2)),
    ]
    const bad = packetOf(memory, pattern(10, 2))
    const original = memory.data.slice()
    for (const call of calls) {
      for (const handle of [-1, 4, 2 ** 31 - 1, -(2 ** 31)]) {
        handles[1] = handle
        expect(call).toThrow(RangeError)
      }
      handles[1] = bad
      const start = bad * 2048
      for (const [offset, length] of [
        [start - 1, 10],
        [start + 2048, 1],
        [start + 2040, 9],
        [start, -1],
        [-1, 10],
        [start, 2 ** 31 - 1],
        [2 ** 31 - 1, 1],
      ] as const) {
        memory.offset[bad] = offset
        memory.length[bad] = length
        expect(call).toThrow(RangeError)
      }
      memory.offset[bad] = start + 128
      memory.length[bad] = 10
    }
    expect(Buffer.compare(memory.data, original)).toBe(0)
    expect(memory.free[0]).toBe(2)
    const receiver = native.udpOpen(owner, {
      backend: 2,
      family: 4,
      local: { address: '127.0.0.1', port: 0 },
      mtu: 1500,
    })
    for (const count of [-1, 5]) {
      memory.free[0] = count
      expect(() => native.udpReceive(receiver, id, new Int32Array(64), 64, 0, ioCounters())).toThrow(/free stack/)
    }
    memory.free[0] = 2
    memory.free[2] = 4 + 2 - 4
    expect(() => native.udpReceive(receiver, id, new Int32Array(64), 64, 0, ioCounters())).toThrow(/free stack/)
    // A stack that is full already cannot take one more.
    memory.free.fill(0)
    memory.free[0] = 4
    expect(() => native.udpSend(socket, id, handles, 0, 2, ioCounters())).toThrow(/free stack/)
    native.memoryClose(id)
    expect(() => native.memoryClose(id)).toThrow(RangeError)
  })

  test('slots freed by JavaScript and by the addon are the same slots', () => {
    const memory = packetMemory(3)
    const id = native.memoryOpen(memory)
    const receiver = native.udpOpen(owner, {
      backend: 0,
      family: 4,
      local: { address: '127.0.0.1', port: 0 },
      mtu: 1500,
    })
    const remote = { address: '127.0.0.1', port: native.udpAddress(receiver).port }
    const sender = native.udpOpen(owner, { backend: 0, family: 4, remote, mtu: 1500 })
    const handles = new Int32Array(3)
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 3; i++) handles[i] = packetOf(memory, pattern(100, i))
      expect(new Set(handles).size).toBe(3)
      expect(native.udpSend(sender, id, handles, 1, 2, ioCounters())).toBe(2)
      freePacket(memory, handles[0]!)
      // Loopback delivers before the send returns.
      expect(native.udpReceive(receiver, id, handles, 3, 0, ioCounters())).toBe(2)
      freePacket(memory, handles[1]!)
      freePacket(memory, handles[0]!)
      expect(memory.free[0]).toBe(3)
    }
    native.memoryClose(id)
  })
})

describe('wrong arguments', () => {
  test('every function refuses missing, mistyped and foreign arguments', () => {
    const memory = packetMemory(8)
    const id = native.memoryOpen(memory)
    const handles = new Int32Array(64)
    const counters = ioCounters()
    const udp = open.udp()
    const aead = open.aead()
    const chacha = open.chacha()
    const event = open.event()
    const poller = open.poller()
    const routes = native.routesOpen(owner)
    const listener = native.tcpListen(owner, { address: '127.0.0.1', port: 0, framed: true })
    const address = { ...native.tcpAddress(listener), framed: true }
    const connection = native.tcpConnect(owner, address)
    const bytes = new Uint8Array(64)
    const ints = new Int32Array(4)
    const window = native.slidingOpen(64, 1402)
    const found = new Int32Array(4097)
    const options = { backend: 2, family: 4, mtu: 1500 }
    const device = {
      kind: 'tun',
      name: 'x',
      address: '10.0.0.1',
      prefix: 8,
      mtu: 1280,
      defaultRoute: false,
      offload: false,
    }
    const good: Record<string, unknown[]> = {
      ownerRelease: [owner],
      memoryOpen: [memory],
      memoryClose: [id],
      giveBackPages: [bytes],
      bytesToCacheLine: [bytes],
      hasAddressSpace: [4096, 0],
      readClock: [new Float64Array(1)],
      eventOpen: [owner],
      eventSignal: [event],
      eventClear: [event],
      pollerOpen: [owner],
      pollerAdd: [poller, event, 1],
      pollerRemove: [poller, event],
      pollerWatchWrite: [poller, udp, true],
      pollerWait: [poller, 0, ints],
      udpOpen: [owner, options],
      udpAddress: [udp],
      udpTune: [udp, 65536, 1],
      udpFollow: [udp],
      udpLeave: [udp, 1],
      udpLeavesBy: [udp],
      udpDropped: [udp],
      routesOpen: [owner],
      routesClear: [routes],
      interfaceIndex: ['lo'],
      interfaceName: [1],
      udpReceive: [udp, id, handles, 64, 0, counters],
      udpSend: [udp, id, handles, 0, 0, counters],
      pollerWatchRead: [poller, udp, true],
      tcpListen: [owner, address],
      tcpConnect: [owner, address],
      tcpAddress: [listener],
      unixListen: [owner, { name: '/nowhere/socket', mtu: 1500 }],
      unixConnect: [owner, { name: '/nowhere/socket', mtu: 1500 }],
      unixPeer: [connection],
      listenerAccept: [owner, listener],
      connectionConnected: [connection],
      connectionRemote: [connection, bytes],
      connectionReset: [connection],
      connectionReceive: [connection, id, handles, 64, 0, counters],
      connectionSend: [connection, id, handles, 0, 0, counters],
      tunOpen: [owner, device],
      tunState: [1],
      tunKeep: [1],
      tunDropped: [1],
      tunReceive: [1, id, handles, 64, 0, counters],
      tunSend: [1, id, handles, 0, 0, counters],
      close: [udp],
      lockOpen: [owner, '/nowhere/lock'],
      fileReserve: ['/nowhere/file', 1],
      fileRequireShared: ['/nowhere/file'],
      setAffinity: [[0]],
      gfUse: ['scalar'],
      gfMatrixMultiply: [id, bytes, ints, 2, 2, 10, null],
      gfMultiplyRows: [bytes, bytes, bytes, 2, 2, 10, 10],
      gfMultiplyPackets: [id, bytes, handles, 1, 2, 2, 0],
      gfRandomPackets: [id, 7, handles, 1, 2, 2, 0, 4],
      gfRecover: [id, Int32Array.of(1, 0, 2), 0, 2, 1, 2, 8, 0, ints],
      gfRecoverRandom: [id, Int32Array.of(1, 0, 2), 0, 2, 1, 2, 8, 0, ints],
      gfRandomMultiply: [id, 7, ints, 2, 2, 10, null],
      gfSolve: [id, Int32Array.from([2, 2, 2, 0, 0, 0, 1, 10, ...new Int32Array(100)])],
      blockHeaders: [id, handles, 1, Int32Array.of(0xb0, 0xb1, 12, 255, 0), ints],
      blockFrame: [id, handles, 0, 1, Int32Array.of(0, 0, 0, 0, 14, 1, 0, 1, 1, 0, 0, 0, 0), ints],
      packetsCopy: [id, handles, 0, 1, ints],
      blocksPass: [
        id,
        false,
        handles,
        Int32Array.of(BEGINS_RUN | SOURCE_PACKET, 0x100, 0, 0, 1, 1, 1, 2, 2),
        new Int32Array(WINDOW_WORDS),
        passWords({
          run: 1,
          first: 0,
          end: 1,
          most: 1,
          newest: 0,
          places: 1,
          replaces: false,
          shape: 0x100,
          session: 0,
        }),
        ints.slice(),
      ],
      xorAdd: [id, ints, 1],
      slidingOpen: [64, 1402],
      slidingClose: [window],
      slidingGrow: [window, 128],
      slidingKeep: [window, id, handles, 1],
      slidingEncode: [window, id, handles, 1, handles, 0, 1],
      slidingTake: [window, id, handles, 1, 0, 1, 1, 0, 10, found],
      slidingResolve: [window, id, 0, 0, 10, found],
      slidingRead: [window, id, 0, 0, 10],
      slidingMatches: [window, id, 0, 0, 10],
      slidingDrop: [window, 0],
      slidingForget: [window, 0],
      slidingReset: [window],
      aeadUse: ['openssl'],
      aeadSealBytes: [0, new Uint8Array(16), new Uint8Array(12), new Uint8Array(3), new Uint8Array(20)],
      aeadOpenBytes: [0, new Uint8Array(16), new Uint8Array(12), new Uint8Array(3), new Uint8Array(20)],
      aeadOpen: [owner, 0, new Uint8Array(16), bytes],
      aeadSeal: [aead, id, handles, 1, new Float64Array(1), ints, false],
      aeadOpenPackets: [aead, id, handles, 0, 1, new Uint8Array(4)],
      chachaUse: ['portable'],
      chachaOpen: [owner, new Uint8Array(32), new Uint8Array(12), new Uint8Array(16), 20],
      chachaEncrypt: [chacha, id, handles, 1, bytes, new Float64Array(1), ints],
      chachaDecrypt: [chacha, id, handles, 1, ints],
      crc32c: [id, 0, 1],
      onesSumOf: [bytes, 64, new Uint8Array(0)],
      watchHangup: [0, () => {}],
      hostAsk: ['localhost'],
    }
    const functions = native as unknown as Record<string, (...values: unknown[]) => unknown>
    const untested = Object.keys(Object.getPrototypeOf(functions)).filter((name) => !(name in good))
    expect(untested.sort()).toEqual(
      [
        'aeadBackend',
        'aeadBackends',
        'affinity',
        'chachaKernel',
        'chachaKernels',
        'closeOnExec',
        'currentCpu',
        'gfKernel',
        'gfKernels',
        'now',
        'openDescriptors',
        'ownerOpen',
        'threadCpuTime',
        'trimHeap',
        'unixTime',
        'usableCpus',
      ].sort(),
    )
    const openBefore = native.openDescriptors()
    for (const [name, values] of Object.entries(good)) {
      const call = functions[name]!
      for (let i = 0; i < values.length; i++) {
        // null is allowed there
        if (['gfMatrixMultiply', 'gfRandomMultiply'].includes(name) && i === 6) continue
        const wrong = [
          undefined,
          null,
          'x',
          {},
          Number.NaN,
          -1,
          1.5,
          2 ** 53,
          new Int8Array(64),
          new DataView(new ArrayBuffer(9)),
        ]
        for (const value of wrong) {
          // Any number is a timeout or a time; a fraction too.
          const isTime = (name === 'pollerWait' && i === 1) || (name.endsWith('Receive') && i === 4)
          // Of 32 bits, signed or not.
          const isSequence =
            name === 'slidingForget' || name === 'slidingDrop'
              ? i === 1
              : name === 'slidingTake'
                ? i === 4
                : name.startsWith('sliding') && values.length > 4 && i === 2
          if (isSequence && value === -1 && name !== 'slidingEncode') continue
          if (isTime && typeof value === 'number' && !Number.isNaN(value)) continue
          const isText = ['fileReserve', 'fileRequireShared', 'interfaceIndex', 'hostAsk'].includes(name)
            ? i === 0
            : name === 'lockOpen' && i === 1
          if (isText && typeof value === 'string') continue
          const changed = values.slice()
          changed[i] = value
          expect(() => call(...changed), `${name}, argument ${i} = ${String(value)}`).toThrow()
        }
        expect(() => call(...values.slice(0, i)), `${name} with ${i} arguments`).toThrow()
      }
    }
    expect(native.openDescriptors()).toBe(openBefore)
    native.memoryClose(id)
  })

  test('handles of another kind are named in the error', () => {
    const memory = packetMemory(4)
    const id = native.memoryOpen(memory)
    const event = open.event()
    const handles = new Int32Array(64)
    expect(() => native.udpReceive(event, id, handles, 64, 0, ioCounters())).toThrow(/is an event, not a UDP socket/)
    expect(() => native.tunSend(event, id, handles, 0, 0, ioCounters())).toThrow(/is an event, not a TUN/)
    expect(() => native.pollerWait(open.udp(), 0, handles)).toThrow(/is a UDP socket, not a poller/)
    expect(() => native.eventSignal(open.aead())).toThrow(/is an AEAD context, not an event/)
    expect(() => native.udpReceive(open.udp(), id, handles, 65, 0, ioCounters())).toThrow(/max/)
    expect(() => native.udpSend(open.udp(), id, handles, 60, 5, ioCounters())).toThrow(/count/)
    expect(() => native.udpReceive(open.udp(), id, handles, 64, 0, new Float64Array(6))).toThrow(/counters/)
    native.memoryClose(id)
  })

  test('options are checked one by one', () => {
    const base = { backend: 2, family: 4, mtu: 1500 } as const
    const refuse = (change: Record<string, unknown>, message: RegExp) =>
      expect(() => native.udpOpen(owner, { ...base, ...change } as never)).toThrow(message)
    refuse({ backend: 3 }, /backend/)
    refuse({ arrivalTimes: 1 }, /arrivalTimes/)
    refuse({ chosenPort: 1 }, /chosenPort/)
    refuse({ mtu: 0 }, /mtu/)
    refuse({ family: 'four' }, /family/)
    refuse({ local: { address: 'localhost', port: 1 } }, /localhost/)
    refuse({ local: { address: '127.0.0.1', port: 65_536 } }, /port/)
    refuse({ local: '127.0.0.1' }, /object/)
    refuse({ local: { address: '127.0.0.1', port: 0 }, remote: { address: '::1', port: 1 } }, /IPv4 and IPv6/)
    refuse({ interface: 'a-name-that-is-too-long' }, /interface/)
    refuse({ multicastGroup: 'everyone' }, /everyone/)
    refuse({ multicastGroup: '10.0.0.1' }, /EINVAL/)
    refuse({ multicastTtl: 256 }, /multicastTtl/)
    expect(native.openDescriptors()).toBe(0)
  })
})
