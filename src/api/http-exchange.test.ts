/** One request, one answer, whatever its handler does: over real sockets. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { settle, until } from '../../test/harness/waiting.ts'
import { ServiceError } from '../contract/errors.ts'
import { collectGarbage } from '../dataplane/engine/garbage.ts'
import { packageRoot } from '../package-root.ts'
import type { Exchange } from './http-exchange.ts'
import { jsonAnswer } from './http-response.ts'
import { HttpServer } from './http-server.ts'

const reports: [string, string][] = []
let aborted = 0
let heard: (() => void) | undefined

const handlers: Record<string, (exchange: Exchange) => void | Promise<void>> = {
  '/answers': (exchange) => void exchange.answer(jsonAnswer('{"a":1}')),
  '/answers-late': async (exchange) => {
    await settle(1)
    exchange.answer(jsonAnswer('{"a":1}'))
  },
  '/throws': () => {
    throw new TypeError('secret detail')
  },
  '/rejects': async () => {
    await settle(1)
    throw new TypeError('secret detail')
  },
  '/refuses': () => {
    throw new ServiceError('NOT_FOUND', 'no such thing')
  },
  '/forgets': () => undefined,
  '/forgets-late': async () => {
    await settle(1)
  },
  '/twice': (exchange) => {
    exchange.answer(jsonAnswer('1'))
    exchange.answer(jsonAnswer('2'))
    exchange.stream({}, 'x')
  },
  '/throws-after': (exchange) => {
    exchange.answer(jsonAnswer('1'))
    throw new TypeError('after the answer')
  },
  '/cut': async (exchange) => {
    exchange.stream({ 'content-type': 'text/plain' }, 'begun ')
    await settle(1)
    throw new TypeError('in the middle')
  },
  '/stream': async (exchange) => {
    exchange.stream({ 'content-type': 'text/plain' }, 'one ')
    await settle(1)
    exchange.write(Buffer.from('two '))
    exchange.finish('three')
    exchange.finish('four')
    exchange.write(Buffer.from('five'))
  },
  '/body': async (exchange) => {
    const body = await exchange.body('', 10)
    if (body !== undefined) exchange.answer(jsonAnswer(JSON.stringify(body)))
  },
  '/long-body': async (exchange) => {
    const body = await exchange.body('', 1024 * 1024)
    if (body !== undefined) exchange.answer({ ...jsonAnswer(String(body.length)), close: true })
  },
  '/waits': (exchange) => {
    exchange.caller = {
      lose: () => {
        aborted++
        heard?.()
        throw new TypeError('on the way out')
      },
    }
    return new Promise(() => undefined)
  },
}

let server: HttpServer
let port: number

beforeAll(async () => {
  server = new HttpServer({ report: (error, what) => reports.push([what, (error as Error).message]) })
  const behavior = {
    open: async (socket: { getUserData(): { asks: string } }) => {
      if (socket.getUserData().asks === 'open') throw new TypeError('in open')
    },
    message: () => {
      throw new TypeError('in message')
    },
  }
  server.webSocket<{ asks: string }>('/socket', behavior, ({ header }) => {
    const asks = header('x-asks')
    if (asks === 'throw') throw new TypeError('in accept')
    if (asks === 'refuse') return { status: '418 Teapot', headers: { 'x-why': 'tea' }, body: 'no coffee' }
    return { data: { asks }, protocol: '' }
  })
  server.handle((exchange, request) => {
    exchange.headers = { 'x-every': 'one' }
    return handlers[request.getUrl()]?.(exchange)
  })
  port = (await server.listen('127.0.0.1', 0)) as number
})

afterAll(() => server.close())

beforeEach(() => {
  reports.length = 0
})

/** Everything that comes back for `text` until the other side closes; the last request should ask for that. */
function talk(said: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(said))
    let received = ''
    socket.on('data', (bytes) => {
      received += bytes
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(received))
  })
}

const ask = (method: string, path: string, body = '') =>
  talk(
    `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${body === '' ? '' : `content-length: ${body.length}\r\n`}\r\n${body}`,
  )

test.each(['GET', 'HEAD', 'POST', 'INVENTED'])(
  '%s: a handler that throws, rejects or forgets is answered for',
  async (method) => {
    for (const [path, message] of [
      ['/throws', 'secret detail'],
      ['/rejects', 'secret detail'],
      ['/forgets', 'the handler ended without an answer'],
      ['/forgets-late', 'the handler ended without an answer'],
      ['/unheard-of', 'the handler ended without an answer'],
    ]) {
      reports.length = 0
      const answer = await ask(method, path as string)
      expect(answer).toMatch(/^HTTP\/1\.1 500 Internal Server Error\r\n/)
      expect(answer).toContain('x-every: one')
      expect(answer).not.toContain('secret')
      expect(answer.endsWith('\r\n\r\n')).toBe(method === 'HEAD')
      expect(reports).toEqual([[`HTTP ${method}`, message]])
    }
    reports.length = 0
    expect(await ask(method, '/refuses')).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
    expect(reports).toEqual([])
  },
)

test('HEAD has the length of the body that it leaves out, and the connection goes on', async () => {
  const head = (path: string, last = '') => `HEAD ${path} HTTP/1.1\r\nhost: x\r\n${last}\r\n`
  const answers = await talk(
    `${head('/answers')}${head('/refuses')}GET /answers HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
  )
  const [first, second, third, body, ...rest] = answers.split('\r\n\r\n')
  expect(first).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(first).toMatch(/content-length: 7(\r\n|$)/)
  expect(second).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
  expect(third).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect([body, rest]).toEqual(['{"a":1}', []])
})

test('a second answer is refused and reported', async () => {
  expect(await ask('GET', '/twice')).toMatch(/\r\n\r\n1$/)
  expect(reports).toEqual([
    ['HTTP GET', 'a request was answered a second time'],
    ['HTTP GET', 'a request was answered a second time'],
  ])
  reports.length = 0
  expect(await ask('GET', '/throws-after')).toMatch(/\r\n\r\n1$/)
  expect(reports).toEqual([['HTTP GET', 'after the answer']])
})

test('a stream that fails is cut, one that has ended is over', async () => {
  const cut = await ask('GET', '/cut')
  expect(cut).toContain('begun ')
  expect(cut).not.toContain('\r\n0\r\n')
  expect(reports).toEqual([['HTTP GET', 'in the middle']])
  reports.length = 0
  expect(await ask('HEAD', '/stream')).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*content-type: text\/plain[\s\S]*\r\n\r\n$/)
  const whole = await ask('GET', '/stream')
  expect(whole.endsWith('\r\n4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n')).toBe(true)
  expect(reports).toEqual([])
})

test('bodies: whole, too long, not UTF-8, and given up half-way', async () => {
  expect(await ask('POST', '/body', 'ten bytes.')).toMatch(/\r\n\r\n"ten bytes\."$/)
  expect(await ask('POST', '/body', 'eleven byte')).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n/)
  const bytes = Buffer.concat([
    Buffer.from('POST /body HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n'),
    Buffer.from([0xff, 0xfe]),
  ])
  expect(await talk(bytes)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*not UTF-8/s)
  const socket = connect(port, '127.0.0.1')
  socket.write('POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf', () => socket.resetAndDestroy())
  await new Promise((resolve) => socket.on('close', resolve))
  expect(await ask('GET', '/answers')).toContain('{"a":1}')
  expect(reports).toEqual([])
})

test('a body that comes byte by byte takes little more memory than its bytes', async () => {
  const chunks = 100_000
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  socket.write(`POST /long-body HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n`)
  socket.write(Buffer.from('1\r\nx\r\n'.repeat(chunks)))
  await until(() => socket.writableLength === 0)
  // What is in the kernel still is read.
  await settle(20)
  collectGarbage()
  // With a buffer for each 10.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000)
  socket.write('0\r\n\r\n')
  const received = await text(socket)
  expect(received).toMatch(/\r\n\r\n100000$/)
})

test('a client that leaves is heard of once, and what is thrown then is reported', async () => {
  const left = new Promise<void>((resolve) => {
    heard = resolve
  })
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /waits HTTP/1.1\r\nhost: x\r\n\r\n')
  while (!(await connections()).includes('waits')) await settle(1)
  socket.destroy()
  await left
  expect(aborted).toBe(1)
  expect(reports).toEqual([['HTTP GET', 'on the way out']])

  /** The request has been read once another one behind it was answered. */
  async function connections(): Promise<string> {
    await ask('GET', '/answers')
    return 'waits'
  }
})

test('WebSockets: what is thrown refuses the upgrade, or closes the socket with 1011', async () => {
  const status = (asks: string) =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, { headers: { 'x-asks': asks } })
      socket.on('unexpected-response', (_, response) => {
        resolve([response.statusCode, response.headers['x-why']])
        response.destroy()
      })
      socket.on('close', (code, reason) => resolve([code, reason.toString()]))
      socket.on('open', () => socket.send('hello'))
      socket.on('error', () => undefined)
    })
  expect(await status('throw')).toEqual([500, undefined])
  expect(await status('refuse')).toEqual([418, 'tea'])
  expect(await status('open')).toEqual([1011, 'internal error'])
  expect(await status('message')).toEqual([1011, 'internal error'])
  expect(reports).toEqual([
    ['HTTP GET', 'in accept'],
    ['WebSocket open', 'in open'],
    ['WebSocket message', 'in message'],
  ])
})

test('nothing else touches a response of uWebSockets.js, or its app', () => {
  const source = join(packageRoot(), 'src')
  const imports: string[] = []
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts') || entry.name.endsWith('.test.ts')) continue
    const file = join(entry.parentPath, entry.name)
    const text = readFileSync(file, 'utf8')
    for (const [, what, from] of text.matchAll(/import\s+([^'"]*?)\s*from\s*['"]([^'"]+)['"]/g)) {
      if (from === 'uWebSockets.js') imports.push(`${relative(source, file)}: ${what}`)
    }
    const loads = /(import\(|require\()\s*['"]uWebSockets/.test(text)
    expect([relative(source, file), loads]).toEqual([relative(source, file), file.endsWith('api/http-library.ts')])
  }
  expect(imports.sort()).toEqual([
    'api/http-exchange.ts: type { HttpRequest, HttpResponse, us_socket_context_t }',
    'api/http-server.ts: type { TemplatedApp, us_listen_socket, WebSocket, WebSocketBehavior }',
    'api/http-sockets.ts: type { WebSocket }',
    'api/http.ts: type { HttpRequest }',
    'api/streams-socket.ts: type { WebSocket }',
    'api/websocket-frames.ts: type { WebSocket }',
    'api/websocket.ts: type { WebSocket }',
    'link/inbox.ts: type { WebSocket }',
    'link/link-server.ts: type { WebSocket }',
    'link/link.ts: type { WebSocketBehavior }',
  ])
  const server = readFileSync(join(source, 'api/http-server.ts'), 'utf8')
  expect(server).not.toContain('HttpResponse')
})
