/** Streams from one connection of a run to another, through what emulates a link: they arrive whole or are reset, and never with a hole. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, expect, it } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import { conservation, type Pipeline } from '../harness/component.ts'
import '../harness/slow.ts'
import { until } from '../harness/waiting.ts'
import { configure, startRun, type TestRun, testPool } from './running.ts'

const pool = testPool()
const before = native.openDescriptors()
const runs: TestRun[] = []
const closing: (() => void)[] = []

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  for (const close of closing.splice(0)) close()
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

/** What came over one connection, and how it ended. */
interface Heard {
  socket: Socket
  bytes: Buffer[]
  length: number
  end: string
}

function listen(socket: Socket): Heard {
  const heard: Heard = { socket, bytes: [], length: 0, end: '' }
  socket.on('data', (data) => {
    heard.bytes.push(data)
    heard.length += data.length
  })
  socket.on('end', () => {
    heard.end ||= 'end'
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    heard.end = error.code ?? 'error'
  })
  closing.push(() => socket.destroy())
  return heard
}

async function service(): Promise<{ port: number; connections: Heard[] }> {
  const connections: Heard[] = []
  const made: Server = createServer({ allowHalfOpen: true }, (socket) => connections.push(listen(socket)))
  made.listen(0, '127.0.0.1')
  await once(made, 'listening')
  closing.push(() => made.close())
  return { port: (made.address() as AddressInfo).port, connections }
}

async function client(run: TestRun): Promise<Heard> {
  const socket = connect({ port: run.port('clients'), host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return listen(socket)
}

/** Clients and a service with `way` in between, from `up` to `late up` and from `down` to `late down`. */
const between = (port: number, way: Pipeline): Pipeline => ({
  clients: {
    tcp: { listen_address: '127.0.0.1:0', application_facing: true, output: 'up', input: 'late down' },
  },
  ...way,
  service: {
    tcp: { remote_address: `127.0.0.1:${port}`, application_facing: true, input: 'late up', output: 'down' },
  },
})

const flows = [
  { input: 'up', output: 'late up' },
  { input: 'down', output: 'late down' },
]
const delay = (milliseconds: number): Pipeline => ({ way: { delay_constant: { flows, delay: milliseconds } } })
const link = (bandwidth_limit_mbit: number, max_queue_size?: number): Pipeline => ({
  way: { bandwidth_limit_constant: { flows, bandwidth_limit_mbit, ...(max_queue_size && { max_queue_size }) } },
})
const losing = (interval: number): Pipeline => ({
  up: { periodic_burst_loss: { input: 'up', output: 'late up', interval, burst: 1 } },
  down: { observer: { input: 'down', output: 'late down' } },
})

async function start(pipeline: Pipeline): Promise<TestRun> {
  const run = await startRun(pool, pipeline)
  runs.push(run)
  await until(() => run.metrics().service.connections === 1, 'the connection to the service')
  return run
}

async function balanced(run: TestRun, pipeline: Pipeline): Promise<Record<string, Record<string, number>>> {
  await run.stop()
  expect(conservation(configure(pipeline), run.metrics())).toEqual([])
  return run.metrics()
}

const warnings = (run: TestRun) => run.log.filter(({ level }) => level === 'WARN').map(({ message }) => message)

/** Holds a reader back: a mebibyte, then a wait. */
function slowly({ socket }: Heard): void {
  let since = 0
  socket.on('data', (data) => {
    since += data.length
    if (since < 1 << 20) return
    since = 0
    socket.pause()
    setTimeout(() => socket.resume(), 20)
  })
}

it.each([
  ['a delay of 40 ms', delay(40)],
  ['a link of 200 Mbit/s', link(200)],
])('tens of megabytes arrive whole over %s, both ways', async (_, way) => {
  const { port, connections } = await service()
  const pipeline = between(port, way)
  const run = await start(pipeline)
  const near = await client(run)
  const [far] = connections
  const [up, down] = [randomBytes(24 << 20), randomBytes(24 << 20)]
  slowly(far)
  near.socket.write(up)
  far.socket.write(down)
  await until(
    () => far.length === up.length && near.length === down.length,
    () => `${far.length} and ${near.length} bytes so far, ${warnings(run)}`,
  )
  expect(Buffer.concat(far.bytes).equals(up)).toBe(true)
  expect(Buffer.concat(near.bytes).equals(down)).toBe(true)
  const metrics = await balanced(run, pipeline)
  expect(warnings(run)).toEqual([])
  for (const name of ['clients', 'service']) {
    expect(metrics[name]).toMatchObject({ reset_connections: 0, send_queue_drops: 0, unsent_packets: 0 })
  }
})

it('a service that does not read makes its client wait', async () => {
  const { port, connections } = await service()
  const pipeline = between(port, delay(20))
  const run = await start(pipeline)
  const near = await client(run)
  const [far] = connections
  far.socket.pause()
  const content = randomBytes(24 << 20)
  near.socket.write(content)
  await until(() => run.metrics().service.queued_packets > 3000, 'all to wait')
  expect(near.socket.writableLength).toBeGreaterThan(0)
  far.socket.resume()
  await until(
    () => far.length === content.length,
    () => `${far.length} bytes so far`,
  )
  expect(Buffer.concat(far.bytes).equals(content)).toBe(true)
  expect((await balanced(run, pipeline)).service).toMatchObject({ reset_connections: 0, send_queue_drops: 0 })
})

it.each([
  ['that loses packets', losing(100)],
  ['whose queue is too short', link(50, 20)],
])('a stream over a link %s is reset at both ends, and neither gets what is behind the hole', async (_, way) => {
  const { port, connections } = await service()
  const pipeline = between(port, way)
  const run = await start(pipeline)
  const near = await client(run)
  const content = randomBytes(4 << 20)
  near.socket.write(content)
  const [far] = connections
  await until(() => near.end !== '' && far.end !== '', 'both ends')
  expect(near.end).toMatch(/ECONNRESET|EPIPE/)
  expect(far.length).toBeLessThan(content.length)
  expect(Buffer.concat(far.bytes).equals(content.subarray(0, far.length))).toBe(true)
  await until(() => connections.length === 2, 'the service to be connected again')
  const next = await client(run)
  next.socket.write('a new beginning')
  await until(() => connections[1].length >= 15)
  expect(String(Buffer.concat(connections[1].bytes))).toBe('a new beginning')
  const { service: counted } = await balanced(run, pipeline)
  expect(counted.reset_connections).toBe(1)
  expect(warnings(run)).toEqual([
    expect.stringMatching(/^reset the connection to 127\.0\.0\.1:\d+: packets of the stream were lost or reordered/),
    expect.stringContaining('made again'),
    expect.stringMatching(/^reset the connection of 127\.0\.0\.1:\d+: packets of the stream were lost or reordered/),
  ])
})

it('what a client says to a service that reset its connection goes to no new one: the client is reset', async () => {
  const { port, connections } = await service()
  const pipeline = between(port, delay(40))
  const run = await start(pipeline)
  const near = await client(run)
  near.socket.write(randomBytes(24 << 20))
  const [far] = connections
  await until(() => far.length > 1 << 20)
  far.socket.resetAndDestroy()
  await until(() => near.end !== '' && connections.length === 2, 'the client to be told')
  const next = await client(run)
  next.socket.write('a new beginning')
  await until(() => connections[1].length >= 15)
  expect(String(Buffer.concat(connections[1].bytes))).toBe('a new beginning')
  const { service: counted } = await balanced(run, pipeline)
  expect(counted.broken_stream_packets + counted.unsent_packets).toBeGreaterThan(0)
})

it('a download that its client gave up does not go on for the next client', async () => {
  const { port, connections } = await service()
  const pipeline = between(port, delay(40))
  const run = await start(pipeline)
  const near = await client(run)
  near.socket.write('all of it')
  const [far] = connections
  await until(() => far.length > 0)
  far.socket.write(Buffer.alloc(24 << 20, 'x'))
  await until(() => near.length > 1 << 20)
  near.socket.resetAndDestroy()
  const next = await client(run)
  await until(() => connections.length === 2, 'a new connection to the service')
  expect(far.end).toBe('ECONNRESET')
  connections[1].socket.write('for the next')
  await until(() => next.length >= 12)
  expect(String(Buffer.concat(next.bytes))).toBe('for the next')
  await balanced(run, pipeline)
})

it('the last packets of a stream that are lost reset both ends', async () => {
  const { port, connections } = await service()
  const pipeline = between(port, losing(1))
  const run = await start(pipeline)
  const near = await client(run)
  const [far] = connections
  near.socket.write('one')
  await until(() => run.metrics().clients.received_packets === 1)
  near.socket.end('two')
  await until(() => near.end !== '' && far.end !== '', 'both ends')
  expect(String(Buffer.concat(far.bytes))).toBe('one')
  // The lines of a run come a moment later than what its sockets do.
  await until(() => warnings(run).length > 0, 'a warning')
  expect(warnings(run)[0]).toMatch(/the last packets of a stream were lost/)
  await balanced(run, pipeline)
})

it('a request that its service answers and ends is answered whole, however far away', async () => {
  const { port, connections } = await service()
  const pipeline = between(port, delay(40))
  const run = await start(pipeline)
  const near = await client(run)
  for (let round = 0; round < 3; round++) {
    near.socket.write('a question')
    await until(() => connections[round]?.length === 10)
    connections[round].socket.end('the whole answer')
    await until(() => near.length === 16 * (round + 1))
    await until(() => connections.length === round + 2, 'the next connection')
  }
  expect((await balanced(run, pipeline)).clients.reset_connections).toBe(0)
})

it('tens of megabytes arrive whole through frames between two pipelines, both ways', async () => {
  const { port, connections } = await service()
  const carrier = (end: Record<string, unknown>, input: string, output: string) => ({ tcp: { ...end, input, output } })
  const far: Pipeline = {
    tunnel: carrier({ listen_address: '127.0.0.1:21938' }, 'down', 'up'),
    service: carrier({ remote_address: `127.0.0.1:${port}`, application_facing: true }, 'up', 'down'),
  }
  const near: Pipeline = {
    clients: carrier({ listen_address: '127.0.0.1:0', application_facing: true }, 'down', 'up'),
    tunnel: carrier({ remote_address: '127.0.0.1:21938' }, 'up', 'down'),
  }
  const behind = await start(far)
  const front = await startRun(pool, near)
  runs.push(front)
  await until(() => front.metrics().tunnel.connections === 1)
  const one = await client(front)
  const [other] = connections
  slowly(other)
  slowly(one)
  const [up, down] = [randomBytes(24 << 20), randomBytes(24 << 20)]
  one.socket.write(up)
  other.socket.write(down)
  await until(
    () => other.length === up.length && one.length === down.length,
    () => `${other.length} and ${one.length} bytes so far`,
  )
  expect(Buffer.concat(other.bytes).equals(up)).toBe(true)
  expect(Buffer.concat(one.bytes).equals(down)).toBe(true)
  for (const [run, pipeline] of [
    [front, near],
    [behind, far],
  ] as const) {
    const metrics = await balanced(run, pipeline)
    for (const counted of Object.values(metrics)) {
      if (counted.send_queue_drops !== undefined) expect(counted.send_queue_drops + counted.reset_connections).toBe(0)
    }
  }
})
