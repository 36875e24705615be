/** Web pages of other origins: which are served, what they are told, how their WebSockets carry a token. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { handlers, Seen } from '../../test/contract/handlers.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { HttpListener } from './http.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const page = 'https://page.example'
let pages: HttpListener
let at: number

beforeAll(async () => {
  const allowing = new Access({
    verifyToken: (token) => (token === 'good' ? 'laptop' : undefined),
    allowedOrigins: [page, 'http://localhost:5173'],
  })
  pages = new HttpListener({ dispatcher, access: allowing, address: '127.0.0.1', port: 0 })
  ;({ port: at } = await pages.start())
})
afterAll(() => pages.stop())

const good = { authorization: 'Bearer good' }
const call = async (method: string, path: string, headers: Record<string, string>, body?: string, port = at) => {
  const sent = httpRequest({ port, host: '127.0.0.1', method, path, headers })
  // What announces more than it has waits for the answer.
  if ('content-length' in headers) sent.flushHeaders()
  else sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const cors = Object.fromEntries(
    Object.entries(response.headers).filter(([name]) => name === 'vary' || name.startsWith('access-control-')),
  )
  response.destroy()
  return { status: response.statusCode, cors }
}
const shared = (origin: string) => ({
  vary: 'Origin',
  'access-control-allow-origin': origin,
  'access-control-expose-headers': 'Allow, WWW-Authenticate',
})
const preflight = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'authorization' }

test('are served with a token, whatever the answer is', async () => {
  for (const origin of [page, 'http://localhost:5173']) {
    const headers = { ...good, origin, 'sec-fetch-site': 'cross-site' }
    for (const [status, method, path, body] of [
      [200, 'GET', '/v1/nodes'],
      [200, 'HEAD', '/v1/nodes'],
      [200, 'PUT', '/v1/nodes/n1', '{"name":"x","metadata":{"items":{}}}'],
      [200, 'GET', '/v1/streams/nodes/cors/pipelines'],
      [200, 'HEAD', '/v1/streams/nodes/cors/pipelines'],
      [404, 'GET', '/v1/streams/nodes/unknown/pipelines'],
      [404, 'GET', '/v1/nodes/other'],
      [404, 'GET', '/nope'],
      [405, 'DELETE', '/v1/nodes'],
      [426, 'GET', '/v1/streams/hub-server/authentication-requests'],
      [400, 'POST', '/v1/nodes/n1/pipelines', '{'],
      [500, 'GET', '/v1/nodes/bug'],
      [501, 'DELETE', '/v1/nodes/n1'],
    ] as const) {
      expect([path, await call(method, path, headers, body)]).toEqual([path, { status, cors: shared(origin) }])
    }
    const long = { ...headers, 'content-length': String(4 * 1024 * 1024 + 1) }
    expect(await call('POST', '/v1/nodes/n1/pipelines', long)).toEqual({ status: 413, cors: shared(origin) })
    expect(await call('GET', '/v1/nodes', { origin })).toEqual({ status: 403, cors: shared(origin) })
    const wrong = { origin, authorization: 'Bearer bad' }
    expect(await call('GET', '/v1/nodes', wrong)).toEqual({ status: 401, cors: shared(origin) })
  }
})

test('are asked about without a token', async () => {
  // The browser sends none, and may come from another machine under a name that is not ours.
  for (const headers of [{}, { host: 'dashboard.example' }, { 'x-forwarded-for': '203.0.113.9' }]) {
    for (const path of ['/v1/nodes/n1', '/v1/streams/nodes', '/nope']) {
      const answer = await call('OPTIONS', path, { ...headers, ...preflight, origin: page })
      expect(answer).toEqual({
        status: 204,
        cors: {
          ...shared(page),
          'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
          'access-control-allow-headers': 'Authorization, Cache-Control, Content-Type, Last-Event-ID',
          'access-control-max-age': '600',
        },
      })
    }
  }
  const local = { ...preflight, origin: page, 'access-control-request-private-network': 'true' }
  expect((await call('OPTIONS', '/v1/nodes', local)).cors).toMatchObject({
    'access-control-allow-private-network': 'true',
  })
})

test('of origins that are not allowed get nothing, with a token or without', async () => {
  for (const origin of [
    'https://evil.example',
    'https://page.example.evil',
    'http://page.example',
    'null',
    `${page}:8443`,
  ]) {
    for (const [method, headers] of [
      ['OPTIONS', preflight],
      ['GET', {}],
      ['GET', good],
    ] as const) {
      const answer = await call(method, '/v1/nodes', { ...headers, origin })
      expect([origin, method, answer]).toEqual([origin, method, { status: 403, cors: { vary: 'Origin' } }])
    }
  }
  expect(await call('GET', '/v1/nodes', {})).toEqual({ status: 200, cors: { vary: 'Origin' } })
  // Without origins to tell apart nothing is said, and a preflight is an OPTIONS like any other.
  const none = new HttpListener({ dispatcher, access: new Access(), address: '127.0.0.1', port: 0 })
  const { port } = await none.start()
  expect(await call('GET', '/v1/nodes', {}, '', port)).toEqual({ status: 200, cors: {} })
  expect(await call('OPTIONS', '/v1/nodes', { ...preflight, origin: page }, '', port)).toEqual({
    status: 403,
    cors: {},
  })
  await none.stop()
})

test('open WebSockets with the token among the subprotocols', async () => {
  const path = '/v1/streams/hub-server/authentication-requests'
  const connect = (protocols: string[], headers: Record<string, string> = {}) =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${at}${path}`, protocols, { headers })
      socket.on('open', () => {
        resolve(`101 ${socket.protocol}`)
        socket.terminate()
      })
      socket.on('unexpected-response', (_, response) => {
        resolve(response.statusCode)
        response.destroy()
      })
      socket.on('error', (error) => resolve(error.message))
    })
  const token = ['penstock', 'penstock.bearer.good']
  expect(await connect(token, { origin: page })).toBe('101 penstock')
  expect(seen.calls.at(-1)).toMatchObject({ identity: 'laptop', transport: 'websocket' })
  expect(await connect(token.toReversed(), { origin: page })).toBe('101 penstock')
  // In header fields of their own, which a proxy leaves so (RFC 6455, section 11.3.4).
  const fields = ['penstock', 'penstock.bearer.good'].flatMap((name) => ['sec-websocket-protocol', name])
  const upgrade = ['host', 'localhost', 'connection', 'upgrade', 'upgrade', 'websocket', 'sec-websocket-version', '13']
  const key = ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ==', 'origin', page]
  const asked = httpRequest({ port: at, host: '127.0.0.1', path, headers: [...upgrade, ...key, ...fields] }).end()
  const [answer] = (await Promise.race([once(asked, 'upgrade'), once(asked, 'response')])) as [IncomingMessage]
  answer.destroy()
  expect([answer.statusCode, answer.headers['sec-websocket-protocol']]).toEqual([101, 'penstock'])
  expect(await connect(token, { host: 'any.example', 'x-forwarded-for': '203.0.113.9' })).toBe('101 penstock')
  expect(await connect(token, { origin: 'https://evil.example' })).toBe(403)
  expect(await connect(['penstock', 'penstock.bearer.bad'], { origin: page })).toBe(401)
  expect(await connect(['penstock'], { origin: page })).toBe(403)
  expect(await connect(['penstock'])).toBe('101 penstock')
  // What is offered without being named in the answer fails at the browser; so this says why.
  expect(await connect(['penstock.bearer.good'], { origin: page })).toBe(400)
  // What the API does not speak is not agreed to.
  expect(await connect(['chat'])).toBe('Server sent no subprotocol')
  expect(await connect([])).toBe('101 ')
})
