/** Many streams over one WebSocket: what is opened, told and closed, what is refused, and who is served no more. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { created, handlers, Seen } from '../../test/contract/handlers.ts'
import { until } from '../../test/harness/waiting.ts'
import type { StreamPipelinesEvent } from '../contract/types.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { HttpListener } from './http.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const tokens = new Map([['t1', 'first']])
let listener: HttpListener
let port: number
const clients: Client[] = []

beforeAll(async () => {
  const access = new Access({ verifyToken: (token) => tokens.get(token) })
  listener = new HttpListener({ dispatcher, access, address: '127.0.0.1', port: 0, keepAliveMs: 300 })
  ;({ port } = await listener.start())
})

afterEach(() => {
  for (const client of clients.splice(0)) client.socket.terminate()
})

afterAll(() => listener.stop())

type Frame = { id?: number; result?: unknown; error?: { code: number; message: string }; closed?: object }

class Client {
  readonly socket: WebSocket
  readonly frames: Frame[] = []
  readonly closed: Promise<number>

  constructor(token?: string) {
    const protocols = token === undefined ? [] : ['penstock', `penstock.bearer.${token}`]
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/v1/streams`, protocols)
    this.socket.on('message', (data) => this.frames.push(JSON.parse(data.toString())))
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => this.socket.on('close', resolve))
    clients.push(this)
  }

  async opened(): Promise<this> {
    await new Promise((resolve) => this.socket.on('open', resolve))
    return this
  }

  say(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** Takes a breath after each piece that comes. */
  readSlowly(): void {
    const { _socket: socket } = this.socket as unknown as { _socket: Socket }
    socket.on('data', () => {
      socket.pause()
      setTimeout(() => socket.resume(), 2)
    })
  }

  /** The next frame that says something. */
  async next(): Promise<Frame> {
    const find = () => this.frames.findIndex((frame) => Object.keys(frame).length > 0)
    await until(() => find() >= 0)
    return this.frames.splice(0, find() + 1).at(-1) as Frame
  }

  /** Opens the stream of a node's pipelines, once it stands. */
  async open(id: number, node: string): Promise<void> {
    this.say({ open: { id, path: `/v1/streams/nodes/${node}/pipelines` } })
    expect(await this.next()).toEqual({ id })
  }
}

const fail = (code: number): never => {
  throw new Error(`the socket was closed with ${code}`)
}
const client = (token?: string): Promise<Client> => new Client(token).opened()
const pipelinesOf = (node: string) => seen.sink<StreamPipelinesEvent>(`pipelines ${node}`)
const resultOf = (id: number, name: string) => ({
  id,
  result: { create: { pipeline: expect.objectContaining({ id: name }) } },
})

test('each stream has its own messages, by its id', async () => {
  const one = await client()
  await one.open(1, 'a')
  await one.open(9007199254740991, 'b')
  pipelinesOf('b').send(created('of b'))
  pipelinesOf('a').send(created('of a'))
  expect(await one.next()).toEqual(resultOf(9007199254740991, 'of b'))
  expect(await one.next()).toEqual(resultOf(1, 'of a'))
})

test('a message for all is the same on each kind of socket', async () => {
  const one = await client()
  await one.open(7, 'a')
  const shared = created('shared')
  pipelinesOf('a').send(shared)
  expect(await one.next()).toEqual(resultOf(7, 'shared'))
  const alone = new WebSocket(`ws://127.0.0.1:${port}/v1/streams/nodes/c/pipelines`)
  const texts: string[] = []
  alone.on('message', (data) => texts.push(data.toString()))
  await until(() => texts.length > 0)
  pipelinesOf('c').send(shared)
  await until(() => texts.length > 1)
  expect(JSON.parse(texts[1] as string)).toEqual({ result: resultOf(0, 'shared').result })
  alone.terminate()
})

test('a stream that is closed tells so, once, and its id is free again', async () => {
  const one = await client()
  await one.open(1, 'a')
  const sink = pipelinesOf('a')
  one.say({ close: { id: 1 } })
  expect(await one.next()).toEqual({ id: 1, closed: {} })
  expect(sink.closed).toBe(true)
  await one.open(1, 'b')
  pipelinesOf('b').send(created('again'))
  expect(await one.next()).toEqual(resultOf(1, 'again'))
})

test('a stream that ends tells what came before, then so; one that fails tells why', async () => {
  const one = await client()
  one.say({ open: { id: 4, path: '/v1/streams/nodes/a/pipeline-runs/x/logs?options.lines=2' } })
  const frames = [await one.next(), await one.next(), await one.next(), await one.next()]
  expect(frames.map(({ id, result, closed }) => [id, result !== undefined, closed])).toEqual([
    [4, false, undefined],
    [4, true, undefined],
    [4, true, undefined],
    [4, false, {}],
  ])
  await one.open(5, 'a')
  pipelinesOf('a').end(new Error('a bug'))
  expect(await one.next()).toMatchObject({ id: 5, error: { code: 13 } })
  one.say({ open: { id: 6, path: '/v1/streams/nodes/unknown/pipelines' } })
  expect(await one.next()).toMatchObject({ id: 6, error: { code: 5, message: 'no such node' } })
})

describe('is refused, and the socket stays open:', () => {
  const ofStream: [string, string, number, RegExp][] = [
    ['a path that is not there', '/v1/streams/nothing', 5, /no such path: \/v1\/streams\/nothing/],
    ['no path', '', 5, /no such path/],
    ['what is no stream', '/v1/nodes/n1', 3, /getNode is no stream: read it with GET/],
    ['what takes messages', '/v1/streams/hub-server/authentication-requests', 3, /a WebSocket of its own/],
    ['the socket itself', '/v1/streams', 5, /no such path/],
    ['a parameter that is not there', '/v1/streams/nodes/a/pipelines?nope=1', 3, /nope/],
    ['a segment that is not UTF-8', '/v1/nodes/%ff', 3, /percent-encoded/],
  ]
  test.each(ofStream)('%s', async (_, path, code, message) => {
    const one = await client()
    one.say({ open: { id: 3, path } })
    expect(await one.next()).toEqual({
      id: 3,
      error: { code, message: expect.stringMatching(message), details: expect.anything() },
    })
    await one.open(3, 'a')
  })

  const ofNone: [string, unknown, number, RegExp][] = [
    ['what is no JSON', '{"open"', 3, /column/],
    ['a list', [], 3, /send \{"open"/],
    ['nothing', {}, 3, /one member, open or close/],
    ['two at once', { open: { id: 1, path: '/' }, close: { id: 1 } }, 3, /one member, open or close/],
    ['another word', { subscribe: { id: 1 } }, 3, /\/subscribe: is not known here: send open or close/],
    ['open of no object', { open: 1 }, 3, /\/open: must be an object/],
    ['a member too many', { open: { id: 1, path: '/', body: {} } }, 3, /\/open\/body: is not known/],
    ['no id and no path', { open: {} }, 3, /\/open\/id: .*; \/open\/path: /],
    ['an id that is text', { close: { id: '1' } }, 3, /\/close\/id: must be a whole number/],
    ['a negative id', { close: { id: -1 } }, 3, /\/close\/id/],
    ['an id beyond what numbers hold', '{"close": {"id": 9007199254740993}}', 3, /\/close\/id/],
    ['the id of no stream', { close: { id: 8 } }, 5, /\/close\/id: no stream with the id 8 is open/],
  ]
  test.each(ofNone)('%s', async (_, message, code, text) => {
    const one = await client()
    one.say(message)
    expect(await one.next()).toEqual({
      error: { code, message: expect.stringMatching(text), details: expect.anything() },
    })
    await one.open(8, 'a')
  })

  test('the id of an open stream, which goes on', async () => {
    const one = await client()
    await one.open(1, 'a')
    one.say({ open: { id: 1, path: '/v1/streams/nodes/b/pipelines' } })
    expect(await one.next()).toMatchObject({ error: { code: 6, message: expect.stringContaining('id 1') } })
    pipelinesOf('a').send(created('goes on'))
    expect(await one.next()).toEqual(resultOf(1, 'goes on'))
  })

  test('a binary frame', async () => {
    const one = await client()
    one.socket.send(Buffer.from('{"close": {"id": 1}}'), { binary: true })
    expect(await one.next()).toMatchObject({ error: { code: 3, message: expect.stringContaining('text frames') } })
  })
})

test('a message that is too long closes the socket with 1009', async () => {
  const one = await client()
  await one.open(1, 'a')
  const sink = pipelinesOf('a')
  one.say(`{"close": {"id": 1}}${' '.repeat(65_536)}`)
  expect(await one.closed).toBe(1009)
  await until(() => sink.closed)
})

test('a client that goes takes its streams along', async () => {
  const one = await client()
  await one.open(1, 'a')
  await one.open(2, 'b')
  const sinks = [pipelinesOf('a'), pipelinesOf('b')]
  one.socket.terminate()
  await until(() => sinks.every((sink) => sink.closed))
})

test('a socket that is silent says that it is there', async () => {
  const one = await client()
  await until(() => one.frames.some((frame) => Object.keys(frame).length === 0))
})

test('of one whose token is revoked every stream fails, and the socket closes', async () => {
  const one = await client('t1')
  await one.open(1, 'a')
  tokens.delete('t1')
  one.say({ open: { id: 2, path: '/v1/streams/nodes/b/pipelines' } })
  expect(await one.next()).toMatchObject({ id: 2, error: { code: 16 } })
  listener.endCallsOf('first')
  expect(await one.next()).toMatchObject({ id: 1, error: { code: 16, message: 'the token was revoked' } })
  expect(await one.closed).toBe(4016)
  tokens.set('t1', 'first')
})

test('of one that does not read each stream is told to wait, and goes on in turn once it reads', async () => {
  const one = await client()
  await one.open(1, 'a')
  await one.open(2, 'b')
  const [a, b] = [pipelinesOf('a'), pipelinesOf('b')]
  const drained: string[] = []
  a.onDrain(() => drained.push('a'))
  b.onDrain(() => drained.push('b'))
  one.socket.pause()
  let sent = 0
  const large = { create: { pipeline: { ...created('x').value.create?.pipeline, jsonConfig: 'x'.repeat(100_000) } } }
  while (a.send(large as StreamPipelinesEvent)) sent++
  expect(sent).toBeGreaterThan(0)
  expect([a.writable, b.writable]).toEqual([false, false])
  // Nor has one that is opened now any room.
  one.say({ open: { id: 3, path: '/v1/streams/nodes/c/pipelines' } })
  await until(() => seen.sinks.has('pipelines c'))
  expect(pipelinesOf('c').writable).toBe(false)
  one.socket.resume()
  // More than once where what says that the socket is there fills it again.
  await until(
    () => drained.length >= 2 && [a, b, pipelinesOf('c')].every(({ writable }) => writable),
    () => `room for each stream: ${drained}`,
  )
  expect(drained.slice(0, 2)).toEqual(['a', 'b'])
  const heard = () => one.frames.filter(({ id, result }) => id === 1 && result !== undefined).length
  // What has left the server's buffer may be on its way to the client still.
  await until(() => heard() >= sent + 1)
  expect(heard()).toBe(sent + 1)
})

test.each([
  ['100 kB', 100_000, 100],
  ['900 kB', 900_000, 20],
])('one that pauses between long messages of %s gets them all', async (_, bytes, count) => {
  const one = await client()
  await one.open(1, 'a')
  await one.open(2, 'b')
  const sink = pipelinesOf('a')
  const large = { create: { pipeline: { ...created('x').value.create?.pipeline, jsonConfig: 'x'.repeat(bytes) } } }
  let left = count
  const send = (): void => {
    while (left > 0 && sink.writable) {
      left--
      sink.send(large as StreamPipelinesEvent)
    }
  }
  sink.onDrain(send)
  one.socket.pause()
  send()
  expect(left).toBeGreaterThan(0)
  const got = () => one.frames.filter(({ id, result }) => id === 1 && result !== undefined).length
  for (let seen = 0; seen < count; ) {
    one.socket.resume()
    const before = seen
    await until(() => {
      seen = got()
      return seen > before
    })
    one.socket.pause()
  }
  one.socket.resume()
  one.frames.length = 0
  pipelinesOf('b').send(created('after it'))
  expect(await one.next()).toEqual(resultOf(2, 'after it'))
})

test('one that reads slowly, and all the time, gets messages that are far longer than what waits in a socket', async () => {
  const one = await client()
  await one.open(1, 'a')
  await one.open(2, 'b')
  const large = { create: { pipeline: { ...created('x').value.create?.pipeline, jsonConfig: 'x'.repeat(3_900_000) } } }
  const each = 3
  for (const sink of [pipelinesOf('a'), pipelinesOf('b')]) {
    let left = each
    const send = (): void => {
      for (; left > 0 && sink.writable; left--) sink.send(large as StreamPipelinesEvent)
    }
    sink.onDrain(send)
    send()
  }
  one.readSlowly()
  const got = () => one.frames.filter(({ result }) => result !== undefined).length
  // Answers are asked for meanwhile.
  for (let id = 3; got() < 2 * each; id++) {
    one.say({ open: { id, path: '/v1/streams/nodes/c/pipelines' } })
    one.say({ close: { id } })
    await Promise.race([new Promise((resolve) => setTimeout(resolve, 20)), one.closed.then(fail)])
  }
  expect(one.frames.some(({ id, closed }) => id === 3 && closed !== undefined)).toBe(true)
})

test('a stream too many is refused', async () => {
  const one = await client()
  for (let id = 0; id < 10_000; id++) one.say({ open: { id, path: '/v1/streams/nodes/many/pipelines' } })
  await until(() => one.frames.filter(({ id }) => id !== undefined).length === 10_000)
  one.say({ open: { id: 10_000, path: '/v1/streams/nodes/many/pipelines' } })
  one.frames.length = 0
  expect(await one.next()).toMatchObject({ id: 10_000, error: { code: 8, message: expect.stringContaining('10000') } })
})

test('when the node stops, streams and socket end with UNAVAILABLE', async () => {
  const other = new HttpListener({ dispatcher, access: new Access(), address: '127.0.0.1', port: 0 })
  const before = port
  ;({ port } = await other.start())
  const one = await client()
  port = before
  await one.open(1, 'a')
  await other.stop()
  expect(await one.next()).toMatchObject({ id: 1, error: { code: 14 } })
  expect(await one.closed).toBe(4014)
})

test('a socket is silent for 5 s at most', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const access = new Access({ verifyToken: () => undefined })
  const patient = new HttpListener({ dispatcher, access, address: '127.0.0.1', port: 0 })
  try {
    const { port: itsPort } = await patient.start()
    const socket = new WebSocket(`ws://127.0.0.1:${itsPort}/v1/streams`)
    const said: string[] = []
    socket.on('message', (data) => said.push(data.toString()))
    await once(socket, 'open')
    vi.advanceTimersByTime(5_000)
    await until(() => said.length > 0)
    expect(said).toEqual(['{}'])
    socket.terminate()
  } finally {
    vi.useRealTimers()
    await patient.stop()
  }
})
