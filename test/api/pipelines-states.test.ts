/** The rows of the specification's state table and error table for pipelines, each by its name, over REST and gRPC. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OperationName } from '../../src/contract/handlers.ts'
import { type Caller, Failed, grpcCaller, httpCaller, startReal } from '../hub/callers.ts'
import { type RunningNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
let callers: Record<'REST' | 'gRPC', Caller>
beforeAll(async () => {
  node = await startReal(temporaryDirectory())
  callers = { REST: httpCaller(node), gRPC: grpcCaller(node) }
})
afterAll(async () => {
  for (const caller of Object.values(callers)) caller.close()
  await node.node.close()
})

const seeded = (seed: number) => ({
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200, seed } },
  sink: { traffic_sink: { input: 'a' } },
})

describe.each(['REST', 'gRPC'] as const)('over %s', (transport) => {
  const call = (name: OperationName, request: object = {}) => {
    // Over REST each way to name a pipeline has a path of its own.
    const form = 'runId' in request ? 2 : 'name' in request ? 1 : 0
    const caller = transport === 'REST' ? httpCaller(node, form) : callers.gRPC
    return caller.unary(name, { nodeId: node.node.id, ...request })
  }
  /** The code that a call fails with. */
  const codeOf = async (answer: Promise<unknown>): Promise<string> => {
    const failure = await answer.then(
      () => expect.fail('the call succeeded'),
      (error: unknown) => error,
    )
    return failure instanceof Failed ? failure.code : String(failure)
  }
  const create = async (settings: Record<string, unknown> = {}, pipeline: unknown = traffic()) =>
    (await call('createPipeline', settingsOf(pipeline, settings))).pipeline
  const get = async (id: string) => (await call('getPipelineById', { id })).pipeline
  const start = async (id: string): Promise<string> => (await call('startPipeline', { id })).runId
  const update = (id: string, pipeline: unknown, settings: Record<string, unknown> = {}) =>
    call('updatePipeline', {
      id,
      ...settingsOf(pipeline),
      defaultLoggingLevel: 'INFO',
      instructionsTimeout: 5,
      forceRestart: false,
      ...settings,
    })
  const isOver = (id: string) => node.when(id, ({ started }) => !started)
  const started = async (): Promise<{ id: string; runId: string }> => {
    const { id } = await create()
    return { id, runId: await start(id) }
  }

  describe('states', () => {
    test('stopped, startPipeline, pipeline known: running; a new run is created, its id is returned', async () => {
      const { id } = await create()
      const first = await start(id)
      expect(await get(id)).toMatchObject({ started: true, currentRun: { id: first, state: 'RUNNING' } })
      await call('stopPipeline', { id })
      expect(await start(id)).not.toBe(first)
    })

    test('stopped, startPipeline, pipeline unknown: the call fails', async () => {
      expect(await codeOf(call('startPipeline', { id: 'none' }))).toBe('NOT_FOUND')
      expect(await codeOf(call('startPipeline', { name: 'none' }))).toBe('NOT_FOUND')
    })

    test('stopped, startPipeline, does not reach running within 10 seconds: stopped, the call fails', async () => {
      const lifecycle_handler = { pre_start: [{ cmd: 'sleep 60', timeout: 60_000 }] }
      const jsonConfig = JSON.stringify({ engine_config: { pipeline: traffic(), lifecycle_handler } })
      const { id } = await create({ jsonConfig })
      expect(await codeOf(call('startPipeline', { id }))).toBe('DEADLINE_EXCEEDED')
      expect(await isOver(id)).toMatchObject({ started: false, currentRun: { outcome: 'FAILED' } })
    }, 30_000)

    test('running, startPipeline: running, the call fails (already started)', async () => {
      const { id, runId } = await started()
      expect(await codeOf(call('startPipeline', { id }))).toBe('FAILED_PRECONDITION')
      expect(await get(id)).toMatchObject({ started: true, currentRun: { id: runId, state: 'RUNNING' } })
    })

    test('running, stopPipeline, by id, name and run: stopped once the run ends', async () => {
      const name = `stopped ${transport}`
      const { id } = await create({ name })
      for (const how of ['id', 'name', 'runId'] as const) {
        const runId = await start(id)
        expect(await call('stopPipeline', { [how]: { id, name, runId }[how] })).toEqual({})
        expect((await isOver(id)).currentRun).toMatchObject({ id: runId, state: 'ENDED', outcome: 'STOPPED' })
      }
    })

    test('stopped, stopPipeline: stopped, the call fails (already stopped)', async () => {
      const { id } = await create()
      expect(await codeOf(call('stopPipeline', { id }))).toBe('FAILED_PRECONDITION')
      const runId = await start(id)
      await call('stopPipeline', { id })
      await isOver(id)
      expect(await codeOf(call('stopPipeline', { id }))).toBe('FAILED_PRECONDITION')
      expect(await codeOf(call('stopPipeline', { runId }))).toBe('FAILED_PRECONDITION')
      expect(await get(id)).toMatchObject({ started: false })
    })

    test('running, updatePipeline, can be applied to the current run: running, the same run', async () => {
      const { id, runId } = await started()
      const { pipeline } = await update(id, traffic(2))
      expect(pipeline).toMatchObject({ ...settingsOf(traffic(2)), currentRun: { id: runId, state: 'RUNNING' } })
    })

    test('running, updatePipeline, cannot be applied, forceRestart false: running, the call fails', async () => {
      const { id, runId } = await started()
      const before = await get(id)
      expect(await codeOf(update(id, seeded(300)))).toBe('FAILED_PRECONDITION')
      expect(await get(id)).toEqual(before)
      expect(before.currentRun.id).toBe(runId)
    })

    test('running, updatePipeline, cannot be applied, forceRestart true: running, a new run', async () => {
      const { id, runId } = await started()
      const { pipeline } = await update(id, seeded(300), { forceRestart: true })
      expect(pipeline).toMatchObject({ ...settingsOf(seeded(300)), started: true, currentRun: { state: 'RUNNING' } })
      expect(pipeline.currentRun.id).not.toBe(runId)
    })
  })

  describe('errors', () => {
    test('getPipelineById, deletePipeline: pipeline does not exist: not found', async () => {
      expect(await codeOf(call('getPipelineById', { id: 'none' }))).toBe('NOT_FOUND')
      expect(await codeOf(call('deletePipeline', { id: 'none' }))).toBe('NOT_FOUND')
    })

    test('getPipelineByName: no pipeline, or more than one, has the name: not found', async () => {
      const name = `twice ${transport}`
      expect(await codeOf(call('getPipelineByName', { name }))).toBe('NOT_FOUND')
      const { id } = await create({ name })
      expect((await call('getPipelineByName', { name })).pipeline.id).toBe(id)
      await create({ name })
      expect(await codeOf(call('getPipelineByName', { name }))).toBe('NOT_FOUND')
    })

    test('getPipelineByRunId: unknown run: timeout', async () => {
      expect(await codeOf(call('getPipelineByRunId', { id: 'none' }))).toBe('DEADLINE_EXCEEDED')
    })

    test('createPipeline: configuration invalid, or cpuPin is not a thread of the node: invalid argument', async () => {
      expect(await codeOf(create({}, { a: {} }))).toBe('INVALID_ARGUMENT')
      expect(await codeOf(create({ cpuPin: 4_000 }))).toBe('INVALID_ARGUMENT')
    })

    test('updatePipeline: needs another run, forceRestart not set: failure because the pipeline is running', async () => {
      const { id } = await started()
      await expect(update(id, seeded(300))).rejects.toThrow(/is running and its run cannot take over .*seed/)
      // On a stopped one the same update succeeds.
      await call('stopPipeline', { id })
      await isOver(id)
      expect((await update(id, seeded(300))).pipeline).toMatchObject({ ...settingsOf(seeded(300)), started: false })
    })

    test('startPipeline: a run that cannot start: failure, with its cause', async () => {
      const broken = { a: { udp: { local_address: '192.0.2.1:9', output: 'x' } }, b: { traffic_sink: { input: 'x' } } }
      const { id } = await create({}, broken)
      await expect(start(id)).rejects.toThrow(/192\.0\.2\.1/)
      expect(await codeOf(start(id))).toBe('ABORTED')
      expect(await get(id)).toMatchObject({ started: false, currentRun: { outcome: 'FAILED' } })
    })

    test('startPipeline, stopPipeline by name: more than one pipeline has the name: failure', async () => {
      const name = `both ${transport}`
      await create({ name })
      await create({ name })
      expect(await codeOf(call('startPipeline', { name }))).toBe('FAILED_PRECONDITION')
      expect(await codeOf(call('stopPipeline', { name }))).toBe('FAILED_PRECONDITION')
    })

    test('stopPipeline: pipeline unknown: failure', async () => {
      for (const how of ['id', 'name', 'runId']) {
        expect(await codeOf(call('stopPipeline', { [how]: 'none' }))).toBe('NOT_FOUND')
      }
    })

    test('openTelemetryStream: run unknown, or the run stops: the stream ends with an error', async () => {
      const open = (runId: string) => callers[transport].stream('openTelemetryStream', { nodeId: node.node.id, runId })
      const unknown = async () => await (await open('none')).next()
      expect(await codeOf(unknown())).toBe('NOT_FOUND')
      const { id, runId } = await started()
      const samples = await open(runId)
      await call('stopPipeline', { id })
      const toTheEnd = async () => {
        for (;;) await samples.next()
      }
      expect(await codeOf(toTheEnd())).toBe('ABORTED')
    })

    test('openTelemetryStream: the node disconnects: the stream ends with an error', async () => {
      const own = await startReal(temporaryDirectory())
      const caller = transport === 'REST' ? httpCaller(own) : grpcCaller(own)
      const request = (more: object) => ({ nodeId: own.node.id, ...more })
      const { pipeline } = await caller.unary('createPipeline', request(settingsOf(traffic())))
      const { runId } = await caller.unary('startPipeline', request({ id: pipeline.id }))
      const samples = await caller.stream('openTelemetryStream', request({ runId }))
      await samples.next()
      const closed = own.node.close()
      const toTheEnd = async () => {
        for (;;) await samples.next()
      }
      expect(['ABORTED', 'UNAVAILABLE']).toContain(await codeOf(toTheEnd()))
      caller.close()
      await closed
    })

    test('any stream: a failure after the stream is ready: an error', async () => {
      const { id, runId } = await started()
      const log = await callers[transport].stream('openLogStream', { nodeId: node.node.id, runId })
      await call('deletePipeline', { id })
      const toTheEnd = async () => {
        for (;;) await log.next()
      }
      expect(await codeOf(toTheEnd())).toBe('NOT_FOUND')
    })

    test('openLogStream: run unknown: the call fails', async () => {
      const open = async () =>
        await (await callers[transport].stream('openLogStream', { nodeId: node.node.id, runId: 'none' })).next()
      expect(await codeOf(open())).toBe('NOT_FOUND')
    })
  })

  describe('what a change would come to', () => {
    test('validatePipeline: every problem with its place, and warnings; nothing is stored', async () => {
      const count = async () => (await call('getPipelines')).pipelines.length
      const before = await count()
      const good = await call('validatePipeline', settingsOf(traffic()))
      expect(good).toEqual({ valid: true, problems: [], warnings: [] })
      const wrong = settingsOf({ a: { uniform_loss: { loss_prob: 7 } } }, { name: '', cpuPin: 4_000 })
      const { valid, problems } = await call('validatePipeline', wrong)
      expect(valid).toBe(false)
      expect(problems.map(({ pointer }: { pointer: string }) => pointer)).toEqual(
        expect.arrayContaining(['/name', '/cpuPin', '/engine_config/pipeline/a/uniform_loss/loss_prob']),
      )
      const seeds = Object.fromEntries(
        ['one', 'two'].map((name, i) => [
          name,
          { uniform_loss: { input: `${i}`, output: `${i + 1}`, loss_prob: 0.1, seed: 1 } },
        ]),
      )
      const alike = {
        source: { throughput_traffic_source: { output: '0', throughput_mbit: 1, payload_size: 200 } },
        ...seeds,
        sink: { traffic_sink: { input: '2' } },
      }
      const doubtful = await call('validatePipeline', settingsOf(alike))
      expect(doubtful).toMatchObject({ valid: true, problems: [] })
      expect(doubtful.warnings).not.toEqual([])
      expect(await count()).toBe(before)
    })

    test('explainUpdate: what is live, what needs another run, and why; nothing is changed', async () => {
      const { id, runId } = await started()
      const before = await get(id)
      const explain = (pipeline: unknown, settings: Record<string, unknown> = {}) =>
        call('explainUpdate', {
          id,
          ...settingsOf(pipeline),
          defaultLoggingLevel: 'INFO',
          instructionsTimeout: 30,
          forceRestart: false,
          ...settings,
        })
      expect(await explain(traffic())).toEqual({ running: true, live: [], restart: [] })
      const field = (name: string) => `/engine_config/pipeline/source/throughput_traffic_source/${name}`
      expect(await explain(seeded(300), { name: 'other', performanceMode: true })).toEqual({
        running: true,
        live: [{ pointer: '/name', reason: 'BESIDE_THE_RUN', message: expect.any(String) }],
        restart: [
          { pointer: '/performanceMode', reason: 'THREAD', message: expect.any(String) },
          { pointer: field('seed'), reason: 'FIXED', message: expect.any(String) },
        ],
      })
      expect((await explain(traffic(2))).live).toMatchObject([{ pointer: field('throughput_mbit'), reason: 'LIVE' }])
      expect(await codeOf(explain({ a: {} }))).toBe('INVALID_ARGUMENT')
      expect(
        await codeOf(
          call('explainUpdate', {
            id: 'none',
            ...settingsOf(traffic()),
            instructionsTimeout: 1,
            defaultLoggingLevel: 'INFO',
            forceRestart: false,
          }),
        ),
      ).toBe('NOT_FOUND')
      expect(await get(id)).toEqual(before)
      await call('stopPipeline', { runId })
      await isOver(id)
      expect(await explain(seeded(300))).toMatchObject({ running: false, restart: [{ reason: 'FIXED' }] })
    })
  })
})
