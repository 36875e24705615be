/** The pipelines service on a real store and a simulated clock; runs are scripted, so that every moment of them can be held. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SimulatedClock } from 'xstate'
import { CollectingSink } from '../../test/harness/sink.ts'
import { settle, until } from '../../test/harness/waiting.ts'
import { ScriptedPool } from '../../test/services/scripted.ts'
import { HEALTHY_MS } from '../actors/pipeline.ts'
import { START_DEADLINE_MS } from '../actors/pipeline-run.ts'
import { NotStored } from '../contract/errors.ts'
import type { CallContext } from '../contract/handlers.ts'
import type {
  LogStreamMessages,
  Pipeline,
  StreamPipelinesEvent,
  TelemetryOptions,
  TelemetrySample,
} from '../contract/types.ts'
import { components } from '../dataplane/components/registry.ts'
import { type LogLine, RunOver } from '../dataplane/engine/run.ts'
import { Store } from '../store/store.ts'
import { type LostLines, RunLogs } from '../telemetry/run-logs.ts'
import { MAX_EVENT_BACKLOG, PipelinesService, RUN_LOOKUP_MS } from './pipelines.ts'
import { Trust } from './trust.ts'

const call: CallContext = {
  remoteAddress: '',
  isLoopback: true,
  transport: 'internal',
  signal: new AbortController().signal,
  onAbort: () => () => {},
}

/** The same caller, who goes away when `signal` aborts. */
const callUntil = (signal: AbortSignal): CallContext => ({
  ...call,
  signal,
  onAbort(listener) {
    const abort = () => listener(signal.reason)
    signal.addEventListener('abort', abort)
    return () => signal.removeEventListener('abort', abort)
  },
})
const nodeId = 'n'
const config = (mbit = 1, seed = 200) =>
  JSON.stringify({
    engine_config: {
      pipeline: {
        source: { throughput_traffic_source: { output: 'a', throughput_mbit: mbit, payload_size: 200, seed } },
        sink: { traffic_sink: { input: 'a' } },
      },
    },
  })
/** Lets everything that is ready happen: promises, writes to the store and what waits for them, notifications. */
async function settled(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await settle(5)
    await store.runs.remove([])
  }
}

/** Runs of a pipeline whose logs are kept. */
const RUN_LOGS = 3
/** Nothing that a test logs may be lost. */
const lost = (runId: string, { error }: LostLines) => {
  throw new Error(`lines of run ${runId} are lost`, { cause: error })
}

let directory: string
let store: Store
let pool: ScriptedPool
let clock: SimulatedClock
let service: PipelinesService
let ids: number
/** What went wrong in the background. */
const failures: unknown[] = []

async function open(runs = RUN_LOGS): Promise<void> {
  store = new Store(directory)
  pool = new ScriptedPool()
  clock = new SimulatedClock()
  service = new PipelinesService({
    registry: components,
    runLogs: new RunLogs({ directory: join(directory, 'logs'), runs, bytes: 1 << 20, onLost: lost }),
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
    onError: (_, error) => failures.push(error),
    clock,
    newId: () => `id-${++ids}`,
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
  ids = 0
  directory = mkdtempSync(join(tmpdir(), 'penstock-service-'))
  await open()
})
afterEach(async () => {
  await close()
  expect(failures).toEqual([])
  rmSync(directory, { recursive: true })
})

const create = async (settings: Partial<Parameters<typeof service.handlers.createPipeline>[0]> = {}) =>
  (await service.handlers.createPipeline({ nodeId, name: 'p', jsonConfig: config(), ...settings }, call))
    .pipeline as Pipeline
const get = async (id: string) => (await service.handlers.getPipelineById({ nodeId, id }, call)).pipeline as Pipeline
const start = async (id: string) => (await service.handlers.startPipeline({ nodeId, id }, call)).runId
const stop = async (id: string) => service.handlers.stopPipeline({ nodeId, id }, call)
const settings = {
  name: 'p',
  jsonConfig: config(),
  defaultLoggingLevel: 'INFO',
  instructionsTimeout: 3,
  forceRestart: false,
} as const
const update = async (id: string, changes: Partial<Parameters<typeof service.handlers.updatePipeline>[0]> = {}) =>
  service.handlers.updatePipeline({ ...settings, nodeId, id, ...changes }, call)

/** The last line of a run's log. */
async function lastLine(runId: string) {
  const lines = new CollectingSink<LogStreamMessages>()
  await service.handlers.openLogStream({ nodeId, runId, options: { lines: 1n } }, call, lines)
  return lines.messages.at(-1)?.messages[0] ?? expect.fail('the log is empty')
}

describe('start', () => {
  test('not running within the deadline: DEADLINE_EXCEEDED, the attempt is torn down, the next start is free', async () => {
    const { id } = await create()
    pool.prompt = false
    const late = expect(start(id)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await settled()
    clock.increment(START_DEADLINE_MS)
    await late
    expect(pool.last.asked).toEqual(['kill'])
    expect(await get(id)).toMatchObject({ started: false, currentRun: { state: 'ENDED', outcome: 'FAILED' } })
    pool.prompt = true
    expect(await start(id)).toBe(pool.last.id)
  })

  test('runs have all threads: RESOURCE_EXHAUSTED at once, and no run is made of it', async () => {
    const { id } = await create()
    pool.problem = 'all threads have runs'
    await expect(start(id)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED', message: 'all threads have runs' })
    expect(pool.runs).toEqual([])
    expect(await get(id)).toMatchObject({ started: false })
    expect((await get(id))?.currentRun).toBeUndefined()
    pool.problem = undefined
    expect(await start(id)).toBe(pool.last.id)
  })

  test('in line behind others: a caller is told after 10 s, and what starts by itself waits for its turn', async () => {
    const { id } = await create({ startupPolicy: { auto: {} } })
    const asked = await create()
    pool.isCrowded = true
    service.startWithNode()
    await settled()
    const byItself = pool.last
    const late = expect(start(asked.id)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await settled()
    clock.increment(START_DEADLINE_MS)
    await late
    expect(pool.last.asked).toEqual(['kill'])
    clock.increment(START_DEADLINE_MS * 10)
    expect(byItself.asked).toEqual([])
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'STARTING' } })
    byItself.begin()
    byItself.run()
    await settled()
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
  })

  test('the end of the last run counts: 10 s in all, and what has failed for its caller never happens', async () => {
    const { id } = await create({ instructionsTimeout: 60 })
    await start(id)
    await stop(id)
    pool.prompt = false
    const late = expect(start(id)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await settled()
    clock.increment(6_000)
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    expect(pool.runs).toHaveLength(2)
    clock.increment(START_DEADLINE_MS - 6_000)
    await late
    expect(pool.last.asked).toEqual(['kill'])
    expect(await get(id)).toMatchObject({ started: false, currentRun: { state: 'ENDED', outcome: 'FAILED' } })

    // A run that does not stop in time: the next one is never made.
    pool.prompt = true
    await start(id)
    await stop(id)
    const never = expect(start(id)).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      message: expect.stringContaining('its last run is still stopping'),
    })
    await settled()
    clock.increment(START_DEADLINE_MS)
    await never
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    clock.increment(60_000)
    expect(pool.runs).toHaveLength(3)
    expect(await get(id)).toMatchObject({ started: false })
  })

  test('a run whose record cannot be written does not count as started: the start fails, and the run is stopped', async () => {
    const { id } = await create()
    const { put } = store.runs
    store.runs.put = () => Promise.reject(new NotStored('penstock.lmdb', 'no space left'))
    await expect(start(id)).rejects.toThrow(NotStored)
    expect(pool.last.asked).toEqual(['stop'])
    expect(failures).toEqual(expect.arrayContaining([expect.any(NotStored)]))
    store.runs.put = put
    pool.last.end({ outcome: 'STOPPED' })
    expect(await start(id)).toBe(pool.last.id)
    failures.length = 0
  })

  test('a start that waits behind another operation has 10 s as well', async () => {
    const { id } = await create({ instructionsTimeout: 60 })
    await start(id)
    const removed = service.handlers.deletePipeline({ nodeId, id }, call)
    await settled()
    const late = expect(start(id)).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      message: expect.stringContaining('other operations on it are under way'),
    })
    await settled()
    clock.increment(START_DEADLINE_MS)
    await late
    pool.last.end({ outcome: 'STOPPED' })
    await removed
  })

  describe('already started', () => {
    const isRefused = (run: string, started: Promise<string>) =>
      expect(started).rejects.toMatchObject({
        code: 'FAILED_PRECONDITION',
        message: `pipeline "p" is already started (run ${run})`,
      })

    test('one that is starting, whatever becomes of its run', async () => {
      const { id } = await create()
      pool.prompt = false
      const failed = expect(start(id)).rejects.toMatchObject({ code: 'ABORTED' })
      await settled()
      await isRefused(pool.last.id, start(id))
      pool.last.end({ outcome: 'FAILED', error: 'port taken' })
      await failed
      await settled()
      expect(pool.runs).toHaveLength(1)
    })

    test('one that runs, while a change is under way', async () => {
      const { id } = await create()
      const run = await start(id)
      let takeOver = () => {}
      pool.last.reconfigured = () =>
        new Promise((resolve) => {
          takeOver = resolve
        })
      const updated = update(id, { jsonConfig: config(2) })
      await settled()
      await isRefused(run, start(id))
      takeOver()
      await updated
    })

    test('of two that wait for the end of the last run the second', async () => {
      const { id } = await create()
      await start(id)
      await stop(id)
      pool.prompt = false
      const failed = expect(start(id)).rejects.toMatchObject({ code: 'ABORTED' })
      const refused = expect(start(id)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
      await settled()
      pool.last.end({ outcome: 'STOPPED' })
      await refused
      await settled()
      pool.last.end({ outcome: 'FAILED', error: 'port taken' })
      await failed
      await settled()
      expect(pool.runs).toHaveLength(2)
    })
  })

  test('a caller that goes away: what waits is not carried out, a start under way is torn down', async () => {
    const { id } = await create()
    pool.prompt = false
    const controllers = Array.from({ length: 4 }, () => new AbortController())
    const asking = (i: number) => callUntil((controllers[i] as AbortController).signal)
    const outcomes = Promise.allSettled([
      service.handlers.startPipeline({ nodeId, id }, asking(0)),
      service.handlers.updatePipeline({ ...settings, nodeId, id, name: 'other' }, asking(1)),
      service.handlers.updatePipeline({ ...settings, nodeId, id }, asking(2)),
      service.handlers.updatePipeline({ ...settings, nodeId, id, forceRestart: true }, asking(3)),
    ])
    await settled()
    for (const controller of controllers) controller.abort()
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: 'CANCELLED' } })
    expect(pool.runs.map(({ asked }) => asked)).toEqual([['kill']])
    expect(await get(id)).toMatchObject({ started: false, currentRun: { state: 'ENDED' } })
    pool.prompt = true
    expect(await start(id)).toBe(pool.last.id)
  })

  test('a caller that goes away while the disk is slow to take down that its run is on: the run is stopped', async () => {
    const { id } = await create()
    pool.prompt = false
    const caller = new AbortController()
    const started = service.handlers.startPipeline({ nodeId, id }, callUntil(caller.signal))
    const refused = expect(started).rejects.toMatchObject({ code: 'CANCELLED' })
    await settle()
    const put = store.runs.put.bind(store.runs)
    let write = () => {}
    const isHeld = new Promise<void>((resolve) => {
      write = resolve
    })
    store.runs.put = async (run) => {
      await isHeld
      await put(run)
    }
    pool.last.run()
    await settle()
    caller.abort()
    write()
    await refused
    expect(pool.last.asked).toEqual(['stop'])
  })

  test('operations on one pipeline follow each other; others are not held up', async () => {
    const [a, b] = [await create(), await create()]
    pool.prompt = false
    const done: string[] = []
    const starting = start(a.id).then(() => done.push('start a'))
    const updating = update(a.id, { name: 'renamed' }).then(() => done.push('update a'))
    await settled()
    pool.prompt = true
    await start(b.id).then(() => done.push('start b'))
    expect(done).toEqual(['start b'])
    pool.runs[0]?.run()
    await Promise.all([starting, updating])
    expect(done).toEqual(['start b', 'start a', 'update a'])
  })

  test('while the restart policy waits, the pipeline counts as started and can be stopped', async () => {
    const { id } = await create({ restartPolicy: { onFailure: { maxRestarts: 0 } } })
    await start(id)
    pool.last.end({ outcome: 'FAILED', error: 'threw' })
    await settled()
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'ENDED', error: 'threw' } })
    await expect(start(id)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
    await stop(id)
    clock.increment(60_000)
    expect(pool.runs).toHaveLength(1)
    expect(await get(id)).toMatchObject({ started: false })
  })

  test('the restarts in a row and the time of the next one are shown, told to subscribers and in the log of the run', async () => {
    const { id } = await create({ restartPolicy: { onFailure: { maxRestarts: 2 } } })
    const events = new CollectingSink<StreamPipelinesEvent>()
    await service.handlers.streamPipelines({ nodeId }, call, events)
    await start(id)
    expect(await get(id)).not.toHaveProperty('restarts')
    for (const count of [0, 1]) {
      pool.last.end({ outcome: 'FAILED', error: 'threw' })
      await settled()
      const { currentRun, restarts } = await get(id)
      const wait = 1_000 * 2 ** count
      const nextAt = new Date(Number(currentRun?.endedAt) + wait)
      expect(restarts).toEqual({ count, nextAt })
      expect(events.messages.at(-1)?.update?.pipeline?.restarts).toEqual({ count, nextAt })
      clock.increment(wait)
      await settled()
      expect((await get(id)).restarts).toEqual({ count: count + 1 })
      expect((await lastLine(pool.last.id)).fields).toEqual({ attempt: String(count + 1) })
    }
    clock.increment(HEALTHY_MS)
    await settled()
    expect(await get(id)).not.toHaveProperty('restarts')
    expect(events.messages.at(-1)?.update?.pipeline).not.toHaveProperty('restarts')
    for (const _ of [1, 2]) {
      pool.last.end({ outcome: 'FAILED', error: 'threw' })
      await settled()
      clock.increment(2_000)
      await settled()
    }
    pool.last.end({ outcome: 'FAILED', error: 'threw' })
    await settled()
    expect(await get(id)).toMatchObject({ started: false, restarts: { count: 2 } })
    await start(id)
    expect(await get(id)).not.toHaveProperty('restarts')
  })

  test('deletion stops what is on, and waits for its end: a run, one that is stopping, the wait for the next one', async () => {
    const remove = (id: string) => service.handlers.deletePipeline({ nodeId, id }, call)
    const gone = (id: string) => expect(get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const restartPolicy = { always: { maxRestarts: 0 } }
    const { id } = await create({ restartPolicy })
    await start(id)
    let isOver = false
    const removing = remove(id).then(() => {
      isOver = true
    })
    const late = expect(start(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await settled()
    expect([isOver, pool.last.asked]).toEqual([false, ['stop']])
    pool.last.end({ outcome: 'STOPPED' })
    await removing
    await late
    await gone(id)

    const stopping = await create({ restartPolicy, instructionsTimeout: 3 })
    await start(stopping.id)
    await stop(stopping.id)
    const killed = remove(stopping.id)
    await settled()
    clock.increment(3_000)
    expect(pool.last.asked).toEqual(['stop', 'kill'])
    pool.last.end({ outcome: 'FAILED', error: 'killed' })
    await killed
    await gone(stopping.id)

    const waiting = await create({ restartPolicy })
    await start(waiting.id)
    pool.last.end({ outcome: 'FAILED', error: 'threw' })
    await settled()
    await remove(waiting.id)
    await gone(waiting.id)
    const { length } = pool.runs
    clock.increment(60_000)
    expect(pool.runs).toHaveLength(length)
    expect(store.pipelines.all()).toEqual([])
    expect(store.runs.all()).toEqual([])

    const kept = await create({ restartPolicy })
    await start(kept.id)
    const caller = new AbortController()
    const cancelled = service.handlers.deletePipeline({ nodeId, id: kept.id }, callUntil(caller.signal))
    const refused = expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' })
    await settled()
    caller.abort()
    await refused
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    expect(await get(kept.id)).toMatchObject({ started: false, currentRun: { outcome: 'STOPPED' } })
  })

  test('unset cpuPin, a run that takes the place of another: what that one had is free', async () => {
    const made: string[] = []
    for (const _ of pool.cpus) {
      made.push((await create()).id)
      await start(made.at(-1) as string)
    }
    const last = pool.last
    expect(last.options.cpu).toBe(0)
    const updated = update(made.at(-1) as string, { jsonConfig: config(1, 300), forceRestart: true })
    await settled()
    last.end({ outcome: 'STOPPED' })
    await updated
    expect(pool.last.options.cpu).toBe(0)
  })

  test('unset cpuPin: the CPU thread with the fewest runs', async () => {
    const cpus: (number | undefined)[] = []
    for (const cpuPin of [undefined, undefined, 1, undefined, undefined, undefined]) {
      const { id } = await create(cpuPin === undefined ? {} : { cpuPin })
      await start(id)
      cpus.push(pool.last.options.cpu)
    }
    expect(cpus).toEqual([3, 2, 1, 0, 3, 2])
  })

  test('a cpuset that was narrowed: unset cpuPin is one that is left, or none; one that is gone is told with those that are left', async () => {
    pool.usable = [0, 1]
    for (const cpu of [1, 0, 1]) {
      await start((await create()).id)
      expect(pool.last.options.cpu).toBe(cpu)
    }
    const pinned = await create({ cpuPin: 3 })
    const gone = 'CPU thread 3 cannot be used here: this process may use '
    await expect(start(pinned.id)).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining(`${gone}0-1`),
    })
    pool.usable = []
    await expect(start(pinned.id)).rejects.toMatchObject({ message: expect.stringContaining(`${gone}none of those`) })
    await start((await create()).id)
    expect(pool.last.options.cpu).toBeUndefined()
  })
})

describe('a stop does not wait for the operation that is under way', () => {
  const remove = (id: string) => service.handlers.deletePipeline({ nodeId, id }, call)
  const forced = { jsonConfig: config(1, 300), forceRestart: true }
  const aborted = (message: string) => ({ code: 'ABORTED', message: expect.stringContaining(message) })
  const wasStopped = aborted('the run failed while starting: it was stopped')
  const notMade = aborted('the pipeline was stopped before its next run began')
  const stayed = /; the settings stay as they were, and the pipeline is stopped$/
  const isGone = (id: string) => expect(get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  /** Lets the last run end as one does that was stopped. */
  const end = async () => {
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
  }

  test.each(['id', 'name', 'run'] as const)('a start, stopped by %s: it fails, its run is STOPPED', async (by) => {
    const { id } = await create({ name: 'its name' })
    pool.prompt = false
    const started = expect(start(id)).rejects.toMatchObject(wasStopped)
    await settled()
    const which = { id: { id }, name: { name: 'its name' }, run: { runId: pool.last.id } }[by]
    await service.handlers.stopPipeline({ nodeId, ...which }, call)
    expect(pool.last.asked).toEqual(['stop'])
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'STOPPING' } })
    await expect(stop(id)).rejects.toMatchObject({ message: expect.stringContaining('already stopping') })
    await end()
    await started
    expect(await get(id)).toMatchObject({ started: false, currentRun: { state: 'ENDED', outcome: 'STOPPED' } })
    await expect(stop(id)).rejects.toMatchObject({ message: expect.stringContaining('already stopped') })
  })

  test('a start that is over for its caller is stopping already', async () => {
    const { id } = await create()
    pool.prompt = false
    const caller = new AbortController()
    const started = service.handlers.startPipeline({ nodeId, id }, callUntil(caller.signal))
    const cancelled = expect(started).rejects.toMatchObject({ code: 'CANCELLED' })
    await settled()
    pool.last.kill = () => {}
    caller.abort()
    await expect(stop(id)).rejects.toMatchObject({ message: expect.stringContaining('already stopping') })
    pool.last.end({ outcome: 'FAILED', error: 'killed' })
    await cancelled
  })

  test('a start that waits for the end of the last run: it fails at once, and no run is made', async () => {
    const { id } = await create()
    const first = await start(id)
    await stop(id)
    const refused = expect(start(id)).rejects.toMatchObject(notMade)
    await settled()
    // Who names the run that stops has said nothing of another one.
    const again = service.handlers.stopPipeline({ nodeId, runId: first }, call)
    await expect(again).rejects.toMatchObject({ message: expect.stringContaining('already stopping') })
    await stop(id)
    await refused
    await expect(stop(id)).rejects.toMatchObject({ message: expect.stringContaining('already stopping') })
    await end()
    expect(pool.runs).toHaveLength(1)
    expect(await get(id)).toMatchObject({ started: false, currentRun: { id: first, outcome: 'STOPPED' } })
  })

  test('a start that waits for its turn likewise', async () => {
    const { id } = await create()
    const [first, second] = [start(id), start(id)].map((each) => expect(each).rejects.toMatchObject(notMade))
    await stop(id)
    await Promise.all([first, second])
    await settled()
    expect(pool.runs).toHaveLength(0)
    await expect(stop(id)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
  })

  test('an update that waits for the end of the run it replaces: it fails, its settings are not stored', async () => {
    const { id } = await create({ restartPolicy: { always: { maxRestarts: 0 } } })
    await start(id)
    const updated = expect(update(id, forced)).rejects
    const refused = updated.toMatchObject({ ...notMade, message: expect.stringMatching(stayed) })
    await settled()
    await stop(id)
    await end()
    await refused
    clock.increment(60_000)
    expect(pool.runs).toHaveLength(1)
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false, currentRun: { outcome: 'STOPPED' } })
  })

  test('an update whose new run starts likewise', async () => {
    const { id } = await create()
    await start(id)
    pool.prompt = false
    const updated = expect(update(id, forced)).rejects
    const refused = updated.toMatchObject({ ...wasStopped, message: expect.stringMatching(stayed) })
    await settled()
    await end()
    expect(await get(id)).toMatchObject({ currentRun: { id: pool.last.id, state: 'STARTING' } })
    await stop(id)
    await end()
    await refused
    expect(pool.runs).toHaveLength(2)
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false, currentRun: { outcome: 'STOPPED' } })
  })

  test('an update that the run is asked to take over: its settings are for the next run', async () => {
    const { id } = await create()
    await start(id)
    pool.last.reconfigured = () => new Promise(() => {})
    const updated = update(id, { jsonConfig: config(2) })
    await settled()
    await stop(id)
    expect((await updated).pipeline).toMatchObject({ jsonConfig: config(2), currentRun: { state: 'STOPPING' } })
    await end()
  })

  test('a deletion stops at once what is under way, then waits for its turn', async () => {
    pool.prompt = false
    const starting = await create()
    const started = expect(start(starting.id)).rejects.toMatchObject(wasStopped)
    await settled()
    const gone = remove(starting.id)
    await settled()
    expect(pool.last.asked).toEqual(['stop'])
    await end()
    await Promise.all([started, gone])
    await isGone(starting.id)

    pool.prompt = true
    const replaced = await create()
    await start(replaced.id)
    const updated = expect(update(replaced.id, forced)).rejects.toMatchObject(notMade)
    await settled()
    const waiting = expect(start(replaced.id)).rejects.toMatchObject(notMade)
    await settled()
    const { length } = pool.runs
    const removed = remove(replaced.id)
    const after = expect(start(replaced.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await end()
    await Promise.all([updated, waiting, removed, after])
    await isGone(replaced.id)
    expect(pool.runs).toHaveLength(length)
  })

  test('not when its caller has gone before it came', async () => {
    const { id } = await create()
    pool.prompt = false
    const started = start(id)
    await settled()
    const gone: CallContext = {
      ...call,
      onAbort(listener) {
        listener(undefined)
        return () => {}
      },
    }
    for (const operation of ['stopPipeline', 'deletePipeline'] as const) {
      await expect(service.handlers[operation]({ nodeId, id }, gone)).rejects.toMatchObject({ code: 'CANCELLED' })
    }
    expect(pool.last.asked).toEqual([])
    pool.last.run()
    expect(await started).toBe(pool.last.id)
  })

  test('it is answered once the disk has it', async () => {
    const { id } = await create()
    pool.prompt = false
    const started = expect(start(id)).rejects.toMatchObject(wasStopped)
    await settled()
    const put = store.runs.put.bind(store.runs)
    let write = () => {}
    const isHeld = new Promise<void>((resolve) => {
      write = resolve
    })
    store.runs.put = async (run) => {
      await isHeld
      await put(run)
    }
    let isAnswered = false
    const stopped = stop(id).then(() => {
      isAnswered = true
    })
    await settle()
    expect([pool.last.asked, isAnswered]).toEqual([['stop'], false])
    write()
    await stopped
    expect(store.runs.get(pool.last.id)?.state).toBe('STOPPING')
    await end()
    await started
  })
})

describe('getPipelineByRunId', () => {
  test('waits for a run to appear', async () => {
    const { id } = await create()
    const found = service.handlers.getPipelineByRunId({ nodeId, id: `id-${ids + 1}` }, call)
    await settled()
    await start(id)
    expect((await found).pipeline?.id).toBe(id)
  })

  test('gives up after two seconds', async () => {
    const found = service.handlers.getPipelineByRunId({ nodeId, id: 'none' }, call)
    const late = expect(found).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    clock.increment(RUN_LOOKUP_MS)
    await late
  })

  test('is cut short by the caller leaving', async () => {
    const abort = new AbortController()
    const found = service.handlers.getPipelineByRunId({ nodeId, id: 'none' }, callUntil(abort.signal))
    abort.abort()
    await expect(found).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })
})

describe('update', () => {
  test('a run that does not take a change over in time: DEADLINE_EXCEEDED, nothing stored, and the run is ended', async () => {
    const before = await create({ instructionsTimeout: 3 })
    await start(before.id)
    pool.last.reconfigured = () => new Promise(() => {})
    const late = expect(update(before.id, { jsonConfig: config(2) })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    await settled()
    clock.increment(3_000)
    await late
    await settled()
    expect(pool.last.asked).toEqual(['reconfigure', 'kill'])
    expect(await get(before.id)).toMatchObject({
      jsonConfig: before.jsonConfig,
      started: false,
      currentRun: { outcome: 'FAILED', error: expect.stringContaining('within 3 s (instructionsTimeout)') },
    })
  })

  test('a run that refuses the change: ABORTED with the cause, nothing stored', async () => {
    const before = await create()
    await start(before.id)
    pool.last.reconfigured = () => Promise.reject(new Error('no room'))
    await expect(update(before.id, { jsonConfig: config(2) })).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('no room'),
    })
    expect((await get(before.id)).jsonConfig).toBe(before.jsonConfig)
  })

  test('a run that ends while it is asked: the settings are for the next one', async () => {
    const { id } = await create()
    await start(id)
    const run = pool.last
    run.reconfigured = async () => {
      run.end({ outcome: 'COMPLETED' })
      await settled()
      throw new Error('the run ended')
    }
    await update(id, { jsonConfig: config(2) })
    expect(await get(id)).toMatchObject({ jsonConfig: config(2), started: false })
  })

  test('a run that says that it is over before it has ended: the settings are for the next one', async () => {
    const { id } = await create()
    await start(id)
    const run = pool.last
    run.reconfigured = async () => {
      throw new RunOver('threw')
    }
    const updated = update(id, { jsonConfig: config(2) })
    await settled()
    run.end({ outcome: 'FAILED', error: 'threw' })
    expect((await updated).pipeline).toMatchObject({ jsonConfig: config(2), started: false })
  })

  test('a node that closes while a run is asked: the settings are for the next one', async () => {
    const { id } = await create()
    await start(id)
    pool.last.reconfigured = () => new Promise(() => {})
    const updated = update(id, { jsonConfig: config(2) })
    await settled()
    await close()
    expect((await updated).pipeline).toMatchObject({ jsonConfig: config(2) })
    await open()
    expect(await get(id)).toMatchObject({ jsonConfig: config(2), currentRun: { outcome: 'STOPPED' } })
  })

  const full = () => Promise.reject(new NotStored('penstock.lmdb', 'no space left'))

  test('a change that a run has taken over and that cannot be stored is taken back', async () => {
    const { id } = await create()
    await start(id)
    const has: unknown[] = []
    pool.last.reconfigured = async ({ components: { source } }) => {
      has.push(source?.config.throughput_mbit)
    }
    const { put } = store.pipelines
    store.pipelines.put = full
    await expect(update(id, { jsonConfig: config(2) })).rejects.toThrow(NotStored)
    store.pipelines.put = put
    expect(has).toEqual([2, 1])
    // What it has given up is no change that may yet be taken back.
    expect(pool.last.kept).toBe(1)
    expect(await get(id)).toMatchObject({ jsonConfig: config(), currentRun: { state: 'RUNNING' } })
    await update(id, { jsonConfig: config(2) })
    expect(has).toEqual([2, 1, 2])
    expect(pool.last.kept).toBe(2)
  })

  test('a run that does not take it back is stopped, and the answer says so', async () => {
    const { id } = await create()
    await start(id)
    pool.last.reconfigured = async ({ components: { source } }) => {
      if (source?.config.throughput_mbit === 1) throw new Error('no room')
    }
    store.pipelines.put = full
    await expect(update(id, { jsonConfig: config(2) })).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringMatching(/the settings stay as they were, and the pipeline is stopped: .*no room/),
    })
    expect(pool.last.asked).toEqual(['reconfigure', 'reconfigure', 'stop'])
  })

  test.each(['the restart policy', 'the start of the node'])(
    'no run is made with the settings before while others are on their way to the disk: %s',
    async (by) => {
      const policies = { restartPolicy: { always: { maxRestarts: 0 } }, startupPolicy: { auto: {} } }
      const { id } = await create(policies)
      const isRestart = by === 'the restart policy'
      if (isRestart) {
        await start(id)
        pool.last.end({ outcome: 'FAILED', error: 'no route' })
        await settled()
      }
      const put = store.pipelines.put.bind(store.pipelines)
      let write = () => {}
      const isHeld = new Promise<void>((resolve) => {
        write = resolve
      })
      store.pipelines.put = async (record) => {
        await isHeld
        await put(record)
      }
      const updated = update(id, { ...policies, jsonConfig: config(1, 300) })
      await settle()
      if (isRestart) clock.increment(1_000)
      else service.startWithNode()
      await settle()
      write()
      await updated
      await settled()
      expect(pool.runs).toHaveLength(isRestart ? 2 : 1)
      expect(pool.last.options.config.components.source?.config).toMatchObject({ seed: 300 })
      expect(await get(id)).toMatchObject({ jsonConfig: config(1, 300), currentRun: { id: pool.last.id } })
    },
  )

  test.each(['is stopped', 'fails'])(
    'a start of somebody that the coming up of the node meets, and that %s, is not made again',
    async (how) => {
      const { id } = await create({ startupPolicy: { auto: {} } })
      pool.prompt = false
      const started = start(id).catch(String)
      await settle()
      service.startWithNode()
      await settle()
      if (how === 'is stopped') {
        const stopped = stop(id)
        await settle()
        pool.last.end({ outcome: 'STOPPED' })
        await stopped
      } else pool.last.end({ outcome: 'FAILED', error: 'no route' })
      await started
      await settled()
      expect(pool.runs).toHaveLength(1)
      expect((await get(id)).started).toBe(false)
    },
  )

  /** Lets the run that is replaced end, so that the next one is made. */
  const replaced = async () => {
    await settled()
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
  }

  test('a run that ends while it is replaced: the next one is made all the same', async () => {
    const { id } = await create()
    await start(id)
    const updated = update(id, { jsonConfig: config(1, 300), forceRestart: true })
    await settled()
    pool.last.end({ outcome: 'COMPLETED' })
    expect((await updated).pipeline).toMatchObject({ jsonConfig: config(1, 300), started: true })
    expect(pool.runs).toHaveLength(2)
  })

  test('a node that closes while a run is replaced: no other run is made, and nothing is changed', async () => {
    const { id } = await create()
    await start(id)
    const refused = expect(update(id, { jsonConfig: config(1, 300), forceRestart: true })).rejects.toMatchObject({
      code: 'ABORTED',
    })
    await settled()
    await close()
    await refused
    expect(pool.runs).toHaveLength(1)
    await open()
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false })
  })

  test('a caller that goes away while a start of the restart policy is awaited: nothing is changed', async () => {
    const { id } = await create({ startupPolicy: { auto: {} } })
    pool.prompt = false
    service.startWithNode()
    await settle()
    const caller = new AbortController()
    const updated = service.handlers.updatePipeline({ ...settings, nodeId, id, name: 'late' }, callUntil(caller.signal))
    const refused = expect(updated).rejects.toMatchObject({ code: 'CANCELLED' })
    await settle()
    caller.abort()
    await settle()
    pool.last.run()
    await refused
    await settle()
    expect(await get(id)).toMatchObject({ name: 'p', currentRun: { state: 'RUNNING' } })
  })

  test('a restart that fails leaves the settings as they were and a stopped pipeline, and says so', async () => {
    const { id } = await create({ restartPolicy: { always: { maxRestarts: 0 } } })
    await start(id)
    pool.prompt = false
    const failed = expect(
      update(id, { jsonConfig: config(1, 300), forceRestart: true, restartPolicy: { always: { maxRestarts: 0 } } }),
    ).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringMatching(/port taken; the settings stay as they were, and the pipeline is stopped$/),
    })
    await replaced()
    expect(pool.last.options.config.components.source?.config).toMatchObject({ seed: 300 })
    pool.last.end({ outcome: 'FAILED', error: 'port taken' })
    await failed
    expect(pool.runs).toHaveLength(2)
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false })
    pool.prompt = true
    await start(id)
    expect(pool.last.options.config.components.source?.config).toMatchObject({ seed: 200 })
  })

  test('a restart whose settings cannot be stored is undone: the new run is stopped', async () => {
    const { id } = await create()
    await start(id)
    store.pipelines.put = () => Promise.reject(new NotStored('penstock.lmdb', 'no space left'))
    const failed = expect(update(id, { jsonConfig: config(1, 300), forceRestart: true })).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('the settings stay as they were, and the pipeline is stopped'),
    })
    await replaced()
    await failed
    expect(pool.last.asked).toEqual(['stop'])
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false })
  })

  test.each([
    { before: { never: {} }, after: { always: { maxRestarts: 0 } }, runs: 3 },
    { before: { always: { maxRestarts: 0 } }, after: { never: {} }, runs: 2 },
  ])('a new run that ends before its settings are stored: their restart policy counts, %j', async (policies) => {
    const { id } = await create({ restartPolicy: policies.before })
    await start(id)
    const put = store.pipelines.put.bind(store.pipelines)
    let write = () => {}
    const isHeld = new Promise<void>((resolve) => {
      write = resolve
    })
    store.pipelines.put = async (record) => {
      await isHeld
      await put(record)
    }
    const updated = update(id, { jsonConfig: config(1, 300), forceRestart: true, restartPolicy: policies.after })
    await replaced()
    pool.last.end({ outcome: 'COMPLETED' })
    await settle()
    write()
    await updated
    clock.increment(1_000)
    await settled()
    expect(pool.runs).toHaveLength(policies.runs)
    expect(await get(id)).toMatchObject({ started: policies.runs === 3, jsonConfig: config(1, 300) })
  })

  test('one whose settings are not stored leaves the restart policy of before', async () => {
    const { id } = await create()
    await start(id)
    pool.prompt = false
    const policy = { restartPolicy: { always: { maxRestarts: 0 } } }
    const failed = expect(
      update(id, { ...policy, jsonConfig: config(1, 300), forceRestart: true }),
    ).rejects.toMatchObject({ code: 'ABORTED' })
    await replaced()
    pool.last.end({ outcome: 'FAILED', error: 'port taken' })
    await failed
    pool.prompt = true
    await start(id)
    pool.last.end({ outcome: 'COMPLETED' })
    await settled()
    expect(await get(id)).toMatchObject({ started: false })
  })

  test('settings that come while a run stops are for the next one: what is captured, its KPIs and its filters stay its own', async () => {
    const whole = (sink: string, more: object) =>
      JSON.stringify({
        engine_config: {
          pipeline: {
            source: JSON.parse(config()).engine_config.pipeline.source,
            [sink]: { traffic_sink: { input: 'a' } },
          },
          ...more,
        },
        kpis: { metrics: [{ id: sink, label: sink, value: { expression: `{${sink}/packets}` } }] },
      })
    const log_filters = [{ level: 'STATE', path_filter: '*', actions: { actions: ['discard'] } }]
    const { id } = await create({ jsonConfig: whole('sink', {}) })
    const runId = await start(id)
    const telemetry = new CollectingSink<TelemetrySample>()
    await service.handlers.openTelemetryStream({ nodeId, runId }, call, telemetry)
    await stop(id)
    await update(id, { jsonConfig: whole('drain', { log_filters }), defaultLoggingLevel: 'FATAL' })
    const capture = (component: string) =>
      service.handlers.openCaptureStream({ nodeId, runId, component, side: 'INPUT' }, call, new CollectingSink())
    await expect(capture('sink')).rejects.toThrow('a scripted run has no packets')
    await expect(capture('drain')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    pool.last.log([{ timestamp: 0, level: 'INFO', component: 'sink', message: 'its last words', fields: {} }])
    const lines = new CollectingSink<LogStreamMessages>()
    await service.handlers.openLogStream({ nodeId, runId, options: { lines: 10n } }, call, lines)
    expect(lines.messages.flatMap(({ messages }) => messages)).toMatchObject([{ message: 'its last words' }])
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    expect(telemetry.messages.at(-1)?.kpis).toMatchObject([{ id: 'sink', value: { value: 0 } }])
  })

  test('a restart whose settings cannot be stored, and whose run has failed by then: none is made with them again', async () => {
    const policies = { restartPolicy: { always: { maxRestarts: 0 } } }
    const { id } = await create(policies)
    await start(id)
    let refuse = () => {}
    const refused = new Promise<void>((_, reject) => {
      refuse = () => reject(new NotStored('penstock.lmdb', 'no space left'))
    })
    const put = vi.fn(() => refused)
    store.pipelines.put = put
    const updated = expect(
      update(id, { ...policies, jsonConfig: config(1, 300), forceRestart: true }),
    ).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    await replaced()
    await until(() => put.mock.calls.length > 0)
    pool.last.end({ outcome: 'FAILED', error: 'no route' })
    await settled()
    clock.increment(1_000)
    refuse()
    await updated
    await settled()
    expect(pool.runs).toHaveLength(2)
    expect(await get(id)).toMatchObject({ jsonConfig: config(), started: false })
  })
})

describe('streamPipelines', () => {
  const follow = async () => {
    const sink = new CollectingSink<StreamPipelinesEvent>()
    await service.handlers.streamPipelines({ nodeId }, call, sink)
    return sink
  }

  test('an event never overtakes the answer that it belongs to', async () => {
    const sink = await follow()
    const seen = async (operation: unknown) => {
      const before = sink.messages.length
      await operation
      // What a transport does with the answer happens in this turn.
      for (let i = 0; i < 20; i++) await Promise.resolve()
      const early = sink.messages.length - before
      await settled()
      return [early, sink.messages.length - before]
    }
    expect(await seen(create())).toEqual([0, 1])
    const { id } = (await service.handlers.getPipelines({ nodeId }, call)).pipelines[0] as Pipeline
    expect(await seen(start(id))).toEqual([0, 2])
    expect(await seen(update(id))).toEqual([0, 1])
    expect(await seen(stop(id))).toEqual([0, 1])
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    expect(await seen(service.handlers.deletePipeline({ nodeId, id }, call))).toEqual([0, 1])
    const states = sink.messages.map(({ create, update, delete: deleted }) => {
      const { started, currentRun } = ((create ?? update ?? deleted) as { pipeline: Pipeline }).pipeline
      return [create ? 'create' : update ? 'update' : 'delete', started, currentRun?.state]
    })
    expect(states).toEqual([
      ['create', false, undefined],
      ['update', true, 'STARTING'],
      ['update', true, 'RUNNING'],
      ['update', true, 'RUNNING'],
      ['update', true, 'STOPPING'],
      ['update', false, 'ENDED'],
      ['delete', false, 'ENDED'],
    ])
  })

  describe('every state of every run is told, in order and once, whatever operation is under way', () => {
    const remove = (id: string) => service.handlers.deletePipeline({ nodeId, id }, call)
    const replacing = { jsonConfig: config(1, 300), forceRestart: true }
    /** Lets the last run end. */
    const end = async (outcome: 'STOPPED' | 'FAILED' = 'STOPPED', error?: string) => {
      pool.last.end(error === undefined ? { outcome } : { outcome, error })
      await settled()
    }
    /** What was told since this was asked last: the run by its place in their order, its state, how it ended, the seed that is set. */
    const following = async () => {
      const sink = await follow()
      const { length } = pool.runs
      let read = 0
      return () => {
        const news = sink.messages.slice(read)
        read = sink.messages.length
        return news.map(({ update, delete: deleted }) => {
          const { currentRun, started, jsonConfig } = ((update ?? deleted) as { pipeline: Pipeline }).pipeline
          const run = pool.runs.findIndex(({ id }) => id === currentRun?.id) - length + 1
          const seed = /"seed":(\d+)/.exec(jsonConfig)?.[1]
          const how = [currentRun?.outcome, currentRun?.error].filter((each) => each !== undefined)
          const words = [deleted ? 'deleted' : started ? 'started' : 'stopped', run, currentRun?.state, ...how, seed]
          return words.join(' ')
        })
      }
    }

    test('a start that takes its time, and one that fails', async () => {
      const { id } = await create()
      await settled()
      const news = await following()
      pool.prompt = false
      const started = start(id)
      await settled()
      expect(news()).toEqual(['started 1 STARTING 200'])
      expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'STARTING' } })
      pool.last.run()
      await started
      await settled()
      expect(news()).toEqual(['started 1 RUNNING 200'])
      await end('FAILED', 'threw')
      expect(news()).toEqual(['stopped 1 ENDED FAILED threw 200'])
      const failed = expect(start(id)).rejects.toMatchObject({ code: 'ABORTED' })
      await settled()
      await end('FAILED', 'port taken')
      await failed
      await settled()
      expect(news()).toEqual(['started 2 STARTING 200', 'stopped 2 ENDED FAILED port taken 200'])
    })

    test('a start that waits for the end of the last run', async () => {
      const { id } = await create()
      await start(id)
      await stop(id)
      await settled()
      const news = await following()
      const started = start(id)
      await settled()
      expect(news()).toEqual([])
      await end('FAILED', 'killed')
      await started
      await settled()
      expect(news()).toEqual(['stopped 0 ENDED FAILED killed 200', 'started 1 STARTING 200', 'started 1 RUNNING 200'])
    })

    test('an update that replaces the run; its settings come with the run that is stored with them', async () => {
      const { id } = await create()
      await start(id)
      await settled()
      const news = await following()
      pool.prompt = false
      const updated = update(id, replacing)
      await settled()
      expect(news()).toEqual(['started 0 STOPPING 200'])
      await end()
      expect(news()).toEqual(['started 0 ENDED STOPPED 200', 'started 1 STARTING 200'])
      pool.last.run()
      await updated
      await settled()
      expect(news()).toEqual(['started 1 RUNNING 300'])
    })

    test('one that fails: its settings are not told', async () => {
      const { id } = await create()
      await start(id)
      await settled()
      const news = await following()
      pool.prompt = false
      const failed = expect(update(id, replacing)).rejects.toMatchObject({ code: 'ABORTED' })
      await settled()
      await end()
      await end('FAILED', 'port taken')
      await failed
      await settled()
      expect(news()).toEqual([
        'started 0 STOPPING 200',
        'started 0 ENDED STOPPED 200',
        'started 1 STARTING 200',
        'stopped 1 ENDED FAILED port taken 200',
      ])
    })

    test('an update that a run takes its time to take over', async () => {
      const { id } = await create({ restartPolicy: { always: { maxRestarts: 0 } } })
      await start(id)
      await settled()
      const news = await following()
      pool.last.reconfigured = () => new Promise(() => {})
      const updated = update(id, { jsonConfig: config(2) })
      await settled()
      expect(news()).toEqual([])
      await end('FAILED', 'threw')
      await updated
      await settled()
      // Its settings have no restart policy.
      expect(news()).toEqual(['stopped 0 ENDED FAILED threw 200'])
    })

    test('a deletion that waits for the end of the run', async () => {
      const { id } = await create()
      await start(id)
      await settled()
      const news = await following()
      const removed = remove(id)
      await settled()
      expect(news()).toEqual(['started 0 STOPPING 200'])
      await end()
      await removed
      await settled()
      expect(news()).toEqual(['stopped 0 ENDED STOPPED 200', 'deleted 0 ENDED STOPPED 200'])
    })

    test('while the disk takes its time nothing overtakes the answer, and nothing is lost', async () => {
      const { id } = await create()
      await settled()
      const news = await following()
      const put = store.runs.put.bind(store.runs)
      let write = () => {}
      const isHeld = new Promise<void>((resolve) => {
        write = resolve
      })
      store.runs.put = async (run) => {
        await isHeld
        await put(run)
      }
      const started = start(id)
      await settle()
      pool.last.end({ outcome: 'COMPLETED' })
      await settle()
      expect(news()).toEqual([])
      write()
      await started
      await settled()
      expect(news()).toEqual(['started 1 STARTING 200', 'started 1 RUNNING 200', 'stopped 1 ENDED COMPLETED 200'])
    })
  })

  test('every subscriber gets the same message object, so that it is encoded once', async () => {
    const [a, b] = [await follow(), await follow()]
    await create()
    await settled()
    expect(a.shared).toHaveLength(1)
    expect(a.shared[0]).toBe(b.shared[0])
  })

  test('a subscriber that does not read is cut off, others are not', async () => {
    const [slow, quick] = [await follow(), await follow()]
    slow.writable = false
    const { id } = await create()
    for (let i = 0; i < MAX_EVENT_BACKLOG + 1; i++) {
      await start(id)
      pool.last.end({ outcome: 'COMPLETED' })
      await settle(1)
      if (slow.closed) break
    }
    expect(slow.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    expect(quick.closed).toBe(false)
    expect(quick.messages.length).toBeGreaterThan(MAX_EVENT_BACKLOG)
  })

  test('ends with UNAVAILABLE when the node closes', async () => {
    const sink = await follow()
    await close()
    expect(sink.error).toMatchObject({ code: 'UNAVAILABLE' })
    await expect(create()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await open()
  })
})

describe('runs', () => {
  const line = (message: string): LogLine => ({
    timestamp: 0,
    level: 'INFO',
    component: 'c',
    message,
    fields: { n: 1, b: true },
  })

  test('a slow follower of a log is told how much it missed', async () => {
    const { id } = await create()
    const runId = await start(id)
    const sink = new CollectingSink<LogStreamMessages>()
    await service.handlers.openLogStream({ nodeId, runId }, call, sink)
    sink.writable = false
    for (let i = 0; i < 6_000; i += 2) pool.last.log([line(`${i}`), line(`${i + 1}`)])
    expect(sink.messages).toHaveLength(0)
    sink.drain()
    const heard = sink.messages.flatMap(({ messages }) => messages)
    expect(heard[0]).toEqual({
      timestamp: new Date(0),
      level: 'INFO',
      component: 'c',
      message: '0',
      fields: { n: '1', b: 'true' },
    })
    expect(heard.at(-1)?.level).toBe('WARN')
    expect(heard.at(-1)?.message).toContain(`${6_000 - (heard.length - 1)} lines`)
    pool.last.log([line('after')])
    expect(sink.messages.at(-1)?.messages[0]?.message).toBe('after')
  })

  test('telemetry: many followers share a sample; the last values come before the end', async () => {
    const { id } = await create()
    const runId = await start(id)
    const sinks = [new CollectingSink<TelemetrySample>(), new CollectingSink<TelemetrySample>()]
    for (const sink of sinks) await service.handlers.openTelemetryStream({ nodeId, runId }, call, sink)
    expect(sinks[0]?.shared[0]).toBe(sinks[1]?.shared[0])
    expect(sinks[0]?.messages[0]?.metricCollections[0]).toMatchObject({
      path: 'sink',
      metrics: { packets: { uint64Value: 0 } },
    })
    pool.last.end({ outcome: 'COMPLETED' })
    await settled()
    for (const sink of sinks) {
      expect(sink.messages.length).toBeGreaterThanOrEqual(2)
      expect(sink.error).toMatchObject({ code: 'ABORTED', message: 'run ended' })
    }
  })

  test('telemetry: followers that ask for the same share what they get, others do not', async () => {
    const { id } = await create()
    const runId = await start(id)
    const follow = async (options?: TelemetryOptions) => {
      const sink = new CollectingSink<TelemetrySample>()
      await service.handlers.openTelemetryStream({ nodeId, runId, options }, call, sink)
      return sink
    }
    const none = { metrics: [], roles: [], portUnits: [] }
    const [all, empty, named, again, other] = await Promise.all([
      follow(),
      follow(none),
      follow({ ...none, metrics: ['packets', 'more'] }),
      follow({ ...none, metrics: ['more', 'packets'] }),
      follow({ ...none, metrics: ['more'] }),
    ])
    expect(empty.shared[0]).toBe(all.shared[0])
    expect(again.shared[0]).toBe(named.shared[0])
    expect(named.shared[0]).not.toBe(all.shared[0])
    expect(named.messages[0]?.metricCollections.map(({ path }) => path)).toEqual(['sink'])
    expect(other.messages[0]?.metricCollections).toEqual([])
    pool.last.end({ outcome: 'COMPLETED' })
    await settled()
    expect(again.shared.at(-1)).toBe(named.shared.at(-1))
    const late = await follow({ ...none, metrics: ['more'] })
    expect([late.messages.length, late.messages[0]?.metricCollections]).toEqual([1, []])
    for (const sink of [all, named, other, late]) expect(sink.error).toMatchObject({ code: 'ABORTED' })
  })

  test('telemetry of a run that has not started yet comes once it has', async () => {
    const { id } = await create()
    pool.prompt = false
    const starting = start(id)
    await settled()
    const sink = new CollectingSink<TelemetrySample>()
    await service.handlers.openTelemetryStream({ nodeId, runId: pool.last.id }, call, sink)
    expect(sink.messages).toHaveLength(1)
    pool.last.run()
    await starting
  })

  test('the logs of the last runs are kept, those before are forgotten', async () => {
    const { id } = await create()
    const runs: string[] = []
    const first = new CollectingSink<LogStreamMessages>()
    for (let i = 0; i <= RUN_LOGS; i++) {
      runs.push(await start(id))
      if (i === 0) await service.handlers.openLogStream({ nodeId, runId: runs[0] as string }, call, first)
      pool.last.end({ outcome: 'COMPLETED' })
      await settled()
    }
    expect(first.closed).toBe(true)
    expect(first.error).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('the last 3 runs') })
    const open = (runId: string) => service.handlers.openLogStream({ nodeId, runId }, call, new CollectingSink())
    await expect(open(runs[0] as string)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await open(runs[1] as string)
    // Its pipeline is still found.
    expect((await service.handlers.getPipelineByRunId({ nodeId, id: runs[0] as string }, call)).pipeline?.id).toBe(id)
  })

  test('where fewer logs are kept than before, those of the other runs are off the disk once the node is up', async () => {
    const { id } = await create()
    const runs: string[] = []
    for (let i = 0; i < RUN_LOGS; i++) {
      runs.push(await start(id))
      pool.last.end({ outcome: 'COMPLETED' })
      await settled()
    }
    await close()
    const logs = () => readdirSync(join(directory, 'logs')).sort()
    expect(logs()).toEqual(runs.map((run) => `${run}.jsonl`).sort())
    await open(1)
    expect(logs()).toEqual([`${runs.at(-1)}.jsonl`])
  })

  test('where one log is kept, a run that is replaced ends as any other before its own is forgotten', async () => {
    await close()
    await open(1)
    const { id } = await create()
    const runId = await start(id)
    const [log, telemetry] = [new CollectingSink<LogStreamMessages>(), new CollectingSink<TelemetrySample>()]
    await service.handlers.openLogStream({ nodeId, runId }, call, log)
    await service.handlers.openTelemetryStream({ nodeId, runId }, call, telemetry)
    const updated = update(id, { jsonConfig: config(1, 300), forceRestart: true })
    await settled()
    pool.last.end({ outcome: 'STOPPED' })
    await updated
    expect(telemetry.error).toMatchObject({ code: 'ABORTED' })
    expect(log.messages.at(-1)?.messages[0]?.message).toBe('ended: STOPPED')
    expect(log.error).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('the last 1 runs') })
    const again = service.handlers.openLogStream({ nodeId, runId }, call, new CollectingSink())
    await expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('who is still being sent past lines when a log goes is told so, as who follows it is', async () => {
    const { id } = await create()
    const runId = await start(id)
    pool.last.log(Array.from({ length: 1_000 }, (_, i) => line(`${i}`)))
    const sink = new CollectingSink<LogStreamMessages>()
    sink.writable = false
    const opened = service.handlers.openLogStream({ nodeId, runId, options: { lines: 1_000n } }, call, sink)
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    await service.handlers.deletePipeline({ nodeId, id }, call)
    sink.drain()
    await opened
    expect(sink.error).toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('its pipeline was deleted'),
    })
  })

  test('lines that went from the log before its reader had room for them are counted where they are missing', async () => {
    const { id } = await create()
    const runId = await start(id)
    const log = (from: number) =>
      pool.last.log(Array.from({ length: 3_000 }, (_, i) => line(`${from + i}`.padEnd(200))))
    log(0)
    const sink = new CollectingSink<LogStreamMessages>({ stuck: true })
    let isOpened = false
    const opened = service.handlers
      .openLogStream({ nodeId, runId, options: { lines: 3_000n } }, call, sink)
      .then(() => (isOpened = true))
    await until(() => sink.messages.length > 0)
    log(3_000)
    await until(() => {
      sink.drain()
      return isOpened
    })
    await opened
    const told = sink.messages.flatMap(({ messages }) => messages.map(({ message }) => message))
    const at = told.findIndex((message) => message.includes('lines are missing'))
    const missing = Number.parseInt(told[at] as string, 10)
    expect(missing).toBeGreaterThan(100)
    const rest = told.map(Number).filter((_, i) => i !== at)
    expect(rest).toEqual(Array.from({ length: 6_000 - missing }, (_, i) => (i < at ? i : i + missing)))
  })

  test('lines that the disk did not take are counted in their place, also among the first that are sent', async () => {
    const { id } = await create()
    const runId = await start(id)
    pool.last.log(Array.from({ length: 2_200 }, (_, i) => line(`${i}`)))
    pool.last.end({ outcome: 'STOPPED' })
    await settled()
    const read = async () => {
      const sink = new CollectingSink<LogStreamMessages>()
      await service.handlers.openLogStream({ nodeId, runId, options: { lines: 5_000n } }, call, sink)
      return sink.messages.flatMap(({ messages }) => messages.map(({ message }) => message))
    }
    // All of it is on the disk then.
    await read()
    const path = join(directory, 'logs', `${runId}.jsonl`)
    const isLost = (text: string) => /"message":"(1[0-9]|21[0-9][0-9])"/.test(text)
    const kept = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, kept.filter((text) => !isLost(text)).join('\n'))
    const told = await read()
    const at = told.indexOf('0')
    expect(told[at + 10]).toMatch(/^10 lines are missing: /)
    expect(told[at + 11]).toBe('20')
    expect(told.slice(-3)).toMatchObject(['2099', expect.stringMatching(/^100 lines are missing: /), expect.anything()])
  })

  test('of several lines at once that a filter stops the run for, the first is told', async () => {
    const log_filters = [{ level: 'WARN', actions: { actions: ['stop', 'log'] } }]
    const jsonConfig = JSON.stringify({ engine_config: { ...JSON.parse(config()).engine_config, log_filters } })
    const { id } = await create({ jsonConfig })
    const runId = await start(id)
    pool.last.log(['one', 'two', 'three'].map((message) => ({ ...line(message), level: 'WARN' })))
    await settled()
    const sink = new CollectingSink<LogStreamMessages>()
    await service.handlers.openLogStream({ nodeId, runId, options: { lines: 10n } }, call, sink)
    const told = sink.messages.flatMap(({ messages }) => messages.map(({ message }) => message))
    expect(told).toEqual(['one', 'two', 'three', 'stopped by a log filter, for this line of c: WARN one'])
  })

  test('a node that closes stops its runs, and knows how they ended when it is back', async () => {
    const { id } = await create({ startupPolicy: { auto: {} } })
    const manual = await create()
    const runId = await start(id)
    await start(manual.id)
    await close()
    await open()
    expect(await get(id)).toMatchObject({ started: false, currentRun: { id: runId, outcome: 'STOPPED' } })
    service.startWithNode()
    await settled()
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
    expect(await get(manual.id)).toMatchObject({ started: false, currentRun: { outcome: 'STOPPED' } })
  })

  test('a start that waits as the node closes is not carried out: neither behind a stop nor behind another operation', async () => {
    const { id } = await create()
    await start(id)
    await stop(id)
    const refused = [start(id), start(id)].map((late) => expect(late).rejects.toMatchObject({ code: 'UNAVAILABLE' }))
    await settled()
    await close()
    await Promise.all(refused)
    expect(pool.runs).toHaveLength(1)
    await open()
  })

  test('what starts with the node and fails follows its restart policy', async () => {
    const { id } = await create({ startupPolicy: { auto: {} }, restartPolicy: { onFailure: { maxRestarts: 1 } } })
    pool.prompt = false
    service.startWithNode()
    await settled()
    pool.last.end({ outcome: 'FAILED', error: 'no permission' })
    await settled()
    pool.prompt = true
    clock.increment(1_000)
    await settled()
    expect(pool.runs).toHaveLength(2)
    expect(await get(id)).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
  })
})
