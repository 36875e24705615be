/** What the calls of a gRPC connection take of memory, and leave there. */
import { once } from 'node:events'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { FRAME, frame, PREFACE, RawHttp2 } from '../../test/api/http2-client.ts'
import { handlers, Seen } from '../../test/contract/handlers.ts'
import { oldGeneration } from '../../test/harness/old-generation.ts'
import { until } from '../../test/harness/waiting.ts'
import { encodeBinary } from '../contract/binary-encode.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import { collectGarbage } from '../dataplane/engine/garbage.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { GrpcListener } from './grpc.ts'

/** Makes as many calls at once as each message asks for, and answers with their statuses; in a thread, so that it has a heap of its own. */
const CLIENT = `
  const { parentPort, workerData: { port, path, message } } = require('node:worker_threads')
  const session = require('node:http2').connect('http://127.0.0.1:' + port)
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const call = () => new Promise((resolve, reject) => {
    const stream = session.request(headers)
    stream.on('trailers', (trailers) => resolve(trailers['grpc-status']))
    stream.on('error', reject).resume().end(message)
  })
  parentPort.on('message', async (count) => parentPort.postMessage(await Promise.all(Array.from({ length: count }, call))))
`

/** A header field as a literal that goes into no table (RFC 7541, section 6.2.2). */
const literal = (name: string, value: string): Buffer =>
  Buffer.from([0, name.length, ...Buffer.from(name), value.length, ...Buffer.from(value)])

it('a request that comes byte by byte takes little more memory than its bytes', async () => {
  const seen = new Seen()
  const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
  const listener = new GrpcListener({ dispatcher, access: new Access({}), address: '127.0.0.1', port: 0 })
  const { port } = await listener.start()
  const { grpcPath: path, request } = loadOperations().find(({ name }) => name === 'getNode') as Operation
  const fields = encodeBinary(request, { nodeId: 'n'.repeat(60_000) })
  const head = {
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': 'a',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  }
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(fields.length, 1)
  const connection = await RawHttp2.connect(`127.0.0.1:${port}`)
  try {
    const block = Buffer.concat(Object.entries(head).map(([name, value]) => literal(name, value)))
    connection.send(PREFACE, frame(FRAME.headers, 4, 1, block), frame(FRAME.data, 0, 1, prefix))
    collectGarbage()
    const before = process.memoryUsage().heapUsed
    let pings = 0
    // All of it is within the first window of a stream.
    for (let at = 0; at < fields.length - 1; at += 10_000) {
      const bytes = fields.subarray(at, Math.min(at + 10_000, fields.length - 1))
      connection.send(...Array.from(bytes, (byte) => frame(FRAME.data, 0, 1, Buffer.from([byte]))))
      connection.send(frame(FRAME.ping, 0, 0, Buffer.alloc(8)))
      pings++
      await until(() => connection.count(FRAME.ping) === pings)
    }
    collectGarbage()
    // With a buffer for each 8.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000)
    expect(seen.requests).toEqual([])
    connection.send(frame(FRAME.data, 1, 1, fields.subarray(-1)))
    await until(() => seen.requests.length === 1)
    expect(seen.requests).toEqual([{ nodeId: 'n'.repeat(60_000) }])
  } finally {
    connection.gone()
    await listener.stop()
  }
})

it('calls that are over are left to the young generation, after a full collection too', async () => {
  const seen = new Seen()
  const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
  const listener = new GrpcListener({ dispatcher, access: new Access({}), address: '127.0.0.1', port: 0 })
  const { port } = await listener.start()
  const { grpcPath: path, request } = loadOperations().find(({ name }) => name === 'getNode') as Operation
  const fields = encodeBinary(request, { nodeId: 'n1' })
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, fields.length]), fields])
  const client = new Worker(CLIENT, { eval: true, workerData: { port, path, message } })
  /** The most that the old generation has grown by. */
  const calls = async () => {
    const before = oldGeneration()
    let most = 0
    for (let round = 0; round < 200; round++) {
      client.postMessage(32)
      expect(new Set((await once(client, 'message'))[0])).toEqual(new Set(['0']))
      seen.requests.length = 0
      seen.calls.length = 0
      most = Math.max(most, oldGeneration() - before)
    }
    return most
  }
  try {
    await calls()
    collectGarbage()
    // With Node's Map some 25.
    expect(await calls()).toBeLessThan(8_000_000)
  } finally {
    await client.terminate()
    await listener.stop()
  }
})

it('connections that speak no HTTP/2 leave nothing', async () => {
  const seen = new Seen()
  const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
  const listener = new GrpcListener({ dispatcher, access: new Access({}), address: '127.0.0.1', port: 0 })
  const { port } = await listener.start()
  const knock = async (count: number) => {
    const connections = await Promise.all(Array.from({ length: count }, () => RawHttp2.connect(`127.0.0.1:${port}`)))
    for (const { socket } of connections) socket.end('GET / HTTP/1.1\r\n\r\n')
    await Promise.all(connections.map(({ closed }) => closed))
  }
  /** Of native objects, as HTTP/2 sessions, that are held from outside of the heap. */
  const handles = () => {
    collectGarbage()
    return getHeapStatistics().used_global_handles_size
  }
  try {
    await knock(5)
    const before = handles()
    await knock(100)
    // Each left 128 and more, and some 25 KB outside of the heap.
    await until(() => handles() - before < 3_000)
  } finally {
    await listener.stop()
  }
})
