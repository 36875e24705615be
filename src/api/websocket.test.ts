/** What a WebSocket of the API does with messages that are too long, or no WebSocket's. */
import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { created, handlers, Seen } from '../../test/contract/handlers.ts'
import { until } from '../../test/harness/waiting.ts'
import type { StreamPipelinesEvent } from '../contract/types.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { HttpListener } from './http.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const path = '/v1/streams/hub-server/authentication-requests'
let listener: HttpListener
let port: number
/** What the log was told. */
const told: unknown[][] = []
const warn = (...line: unknown[]) => void told.push(line)

beforeAll(async () => {
  listener = new HttpListener({ dispatcher, access: new Access(), address: '127.0.0.1', port: 0, warn })
  ;({ port } = await listener.start())
})

afterAll(() => listener.stop())

const open = async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`)
  const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve([code, reason.toString()])))
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.on('open', resolve))
  return { socket, closed }
}

test.each([
  ['in one frame', false],
  ['in several', true],
])('too long ones %s close with 1009', async (_, isFragmented) => {
  const { socket, closed } = await open()
  const half = Buffer.alloc(32 * 1024, ' ')
  if (isFragmented) {
    for (const fin of [false, false]) socket.send(half.toString(), { fin })
    socket.send(' ', { fin: true })
  } else socket.send(`${half}${half} `)
  expect(await closed).toEqual([1009, 'a message may have 65536 bytes'])
})

test('the longest that may be is read', async () => {
  const { socket } = await open()
  const answer = new Promise((resolve) => socket.on('message', (data) => resolve(JSON.parse(data.toString()))))
  socket.send(`{"requestId": 404${' '.repeat(64 * 1024 - 18)}}`)
  expect(await answer).toEqual({ error: { code: 5, message: 'no such request', details: [] } })
  socket.terminate()
})

// The library has closed the socket by the time it tells: no close frame can go out (docs/limits.md).
test.each([
  ['text that is not UTF-8', [0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe]],
  ['a reserved bit', [0xc1, 0x80, 0, 0, 0, 0]],
  ['a reserved opcode', [0x83, 0x80, 0, 0, 0, 0]],
  ['a continuation of nothing', [0x80, 0x80, 0, 0, 0, 0]],
  ['a ping in parts', [0x09, 0x80, 0, 0, 0, 0]],
  ['a message of 2^62 bytes', [0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
])('%s ends that socket, and nothing else', async (_, bytes) => {
  const other = await open()
  const { socket, closed } = await open()
  await until(() => seen.sinks.has('authentication'))
  ;(socket as unknown as { _socket: Socket })._socket.write(Buffer.from(bytes))
  expect(await closed).toEqual([1006, ''])
  const answer = new Promise((resolve) => other.socket.on('message', (data) => resolve(data.toString())))
  other.socket.send('{"requestId": 404}')
  expect(await answer).toContain('no such request')
  other.socket.terminate()
})

test('one that reads slowly, and all the time, gets messages that are far longer than what waits in a socket', async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/streams/nodes/slow/pipelines`)
  const closed = new Promise((resolve) => socket.on('close', resolve))
  let got = 0
  socket.on('message', (data) => {
    if (data.toString() !== '{}') got++
  })
  await new Promise((resolve) => socket.on('open', resolve))
  const { _socket: connection } = socket as unknown as { _socket: Socket }
  connection.on('data', () => {
    connection.pause()
    setTimeout(() => connection.resume(), 2)
  })
  await until(() => seen.sinks.has('pipelines slow'))
  const sink = seen.sink<StreamPipelinesEvent>('pipelines slow')
  const large = { create: { pipeline: { ...created('x').value.create?.pipeline, jsonConfig: 'x'.repeat(3_900_000) } } }
  const all = 5
  let left = all
  const send = (): void => {
    for (; left > 0 && sink.writable; left--) sink.send(large as StreamPipelinesEvent)
  }
  sink.onDrain(send)
  send()
  expect(await Promise.race([closed, until(() => got === all)])).toBeUndefined()
  socket.terminate()
})

test('one whose client asks on and on and does not read the answers is cut, and the log told', async () => {
  told.length = 0
  const { socket, closed } = await open()
  socket.pause()
  let isClosed = false
  void closed.then(() => {
    isClosed = true
  })
  const wrong = JSON.stringify(
    Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`nothing known by name ${i}`, 1])),
  )
  const ask = async (): Promise<void> => {
    while (told.length === 0) {
      for (let i = 0; i < 20; i++) socket.send(wrong)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  await ask()
  socket.resume()
  await until(() => isClosed)
  const why = 'its client sends more and more and does not read the answers'
  expect(told).toEqual([
    [`a WebSocket from 127.0.0.1 was cut: ${why}`, { address: '127.0.0.1', reason: 'UNREAD_ANSWERS', sockets: 1 }],
  ])
})
