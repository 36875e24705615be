/** Updating pipelines over REST: what a run takes over, what needs another run, what is refused. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms' })
})
afterAll(() => node.node.close())

const update = (id: string, pipeline: unknown, settings: Record<string, unknown> = {}) =>
  node.call('PUT', `/pipelines/${id}`, settingsOf(pipeline, { instructionsTimeout: 5, ...settings }))

test('replaces all settings of a stopped pipeline: what is left out goes back to its default', async () => {
  const id = await node.create(traffic(), {
    cpuPin: 0,
    performanceMode: true,
    nodeReferenceId: 'x',
    restartPolicy: { always: { maxRestarts: 1 } },
  })
  const { status, body } = await update(id, traffic(2), { name: 'new' })
  expect(status).toBe(200)
  expect(body.pipeline).toEqual({
    id,
    name: 'new',
    jsonConfig: settingsOf(traffic(2)).jsonConfig,
    restartPolicy: { never: {} },
    startupPolicy: { manual: {} },
    defaultLoggingLevel: 'STATE',
    instructionsTimeout: 5,
    performanceMode: false,
    started: false,
  })
  expect(await node.get(id)).toEqual(body.pipeline)
})

test('needs a valid configuration and an instructionsTimeout', async () => {
  const id = await node.create(traffic())
  const before = await node.get(id)
  const { status, body } = await node.call('PUT', `/pipelines/${id}`, settingsOf({ a: {} }))
  expect(status).toBe(400)
  expect(body.code).toBe(3)
  expect(body.message).toContain('/instructionsTimeout')
  expect(body.message).toContain('/engine_config/pipeline/a')
  expect(await node.get(id)).toEqual(before)
})

test('a run takes live fields over', async () => {
  const id = await node.create(traffic(0.01))
  const runId = await node.start(id)
  const samples = await node.follow(`/pipeline-runs/${runId}/telemetry`)
  const sent = async () => {
    const { metricCollections } = await samples.next()
    const source = metricCollections.find(({ path }: { path: string }) => path === 'source')
    return Object.fromEntries(
      Object.entries<{ uint64Value: string }>(source.metrics).map(([key, value]) => [key, Number(value.uint64Value)]),
    )
  }
  const metric = Object.keys(await sent()).find((name) => name.endsWith('packets')) as string
  const { status, body } = await update(id, traffic(100))
  expect(status).toBe(200)
  expect(body.pipeline.currentRun).toMatchObject({ id: runId, state: 'RUNNING' })
  expect(body.pipeline.jsonConfig).toBe(settingsOf(traffic(100)).jsonConfig)
  // At 0.01 Mbit/s it would take a quarter of an hour to send as many.
  for (;;) if (((await sent())[metric] as number) > 5_000) break
  samples.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('name, policies, timeout and log level never need another run', async () => {
  const id = await node.create(traffic())
  const runId = await node.start(id)
  const { status, body } = await update(id, traffic(), {
    name: 'renamed',
    restartPolicy: { always: { maxRestarts: 2 } },
    startupPolicy: { manual: {} },
    defaultLoggingLevel: 'ERROR',
    nodeReferenceId: 'y',
  })
  expect(status).toBe(200)
  expect(body.pipeline).toMatchObject({ name: 'renamed', nodeReferenceId: 'y', currentRun: { id: runId } })
  await node.call('POST', `/pipelines/${id}/stop`)
})

const seeded = (seed: number) => ({
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200, seed } },
  sink: { traffic_sink: { input: 'a' } },
})

test('what needs another run is refused by the names of the fields, and changes nothing', async () => {
  const id = await node.create(traffic())
  const runId = await node.start(id)
  const before = await node.get(id)
  const { status, body } = await update(id, seeded(300), { performanceMode: true })
  expect(status).toBe(400)
  expect(body.code).toBe(9)
  expect(body.message).toContain('/engine_config/pipeline/source/throughput_traffic_source/seed')
  expect(body.message).toContain('/performanceMode')
  expect(body.message).toContain('forceRestart')
  expect(await node.get(id)).toEqual(before)
  expect(before.currentRun.id).toBe(runId)
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('forceRestart: the call returns once the new run is running', async () => {
  const id = await node.create(traffic())
  const runId = await node.start(id)
  const { status, body } = await update(id, seeded(300), { forceRestart: true })
  expect(status).toBe(200)
  expect(body.pipeline).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
  expect(body.pipeline.currentRun.id).not.toBe(runId)
  // The run before ended, is still known, and its log says so.
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1`)
  expect((await log.next()).messages[0].message).toBe('ended: STOPPED')
  log.close()
  await node.call('POST', `/pipelines/${id}/stop`)
})

test('forceRestart into a run that cannot start: ABORTED, stopped, and the settings as they were', async () => {
  const id = await node.create(traffic())
  await node.start(id)
  const broken = {
    ...traffic(),
    sink: { traffic_sink: { input: 'b' } },
    front: { test_trigger: { input: 'a', output: 'b', throw_at_start: true } },
  }
  const { status, body } = await update(id, broken, { forceRestart: true })
  expect(status).toBe(409)
  expect(body.message).toContain('refused to start; the settings stay as they were, and the pipeline is stopped')
  const { jsonConfig } = settingsOf(traffic())
  expect(await node.get(id)).toMatchObject({ jsonConfig, started: false, currentRun: { outcome: 'FAILED' } })
})

test('forceRestart with nothing that needs it keeps the run', async () => {
  const id = await node.create(traffic())
  const runId = await node.start(id)
  const { body } = await update(id, traffic(3), { forceRestart: true })
  expect(body.pipeline.currentRun.id).toBe(runId)
  await node.call('POST', `/pipelines/${id}/stop`)
})
