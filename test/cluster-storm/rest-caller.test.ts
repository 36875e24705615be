/** What callers over HTTP are told when something breaks on the way: nothing that was not said, and no wait without an end. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { codeNumbers } from '../../src/contract/errors.ts'
import { Failed } from '../hub/callers.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'
import { failureOf, restCaller } from './rest-caller.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A caller of somebody who does this with each connection once something has been asked. */
async function callerOf(answer: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close())
  return restCaller(`127.0.0.1:${(server.address() as AddressInfo).port}`, undefined)
}

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n'

test.each<[string, (socket: Socket) => void]>([
  ['before an answer', (socket) => socket.destroy()],
  ['within an answer', (socket) => socket.end(`${HEAD}{"nodes":[`)],
])('a connection that breaks %s: nobody knows what was done', async (_, answer) => {
  const { unary, stream } = await callerOf(answer)
  await expect(unary('getNodes')).rejects.toMatchObject({ code: 'UNKNOWN' })
  await expect(stream('streamNodes').then((each) => each.next())).rejects.toThrow()
})

test('nobody listens: nothing was done; no answer in time: nobody knows', async () => {
  const { unary } = await callerOf(() => {})
  await expect(unary('getNodes', {}, AbortSignal.timeout(50))).rejects.toMatchObject({ code: 'CANCELLED' })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const gone = restCaller(`127.0.0.1:${port}`, undefined)
  await expect(gone.unary('getNodes')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a failure has the HTTP status of its code; what no network explains is no failure', () => {
  const right = new Failed(codeNumbers.NOT_FOUND, 'no such node', 404)
  expect(failureOf(right)).toBe(right)
  expect(failureOf(new Failed(codeNumbers.NOT_FOUND, 'no such node', 503))).toBeInstanceOf(BrokenPromise)
  const wrong = new SyntaxError('no JSON')
  expect(failureOf(wrong)).toBe(wrong)
})
