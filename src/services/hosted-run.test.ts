/** The log of a run, as a follower gets it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CollectingSink } from '../../test/harness/sink.ts'
import type { LogStreamMessages } from '../contract/types.ts'
import { RunLog } from '../telemetry/run-log.ts'
import { HostedRun } from './hosted-run.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-hosted-run-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

test('lines that the disk did not take are counted where they are missing', async () => {
  const path = join(directory, 'run.jsonl')
  const numbers = [0, 1, 2, 5, 6, 10]
  const line = (n: number) =>
    `${JSON.stringify({ n, timestamp: 0, level: 'INFO', component: '', message: `${n}`, fields: {} })}\n`
  writeFileSync(path, numbers.map(line).join(''))
  const log = RunLog.stored({ path, bytes: 1 << 20, onLost: () => undefined })
  const record = { id: 'run', pipelineId: 'pipeline', state: 'ENDED', createdAt: 0, outcome: 'STOPPED' } as const
  const sink = new CollectingSink<LogStreamMessages>()
  await HostedRun.ended(record as never, log).followLog(sink, 100)
  const told = sink.messages.flatMap(({ messages }) => messages.map(({ message }) => message.split(':')[0]))
  expect(told).toEqual(['0', '1', '2', '2 lines are missing', '5', '6', '3 lines are missing', '10'])
})
