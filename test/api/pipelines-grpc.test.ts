/** The pipelines operations over gRPC on the same real node that serves REST: one implementation, one behaviour. */
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadSchema } from '../../src/contract/schema.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages as protobufjs decodes them
type Reply = any

const service = loadSchema().root.lookupService('servicegrpc.pipeline.PipelinesService')
let node: RunningNode
let client: grpc.Client
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms' })
  client = new grpc.Client(node.node.grpc as string, grpc.credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await node.node.close()
})

/** Path, encoder and decoder of a method, straight from the proto. */
function methodOf(name: string) {
  const method = service.methods[name]
  method?.resolve()
  const { resolvedRequestType: request, resolvedResponseType: response } = method as NonNullable<typeof method>
  return {
    path: `/servicegrpc.pipeline.PipelinesService/${name}`,
    encode: (message: object) => Buffer.from(request?.encode(request.fromObject(message)).finish() as Uint8Array),
    decode: (bytes: Buffer): Reply =>
      response?.toObject(response.decode(bytes), { enums: String, longs: String, oneofs: true, arrays: true }),
  }
}

const call = (name: string, request: Record<string, unknown> = {}) =>
  new Promise<Reply>((resolve, reject) => {
    const { path, encode, decode } = methodOf(name)
    client.makeUnaryRequest(path, encode, decode, { node_id: node.node.id, ...request }, (error, reply) =>
      error ? reject(error) : resolve(reply),
    )
  })

/** The messages of a server stream, one by one; throws the stream's error. */
const follow = (name: string, request: Record<string, unknown> = {}) => {
  const { path, encode, decode } = methodOf(name)
  const stream = client.makeServerStreamRequest(path, encode, decode, { node_id: node.node.id, ...request })
  stream.on('error', () => {})
  return { messages: stream[Symbol.asyncIterator](), stream }
}
const established = (stream: grpc.ClientReadableStream<Reply>) =>
  new Promise((resolve) => stream.once('metadata', resolve))

test('create, start, follow, stop and delete', async () => {
  const { messages, stream } = follow('streamPipelines')
  await established(stream)
  const { jsonConfig } = settingsOf(traffic(10))
  const { pipeline } = await call('createPipeline', { name: 'g', json_config: jsonConfig, cpu_pin: 0 })
  expect(pipeline).toMatchObject({
    name: 'g',
    json_config: jsonConfig,
    cpu_pin: 0,
    instructions_timeout: 30,
    default_logging_level: 'INFO',
  })
  const { run_id } = await call('startPipeline', { name: 'g' })
  expect(await call('getPipelineByRunId', { id: run_id })).toMatchObject({
    pipeline: { id: pipeline.id, started: true, current_run: { id: run_id, state: 'RUNNING', cpu: 0 } },
  })
  // The same over REST.
  expect(await node.get(pipeline.id)).toMatchObject({ started: true, currentRun: { id: run_id } })
  const telemetry = follow('openTelemetryStream', { run_id })
  const { value: sample } = await telemetry.messages.next()
  expect(sample.metric_collections.map(({ path }: { path: string }) => path)).toContain('sink')
  const log = follow('openLogStream', { run_id, options: { lines: 1 } })
  expect((await log.messages.next()).value.messages).toHaveLength(1)
  log.stream.cancel()
  await call('stopPipeline', { run_id })
  const untilTheEnd = async () => {
    for (;;) if ((await telemetry.messages.next()).done) return
  }
  await expect(untilTheEnd()).rejects.toMatchObject({ code: grpc.status.ABORTED, details: 'run ended' })
  await call('deletePipeline', { id: pipeline.id })
  const events: string[] = []
  while (events.at(-1) !== 'delete') events.push((await messages.next()).value.event)
  expect(events[0]).toBe('create')
  expect(events.slice(1, -1).every((event) => event === 'update')).toBe(true)
  stream.cancel()
})

test('failures carry their code, and the details of what is wrong', async () => {
  const status = grpc.status
  await expect(call('getPipelineById', { id: 'none' })).rejects.toMatchObject({ code: status.NOT_FOUND })
  await expect(call('startPipeline', { id: 'none' })).rejects.toMatchObject({ code: status.NOT_FOUND })
  await expect(call('startPipeline', {})).rejects.toMatchObject({ code: status.INVALID_ARGUMENT })
  await expect(call('getPipelines', { node_id: 'other' })).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  await expect(call('createPipeline', { name: 'x', json_config: '{"engine_config":{}}' })).rejects.toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: expect.stringContaining('/engine_config'),
  })
  await expect(follow('openLogStream', { run_id: 'none' }).messages.next()).rejects.toMatchObject({
    code: status.NOT_FOUND,
  })
})
