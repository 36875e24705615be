/** A watch of one bucket, told what it follows by hand. */
import type { KV, KvWatchEntry } from '@nats-io/kv'
import { expect, test, vi } from 'vitest'
import { Watch, type WatchedKey } from './watch.ts'

const entry = (key: string, revision: number, operation: 'PUT' | 'DEL' = 'PUT') =>
  ({ key, revision, operation, value: Uint8Array.of(revision), created: new Date(revision) }) as KvWatchEntry

async function watched(...entries: KvWatchEntry[]) {
  const bucket = {
    watch: async () =>
      (async function* () {
        yield* entries
      })(),
  } as unknown as KV
  const told: WatchedKey[] = []
  const onEnd = vi.fn()
  const watch = await Watch.begin(bucket, (key) => told.push(key), onEnd)
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledTimes(1))
  return { watch, keys: told.map(({ key, revision, value }) => [key, revision, value !== undefined]), onEnd }
}

test('tells what comes, in order, and who waits for a revision', async () => {
  const { watch, keys } = await watched(entry('a', 3), entry('b', 7, 'DEL'), entry('a', 8))
  expect(keys).toEqual([
    ['a', 3, true],
    ['b', 7, false],
    ['a', 8, true],
  ])
  expect([...watch.takeSeen()]).toEqual(['a', 'b'])
  await watch.passed(8)
  await expect(watch.passed(9)).rejects.toThrow('the watch has ended')
})

test('tells once what comes twice; another of the same revision is of another bucket', async () => {
  const twice = await watched(entry('a', 30), entry('a', 30), entry('b', 31))
  expect(twice.keys.map(([key]) => key)).toEqual(['a', 'b'])
  await twice.watch.passed(31)
  const { keys, watch } = await watched(entry('a', 30), { ...entry('a', 30), created: new Date(1) } as KvWatchEntry)
  expect(keys).toHaveLength(1)
  await expect(watch.passed(31)).rejects.toThrow('begun anew')
})

test('ends when revisions begin anew: what is told from there on is of another bucket', async () => {
  const { watch, keys, onEnd } = await watched(entry('a', 30), entry('b', 2), entry('c', 31))
  expect(keys).toEqual([['a', 30, true]])
  expect(onEnd).toHaveBeenCalledWith(expect.objectContaining({ message: expect.stringContaining('2 after 30') }))
  await expect(watch.passed(31)).rejects.toThrow('begun anew')
})
