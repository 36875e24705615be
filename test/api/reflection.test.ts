/** gRPC reflection of a node: what clients of other makers load from it. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import descriptor from 'protobufjs/ext/descriptor.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeBinary } from '../../src/contract/binary-decode.ts'
import { loadSchema } from '../../src/contract/load-schema.ts'
import { readProtoFiles } from '../../src/contract/proto-files.ts'
import { type RunningNode, runNode, temporaryDirectory } from './running-node.ts'

const { root } = readProtoFiles('grpc')
const Request = root.lookupType('grpc.reflection.v1.ServerReflectionRequest')
const Response = root.lookupType('grpc.reflection.v1.ServerReflectionResponse')

// biome-ignore lint/suspicious/noExplicitAny: messages as protobufjs decodes them
type Answer = any

let node: RunningNode
let client: grpc.Client

beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  client = new grpc.Client(node.node.grpc as string, grpc.credentials.createInsecure())
})
afterAll(async () => {
  client?.close()
  await node?.node.close()
})

/** The answers to questions that are asked on one stream. */
async function ask(...questions: object[]): Promise<Answer[]> {
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
  const stream = client.makeBidiStreamRequest(
    path,
    (question: object) => Buffer.from(Request.encode(Request.fromObject(question)).finish()),
    (bytes) => Response.toObject(Response.decode(bytes), { oneofs: true }),
  )
  for (const question of questions) stream.write(question)
  stream.end()
  const answers: Answer[] = []
  for await (const answer of stream) answers.push(answer)
  return answers
}

/** The files of one answer, decoded. */
function filesOf({ file_descriptor_response }: Answer): Answer[] {
  return file_descriptor_response.file_descriptor_proto.map((bytes: Buffer) =>
    descriptor.FileDescriptorProto.decode(bytes),
  )
}

/** Every file that is reached from the services that the node lists. */
async function allFiles(): Promise<Map<string, Buffer>> {
  const [listed] = await ask({ list_services: '*' })
  const names: string[] = listed.list_services_response.service.map(({ name }: { name: string }) => name)
  const files = new Map<string, Buffer>()
  for (const answer of await ask(...names.map((name) => ({ file_containing_symbol: name })))) {
    const encoded = answer.file_descriptor_response.file_descriptor_proto
    for (const [i, { name }] of filesOf(answer).entries()) files.set(name, encoded[i])
  }
  return files
}

test('lists the operations, health and itself', async () => {
  const [answer] = await ask({ list_services: '*' })
  expect(answer.list_services_response.service.map(({ name }: { name: string }) => name)).toEqual([
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
    'servicegrpc.hub.AccessService',
    'servicegrpc.hub.HubClientService',
    'servicegrpc.hub.HubServerService',
    'servicegrpc.pipeline.PipelinesService',
  ])
})

test('files have their own names and imports, and come with all that they import', async () => {
  const [byName, bySymbol] = await ask(
    { file_by_filename: 'servicegrpc/hub/hub_client.proto' },
    { file_containing_symbol: 'grpc.health.v1.Health' },
  )
  const files = filesOf(byName)
  expect(files[0].name).toBe('servicegrpc/hub/hub_client.proto')
  expect(files[0].dependency).toEqual(['google/api/annotations.proto', 'servicegrpc/hub/node.proto'])
  expect(files.map(({ name }) => name).sort()).toEqual([
    'google/api/annotations.proto',
    'google/api/http.proto',
    'google/protobuf/descriptor.proto',
    'google/protobuf/timestamp.proto',
    'servicegrpc/hub/hub_client.proto',
    'servicegrpc/hub/node.proto',
  ])
  expect(filesOf(bySymbol).map(({ name }) => name)).toEqual(['grpc/health/v1/health.proto'])
})

test.each([
  ['servicegrpc.pipeline.PipelinesService.createPipeline', 'servicegrpc/pipeline/pipelines.proto'],
  ['servicegrpc.hub.NodeMetadataItem', 'servicegrpc/hub/node.proto'],
  ['servicegrpc.hub.NodeMetadataItem.string_value', 'servicegrpc/hub/node.proto'],
  ['servicegrpc.hub.HUB_SERVER', 'servicegrpc/hub/node.proto'],
  ['grpc.health.v1.HealthCheckResponse.SERVING', 'grpc/health/v1/health.proto'],
  ['google.protobuf.Timestamp', 'google/protobuf/timestamp.proto'],
  ['google.api.http', 'google/api/annotations.proto'],
])('finds %s', async (symbol, name) => {
  const [answer] = await ask({ file_containing_symbol: symbol })
  expect(filesOf(answer)[0].name).toBe(name)
})

test('finds extensions', async () => {
  const containing_type = 'google.protobuf.MethodOptions'
  const [numbers, none, file] = await ask(
    { all_extension_numbers_of_type: containing_type },
    { all_extension_numbers_of_type: 'servicegrpc.hub.Node' },
    { file_containing_extension: { containing_type, extension_number: 72295728 } },
  )
  expect(numbers.all_extension_numbers_response).toEqual({
    base_type_name: containing_type,
    extension_number: [72295728],
  })
  expect(none.all_extension_numbers_response).toEqual({ base_type_name: 'servicegrpc.hub.Node' })
  expect(filesOf(file)[0].name).toBe('google/api/annotations.proto')
})

test.each([
  [{ file_by_filename: 'a.proto' }, grpc.status.NOT_FOUND, 'this node has no file a.proto'],
  [{ file_containing_symbol: 'a.B' }, grpc.status.NOT_FOUND, 'this node has no symbol a.B'],
  [{ all_extension_numbers_of_type: 'a.B' }, grpc.status.NOT_FOUND, 'this node has no message a.B'],
  [
    { file_containing_extension: { containing_type: 'a.B', extension_number: 7 } },
    grpc.status.NOT_FOUND,
    'this node has no extension 7 of a.B',
  ],
  [{ host: 'x' }, grpc.status.INVALID_ARGUMENT, expect.stringContaining('set one of file_by_filename')],
])('%j is answered with an error, and the stream goes on', async (question, error_code, error_message) => {
  const [answer, next] = await ask(question, { list_services: '' })
  expect(answer).toMatchObject({ original_request: question, error_response: { error_code, error_message } })
  expect(next.message_response).toBe('list_services_response')
})

test('what is no question ends the stream with INVALID_ARGUMENT', async () => {
  const pass = (bytes: Buffer): Buffer => bytes
  const path = '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo'
  const stream = client.makeBidiStreamRequest(path, pass, pass)
  const failure = new Promise((resolve) => stream.once('error', resolve))
  stream.write(Buffer.from([0xff, 0xff]))
  expect(await failure).toMatchObject({ code: grpc.status.INVALID_ARGUMENT })
})

test('protobufjs knows the messages of every method as served', async () => {
  const file = [...(await allFiles()).values()].map((bytes) => descriptor.FileDescriptorProto.decode(bytes))
  const served = protobuf.Root.fromDescriptor(descriptor.FileDescriptorSet.encode({ file }).finish())
  for (const { name, methods } of loadSchema().services) {
    const service = served.lookupService(name)
    expect(Object.keys(service.methods)).toEqual(methods.map((method) => method.name))
    for (const { name, request, response, requestStream, responseStream } of methods) {
      const method = service.methods[name]
      expect([method?.requestStream === true, method?.responseStream === true]).toEqual([requestStream, responseStream])
      for (const message of [request, response]) {
        const { fields } = served.lookupType(message.name)
        expect(Object.keys(fields).sort()).toEqual(message.fields.map(({ key }) => key).sort())
      }
    }
  }
})

/** The first Python that has protobuf. */
const python = ['python3', '/usr/bin/python3'].find(
  (program) => spawnSync(program, ['-c', 'import google.protobuf']).status === 0,
)

describe.skipIf(python === undefined)(
  `protobuf's own runtime${python === undefined ? ': needs python3-protobuf' : ''}`,
  () => {
    test('loads the files, with their options, and writes messages by them', async () => {
      const files = [...(await allFiles()).values()].map((bytes) => bytes.toString('base64'))
      const item = { id: 'a', name: 'b', metadata: { items: { x: { intValue: '7' } } }, services: ['PIPELINES'] }
      const script = fileURLToPath(new URL('descriptor_pool.py', import.meta.url))
      const { stdout, stderr } = spawnSync(python as string, [script, JSON.stringify(item)], {
        input: JSON.stringify(files),
        encoding: 'utf8',
      })
      expect(stderr).toBe('')
      const { services, node } = JSON.parse(stdout)
      expect(services['servicegrpc.hub.HubServerService'].removeNode).toEqual({
        '[google.api.http]': { delete: '/v1/nodes/{node_id}' },
      })
      for (const { name, methods } of loadSchema().services) {
        for (const method of methods) {
          const { additional_bindings = [], ...first } = services[name][method.name]['[google.api.http]']
          const paths = [first, ...additional_bindings].map(({ body, ...verb }) => [Object.entries(verb), body === '*'])
          const declared = method.http.map(({ verb, path, body }) => [[[verb.toLowerCase(), path]], body])
          expect(paths).toEqual(declared)
        }
      }
      const type = loadSchema().messages.get('servicegrpc.hub.Node') as Parameters<typeof decodeBinary>[0]
      expect(decodeBinary(type, Buffer.from(node, 'base64'))).toMatchObject({
        name: 'b',
        metadata: { items: { x: { intValue: 7n } } },
        services: ['PIPELINES'],
      })
    })
  },
)
