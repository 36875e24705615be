/** The pipelines operations over gRPC on the same real node that serves REST: one implementation, one behaviour. */
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GrpcClient, type Reply } from './grpc-client.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
let client: GrpcClient
const call = (name: string, request?: Record<string, unknown>) => client.call(name, request)
const follow = (name: string, request?: Record<string, unknown>) => client.follow(name, request)
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms', 'run-log-size': '64MiB' })
  client = new GrpcClient(node)
})
afterAll(async () => {
  client.close()
  await node.node.close()
})

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

test('past lines come in messages that a client takes which has set no limit of its own, however long they are', async () => {
  const count = 450
  // 5.5 MB of text; a client takes messages of 4 MiB.
  const cmd = `line=$(printf %4096s | sed 's/ /€/g'); for i in $(seq ${count}); do echo "$line"; done`
  const jsonConfig = JSON.stringify({
    engine_config: { pipeline: traffic(), lifecycle_handler: { pre_start: [{ cmd }] } },
  })
  const { pipeline } = await call('createPipeline', { name: 'long lines', json_config: jsonConfig })
  const { run_id } = await call('startPipeline', { id: pipeline.id })
  const read = async () => {
    const { messages, stream } = follow('openLogStream', { run_id, options: { lines: 2_000 } })
    const seen: string[] = []
    while (seen.length < count) {
      const { value } = await messages.next()
      seen.push(...value.messages.map(({ message }: Reply) => message).filter((text: string) => text.startsWith('€')))
    }
    stream.cancel()
    return seen
  }
  const lines = Array.from({ length: count }, () => '€'.repeat(4096))
  expect(await read()).toEqual(lines)
  await call('stopPipeline', { id: pipeline.id })
  await node.when(pipeline.id, ({ started }) => !started)
  expect(await read()).toEqual(lines)
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
