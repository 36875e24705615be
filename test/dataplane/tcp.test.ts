/** TCP through real sockets and graphs in worker threads: streams, frames, and everything that other ends do to them. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket, type TcpNetConnectOpts } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { freePacket, ioCounters, packetMemory } from '../../src/dataplane/native/fixture.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { conservation, type Pipeline } from '../harness/component.ts'
import '../harness/slow.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, startRun, type TestRun, testPool } from './running.ts'

const command = fileURLToPath(new URL('../../bin/penstock.js', import.meta.url))
const python = spawnSync('python3', ['-c', '']).status === 0
if (!python) console.warn('SKIPPED: urgent data needs python3')
const pool = testPool()
const before = native.openDescriptors()
const runs: TestRun[] = []
const closing: (() => void)[] = []

async function start(pipeline: Pipeline): Promise<TestRun> {
  const run = await startRun(pool, pipeline)
  runs.push(run)
  return run
}

/** Stops a run and holds its numbers against each other. */
async function balanced(run: TestRun, pipeline: Pipeline): Promise<Record<string, Record<string, number>>> {
  await run.stop()
  expect(conservation(configure(pipeline), run.metrics())).toEqual([])
  return run.metrics()
}

async function client(port: number, options: Partial<TcpNetConnectOpts> = {}): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', ...options })
  socket.on('error', () => {})
  closing.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function server(onConnection: (socket: Socket) => void, port = 0): Promise<Server> {
  const made = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    closing.push(() => socket.destroy())
    onConnection(socket)
  })
  made.listen(port, '127.0.0.1')
  await once(made, 'listening')
  closing.push(() => made.close())
  return made
}

/** A connection that is read all at once, and tells how it ended. */
class Reader {
  private readonly owner = native.ownerOpen()
  private readonly memory = packetMemory(300)
  private readonly id = native.memoryOpen(this.memory)
  private readonly connection: number

  constructor(port: number) {
    this.connection = native.tcpConnect(this.owner, { address: '127.0.0.1', port, framed: false })
  }

  readAll(): { bytes: number; end: string } {
    const handles = new Int32Array(256)
    let bytes = 0
    for (;;) {
      const count = native.connectionReceive(this.connection, this.id, handles, 256, 0, ioCounters())
      if (count <= 0) return { bytes, end: Object.entries(constants.errno).find(([, n]) => n === -count)?.[0] ?? '' }
      for (const handle of handles.subarray(0, count)) {
        bytes += this.memory.length[handle]
        freePacket(this.memory, handle)
      }
    }
  }

  close(): void {
    native.memoryClose(this.id)
    native.ownerRelease(this.owner)
  }
}

const portOf = (made: Server) => (made.address() as AddressInfo).port

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  for (const close of closing.splice(0)) close()
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

const echo = (application_facing = true, listen_address = '127.0.0.1:0'): Pipeline => ({
  tcp: { tcp: { listen_address, application_facing, output: 'in', input: 'out' } },
  loop: { observer: { input: 'in', output: 'out' } },
})

const frame = (payload: Uint8Array) => {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(payload.length)
  return Buffer.concat([head, payload])
}

describe('a stream', () => {
  it('comes back byte for byte however slowly its reader takes it, and reading waits for that', async () => {
    const run = await start(echo())
    const socket = await client(run.port('tcp'))
    const content = randomBytes(12 << 20)
    const digest = createHash('sha256')
    let received = 0
    socket.pause()
    socket.write(content)
    // Nobody reads: what is on its way fills every buffer between the two, then the endpoint stops reading.
    await until(() => run.metrics().tcp.send_blocked > 0, 'the echo to wait for its reader')
    socket.on('data', (data) => {
      digest.update(data)
      received += data.length
    })
    socket.resume()
    await until(
      () => received === content.length,
      () => `${content.length} bytes, ${received} so far`,
    )
    expect(digest.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'))
    socket.destroy()
    const { tcp } = await balanced(run, echo())
    expect(tcp).toMatchObject({ send_queue_drops: 0, unsent_packets: 0 })
  })

  it('comes back to its writer, also from one port to two addresses of the machine', async () => {
    const pipeline = echo(true, '0.0.0.0:0')
    const run = await start(pipeline)
    const port = run.port('tcp')
    const localAddress = '127.0.0.1'
    const one = await client(port, { localAddress })
    const other = await client(port, { localAddress, localPort: one.localPort as number, host: '127.0.0.2' })
    const heard = new Map([one, other].map((socket) => [socket, '']))
    for (const socket of heard.keys())
      socket.on('data', (data) => heard.set(socket, `${heard.get(socket)}${data.toString()}`))
    one.write('the one')
    other.write('the other')
    const answers = () => [...heard.values()]
    await until(() => answers().join('').length === 16, 'both answers')
    expect(answers()).toEqual(['the one', 'the other'])
    one.resetAndDestroy()
    await until(() => run.metrics().tcp.connections === 1, 'the end of the one')
    other.write(' again')
    await until(() => answers()[1] === 'the other again', 'an answer to the one that is left')
    await balanced(run, pipeline)
  })

  it('is answered after its writer has finished', async () => {
    const run = await start(echo())
    const socket = await client(run.port('tcp'), { allowHalfOpen: true })
    const heard: Buffer[] = []
    socket.on('data', (data) => heard.push(data))
    socket.end('the last words')
    await until(() => Buffer.concat(heard).toString() === 'the last words')
    expect((await balanced(run, echo())).tcp).toMatchObject({ reset_connections: 0, unsent_packets: 0 })
  })

  it.skipIf(!python)('comes back with the bytes of it that were sent as urgent data, in their places', async () => {
    const run = await start(echo())
    const text = `import socket
s=socket.create_connection(("127.0.0.1",${run.port('tcp')}))
for urgent in b"123": s.send(b"ab"); s.send(bytes([urgent]), socket.MSG_OOB)
s.send(b"end")
back=b""
while not back.endswith(b"end"): back+=s.recv(100)
print(back.decode())`
    const { stdout } = await promisify(execFile)('python3', ['-c', text], { timeout: 20_000 })
    expect(stdout.trim()).toBe('ab1ab2ab3end')
    await balanced(run, echo())
  })

  const toReader: Pipeline = {
    in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    tcp: { tcp: { listen_address: '127.0.0.1:0', application_facing: true, input: 'a' } },
  }

  it('whose reader never reads is reset before bytes are missing, and gives everything back', async () => {
    const run = await start(toReader)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    // A socket of Node.js would take what comes before the reset for the whole.
    const reader = new Reader(run.port('tcp'))
    closing.push(() => reader.close())
    await until(() => run.metrics().tcp.connections === 1)
    const payload = new Uint8Array(1200)
    while (run.metrics().tcp.reset_connections === 0) {
      for (let i = 0; i < 50; i++) await sender.send(run.port('in'), payload)
    }
    expect(reader.readAll()).toMatchObject({ end: 'ECONNRESET' })
    const { tcp } = await balanced(run, toReader)
    expect(tcp).toMatchObject({ reset_connections: 1, send_queue_drops: 1, queued_packets: 0 })
    expect(tcp.unsent_packets).toBeGreaterThan(200)
  })

  it('that is sent on while there is always more to read', async () => {
    const run = await start({
      in: { udp_local: { address: '127.0.0.1:0', output: 'down' } },
      tcp: { tcp: { listen_address: '127.0.0.1:0', application_facing: true, input: 'down', output: 'up' } },
      slow: { test_slow: { input: 'up', output: 'slowed', milliseconds: 5 } },
      sink: { traffic_sink: { input: 'slowed' } },
    })
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const socket = await client(run.port('tcp'))
    socket.pause()
    const content = Buffer.alloc(1 << 20)
    const upload = () => {
      while (socket.write(content));
    }
    socket.on('drain', upload)
    upload()
    // Nobody reads the answer: it fills what the kernel has room for, and some of the queue.
    const payload = new Uint8Array(1000)
    let sent = 0
    for (; run.metrics().tcp.queued_packets < 50; sent += 100) {
      await sender.send(run.port('in'), ...Array<Uint8Array>(100).fill(payload))
      await until(() => run.metrics().in.received_packets === sent + 100)
    }
    let received = 0
    socket.on('data', (data) => {
      received += data.length
    })
    socket.resume()
    await until(
      () => received === sent * payload.length,
      () => `${sent * payload.length} bytes, ${received} so far`,
    )
    // More was there to be read all the time.
    expect(socket.writableLength).toBeGreaterThan(0)
    socket.destroy()
    await run.stop()
    expect(run.metrics().tcp).toMatchObject({ sent_packets: sent, unsent_packets: 0 })
  })

  it('goes to the newest connection, or back to the one before when that has ended', async () => {
    const run = await start(toReader)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const heard = ['', '']
    const sockets: Socket[] = []
    for (const index of [0, 1]) {
      const socket = await client(run.port('tcp'))
      socket.on('data', (data) => {
        heard[index] += data
      })
      sockets.push(socket)
      await until(() => run.metrics().tcp.connections === index + 1)
    }
    await sender.send(run.port('in'), 'one')
    await until(() => heard[1] === 'one')
    sockets[1].resetAndDestroy()
    await until(() => run.metrics().tcp.connections === 1)
    await sender.send(run.port('in'), 'two')
    await until(() => heard[0] === 'two')
    sockets[0].resetAndDestroy()
    await until(() => run.metrics().tcp.connections === 0)
    await sender.send(run.port('in'), 'three')
    await until(() => run.metrics().tcp.unconnected_packets === 1)
    expect((await balanced(run, toReader)).tcp).toMatchObject({ sent_packets: 2, reset_connections: 2 })
    expect(heard).toEqual(['two', 'one'])
  })

  it('of a thousand connections in and out leaves no descriptor and no slot behind', async () => {
    const run = await start(echo())
    const standing = native.openDescriptors()
    let ended = 0
    for (let round = 0; round < 4; round++) {
      const sockets = await Promise.all(Array.from({ length: 250 }, () => client(run.port('tcp'))))
      const answers = sockets.map(async (socket, index) => {
        socket.write(`${round} ${index}`)
        const [data] = await once(socket, 'data')
        return String(data)
      })
      expect(await Promise.all(answers)).toEqual(sockets.map((_, index) => `${round} ${index}`))
      for (const [index, socket] of sockets.entries()) {
        if (index % 2 === 0) socket.resetAndDestroy()
        else socket.destroy()
      }
      ended += sockets.length
      await until(() => run.metrics().tcp.opened_connections === ended)
    }
    // Those that were closed without a reset are half-closed to the kernel until their time is over.
    await until(
      () => run.metrics().tcp.connections === 0,
      () => `${run.metrics().tcp.connections} connections left`,
    )
    expect(native.openDescriptors()).toBe(standing)
    expect((await balanced(run, echo())).tcp).toMatchObject({ opened_connections: 1000, sent_packets: 1000 })
  })

  it('of more connections than a listener takes is refused to the last of them', async () => {
    const run = await start(echo())
    const sockets = await Promise.all(Array.from({ length: 1024 }, () => client(run.port('tcp'))))
    await until(() => run.metrics().tcp.connections === 1024)
    for (let i = 0; i < 6; i++) {
      const socket = connect({ port: run.port('tcp'), host: '127.0.0.1' }).resume()
      // Reset after it was connected, or while it was.
      socket.on('error', () => {})
      await new Promise((resolve) => socket.on('close', resolve))
    }
    await until(() => run.metrics().tcp.refused_connections === 6)
    expect(run.metrics().tcp).toMatchObject({ connections: 1024, opened_connections: 1024 })
    for (const socket of sockets) socket.resetAndDestroy()
    await until(() => run.metrics().tcp.connections === 0)
    const next = await client(run.port('tcp'))
    next.write('room again')
    expect(String((await once(next, 'data'))[0])).toBe('room again')
    await balanced(run, echo())
  })

  it('of a process without a free descriptor waits, and is taken when others have gone', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-tcp-'))
    closing.push(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'echo.json')
    writeFileSync(file, JSON.stringify({ version: 1, engine_config: { pipeline: echo() } }))
    const child = spawn(process.execPath, [command, 'run', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    closing.push(() => child.kill('SIGKILL'))
    let log = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text) => {
        log += text
      })
    }
    await until(
      () => /listens at 127\.0\.0\.1:\d+/.test(log),
      () => log,
    )
    const port = Number(/listens at 127\.0\.0\.1:(\d+)/.exec(log)?.[1])
    // Not before: what the process loads takes descriptors too.
    expect(spawnSync('prlimit', ['--pid', String(child.pid), '--nofile=150']).status).toBe(0)
    const sockets = await Promise.all(Array.from({ length: 200 }, () => client(port)))
    let answered = 0
    for (const socket of sockets) socket.on('data', () => answered++).write('x')
    await until(
      () => log.includes('EMFILE'),
      () => log,
    )
    expect(answered).toBeLessThan(150)
    const last = sockets.at(-1) as Socket
    for (const socket of sockets.slice(0, 150)) socket.resetAndDestroy()
    await until(() => last.bytesRead === 1, 'the answer to the last')
    const end = once(child, 'exit')
    child.kill('SIGINT')
    expect(await end).toEqual([0, null])
  })

  it('to a server that comes late, goes and comes again is made each time, with what waited for it', async () => {
    const pipeline = (port: number): Pipeline => ({
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      tcp: { tcp: { remote_address: `127.0.0.1:${port}`, application_facing: true, input: 'a' } },
    })
    const heard: string[] = []
    const sockets: Socket[] = []
    const onConnection = (socket: Socket) => {
      sockets.push(socket)
      socket.on('data', (data) => heard.push(String(data)))
    }
    const first = await server(onConnection)
    const port = portOf(first)
    first.close()
    await once(first, 'close')
    const run = await start(pipeline(port))
    const sender = await Peer.open()
    closing.push(() => sender.close())
    await until(() => run.metrics().tcp.socket_errors > 1)
    await sender.send(run.port('in'), 'early')
    await server(onConnection, port)
    await until(() => heard.join() === 'early')
    sockets[0].end()
    await until(() => sockets.length === 2, 'a second connection')
    await sender.send(run.port('in'), 'late')
    await until(() => heard.join() === 'early,late')
    expect((await balanced(run, pipeline(port))).tcp).toMatchObject({ opened_connections: 2, reset_connections: 0 })
    expect(run.log.filter(({ level }) => level === 'WARN')).toMatchObject([
      { message: expect.stringContaining('ECONNREFUSED') },
      { message: expect.stringContaining('is made again') },
    ])
  })

  it('that takes long to come about is waited for, however much more comes than can wait', async () => {
    // A listener that accepts nobody for now and whose queue is full: Linux does not answer who connects then.
    const accepts = new Int32Array(new SharedArrayBuffer(4))
    const code = `
      const { parentPort, workerData } = require('node:worker_threads')
      const server = require('node:net').createServer((socket) => socket.on('error', () => {}).resume())
      server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
        parentPort.postMessage(server.address().port)
        Atomics.wait(workerData, 0, 0)
      })`
    const listener = new Worker(code, { eval: true, workerData: accepts })
    const release = () => {
      Atomics.store(accepts, 0, 1)
      Atomics.notify(accepts, 0)
    }
    closing.push(() => {
      release()
      void listener.terminate()
    })
    const [port] = (await once(listener, 'message')) as [number]
    for (let i = 0; i < 2; i++) await client(port)
    const pipeline: Pipeline = {
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      tcp: { tcp: { remote_address: `127.0.0.1:${port}`, application_facing: true, input: 'a' } },
    }
    const run = await start(pipeline)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const payload = new Uint8Array(1000)
    for (let sent = 0; run.metrics().tcp.unsent_packets === 0; sent += 100) {
      await sender.send(run.port('in'), ...Array<Uint8Array>(100).fill(payload))
      await until(() => run.metrics().in.received_packets === sent + 100)
    }
    expect(run.metrics().tcp).toMatchObject({ reset_connections: 0, opened_connections: 0 })
    release()
    await until(() => run.metrics().tcp.opened_connections === 1)
    expect((await balanced(run, pipeline)).tcp).toMatchObject({ send_queue_drops: 1, reset_connections: 0 })
    expect(run.log.filter(({ level }) => level === 'WARN')).toMatchObject([
      { message: expect.stringMatching(/^what waited for the connection to come about was dropped: more came than/) },
    ])
  })

  const socat = spawnSync('socat', ['-V']).status === 0
  if (!socat) console.warn('SKIPPED: tests against socat lack socat')

  it.skipIf(!socat)('of socat is answered', async () => {
    const run = await start(echo())
    const child = spawn('socat', ['-t5', '-', `TCP:127.0.0.1:${run.port('tcp')}`])
    child.stdin.end('hello\n')
    const [answer] = await once(child.stdout, 'data')
    expect(String(answer)).toBe('hello\n')
    child.kill()
    await once(child, 'close')
  })

  it('at an address that is taken is refused with what to do', async () => {
    const taken = portOf(await server(() => {}))
    const run = await startRun(pool, {
      tcp: { tcp: { listen_address: `127.0.0.1:${taken}`, output: 'a' } },
      end: { traffic_sink: { input: 'a' } },
    }).catch((error: Error) => error)
    expect(run).toMatchObject({ message: expect.stringMatching(/"tcp" \(tcp\).*EADDRINUSE.*ss -ltnp/) })
  })

  it.each([
    ['[fe80::1%no-such-one]:0', /"tcp" \(tcp\): there is no network interface "no-such-one"/],
    ['[fe80::1]:0', /"tcp" \(tcp\).*name its network interface in the address/],
  ])('at %s is refused with what to do', async (listen_address, message) => {
    const run = startRun(pool, { tcp: { tcp: { listen_address, output: 'a' } }, end: { traffic_sink: { input: 'a' } } })
    await expect(run).rejects.toThrow(message)
  })
})

describe('frames', () => {
  const tunnel = (port: number): Pipeline => ({
    application: { tcp: { listen_address: '127.0.0.1:0', application_facing: true, output: 'a', input: 'b' } },
    near: { tcp: { remote_address: '127.0.0.1:21937', input: 'a', output: 'b' } },
    far: { tcp: { listen_address: '127.0.0.1:21937', input: 'c', output: 'd' } },
    service: { tcp: { remote_address: `127.0.0.1:${port}`, application_facing: true, input: 'd', output: 'c' } },
  })

  it('carry a connection from an application to its server', async () => {
    const port = portOf(await server((socket) => socket.pipe(socket)))
    const run = await start(tunnel(port))
    await until(() => run.metrics().near.connections === 1 && run.metrics().service.connections === 1)
    const socket = await client(run.port('application'))
    const heard: Buffer[] = []
    socket.on('data', (data) => heard.push(data))
    const content = randomBytes(100_000)
    socket.write(content)
    await until(() => Buffer.concat(heard).length === content.length)
    expect(Buffer.concat(heard).equals(content)).toBe(true)
    const metrics = await balanced(run, tunnel(port))
    expect(metrics.far.received_packets).toBe(metrics.near.sent_packets)
    expect(metrics.near.reset_connections + metrics.application.reset_connections).toBe(0)
  })

  it('come back as they were sent, one byte at a time or many in one piece, the longest too', async () => {
    const run = await start(echo(false))
    const socket = await client(run.port('tcp'))
    socket.setNoDelay()
    const payloads = [1, 2, 1500, 65_535, 9000, 3].map((bytes) => randomBytes(bytes))
    const heard: Buffer[] = []
    socket.on('data', (data) => heard.push(data))
    for (const byte of frame(payloads[2])) socket.write(Uint8Array.of(byte))
    socket.write(Buffer.concat(payloads.map(frame)))
    const expected = Buffer.concat([payloads[2], ...payloads].map(frame))
    await until(() => Buffer.concat(heard).length === expected.length)
    expect(Buffer.concat(heard).equals(expected)).toBe(true)
    expect((await balanced(run, echo(false))).tcp).toMatchObject({ received_packets: 7, sent_packets: 7 })
  })

  it.each([0, 65_536, 0xffffffff])('of length %i end their connection', async (length) => {
    const run = await start(echo(false))
    const socket = await client(run.port('tcp'))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(length)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume().write(Buffer.concat([frame(Buffer.from('good')), head, Buffer.alloc(100)]))
    await closed
    await until(() => run.metrics().tcp.malformed_packets === 1)
    expect((await balanced(run, echo(false))).tcp).toMatchObject({ received_packets: 1, connections: 0 })
  })

  const toReader: Pipeline = {
    in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    tcp: { tcp: { listen_address: '127.0.0.1:0', input: 'a' } },
  }

  it('for a reader that never reads are dropped whole, and those that leave are whole', async () => {
    const run = await start(toReader)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const socket = await client(run.port('tcp'))
    socket.pause()
    const payload = Buffer.alloc(1000, 7)
    while (run.metrics().tcp.send_queue_drops < 10) {
      for (let i = 0; i < 50; i++) await sender.send(run.port('in'), payload)
    }
    let bytes = 0
    let wrong = 0
    socket.on('data', (data) => {
      for (const byte of data) {
        const at = bytes++ % 1004
        if (byte !== (at < 4 ? [0, 0, 3, 232][at] : 7)) wrong++
      }
    })
    socket.resume()
    await until(() => {
      const { tcp } = run.metrics()
      return tcp.queued_packets === 0 && bytes === tcp.sent_packets * 1004
    }, 'all frames that were not dropped')
    expect(wrong).toBe(0)
    expect((await balanced(run, toReader)).tcp).toMatchObject({ reset_connections: 0, unsent_packets: 0 })
  })
})
