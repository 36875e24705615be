/**
 * Twenty clients start, stop, update and delete the same pipeline at once, over REST and gRPC: in the end its record, the stream of its
 * changes and the threads agree, no run is without a pipeline, and none of its processes is left.
 *
 * PENSTOCK_TEST_SEED repeats a round, as far as the order of answers allows; PENSTOCK_TEST_LONG, seconds, makes one of that length.
 */
import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { OperationName } from '../../src/contract/handlers.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { loadConfig } from '../../src/node/config.ts'
import { createLog } from '../../src/node/log.ts'
import { startNode } from '../../src/node/node.ts'
import { registry, testPool, watched } from '../dataplane/running.ts'
import { until } from '../harness/waiting.ts'
import { type Caller, Failed, grpcCaller, httpCaller } from '../hub/callers.ts'
import { RunningNode, temporaryDirectory } from './running-node.ts'

const SEED = Number(process.env.PENSTOCK_TEST_SEED ?? randomInt(2 ** 31))
const LONG_S = Number(process.env.PENSTOCK_TEST_LONG ?? 0)
const CLIENTS = 20
/** Operations of the short round. */
const SHORT = 300

/** What the state of a pipeline that others change as well may have a caller told. */
const EXPECTED = new Set(['FAILED_PRECONDITION', 'ABORTED', 'NOT_FOUND', 'DEADLINE_EXCEEDED'])

/** Processes of commands of any run of this node. */
function processes(ids: ReadonlySet<string>): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      const environment = readFileSync(`/proc/${name}/environ`, 'latin1')
      return [...ids].some((id) => environment.includes(`PENSTOCK_PIPELINE_ID=${id}`))
    } catch {
      return false
    }
  })
}

/** The settings of a pipeline that sends `mbit` with a seed, which no run takes over; some have commands. */
function settings(mbit: number, seed: number, withCommands: boolean) {
  const pipeline = {
    source: { throughput_traffic_source: { output: 'a', throughput_mbit: mbit, payload_size: 200, seed } },
    sink: { traffic_sink: { input: 'a' } },
  }
  const lifecycle_handler = {
    pre_start: [{ cmd: 'exec sleep 1000', policy: 'RUN_IN_BACKGROUND' }],
    post_stop: [{ cmd: 'true' }],
  }
  const engine_config = withCommands ? { pipeline, lifecycle_handler } : { pipeline }
  return { name: 'churned', jsonConfig: JSON.stringify({ engine_config }), instructionsTimeout: 5 }
}

test(
  'record, stream and threads agree in the end, and no run is without a pipeline',
  async () => {
    const { config } = loadConfig({
      flags: { 'data-dir': temporaryDirectory(), http: '127.0.0.1:0', grpc: '127.0.0.1:0' },
    })
    const before = native.openDescriptors()
    const { pool, active } = watched(testPool())
    const lines: string[] = []
    const log = createLog({ level: 'warn', format: 'json', destination: { write: (line) => void lines.push(line) } })
    const chosen = new Map([['access.loopback', 'this test']] as const)
    const running = new RunningNode(await startNode(config, { log, pool, registry, chosen }), lines)
    const callers: Caller[] = [httpCaller(running), grpcCaller(running)]
    const nodeId = running.node.id
    const told = new Map<string, unknown>()
    const events = await (callers[1] as Caller).stream('streamPipelines', { nodeId })
    const listening = (async () => {
      for (;;) {
        const event = await events.next()
        const [[kind, { pipeline }]] = Object.entries(event) as [[string, { pipeline: { id: string } }]]
        if (kind === 'delete') told.delete(pipeline.id)
        else told.set(pipeline.id, pipeline)
      }
    })().catch(() => {})

    const ids = new Set<string>()
    let id = ''
    let isReplacing = false
    const create = async (random: Random) => {
      const request = settings(1, 200, random.float() < 0.3)
      const { pipeline } = await (callers[0] as Caller).unary('createPipeline', { nodeId, ...request })
      id = pipeline.id
      ids.add(id)
    }
    await create(new Random(SEED))
    let left = SHORT
    const end = performance.now() + LONG_S * 1_000
    const goesOn = () => (LONG_S > 0 ? performance.now() < end : left-- > 0)
    const outcomes = new Map<string, number>()

    const one = async (random: Random): Promise<void> => {
      const caller = callers[Math.floor(random.float() * 2)] as Caller
      const call = (name: OperationName, request: object = {}) => caller.unary(name, { nodeId, id, ...request })
      const update = (seed: number, forceRestart: boolean) => {
        const request = { ...settings(1 + random.float(), seed, random.float() < 0.3), forceRestart }
        return call('updatePipeline', { ...request, defaultLoggingLevel: 'INFO' })
      }
      const dice = random.float()
      if (dice < 0.3) await call('startPipeline')
      else if (dice < 0.55) await call('stopPipeline')
      else if (dice < 0.75) await update(200, false)
      else if (dice < 0.93) await update(200 + Math.floor(random.float() * 4), true)
      else if (dice < 0.98 || isReplacing) await call('getPipelineById')
      else {
        isReplacing = true
        const old = id
        // Others are in the midst of something with the old one.
        await create(random)
        await call('deletePipeline', { id: old }).finally(() => {
          isReplacing = false
        })
      }
    }
    const client = async (index: number): Promise<void> => {
      const random = new Random(SEED + index * 7919)
      while (goesOn()) {
        const code = await one(random).then(
          () => 'OK',
          (error: unknown) => {
            if (error instanceof Failed && EXPECTED.has(error.code)) return error.code
            throw error
          },
        )
        outcomes.set(code, (outcomes.get(code) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
    const seen = () => `seed ${SEED}, ${JSON.stringify(Object.fromEntries(outcomes))}, runs ${[...active.keys()]}`
    const { pipelines } = await running.call('GET', '/pipelines').then(({ body }) => body)
    expect(
      pipelines.map((pipeline: { id: string }) => pipeline.id),
      seen(),
    ).toEqual([id])
    expect(outcomes.get('OK'), seen()).toBeGreaterThan(0)
    console.info(`churn: PENSTOCK_TEST_SEED=${SEED}, ${JSON.stringify(Object.fromEntries(outcomes))}`)

    // As it is, and as it is once it is stopped.
    for (const stopped of [false, true]) {
      if (stopped) await running.call('POST', `/pipelines/${id}/stop`)
      const record = async () => {
        const { pipeline } = await (callers[1] as Caller).unary('getPipelineById', { nodeId, id })
        return pipeline
      }
      const isSettled = ({ currentRun }: { currentRun?: { state: string } }) =>
        !['STARTING', 'STOPPING'].includes(currentRun?.state ?? '') && (!stopped || currentRun?.state !== 'RUNNING')
      await until(async () => isSettled(await record()), seen)
      const now = await record()
      expect([...active.keys()], seen()).toEqual(now.started ? [now.currentRun.id] : [])
      await until(() => JSON.stringify([...told.values()]) === JSON.stringify([now]), seen)
      if (stopped) expect(processes(ids), seen()).toEqual([])
    }
    expect(
      lines.filter((line) => !/pipeline failed/.test(line)),
      seen(),
    ).toEqual([])
    events.close()
    await listening
    for (const caller of callers) caller.close()
    await running.node.close()
    expect(native.openDescriptors(), seen()).toBeLessThanOrEqual(before)
  },
  (LONG_S + 90) * 1_000,
)
