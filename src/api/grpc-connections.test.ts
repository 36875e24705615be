/** What the calls of a gRPC connection leave in memory. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { handlers, Seen } from '../../test/contract/handlers.ts'
import { oldGeneration } from '../../test/harness/old-generation.ts'
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
