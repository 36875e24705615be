/** The log of a run, as a follower gets it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CollectingSink } from '../../test/harness/sink.ts'
import { ServiceError } from '../contract/errors.ts'
import type { CapturedPackets, LogStreamMessages } from '../contract/types.ts'
import { components as registry } from '../dataplane/components/registry.ts'
import { collectGarbage } from '../dataplane/engine/garbage.ts'
import { createRegion, MetricLayout } from '../dataplane/engine/metrics.ts'
import type { MetricsFile } from '../telemetry/metrics-file.ts'
import { ProcessMeter } from '../telemetry/process-meter.ts'
import { RunLog } from '../telemetry/run-log.ts'
import { HostedRun } from './hosted-run.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-hosted-run-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

test.each([
  ['', [], ['0', '1', '2', '2 lines are missing', '5', '6', '3 lines are missing', '10']],
  [', the first of them too', [0, 1, 2], ['5 lines are missing', '5', '6', '3 lines are missing', '10']],
])('lines that the disk did not take are counted where they are missing%s', async (_, lost, expected) => {
  write(
    'run.jsonl',
    [0, 1, 2, 5, 6, 10].filter((n) => !(lost as number[]).includes(n)),
  )
  expect(await read()).toEqual(expected)
})

test('the oldest lines, which are gone with their file, are not counted', async () => {
  for (const [index, n] of [3, 2, 1].entries()) write(`run.jsonl.${n}`, [5 + index])
  write('run.jsonl', [8])
  expect(await read()).toEqual(['5', '6', '7', '8'])
})

test('a node that goes waits until the file of its metrics says that the run has ended', async () => {
  let end = () => {}
  const file = { follow: () => {}, end: () => new Promise<void>((resolve) => (end = resolve)) }
  const run = new HostedRun('pipeline', 'run', logOf())
  run.shareMetrics(file as unknown as MetricsFile)
  let isOver = false
  const over = run.abandon(new ServiceError('UNAVAILABLE', 'the node is closing')).then(() => {
    isOver = true
  })
  await run.log.written()
  await new Promise((resolve) => setImmediate(resolve))
  expect(isOver).toBe(false)
  end()
  await over
})

test('what has followed the packets of a run that is on is let go of; those that follow at its end are told', async () => {
  let end = () => {}
  const handle = {
    region: createRegion(new MetricLayout()),
    ended: new Promise<void>((resolve) => (end = resolve)),
    capture: () => ({ reader: { read: () => [], dropped: 0 }, close: () => {} }),
  }
  const config = { components: { sink: { key: 'traffic_sink', config: { input: 'a' } } } }
  const run = new HostedRun('pipeline', 'run', logOf())
  run.launched(handle as never, config as never, 60_000, new ProcessMeter())
  const clock = { setTimeout: () => 0, clearTimeout: () => {} }
  const request = { nodeId: '', runId: 'run', component: 'sink', side: 'INPUT' } as const
  const follow = (sink: CollectingSink<CapturedPackets>) => run.followPackets(request, sink, { registry, clock })
  const gone = Array.from({ length: 40 }, () => {
    const sink = new CollectingSink<CapturedPackets>()
    follow(sink)
    sink.end()
    return new WeakRef(sink)
  })
  const [early, late] = [new CollectingSink<CapturedPackets>(), new CollectingSink<CapturedPackets>()]
  follow(early)
  await new Promise((resolve) => setImmediate(resolve)) // what a WeakRef was made of stays until then
  collectGarbage()
  expect(gone.filter((sink) => sink.deref() !== undefined)).toHaveLength(0)
  expect(early.closed).toBe(false)
  end()
  await handle.ended
  follow(late)
  await new Promise((resolve) => setImmediate(resolve))
  expect([early.closed, late.closed]).toEqual([true, true])
})

function write(name: string, numbers: readonly number[]): void {
  const line = (n: number) =>
    `${JSON.stringify({ n, timestamp: 0, level: 'INFO', component: '', message: `${n}`, fields: {} })}\n`
  writeFileSync(join(directory, name), numbers.map(line).join(''))
}

function logOf(): RunLog {
  return RunLog.stored({ path: join(directory, 'run.jsonl'), bytes: 1 << 20, onLost: () => undefined })
}

/** What a follower of the run that has ended is sent, without what stands behind a colon. */
async function read(): Promise<(string | undefined)[]> {
  const log = logOf()
  const record = { id: 'run', pipelineId: 'pipeline', state: 'ENDED', createdAt: 0, outcome: 'STOPPED' } as const
  const sink = new CollectingSink<LogStreamMessages>()
  await HostedRun.ended(record as never, log).followLog(sink, 100)
  return sink.messages.flatMap(({ messages }) => messages.map(({ message }) => message.split(':')[0]))
}
