/** Health and reflection: known to the server from its start, and every call of their packages answered, though they are loaded late. */
import * as grpc from '@grpc/grpc-js'
import { service as health } from 'grpc-health-check'
import protobuf from 'protobufjs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addKnownServices, HEALTH, healthOf, LoadedLate, methodsOf, REFLECTION } from './grpc-known-services.ts'
import { Reflection } from './reflection.ts'

const SERVING = 'servicegrpc.hub.HubServerService'
let server: grpc.Server
let client: grpc.Client

beforeAll(async () => {
  let prepare: (path: string) => void = () => undefined
  // As the listener does, once it knows that the caller may.
  const prepared = (path: string, call: grpc.ServerInterceptingCallInterface) => {
    prepare(path)
    return new grpc.ServerInterceptingCall(call)
  }
  server = new grpc.Server({ interceptors: [({ path }, call) => prepared(path, call)] })
  prepare = addKnownServices(server, [SERVING], () => undefined)
  const port = await new Promise<number>((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure()
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)))
  })
  client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
})

afterAll(() => {
  client.close()
  server.forceShutdown()
})

test.each([
  ['health', HEALTH, () => healthOf([])],
  ['reflection', REFLECTION, () => new Reflection()],
])('the methods of %s are those of its package', (_, services, load) => {
  const known = services.flatMap(({ name, methods }) =>
    Object.entries(methods).map(([method, streams]) => [`/${name}/${method}`, ...streams]),
  )
  const packaged = [...methodsOf(load())].map(([path, { definition }]) => [
    path,
    definition.requestStream,
    definition.responseStream,
  ])
  expect(known.toSorted()).toEqual(packaged.toSorted())
})

/** One call of health, by the types of its package. */
function ask<T>(method: 'Check' | 'List', request: object): Promise<T> {
  const { path, requestSerialize, responseDeserialize } = health[method] as unknown as grpc.MethodDefinition<object, T>
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) =>
      error === null ? resolve(answer as T) : reject(error),
    )
  })
}

test('health: what is serving, what is not known, all of them, and a stream', async () => {
  expect(await ask('Check', { service: '' })).toEqual({ status: 'SERVING' })
  expect(await ask('Check', { service: SERVING })).toEqual({ status: 'SERVING' })
  await expect(ask('Check', { service: 'other' })).rejects.toMatchObject({ code: grpc.status.NOT_FOUND })
  const all = await ask<{ statuses: object }>('List', {})
  expect(Object.keys(all.statuses)).toEqual(['', SERVING])
  const { path, requestSerialize, responseDeserialize } = health.Watch as grpc.MethodDefinition<object, object>
  const watch = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service: SERVING })
  expect(await new Promise((resolve) => watch.once('data', resolve))).toEqual({ status: 'SERVING' })
  watch.on('error', () => undefined)
  watch.cancel()
})

test.each(Object.values(REFLECTION).map(({ name }) => name))(
  '%s names the services and ends with its caller',
  async (name) => {
    const pass = (bytes: Buffer): Buffer => bytes
    const stream = client.makeBidiStreamRequest(`/${name}/ServerReflectionInfo`, pass, pass)
    stream.write(
      Buffer.from(
        protobuf.Writer.create()
          .uint32((7 << 3) | 2)
          .string('*')
          .finish(),
      ),
    )
    const answer = await new Promise<Buffer>((resolve, reject) => {
      stream.once('data', resolve)
      stream.once('error', reject)
    })
    expect(answer.toString('latin1')).toContain(SERVING)
    const ended = new Promise((resolve) => stream.once('status', resolve))
    stream.end()
    expect(await ended).toMatchObject({ code: grpc.status.OK })
  },
)

test('what is no request is refused', async () => {
  const pass = (bytes: Buffer): Buffer => bytes
  const refused = new Promise((_resolve, reject) => {
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', pass, pass, Buffer.from([0xff, 0xff]), (error) =>
      reject(error),
    )
  })
  await expect(refused).rejects.toMatchObject({ code: grpc.status.INTERNAL })
})

test('a package that has gone: the call is told what to do, the log once', () => {
  const lines: string[] = []
  const make = () => {
    throw new Error("Cannot find module 'grpc-health-check'")
  }
  const late = new LoadedLate(make, (message) => lines.push(message))
  const failure =
    "/a/B could not be loaded: Cannot find module 'grpc-health-check'; restart the node if it was upgraded"
  for (let n = 0; n < 2; n++) {
    expect(() => late.load('/a/B')).toThrow(
      expect.objectContaining({ code: 'INTERNAL', message: expect.stringContaining(failure) }),
    )
  }
  expect(lines).toEqual([expect.stringContaining(failure)])
})
