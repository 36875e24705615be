/** The HTTP listener over real sockets: REST, event streams, WebSockets, access. */
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asks, created, HeldCalls, handlers, node, pipeline, Seen } from '../../test/contract/handlers.ts'
import { WebSocketClient } from '../../test/contract/websocket-client.ts'
import { settle, until } from '../../test/harness/waiting.ts'
import { ServiceError } from '../contract/errors.ts'
import { Fanout } from '../contract/fanout.ts'
import { Outbox } from '../contract/outbox.ts'
import type { AuthenticationByRequestRequest, StreamPipelinesEvent } from '../contract/types.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { HttpListener } from './http.ts'
import { MAX_ALL_UNREAD_BYTES } from './unread-answers.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const access = new Access({ verifyToken: (token) => (token === 'good' ? 'laptop' : undefined) })
let listener: HttpListener
let port: number
let base: string

beforeAll(async () => {
  listener = new HttpListener({ dispatcher, access, address: '127.0.0.1', port: 0, keepAliveMs: 60 })
  ;({ port } = await listener.start())
  base = `http://127.0.0.1:${port}`
})

afterAll(() => listener.stop())

beforeEach(() => {
  seen.requests.length = 0
  seen.reports.length = 0
})

async function json(
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  const response = await fetch(base + path, { method, headers, ...(body === undefined ? {} : { body }) })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

describe('REST', () => {
  test('a request reaches its handler, the response carries every field', async () => {
    const { status, headers, body } = await json('GET', '/v1/nodes?serviceFilters=HUB_SERVER')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(body).toMatchObject({ nodes: [{ id: 'n1', lastSeen: '2026-01-02T03:04:05.678Z' }] })
    expect(seen.requests).toEqual([{ metadataFilters: {}, serviceFilters: ['HUB_SERVER'] }])
    expect(seen.calls.at(-1)).toMatchObject({ remoteAddress: '127.0.0.1', isLoopback: true, transport: 'rest' })
  })

  test('path parameters, bodies and the forms of one operation', async () => {
    expect((await json('PUT', '/v1/nodes/n%201', '{"name":"new","metadata":{"items":{}}}')).body).toMatchObject({
      node: { name: 'new', metadata: { items: {} } },
    })
    expect((await json('POST', '/v1/nodes/n1/pipelines-by-name/a%2Fb/start')).body).toEqual({ runId: 'run of a/b' })
    expect((await json('POST', '/v1/nodes/n1/pipelines/p1/start', '{}')).body).toEqual({ runId: 'run of p1' })
    expect((await json('POST', '/v1/nodes/n1/pipeline-runs/r1/stop')).body).toEqual({})
    expect((await json('POST', '/v1/hub-client/disconnect', '{}')).body).toEqual({})
    expect(seen.requests).toEqual([
      { nodeId: 'n 1', name: 'new', metadata: { items: {} } },
      { nodeId: 'n1', name: 'a/b' },
      { nodeId: 'n1', id: 'p1' },
      { nodeId: 'n1', runId: 'r1' },
      {},
    ])
  })

  test('failures have the status of their code and a body', async () => {
    expect(await json('GET', '/v1/nodes/other')).toMatchObject({
      status: 404,
      body: { code: 5, message: 'no node other on this hub', details: [] },
    })
    expect(await json('POST', '/v1/nodes/n1/pipelines', '{}')).toMatchObject({
      status: 400,
      body: {
        code: 3,
        message: 'two things are wrong',
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            fieldViolations: [
              { field: '/name', description: 'must not be empty' },
              { field: '/jsonConfig/version', description: 'must be 1' },
            ],
          },
        ],
      },
    })
    expect(await json('DELETE', '/v1/nodes/n1')).toMatchObject({ status: 501, body: { code: 12 } })
  })

  test('what a handler throws by mistake is reported and hidden', async () => {
    const { status, body } = await json('GET', '/v1/nodes/bug')
    expect(status).toBe(500)
    expect(body.code).toBe(13)
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(seen.reports).toEqual([new TypeError('secret detail of a bug')])
  })

  test('unknown paths, wrong methods, malformed and unknown fields', async () => {
    expect((await json('GET', '/v1/nope')).status).toBe(404)
    expect(await json('GET', '/v1/nodes/')).toMatchObject({
      status: 400,
      body: { code: 3, message: '/nodeId: must not be empty' },
    })
    const wrong = await json('PATCH', '/v1/nodes/n1')
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('DELETE, GET, HEAD, OPTIONS, PUT')
    expect(await json('POST', '/v1/nodes/search', '{"serviceFilters": [}')).toMatchObject({
      status: 400,
      body: { message: 'malformed JSON at position 20 (line 1, column 21): here a value or ] is wanted' },
    })
    expect(await json('POST', '/v1/nodes/search', '{"serviceFilter": []}')).toMatchObject({
      status: 400,
      body: { message: '/serviceFilter: unknown field "serviceFilter"; did you mean "serviceFilters"?' },
    })
    expect((await json('GET', '/v1/nodes/%E0%A4')).status).toBe(400)
    const latin1 = Buffer.from('{"serviceFilters": ["\xe9"]}', 'latin1')
    expect(await json('POST', '/v1/nodes/search', latin1)).toMatchObject({
      status: 400,
      body: { code: 3, message: 'the body is not UTF-8' },
    })
    expect((await json('GET', '/v1/streams/hub-server/authentication-requests')).status).toBe(426)
  })

  test('bytes in a path or a query that are no UTF-8 are refused', async () => {
    for (const target of ['/v1/nodes/pr\xfcfen', '/v1/nodes?metadataFilters[region].stringValue=pr\xfcfen']) {
      const socket = connect(port, '127.0.0.1')
      socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 'latin1'))
      const [answer] = await once(socket, 'data')
      socket.destroy()
      expect(String(answer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*is not percent-encoded UTF-8/)
    }
    expect(seen.requests).toEqual([])
  })

  test('HEAD and OPTIONS', async () => {
    const head = await fetch(`${base}/v1/nodes`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(100)
    const options = await fetch(`${base}/v1/nodes`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  })

  test('a body over 4 MiB is refused, one just below is taken', async () => {
    const config = (length: number): string => JSON.stringify({ name: 'x', jsonConfig: 'y'.repeat(length) })
    const taken = await json('POST', '/v1/nodes/n1/pipelines', config(4 * 1024 * 1024 - 100))
    expect(taken.status).toBe(200)
    expect(
      (await raw(`POST /v1/nodes/n1/pipelines HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000000\r\n\r\n`)).status,
    ).toBe(413)
    const chunk = 'z'.repeat(1024 * 1024)
    const chunked = `100000\r\n${chunk}\r\n`.repeat(5)
    const head = 'POST /v1/nodes/n1/pipelines HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n'
    expect((await raw(head + chunked)).status).toBe(413)
  })

  test('who sends a body that is too long to its end gets the answer, and is served again', async () => {
    const body = 'z'.repeat(5 * 1024 * 1024)
    const post = 'POST /v1/nodes/n1/pipelines HTTP/1.1\r\nhost: localhost\r\n'
    for (const sent of [
      `content-length: ${body.length}\r\n\r\n${body}`,
      `transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ]) {
      const socket = connect(port, '127.0.0.1')
      let received = ''
      socket.on('data', (chunk) => {
        received += chunk.toString()
        if (/"id":"n1"/.test(received)) socket.destroy()
      })
      socket.on('error', (error) => {
        received += error.message
      })
      socket.write(`${post}${sent}GET /v1/nodes/n1 HTTP/1.1\r\nhost: localhost\r\n\r\n`)
      await once(socket, 'close')
      expect(received).toMatch(/^HTTP\/1\.1 413 [\s\S]*longer than 4194304 bytes[\s\S]*HTTP\/1\.1 200 OK/)
    }
  })

  test('a caller that leaves aborts the signal of its call', async () => {
    const leaving = new AbortController()
    const answer = fetch(`${base}/v1/nodes/never`, { signal: leaving.signal })
    await until(() => seen.requests.length === 1)
    const { signal } = seen.calls.at(-1) as { signal: AbortSignal }
    const aborted = once(signal, 'abort')
    leaving.abort()
    await expect(answer).rejects.toThrow()
    await aborted
    expect(signal.aborted).toBe(true)
  })
})

describe('event streams', () => {
  test('ready first, then one data line for each message, then the error event and the end', async () => {
    const stream = await events('/v1/streams/nodes/n1/pipelines')
    expect(stream.response.headers['content-type']).toBe('text/event-stream')
    expect(await stream.next()).toBe(': ready')
    await until(() => seen.sinks.has('pipelines n1'))
    const sink = seen.sink<StreamPipelinesEvent>('pipelines n1')
    sink.send({ delete: { pipeline: pipeline('one\ntwo') } })
    const event = await stream.next()
    expect(event.startsWith('data: {"delete":')).toBe(true)
    expect(event).not.toContain('\n')
    expect(JSON.parse(event.slice(6))).toMatchObject({ delete: { pipeline: { id: 'one\ntwo' } } })
    sink.end(new ServiceError('ABORTED', 'run ended'))
    expect(await stream.next()).toBe('event: error\ndata: {"code":10,"message":"run ended","details":[]}')
    expect(await stream.next()).toBe('')
  })

  test('an error before the stream is ready is an ordinary answer', async () => {
    expect(await json('GET', '/v1/streams/nodes/unknown/pipelines')).toMatchObject({ status: 404, body: { code: 5 } })
    expect(await json('GET', '/v1/streams/nodes/n/pipeline-runs/r/logs?option.lines=1')).toMatchObject({ status: 400 })
  })

  test('HEAD says what GET would, and leaves nothing behind', async () => {
    const head = async (path: string) => {
      const { status, headers } = await fetch(base + path, { method: 'HEAD' })
      return { status, type: headers.get('content-type'), cache: headers.get('cache-control') }
    }
    const stands = { status: 200, type: 'text/event-stream', cache: 'no-store' }
    expect(await head('/v1/streams/nodes/headed/pipelines')).toEqual(stands)
    const { signal } = seen.calls.at(-1) as { signal: AbortSignal }
    expect([seen.requests.at(-1), signal.aborted]).toEqual([{ nodeId: 'headed' }, true])
    expect(seen.sinks.has('pipelines headed')).toBe(false)
    // One that speaks, and ends, before it says that it stands.
    expect(await head('/v1/streams/nodes/n/pipeline-runs/r/logs?options.lines=3')).toEqual(stands)
    expect(await head('/v1/streams/nodes/unknown/pipelines')).toMatchObject({ status: 404, type: 'application/json' })
    expect(await head('/v1/streams/nodes/n/pipeline-runs/r/logs?option.lines=1')).toMatchObject({ status: 400 })
    expect(seen.reports).toEqual([])
  })

  test('options in the query; the end of the stream ends the response', async () => {
    const stream = await events('/v1/streams/nodes/n/pipeline-runs/r/logs?options.lines=3')
    const lines = [await stream.next(), await stream.next(), await stream.next(), await stream.next()]
    expect(lines.slice(1).map((line) => JSON.parse(line.slice(6)).messages[0].message)).toEqual([
      'line 0',
      'line 1',
      'line 2',
    ])
    expect(await stream.next()).toBe('')
  })

  test('a quiet stream is kept alive', async () => {
    const stream = await events('/v1/streams/nodes/quiet/pipelines')
    expect([await stream.next(), await stream.next(), await stream.next()]).toEqual([
      ': ready',
      ': keep-alive',
      ': keep-alive',
    ])
    stream.response.destroy()
  })

  test('one encoding serves all subscribers, and a caller that leaves closes its sink', async () => {
    const streams = [await events('/v1/streams/nodes/a/pipelines'), await events('/v1/streams/nodes/b/pipelines')]
    await until(() => seen.sinks.has('pipelines a') && seen.sinks.has('pipelines b'))
    const event = created('shared')
    for (const name of ['a', 'b']) seen.sink<StreamPipelinesEvent>(`pipelines ${name}`).send(event)
    for (const stream of streams) {
      await stream.next()
      expect(await stream.next()).toContain('"shared"')
    }
    expect(event.encoded('sse', () => Buffer.from('encoded again')).toString()).toContain('"shared"')
    const { signal } = seen.calls.at(-1) as { signal: AbortSignal }
    streams[1]?.response.destroy()
    await until(() => !seen.sinks.has('pipelines b'))
    expect(signal.aborted).toBe(true)
    expect(seen.sinks.has('pipelines a')).toBe(true)
    streams[0]?.response.destroy()
  })

  test('a subscriber that does not read is bounded by its outbox and told so when it reads', async () => {
    const stream = await events('/v1/streams/nodes/slow/pipelines', true)
    await until(() => seen.sinks.has('pipelines slow'))
    const sink = seen.sink<StreamPipelinesEvent>('pipelines slow')
    const outbox = new Outbox(sink, { kind: 'bounded', limit: 5 })
    const big: StreamPipelinesEvent = { create: { pipeline: { ...pipeline('p'), jsonConfig: 'x'.repeat(100_000) } } }
    let pushed = 0
    while (!sink.closed && pushed < 1000) {
      outbox.push(big)
      pushed++
      if (pushed % 10 === 0) await settle(1)
    }
    expect(sink.closed).toBe(true)
    expect(outbox.waiting).toBe(0)
    stream.response.resume()
    let last = ''
    for (let event = await stream.next(); event !== ''; event = await stream.next()) last = event
    expect(last).toContain('event: error\ndata: {"code":8')
  })

  test('of many long events at once, one that does not read takes no more than its connection holds', async () => {
    const stream = await events('/v1/streams/nodes/crowd/pipelines', true)
    await until(() => seen.sinks.has('pipelines crowd'))
    const sink = seen.sink<StreamPipelinesEvent>('pipelines crowd')
    const fanout = new Fanout<StreamPipelinesEvent>({ kind: 'bounded', limit: 20 })
    fanout.add(sink)
    // 32 MiB: more than the kernel takes of a connection.
    const big: StreamPipelinesEvent = { create: { pipeline: { ...pipeline('p'), jsonConfig: 'x'.repeat(256 * 1024) } } }
    fanout.publishTogether(Array.from({ length: 128 }, () => big))
    expect(sink.closed).toBe(true)
    stream.response.destroy()
  })

  test('a subscriber that reads again gets what waited', async () => {
    const stream = await events('/v1/streams/nodes/late/pipelines', true)
    await until(() => seen.sinks.has('pipelines late'))
    const sink = seen.sink<StreamPipelinesEvent>('pipelines late')
    const outbox = new Outbox<StreamPipelinesEvent>(sink, { kind: 'latest' })
    for (let pushed = 0; pushed < 1000 && outbox.waiting === 0; pushed++) {
      outbox.push({ create: { pipeline: { ...pipeline('p'), jsonConfig: 'x'.repeat(100_000) } } })
    }
    expect(outbox.waiting).toBe(1)
    outbox.push({ create: { pipeline: pipeline('newer') } })
    outbox.push({ create: { pipeline: pipeline('newest') } })
    stream.response.resume()
    let event = await stream.next()
    while (!event.includes('"id":"newe')) event = await stream.next()
    expect(event).toContain('"newest"')
    stream.response.destroy()
  })
})

describe('WebSocket', () => {
  const path = '/v1/streams/hub-server/authentication-requests'

  test('requests come as results, answers reach the receiver, bad ones get an error frame', async () => {
    const socket = new WebSocketClient(port, path)
    await until(() => seen.sinks.has('authentication'))
    seen.sink<AuthenticationByRequestRequest>('authentication').send(asks(2n ** 63n))
    expect(JSON.parse(await socket.next())).toMatchObject({
      result: { node: { id: 'n1' }, requestId: '9223372036854775808' },
    })
    await socket.send('{"requestId":"9223372036854775808","accept":true}')
    await until(() => seen.answers.length === 1)
    expect(seen.answers).toEqual([{ requestId: 2n ** 63n, accept: true }])
    await socket.send('{"requestId": 404}')
    expect(JSON.parse(await socket.next())).toEqual({ error: { code: 5, message: 'no such request', details: [] } })
    await socket.send('{"requestId": ')
    expect(JSON.parse(await socket.next())).toMatchObject({ error: { code: 3 } })
    await socket.send('{"requestID": "1"}')
    expect(JSON.parse(await socket.next())).toMatchObject({ error: { code: 3 } })
    seen.sink('authentication').end(new ServiceError('FAILED_PRECONDITION', 'this node has left the hub'))
    expect(JSON.parse(await socket.next())).toMatchObject({ error: { code: 9 } })
    expect(await socket.closed).toBe(4009)
  })

  test('a request to upgrade to something else, or to another version, is told what there is', async () => {
    const open = (...fields: string[]) =>
      rawAnswer(
        port,
        [
          'GET /v1/streams HTTP/1.1',
          'connection: upgrade',
          'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
          ...fields,
        ].join('\r\n'),
      )
    for (const fields of [
      ['upgrade: websocket', 'sec-websocket-version: 8'],
      ['upgrade: websocket'],
      ['upgrade: h2c', 'sec-websocket-version: 13'],
    ]) {
      const answer = await open(...fields)
      expect(answer).toMatch(/^HTTP\/1.1 426 /)
      expect(answer.toLowerCase()).toContain('\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n')
    }
  })

  test('a failure to establish is an error frame and a close code', async () => {
    const refusing = new Dispatcher({
      handlers: {
        authenticationByRequests: async () => {
          throw new ServiceError('FAILED_PRECONDITION', 'this node is on no hub')
        },
      },
      report: () => undefined,
    })
    const other = new HttpListener({ dispatcher: refusing, access, address: '127.0.0.1', port: 0 })
    const { port: otherPort } = await other.start()
    const socket = new WebSocketClient(otherPort, path)
    expect(JSON.parse(await socket.next())).toMatchObject({ error: { code: 9, message: 'this node is on no hub' } })
    expect(await socket.closed).toBe(4009)
    await other.stop()
  })
})

describe('access', () => {
  test('foreign Host headers and cross-origin requests are refused without a token', async () => {
    const get = (headers: string) => raw(`GET /v1/nodes HTTP/1.1\r\nconnection: close\r\n${headers}\r\n\r\n`)
    expect((await get('host: evil.example')).status).toBe(403)
    expect((await get('host: localhost.')).status).toBe(200)
    expect((await get(`host: [::1]:${port}`)).status).toBe(200)
    expect((await get('host: localhost:1\r\norigin: http://evil.example')).status).toBe(403)
    expect((await get('host: localhost:1\r\norigin: null')).status).toBe(403)
    expect((await get('host: localhost:1\r\nsec-fetch-site: cross-site')).status).toBe(403)
    expect((await get('host: localhost:1\r\norigin: http://localhost:1')).status).toBe(200)
    expect((await get('host: evil.example\r\nauthorization: Bearer good')).status).toBe(200)
    expect((await get('host: evil.example\r\norigin: http://x\r\nauthorization: Bearer good')).status).toBe(403)
    expect((await get('host: localhost\r\nauthorization: Bearer bad')).status).toBe(401)
    expect(seen.calls.at(-1)?.identity).toBe('laptop')
  })

  test('what came through a proxy needs a token, though the proxy is on this machine', async () => {
    const get = (headers: string) => raw(`GET /v1/nodes HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n\r\n`)
    const forwarded = ['x-forwarded-for: 203.0.113.9', 'X-Forwarded-For: 127.0.0.1', 'forwarded: for=203.0.113.9']
    // A proxy that adds a line of its own leaves the caller's in front of it.
    const empty = ['x-forwarded-for:', 'Forwarded: ', 'x-forwarded-for:\r\nx-forwarded-for: 203.0.113.9']
    for (const header of [...forwarded, ...empty]) {
      expect([header, await get(header)]).toEqual([header, { status: 401 }])
      expect([header, await get(`${header}\r\nauthorization: Bearer good`)]).toEqual([header, { status: 200 }])
      expect(seen.calls.at(-1)).toMatchObject({ isLoopback: false, identity: 'laptop' })
      const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13'
      const upgrade = `upgrade: websocket\r\nconnection: upgrade\r\n${key}`
      const socket = `GET /v1/streams/hub-server/authentication-requests HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n${header}\r\n\r\n`
      expect([header, await raw(socket)]).toEqual([header, { status: 401 }])
    }
  })

  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const outer = own.find((candidate) => !candidate.internal && candidate.family === 'IPv4')?.address

  test.skipIf(outer === undefined)('a caller that is not on loopback needs a token', async () => {
    const other = new HttpListener({ dispatcher, access, address: '0.0.0.0', port: 0 })
    const { port: otherPort } = await other.start()
    const url = `http://${outer}:${otherPort}/v1/nodes`
    const refused = await fetch(url)
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect((await fetch(url, { headers: { authorization: 'Bearer good' } })).status).toBe(200)
    expect(seen.calls.at(-1)).toMatchObject({ isLoopback: false, identity: 'laptop' })
    await other.stop()
  })

  describe('long answers', () => {
    const pipelines = Array.from({ length: 8 }, (_, i) => ({ ...pipeline(`p${i}`), jsonConfig: 'x'.repeat(2 ** 20) }))
    const path = '/v1/nodes/n1/pipelines'
    const long = new Dispatcher({
      handlers: {
        getPipelines: ({ nodeId }) => (nodeId === 'n1' ? { pipelines } : Promise.resolve({ pipelines })),
        getNode: () => ({ node }),
      },
      report: (error) => seen.reports.push(error),
    })
    let other: HttpListener
    let otherPort: number
    beforeAll(async () => {
      other = new HttpListener({ dispatcher: long, access, address: '127.0.0.1', port: 0 })
      ;({ port: otherPort } = await other.start())
    })
    afterAll(() => other.stop())

    test.each(['n1', 'later'])('reach a reader that is slow whole, one after the other (%s)', async (id) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let i = 0; i < 3; i++) {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
          httpRequest({ port: otherPort, host: '127.0.0.1', path: `/v1/nodes/${id}/pipelines`, agent }, resolve)
            .on('error', reject)
            .end()
        })
        expect(response.headers['content-length']).toMatch(/^8\d{6}$/)
        let length = 0
        for await (const chunk of response) {
          length += (chunk as Buffer).length
          if (length < 2 ** 21) await settle()
        }
        expect(length).toBe(Number(response.headers['content-length']))
      }
      agent.destroy()
      expect(seen.reports).toEqual([])
    })

    test('of one connection do not pile up: who asks for more and reads none is cut', async () => {
      const socket = connect({ port: otherPort, host: '127.0.0.1' })
      await once(socket, 'connect')
      socket.pause()
      const before = process.memoryUsage.rss()
      const asked = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`
      socket.write(asked.repeat(100))
      // Each would be 8 MiB.
      await (await fetch(`http://127.0.0.1:${otherPort}${path}`)).arrayBuffer()
      expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 2 ** 20)
      const closed = once(socket, 'close')
      socket.on('error', () => undefined).resume()
      await closed
      expect(socket.bytesRead).toBeLessThan(20 * 2 ** 20)
      expect(seen.reports).toEqual([])
    })

    test.each(['n1', 'later'])(
      'that nobody reads leave room for short ones, and no more than so many MiB (%s)',
      async (id) => {
        const url = `http://127.0.0.1:${otherPort}`
        const long = `/v1/nodes/${id}/pipelines`
        const clients: Socket[] = []
        const ask = async (request: string): Promise<Socket> => {
          const socket = connect({ port: otherPort, host: '127.0.0.1' })
          clients.push(socket)
          socket.write(request)
          // It has been answered, and nothing more is read.
          await once(socket, 'readable')
          return socket
        }
        while (clients.length * 8 <= MAX_ALL_UNREAD_BYTES / 2 ** 20)
          await ask(`GET ${long} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
        const refused = await fetch(url + long)
        expect([refused.status, await refused.json()]).toEqual([
          429,
          { code: 8, message: expect.stringContaining('answers of more than 256 MiB wait'), details: [] },
        ])
        expect((await fetch(`${url}/v1/nodes/n1`)).status).toBe(200)
        for (const socket of clients) socket.destroy()
        await until(async () => (await fetch(url + long)).status === 200)
        expect(seen.reports).toEqual([])
      },
    )

    test.each(['n1', 'later'])('are read to their end when the listener stops (%s)', async (id) => {
      const stopping = new HttpListener({ dispatcher: long, access, address: '127.0.0.1', port: 0 })
      const { port: stoppingPort } = await stopping.start()
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        httpRequest({ port: stoppingPort, host: '127.0.0.1', path: `/v1/nodes/${id}/pipelines` }, resolve)
          .on('error', reject)
          .end()
      })
      const stopped = stopping.stop()
      await settle()
      let length = 0
      for await (const chunk of response) length += (chunk as Buffer).length
      expect(length).toBe(Number(response.headers['content-length']))
      await stopped
      expect(seen.reports).toEqual([])
    })
  })

  test('a taken port is an error that says so', async () => {
    const second = new HttpListener({ dispatcher, access, address: '127.0.0.1', port })
    await expect(second.start()).rejects.toThrow(`cannot listen on 127.0.0.1:${port}`)
  })

  test('stop lets a call finish, answers what comes then and what does not finish with UNAVAILABLE', async () => {
    const held = new HeldCalls()
    const slow = new Dispatcher({ handlers: { getNode: held.getNode }, report: (error) => seen.reports.push(error) })
    const other = new HttpListener({ dispatcher: slow, access, address: '127.0.0.1', port: 0 })
    const { port: otherPort } = await other.start()
    const answers: Promise<string>[] = ['n1', 'never'].map((id) => rawAnswer(otherPort, `GET /v1/nodes/${id} HTTP/1.1`))
    const idle = connect(otherPort, '127.0.0.1')
    const sending = connect(otherPort, '127.0.0.1')
    await Promise.all([once(idle, 'connect'), once(sending, 'connect')])
    sending.write('POST /v1/nodes/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{')
    await until(() => held.calls.size === 2)
    const [unsent, refused] = [once(sending, 'data'), once(idle, 'data')]
    const stopped = other.stop()
    held.finish('n1')
    idle.write('GET /v1/nodes HTTP/1.1\r\nhost: localhost\r\n\r\n')
    expect(await answers[0]).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*"id":"n1"/)
    for (const answer of [refused, unsent]) {
      expect(String((await answer)[0])).toMatch(
        /^HTTP\/1.1 503 [\s\S]*{"code":14,"message":"the node is shutting down"/,
      )
    }
    await expect(fetch(`http://127.0.0.1:${otherPort}/v1/nodes`)).rejects.toThrow()
    await stopped
    expect(await answers[1]).toMatch(/^HTTP\/1.1 503 [\s\S]*{"code":14,"message":"the node is shutting down"/)
    expect(held.reasons).toEqual([expect.objectContaining({ code: 'UNAVAILABLE' })])
    expect(seen.reports).toEqual([])
  })

  test('calls that wait end when the token of their caller is revoked, but for the one that revokes it', async () => {
    const held = new HeldCalls()
    const revoking: HttpListener[] = []
    const revokeToken = async () => {
      for (const each of revoking) each.endCallsOf('laptop')
      await settle()
      return {}
    }
    const slow = new Dispatcher({
      handlers: { getNode: held.getNode, revokeToken },
      report: (error) => seen.reports.push(error),
    })
    const other = new HttpListener({ dispatcher: slow, access, address: '127.0.0.1', port: 0 })
    revoking.push(other)
    const { port: otherPort } = await other.start()
    const call = (method: string, path: string, headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${otherPort}/v1/${path}`, { method, headers })
    const token = { authorization: 'Bearer good' }
    const [ended, kept] = [call('GET', 'nodes/n1', token), call('GET', 'nodes/n2', {})]
    await until(() => held.calls.size === 2)
    expect((await call('DELETE', 'access/tokens/laptop', token)).status).toBe(200)
    const answer = await ended
    expect(answer.status).toBe(401)
    expect(await answer.json()).toMatchObject({ code: 16, message: 'the token was revoked' })
    expect(held.reasons).toEqual([expect.objectContaining({ code: 'UNAUTHENTICATED' })])
    held.finish('n2')
    expect((await kept).status).toBe(200)
    expect(seen.reports).toEqual([])
    await other.stop()
  })

  test('stop ends streams with UNAVAILABLE', async () => {
    const other = new HttpListener({ dispatcher, access, address: '127.0.0.1', port: 0 })
    const { port: otherPort } = await other.start()
    const stream = await events('/v1/streams/nodes/stopping/pipelines', false, otherPort)
    expect(await stream.next()).toBe(': ready')
    await other.stop()
    expect(await stream.next()).toContain('event: error\ndata: {"code":14')
    await expect(fetch(`http://127.0.0.1:${otherPort}/v1/nodes`)).rejects.toThrow()
  })
})

/** Sends raw bytes, returns the status of the answer. */
function raw(text: string): Promise<{ status: number }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString()
      const status = /^HTTP\/1\.1 (\d+)/.exec(received)?.[1]
      if (status === undefined) return
      socket.destroy()
      resolve({ status: Number(status) })
    })
    socket.on('error', reject)
  })
}

/** All that is answered to one request, until the connection is closed. */
function rawAnswer(onPort: number, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(onPort, '127.0.0.1', () => socket.write(`${line}\r\nhost: localhost\r\n\r\n`))
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString()
      if (received.endsWith('}')) resolve(received)
    })
    socket.on('close', () => resolve(received))
    socket.on('error', reject)
  })
}

/** An event stream; `next` gives one block at a time, '' at the end. */
async function events(path: string, paused = false, onPort = port) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest({ port: onPort, host: '127.0.0.1', path }, resolve).on('error', reject).end()
  })
  expect(response.statusCode).toBe(200)
  let buffered = ''
  let isOver = false
  let wake: (() => void) | undefined
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    buffered += chunk
    wake?.()
  })
  response.on('close', () => {
    isOver = true
    wake?.()
  })
  response.on('error', () => undefined)
  if (paused) response.pause()
  const next = async (): Promise<string> => {
    for (;;) {
      const end = buffered.indexOf('\n\n')
      if (end >= 0) {
        const block = buffered.slice(0, end)
        buffered = buffered.slice(end + 2)
        return block
      }
      if (isOver) return buffered
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { response, next }
}
