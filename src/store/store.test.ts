/** Records on disk: as they were written, after the store was closed and opened again. */
import { mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { StoredNode } from './nodes.ts'
import type { PipelineRecord } from './pipelines.ts'
import { BLOCK } from './requests.ts'
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

test('what the hub keeps is there after a reopening', async () => {
  const node: StoredNode = {
    id: 'n',
    key: Uint8Array.from({ length: 32 }, (_, i) => i * 8),
    name: 'näme',
    metadata: {
      text: { stringValue: 'eu' },
      bytes: { bytesValue: Uint8Array.of(0, 255) },
      whole: { intValue: -(2n ** 60n) },
      small: { intValue: 4n },
      real: { doubleValue: 0.5 },
      flag: { boolValue: false },
    },
    services: ['PIPELINES'],
    joinedAt: 1,
    lastSeen: 2.5,
  }
  const signIn = { hubAddress: 'https://hub:1', hubId: 'h', hubKey: node.key, certificate: 'ab' }
  let store = new Store(directory)
  expect([store.details.get(), store.signIn.get()]).toEqual([undefined, undefined])
  await store.nodes.put(node)
  await store.nodes.put({ ...node, id: 'gone' })
  await store.nodes.remove('gone')
  await store.signIn.put(signIn)
  await store.details.put({ name: node.name, metadata: node.metadata })
  await store.close()
  store = new Store(directory)
  const [stored] = store.nodes.all()
  expect(stored).toMatchObject({ id: 'n', name: 'näme', services: ['PIPELINES'], joinedAt: 1, lastSeen: 2.5 })
  expect(Buffer.from(stored?.key ?? [])).toEqual(Buffer.from(node.key))
  expect(stored?.metadata).toMatchObject({ whole: { intValue: -(2n ** 60n) }, small: { intValue: 4n } })
  expect(Buffer.from(stored?.metadata.bytes?.bytesValue ?? [])).toEqual(Buffer.of(0, 255))
  expect(store.nodes.all()).toHaveLength(1)
  expect(store.signIn.get()).toMatchObject({ hubId: 'h', certificate: 'ab' })
  expect(store.details.get()?.metadata.real).toEqual({ doubleValue: 0.5 })
  await store.signIn.remove()
  expect(store.signIn.get()).toBeUndefined()
  await store.close()
})

test('request ids rise and are never given out again', async () => {
  let last = 0
  for (let round = 0; round < 3; round++) {
    const store = new Store(directory)
    const ids = await Promise.all(Array.from({ length: BLOCK + 3 }, () => store.requestIds.next()))
    for (const id of ids) {
      expect(id).toBeGreaterThan(last)
      last = id
    }
    await store.close()
  }
})

test('changes resolve in the order in which they were begun', async () => {
  const store = new Store(directory)
  for (let round = 0; round < 20; round++) {
    const resolved: number[] = []
    const puts = Array.from({ length: 50 }, async (_, n) => {
      await store.hubId.put(String(n))
      resolved.push(n)
    })
    await Promise.all(puts)
    expect(resolved).toEqual(Array.from({ length: 50 }, (_, n) => n))
  }
  await store.close()
})

test.each([
  ['that it would have to grow for', { reserve: () => {} }],
  ['that it has room for', {}],
])(
  'a store that was deleted under the node takes no change %s, and says why, nor has it one once it is put back',
  async (_what, options) => {
    const store = new Store(directory, options)
    await store.pipelines.put(pipeline)
    const file = join(directory, 'penstock.lmdb')
    renameSync(file, `${file}.away`)
    const gone = /did not take the change \(ENOENT\): it was deleted under the node/
    await expect(store.pipelines.put({ ...pipeline, id: 'second' })).rejects.toThrow(gone)
    await expect(store.pipelines.remove(pipeline.id)).rejects.toThrow(gone)
    writeFileSync(file, '')
    await expect(store.pipelines.remove(pipeline.id)).rejects.toThrow(/\(another file is in its place\)/)
    await store.close()
    renameSync(`${file}.away`, file)
    const again = new Store(directory)
    expect(again.pipelines.all()).toEqual([pipeline])
    await again.close()
  },
)
