/** What a log is told of pipelines, on a real store and a simulated clock; runs are scripted. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { ScriptedPool } from '../../test/services/scripted.ts'
import type { CallContext } from '../contract/handlers.ts'
import { components } from '../dataplane/components/registry.ts'
import { Store } from '../store/store.ts'
import { type LostLines, RunLogs } from '../telemetry/run-logs.ts'
import type { PipelineFact } from './pipeline-facts.ts'
import { PipelinesService } from './pipelines.ts'
import { Trust } from './trust.ts'

const nodeId = 'n'
const call: CallContext = {
  remoteAddress: '',
  isLoopback: true,
  transport: 'internal',
  signal: new AbortController().signal,
  onAbort: () => () => {},
}
const jsonConfig = JSON.stringify({
  engine_config: {
    pipeline: {
      source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
      sink: { traffic_sink: { input: 'a' } },
    },
  },
})

let directory: string
let store: Store
/** Nothing that a test logs may be lost. */
const lost = (runId: string, { error }: LostLines) => {
  throw new Error(`lines of run ${runId} are lost`, { cause: error })
}

let pool: ScriptedPool
let clock: SimulatedClock
let service: PipelinesService
let facts: PipelineFact[]

async function open(): Promise<void> {
  store = new Store(directory)
  pool = new ScriptedPool()
  clock = new SimulatedClock()
  facts = []
  const onFact = (fact: PipelineFact) => void facts.push(fact)
  const onError = (error: unknown) => {
    throw error
  }
  service = new PipelinesService({
    registry: components,
    runLogs: new RunLogs({ directory: join(directory, 'logs'), runs: 20, bytes: 1 << 20, onLost: lost }),
    trust: new Trust({
      files: join(directory, 'files'),
      trusted: 'local',
      isHubServer: () => false,
      hubId: () => undefined,
    }),
    node: { id: nodeId },
    store,
    pool,
    telemetryInterval: 100,
    onError,
    onFact,
    clock,
  })
  await service.open()
}

async function close(): Promise<void> {
  const closed = service.close()
  for (const run of pool.runs) run.end({ outcome: 'STOPPED' })
  await closed
  await store.close()
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-facts-'))
  await open()
})
afterEach(async () => {
  await close()
  rmSync(directory, { recursive: true })
})

const create = async (settings: object) =>
  (await service.handlers.createPipeline({ nodeId, name: 'p', jsonConfig, ...settings }, call)).pipeline?.id as string

/** Ends the run that is on and lets that be noticed. */
async function end(outcome: 'FAILED' | 'COMPLETED' | 'STOPPED', error?: string): Promise<void> {
  pool.last.end(error === undefined ? { outcome } : { outcome, error })
  await settle(5)
}

async function wait(milliseconds: number): Promise<void> {
  clock.increment(milliseconds)
  await settle(5)
}

test('failures, restarts with their delays, and the giving up', async () => {
  const id = await create({ name: 'flaky', restartPolicy: { onFailure: { maxRestarts: 2 } } })
  await service.handlers.startPipeline({ nodeId, id }, call)
  await end('FAILED', 'first')
  await wait(1_000)
  await end('FAILED', 'second')
  await wait(2_000)
  await end('FAILED', 'third')
  const [a, b, c] = pool.runs.map((run) => ({ pipelineId: id, name: 'flaky', runId: run.id }))
  expect(facts).toEqual([
    { ...a, kind: 'started', cpu: expect.any(Number), attempt: undefined },
    { ...a, kind: 'ended', outcome: 'FAILED', error: 'first' },
    { ...a, kind: 'restart planned', attempt: 1, most: 2, delayMs: 1_000 },
    { ...b, kind: 'started', cpu: expect.any(Number), attempt: 1 },
    { ...b, kind: 'ended', outcome: 'FAILED', error: 'second' },
    { ...b, kind: 'restart planned', attempt: 2, most: 2, delayMs: 2_000 },
    { ...c, kind: 'started', cpu: expect.any(Number), attempt: 2 },
    { ...c, kind: 'ended', outcome: 'FAILED', error: 'third' },
    { ...c, kind: 'given up', restarts: 2, error: 'third' },
  ])
})

test('a run that completes is not given up; with the policy always it is started again', async () => {
  const once = await create({ restartPolicy: { onFailure: { maxRestarts: 1 } } })
  await service.handlers.startPipeline({ nodeId, id: once }, call)
  await end('COMPLETED')
  expect(facts.map(({ kind }) => kind)).toEqual(['started', 'ended'])
  facts.length = 0
  const always = await create({ restartPolicy: { always: { maxRestarts: 0 } } })
  await service.handlers.startPipeline({ nodeId, id: always }, call)
  await end('COMPLETED')
  expect(facts.at(-1)).toMatchObject({ kind: 'restart planned', attempt: 1, most: 0 })
})

test('a restart that is called off, by a stop or by settings', async () => {
  const id = await create({ restartPolicy: { always: { maxRestarts: 0 } } })
  await service.handlers.startPipeline({ nodeId, id }, call)
  await end('FAILED', 'broke')
  await service.handlers.stopPipeline({ nodeId, id }, call)
  expect(facts.at(-1)).toMatchObject({ kind: 'restart cancelled', by: 'stop', pipelineId: id, runId: pool.last.id })
  await wait(60_000)
  expect(pool.runs).toHaveLength(1)

  await service.handlers.startPipeline({ nodeId, id }, call)
  await end('FAILED', 'broke')
  const settings = { name: 'p', jsonConfig, defaultLoggingLevel: 'INFO', instructionsTimeout: 30 } as const
  const never = { nodeId, id, ...settings, restartPolicy: { never: {} }, forceRestart: false }
  const { pipeline } = await service.handlers.updatePipeline(never, call)
  expect(pipeline).toMatchObject({ started: false, restartPolicy: { never: {} }, currentRun: { outcome: 'FAILED' } })
  expect(pipeline).not.toHaveProperty('restarts')
  expect(facts.at(-1)).toMatchObject({ kind: 'restart cancelled', by: 'settings', runId: pool.last.id })
  await wait(60_000)
  expect(pool.runs).toHaveLength(2)
})

test('a run that was on when the process died has failed, which the next process tells', async () => {
  const id = await create({ name: 'cut' })
  await store.runs.put({ id: 'run', pipelineId: id, state: 'RUNNING', startedAt: 1 })
  await close()
  await open()
  const cut = {
    pipelineId: id,
    name: 'cut',
    runId: 'run',
    kind: 'ended',
    outcome: 'FAILED',
    error: 'node was restarted',
  }
  expect(facts).toEqual([cut])
  await close()
  await open()
  expect(facts).toEqual([])
})

test('one whose clock was set back since has lasted no time, rather than less than none', async () => {
  const id = await create({ name: 'cut' })
  const startedAt = Date.now() + 3_600_000
  await store.runs.put({ id: 'run', pipelineId: id, state: 'RUNNING', startedAt })
  await close()
  await open()
  expect(store.runs.get('run')).toMatchObject({ state: 'ENDED', startedAt, endedAt: startedAt })
})
