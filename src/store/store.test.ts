/** Records on disk: as they were written, after the store was closed and opened again. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DirectoryInUse } from './owner.ts'
import type { PipelineRecord } from './pipelines.ts'
import type { RunRecord } from './runs.ts'
import { Store } from './store.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-store-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const pipeline: PipelineRecord = {
  id: 'a',
  createdAt: 1_234.5,
  settings: {
    name: 'näme',
    jsonConfig: `{"x":"${'y'.repeat(1 << 20)}"}`,
    restartPolicy: { onFailure: { maxRestarts: 3 } },
    startupPolicy: { auto: {} },
    defaultLoggingLevel: 'WARN',
    nodeReferenceId: 'n',
    instructionsTimeout: 2_147_483_647,
    cpuPin: 0,
    performanceMode: true,
  },
}
const run: RunRecord = {
  id: 'r',
  pipelineId: 'a',
  state: 'ENDED',
  startedAt: 1,
  endedAt: 2,
  outcome: 'FAILED',
  error: 'x',
}

test('what was written is there after a reopening; what was removed is not', async () => {
  let store = new Store(directory)
  await store.pipelines.put(pipeline)
  await store.pipelines.put({ ...pipeline, id: 'b' })
  await store.runs.put(run)
  await store.runs.put({ ...run, id: 's' })
  await store.pipelines.remove('b')
  await store.runs.remove(['s', 'unknown'])
  await store.close()
  store = new Store(directory)
  expect(store.pipelines.all()).toEqual([pipeline])
  expect(store.runs.all()).toEqual([run])
  await store.close()
})

test('its file can be read by its owner only', async () => {
  const store = new Store(join(directory, 'deep/below'))
  expect(statSync(join(directory, 'deep/below/penstock.lmdb')).mode & 0o077).toBe(0)
  expect(statSync(join(directory, 'deep/below')).mode & 0o077).toBe(0)
  await store.close()
})

test('one at a time', async () => {
  const store = new Store(directory)
  expect(() => new Store(directory)).toThrow(DirectoryInUse)
  await store.close()
  await new Store(directory).close()
})
