/** The gRPC listener with real clients: calls, streams, errors, access, health and reflection. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { connect as dial } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asks, created, HeldCalls, handlers, node, pipeline, Seen } from '../../test/contract/handlers.ts'
import { until } from '../../test/harness/waiting.ts'
import { decodeBinary } from '../contract/binary-decode.ts'
import { encodeBinary } from '../contract/binary-encode.ts'
import { ServiceError } from '../contract/errors.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import type { AuthenticationByRequestRequest, StreamPipelinesEvent } from '../contract/types.ts'
import { Access } from './access.ts'
import { Dispatcher } from './dispatcher.ts'
import { GrpcListener } from './grpc.ts'
import { MAX_ALL_UNREAD_BYTES } from './unread-answers.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const access = new Access({ verifyToken: (token) => (token === 'good' ? 'laptop' : undefined) })
const pass = (bytes: Buffer): Buffer => bytes
let listener: GrpcListener
let client: grpc.Client
let port: number

beforeAll(async () => {
  listener = new GrpcListener({ dispatcher, access, address: '127.0.0.1', port: 0 })
  ;({ port } = await listener.start())
  client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
})

afterAll(async () => {
  client.close()
  await listener.stop()
})

beforeEach(() => {
  seen.requests.length = 0
  seen.reports.length = 0
})

function operation(name: string): Operation {
  const found = loadOperations().find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`no operation ${name}`)
  return found
}

function unary(name: string, request: object, metadata = new grpc.Metadata()): Promise<Record<string, unknown>> {
  const { grpcPath, request: type, response } = operation(name)
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(grpcPath, pass, pass, encodeBinary(type, request), metadata, (error, bytes) => {
      if (error !== null) reject(error)
      else resolve(decodeBinary(response, bytes as Buffer))
    })
  })
}

function serverStream(name: string, request: object): grpc.ClientReadableStream<Buffer> {
  const { grpcPath, request: type } = operation(name)
  return client.makeServerStreamRequest(grpcPath, pass, pass, encodeBinary(type, request))
}

function next(stream: grpc.ClientReadableStream<Buffer>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    stream.once('data', resolve)
    stream.once('error', reject)
  })
}

function failed(stream: NodeJS.EventEmitter): Promise<grpc.ServiceError> {
  return new Promise((resolve) => stream.once('error', resolve))
}

describe('unary', () => {
  test('a request reaches its handler', async () => {
    expect(await unary('getNode', { nodeId: 'n1' })).toMatchObject({
      node: { id: 'n1', services: ['HUB_SERVER', 'PIPELINES'], lastSeen: new Date('2026-01-02T03:04:05.678Z') },
    })
    expect(seen.requests).toEqual([{ nodeId: 'n1' }])
    expect(seen.calls.at(-1)).toMatchObject({ remoteAddress: '127.0.0.1', isLoopback: true, transport: 'grpc' })
  })

  test.each(['2592000S', '99999999H', '1n', '25S'])('a deadline of %s', async (timeout) => {
    const session = connect(`http://127.0.0.1:${port}`)
    const stream = session.request({
      ':method': 'POST',
      ':path': operation('getNode').grpcPath,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': timeout,
    })
    const request = encodeBinary(operation('getNode').request, { nodeId: 'n1' })
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, request.length]), request]))
    const status = new Promise((resolve) => {
      for (const event of ['response', 'trailers']) {
        stream.on(event, (headers: Record<string, string>) => {
          if (headers['grpc-status'] !== undefined) resolve(Number(headers['grpc-status']))
        })
      }
    })
    stream.resume()
    expect(await status).toBe(timeout === '1n' ? grpc.status.DEADLINE_EXCEEDED : grpc.status.OK)
    session.destroy()
  })

  test.each([
    ['of no such method', '/no.Such/method', 'application/grpc'],
    ['that is no gRPC', operation('getNode').grpcPath, 'text/plain'],
  ])('a client that sends all of a call %s before it reads the answer gets that', async (_, path, type) => {
    const session = connect(`http://127.0.0.1:${port}`)
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type, te: 'trailers' })
    const answered = once(stream, 'response')
    // Twice what may be sent before anything of it is read (RFC 9113, section 6.9.2).
    stream.end(Buffer.alloc(128 * 1024))
    await once(stream, 'finish')
    expect((await answered)[0]).toMatchObject(type === 'text/plain' ? { ':status': 415 } : { 'grpc-status': '12' })
    session.destroy()
  })

  test('clients are told how much metadata is taken', async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    const [settings] = await once(session, 'remoteSettings')
    expect(settings).toMatchObject({ maxHeaderListSize: 65_536 })
    session.destroy()
  })

  test('failures carry code, message and details', async () => {
    await expect(unary('getNode', { nodeId: 'other' })).rejects.toMatchObject({
      code: grpc.status.NOT_FOUND,
      details: 'no node other on this hub',
    })
    const error = await unary('createPipeline', { nodeId: 'n1' }).catch((reason: grpc.ServiceError) => reason)
    const details = (error as grpc.ServiceError).metadata.get('grpc-status-details-bin')[0] as Buffer
    expect(details.toString('latin1')).toContain('type.googleapis.com/google.rpc.BadRequest')
    expect(details.toString('latin1')).toContain('/jsonConfig/version')
    await expect(unary('removeNode', { nodeId: 'n1' })).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED })
  })

  test.each(['näme', '\\ud800', 'x'.repeat(5_000)])(
    'more problems than trailers hold still reach the caller (%#)',
    async (key) => {
      const many = Array.from({ length: 2_000 }, (_, i) => ({
        pointer: `/${JSON.parse(`"${key}"`)}${i}`,
        message: 'unknown',
      }))
      const message = many.map(({ pointer }) => `${pointer}: unknown`).join('; ')
      const getNode = () => Promise.reject(new ServiceError('INVALID_ARGUMENT', message, { problems: many }))
      const refusing = new GrpcListener({
        dispatcher: new Dispatcher({ handlers: { getNode }, report: (error) => seen.reports.push(error) }),
        access,
        address: '127.0.0.1',
        port: 0,
      })
      const { port } = await refusing.start()
      const caller = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
      const error = await new Promise((resolve) => {
        const { grpcPath, request } = operation('getNode')
        const deadline = { deadline: Date.now() + 10_000 }
        caller.makeUnaryRequest(grpcPath, pass, pass, encodeBinary(request, { nodeId: 'n1' }), deadline, resolve)
      })
      caller.close()
      await refusing.stop()
      expect(error).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, details: expect.stringMatching(/…$/) })
      const details = (error as grpc.ServiceError).metadata.get('grpc-status-details-bin')[0] as Buffer
      expect(details.length + encodeURI((error as grpc.ServiceError).details).length).toBeLessThan(8_192)
    },
  )

  test('a call whose time is over is not carried out', async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    const { grpcPath, request } = operation('getNode')
    const fields = encodeBinary(request, { nodeId: 'n1' })
    const status = (timeout: string) =>
      new Promise<unknown>((resolve, reject) => {
        const headers = { ':method': 'POST', ':path': grpcPath, 'content-type': 'application/grpc', te: 'trailers' }
        const stream = session.request({ ...headers, 'grpc-timeout': timeout })
        stream.on('trailers', (trailers) => resolve(trailers['grpc-status']))
        // What has no answer but a status has it in its headers.
        stream.on('response', (received) => received['grpc-status'] !== undefined && resolve(received['grpc-status']))
        stream.on('error', reject).resume()
        stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, fields.length]), fields]))
      })
    expect(await status('1n')).toBe(`${grpc.status.DEADLINE_EXCEEDED}`)
    expect(seen.requests).toEqual([])
    expect(await status('10S')).toBe('0')
    expect(seen.requests).toEqual([{ nodeId: 'n1' }])
    session.destroy()
  })

  test('what a handler throws by mistake is reported and hidden', async () => {
    await expect(unary('getNode', { nodeId: 'bug' })).rejects.toMatchObject({
      code: grpc.status.INTERNAL,
      details: expect.not.stringContaining('secret'),
    })
    expect(seen.reports).toEqual([new TypeError('secret detail of a bug')])
  })

  test('bytes that are no message are an invalid argument', async () => {
    const { grpcPath } = operation('getNode')
    const answer = new Promise((_resolve, reject) => {
      client.makeUnaryRequest(grpcPath, pass, pass, Buffer.from([0xff, 0xff]), reject)
    })
    await expect(answer).rejects.toMatchObject({ code: grpc.status.INVALID_ARGUMENT })
  })

  test('a cancelled call aborts the signal of its handler', async () => {
    const { grpcPath, request } = operation('getNode')
    const call = client.makeUnaryRequest(
      grpcPath,
      pass,
      pass,
      encodeBinary(request, { nodeId: 'never' }),
      () => undefined,
    )
    await until(() => seen.requests.length === 1)
    const signal = seen.calls.at(-1)?.signal as AbortSignal
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    call.cancel()
    await aborted
    expect(signal.aborted).toBe(true)
  })

  test('a token names its holder, a wrong one is refused', async () => {
    const metadata = new grpc.Metadata()
    metadata.set('authorization', 'Bearer good')
    await unary('getNode', { nodeId: 'n1' }, metadata)
    expect(seen.calls.at(-1)?.identity).toBe('laptop')
    metadata.set('authorization', 'Bearer bad')
    await expect(unary('getNode', { nodeId: 'n1' }, metadata)).rejects.toMatchObject({
      code: grpc.status.UNAUTHENTICATED,
    })
  })

  test('what came through a proxy needs a token, though the proxy is on this machine', async () => {
    const { grpcPath } = operation('getNodes')
    const ask = (headers: Record<string, string>) =>
      new Promise<number>((resolve) => {
        const metadata = new grpc.Metadata()
        for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
        client.makeUnaryRequest(grpcPath, pass, pass, Buffer.alloc(0), metadata, (error) => resolve(error?.code ?? 0))
      })
    const empty = [{ 'x-forwarded-for': '' }, { forwarded: '' }]
    for (const proxied of [{ 'x-forwarded-for': '203.0.113.9' }, { forwarded: 'for=203.0.113.9' }, ...empty]) {
      expect(await ask(proxied)).toBe(grpc.status.UNAUTHENTICATED)
      expect(await ask({ ...proxied, authorization: 'Bearer good' })).toBe(0)
      expect(seen.calls.at(-1)).toMatchObject({ isLoopback: false, identity: 'laptop' })
    }
    expect(await ask({})).toBe(0)
  })
})

test('long answers that nobody reads leave room for short ones, and no more than so many MiB, whatever connections they are on', async () => {
  const pipelines = Array.from({ length: 8 }, (_, i) => ({ ...pipeline(`p${i}`), jsonConfig: 'x'.repeat(2 ** 20) }))
  const long = new Dispatcher({
    handlers: {
      getPipelines: ({ nodeId }) => (nodeId === 'n1' ? { pipelines } : Promise.resolve({ pipelines })),
      getNode: () => ({ node }),
    },
    report: (error) => seen.reports.push(error),
  })
  const other = new GrpcListener({ dispatcher: long, access, address: '127.0.0.1', port: 0 })
  const { port: otherPort } = await other.start()
  const status = (name: string, nodeId: string): Promise<grpc.ServiceError | undefined> => {
    const { grpcPath, request } = operation(name)
    const caller = new grpc.Client(`127.0.0.1:${otherPort}`, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.use_local_subchannel_pool': 1,
    })
    return new Promise((resolve) => {
      caller.makeUnaryRequest(grpcPath, pass, pass, encodeBinary(request, { nodeId }), (error) => {
        caller.close()
        resolve(error ?? undefined)
      })
    })
  }
  const sessions: ClientHttp2Session[] = []
  const { grpcPath, request } = operation('getPipelines')
  const body = encodeBinary(request, { nodeId: 'n1' })
  while (sessions.length * 8 <= MAX_ALL_UNREAD_BYTES / 2 ** 20) {
    const session = connect(`http://127.0.0.1:${otherPort}`)
    sessions.push(session)
    const call = session.request({
      ':method': 'POST',
      ':path': grpcPath,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    call.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]))
    // It has been answered, and nothing more is read.
    await once(call, 'readable')
  }
  for (const id of ['n1', 'later']) {
    expect(await status('getPipelines', id)).toMatchObject({
      code: grpc.status.RESOURCE_EXHAUSTED,
      details: expect.stringContaining('answers of more than 256 MiB wait'),
    })
  }
  expect(await status('getNode', 'n1')).toBeUndefined()
  for (const session of sessions) session.destroy()
  await until(async () => (await status('getPipelines', 'n1')) === undefined)
  expect(seen.reports).toEqual([])
  await other.stop()
})

describe('streams', () => {
  test('metadata says that the stream is ready, then come messages, then the failure', async () => {
    const stream = serverStream('streamPipelines', { nodeId: 'g' })
    await new Promise((resolve) => stream.once('metadata', resolve))
    const sink = seen.sink<StreamPipelinesEvent>('pipelines g')
    sink.send(created('p7'))
    const type = operation('streamPipelines').response
    expect(decodeBinary(type, await next(stream))).toMatchObject({
      create: { pipeline: { id: 'p7', restartPolicy: { onFailure: { maxRestarts: 3 } } } },
    })
    const failure = failed(stream)
    sink.end(new ServiceError('ABORTED', 'run ended'))
    expect(await failure).toMatchObject({ code: grpc.status.ABORTED, details: 'run ended' })
  })

  test('a failure before the stream is ready', async () => {
    expect(await failed(serverStream('streamPipelines', { nodeId: 'unknown' }))).toMatchObject({
      code: grpc.status.NOT_FOUND,
    })
  })

  test('a stream that the handler ends', async () => {
    const stream = serverStream('openLogStream', { nodeId: 'n', runId: 'r', options: { lines: 3n } })
    const lines: unknown[] = []
    for await (const bytes of stream) lines.push(decodeBinary(operation('openLogStream').response, bytes as Buffer))
    expect(lines).toMatchObject([0, 1, 2].map((line) => ({ messages: [{ message: `line ${line}` }] })))
  })

  test('a client that cancels closes the sink', async () => {
    const stream = serverStream('streamPipelines', { nodeId: 'c' })
    stream.on('error', () => undefined)
    await until(() => seen.sinks.has('pipelines c'))
    stream.cancel()
    await until(() => !seen.sinks.has('pipelines c'))
    expect(seen.sinks.has('pipelines c')).toBe(false)
  })

  test('both ways: requests out, answers in, a refused answer changes nothing, bytes that are none end the call', async () => {
    const { grpcPath, request, response } = operation('authenticationByRequests')
    const stream = client.makeBidiStreamRequest(grpcPath, pass, pass)
    await until(() => seen.sinks.has('authentication'))
    seen.sink<AuthenticationByRequestRequest>('authentication').send(asks(9n))
    expect(decodeBinary(response, await next(stream))).toMatchObject({ node: { id: 'n1' }, requestId: 9n })
    stream.write(encodeBinary(request, { requestId: 9n, accept: true }))
    await until(() => seen.answers.length === 1)
    expect(seen.answers).toEqual([{ requestId: 9n, accept: true }])
    stream.write(encodeBinary(request, { requestId: 404n, accept: true }))
    stream.write(encodeBinary(request, { requestId: 10n, accept: false }))
    await until(() => seen.answers.length === 2)
    expect(seen.answers.at(-1)).toEqual({ requestId: 10n, accept: false })
    const failure = failed(stream)
    stream.write(Buffer.from([0xff, 0xff]))
    expect(await failure).toMatchObject({ code: grpc.status.INVALID_ARGUMENT })
  })
})

describe('health, reflection, listening', () => {
  test('health says SERVING', async () => {
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      const request = Buffer.from(
        protobuf.Writer.create().uint32(10).string('servicegrpc.hub.HubServerService').finish(),
      )
      client.makeUnaryRequest('/grpc.health.v1.Health/Check', pass, pass, request, (error, answer) =>
        error === null ? resolve(answer as Buffer) : reject(error),
      )
    })
    expect([...bytes]).toEqual([8, 1])
  })

  test('reflection lists the services and finds the file of a method', async () => {
    const ask = async (field: number, text: string): Promise<string> => {
      const stream = client.makeBidiStreamRequest(
        '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
        pass,
        pass,
      )
      const request = protobuf.Writer.create()
        .uint32((field << 3) | 2)
        .string(text)
        .finish()
      stream.write(Buffer.from(request))
      const answer = await next(stream)
      stream.end()
      return answer.toString('latin1')
    }
    const services = await ask(7, '*')
    for (const service of new Set(loadOperations().map((candidate) => candidate.service)))
      expect(services).toContain(service)
    const file = await ask(4, 'servicegrpc.pipeline.PipelinesService.createPipeline')
    expect(file).toContain('optional_cpu_pin')
  })

  /** A stream of health and one of reflection, both answered once. */
  async function knownStreams(of: grpc.Client, metadata = new grpc.Metadata()) {
    const watch = of.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, Buffer.alloc(0), metadata)
    const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
    const questions = of.makeBidiStreamRequest(path, pass, pass, metadata)
    questions.write(LIST)
    await Promise.all([next(watch), next(questions)])
    return { watch, questions }
  }
  const LIST = Buffer.from([(7 << 3) | 2, 0])

  test('their streams end when the token of their caller is revoked, those of others stay', async () => {
    const metadata = new grpc.Metadata()
    metadata.set('authorization', 'Bearer good')
    const [revoked, kept] = [await knownStreams(client, metadata), await knownStreams(client)]
    const failures = Promise.all([failed(revoked.watch), failed(revoked.questions)])
    listener.endCallsOf('laptop')
    const failure = { code: grpc.status.UNAUTHENTICATED, details: 'the token was revoked' }
    expect(await failures).toEqual([expect.objectContaining(failure), expect.objectContaining(failure)])
    kept.questions.write(LIST)
    await next(kept.questions)
    for (const stream of [kept.watch, kept.questions]) {
      const cancelled = failed(stream)
      stream.cancel()
      await cancelled
    }
  })

  test('calls that wait end when the token of their caller is revoked, those of others stay', async () => {
    const held = new HeldCalls()
    const slow = new Dispatcher({ handlers: { getNode: held.getNode }, report: (error) => seen.reports.push(error) })
    const other = new GrpcListener({ dispatcher: slow, access, address: '127.0.0.1', port: 0 })
    const otherClient = new grpc.Client(`127.0.0.1:${(await other.start()).port}`, grpc.credentials.createInsecure())
    const { grpcPath, request } = operation('getNode')
    const call = (nodeId: string, token: Record<string, string>) =>
      new Promise<number>((resolve) => {
        const metadata = grpc.Metadata.fromHttp2Headers(token)
        const message = encodeBinary(request, { nodeId }) as Buffer
        otherClient.makeUnaryRequest(grpcPath, pass, pass, message, metadata, (error) =>
          resolve(error?.code ?? grpc.status.OK),
        )
      })
    const [ended, kept] = [call('n1', { authorization: 'Bearer good' }), call('n2', {})]
    await until(() => held.calls.size === 2)
    other.endCallsOf('laptop')
    expect(await ended).toBe(grpc.status.UNAUTHENTICATED)
    expect(held.reasons).toEqual([expect.objectContaining({ code: 'UNAUTHENTICATED' })])
    held.finish('n2')
    expect(await kept).toBe(grpc.status.OK)
    expect(seen.reports).toEqual([])
    otherClient.close()
    await other.stop()
  })

  test('their streams end with UNAVAILABLE when the node stops', async () => {
    const other = new GrpcListener({ dispatcher, access, address: '127.0.0.1', port: 0 })
    const otherClient = new grpc.Client(`127.0.0.1:${(await other.start()).port}`, grpc.credentials.createInsecure())
    const { watch, questions } = await knownStreams(otherClient)
    const failures = Promise.all([failed(watch), failed(questions)])
    await other.stop()
    const failure = expect.objectContaining({ code: grpc.status.UNAVAILABLE, details: 'the node is shutting down' })
    expect(await failures).toEqual([failure, failure])
    otherClient.close()
  })

  test('a taken port is an error that says so', async () => {
    const second = new GrpcListener({ dispatcher, access, address: '127.0.0.1', port })
    await expect(second.start()).rejects.toThrow(`cannot listen on 127.0.0.1:${port}`)
  })

  test('stop lets a call finish, and answers one that does not with UNAVAILABLE', async () => {
    const held = new HeldCalls()
    const slow = new Dispatcher({ handlers: { getNode: held.getNode }, report: (error) => seen.reports.push(error) })
    const other = new GrpcListener({ dispatcher: slow, access, address: '127.0.0.1', port: 0 })
    const otherClient = new grpc.Client(`127.0.0.1:${(await other.start()).port}`, grpc.credentials.createInsecure())
    const { grpcPath, request, response } = operation('getNode')
    const answers = ['n1', 'never'].map(
      (nodeId) =>
        new Promise((resolve) => {
          otherClient.makeUnaryRequest(grpcPath, pass, pass, encodeBinary(request, { nodeId }), (error, bytes) =>
            resolve(error ?? decodeBinary(response, bytes as Buffer)),
          )
        }),
    )
    await until(() => held.calls.size === 2)
    const stopped = other.stop()
    held.finish('n1')
    expect(await answers[0]).toMatchObject({ node: { id: 'n1' } })
    await stopped
    expect(await answers[1]).toMatchObject({ code: grpc.status.UNAVAILABLE, details: 'the node is shutting down' })
    expect(held.reasons).toEqual([expect.objectContaining({ code: 'UNAVAILABLE' })])
    expect(seen.reports).toEqual([])
    otherClient.close()
  })

  test('stop ends streams with UNAVAILABLE', async () => {
    const other = new GrpcListener({ dispatcher, access, address: '127.0.0.1', port: 0 })
    const { port: otherPort } = await other.start()
    const otherClient = new grpc.Client(`127.0.0.1:${otherPort}`, grpc.credentials.createInsecure())
    const { grpcPath, request } = operation('streamPipelines')
    const stream = otherClient.makeServerStreamRequest(grpcPath, pass, pass, encodeBinary(request, { nodeId: 's' }))
    await new Promise((resolve) => stream.once('metadata', resolve))
    const failure = failed(stream)
    await other.stop()
    expect(await failure).toMatchObject({ code: grpc.status.UNAVAILABLE })
    otherClient.close()
  })
})

test('a client may have one port for connections to two addresses of the node: they end one by one', async () => {
  const wide = new GrpcListener({ dispatcher, access, address: '0.0.0.0', port: 0 })
  const { port } = await wide.start()
  // A socket that is bound shares its port with others that are.
  const open = async (host: string, localPort: number) => {
    const socket = dial({ host, port, localAddress: '127.0.0.1', localPort })
    await once(socket, 'connect')
    return { socket, session: connect(`http://${host}`, { createConnection: () => socket }) }
  }
  const call = async ({ session }: Awaited<ReturnType<typeof open>>) => {
    const { grpcPath, request } = operation('getNode')
    const message = encodeBinary(request, { nodeId: 'n1' })
    const stream = session.request({
      ':method': 'POST',
      ':path': grpcPath,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    let status: unknown
    for (const event of ['response', 'trailers']) stream.on(event, (head) => (status ??= head['grpc-status']))
    stream.resume().end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]))
    await once(stream, 'close')
    return status
  }
  try {
    const first = await open('127.0.0.1', 0)
    const second = await open('127.0.0.2', first.socket.localPort as number)
    expect([await call(first), await call(second)]).toEqual(['0', '0'])
    second.session.close()
    await once(second.socket, 'close')
    expect(await call(first)).toBe('0')
    first.session.close()
  } finally {
    await wide.stop()
  }
})
