/** The order of records that were added while the clock went back and forth, after the store was closed and opened again. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RecordCollection } from './collection.ts'
import { OrderedCollection } from './ordered-collection.ts'
import { close, watchWrites } from './writers.ts'

interface Thing {
  id: string
  at: number
  state?: string
}

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-store-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** The things on disk, and what closes them. */
function opened() {
  const root = open({ path: join(directory, 'db'), noSubdir: true, maxDbs: 2, eventTurnBatching: false })
  watchWrites(root)
  const options = { name: 'things', keyOf: ({ id }: Thing) => id, timeOf: ({ at }: Thing) => at }
  return {
    things: new OrderedCollection<Thing>(root, options),
    unordered: new RecordCollection<Thing>(root, options),
    close: () => close(root),
  }
}

test('records come in the order in which they were added, changed or not', async () => {
  let { things, close } = opened()
  for (const thing of [
    { id: 'm', at: 5 },
    { id: 'z', at: 9 },
    { id: 'a', at: 1 },
  ]) {
    await things.put(thing)
  }
  await close()
  ;({ things, close } = opened())
  await things.put({ id: 'c', at: 0 })
  await things.put({ id: 'm', at: 5, state: 'changed' })
  await things.remove('z')
  await close()
  ;({ things, close } = opened())
  expect(things.all()).toEqual([
    { id: 'm', at: 5, state: 'changed' },
    { id: 'a', at: 1 },
    { id: 'c', at: 0 },
  ])
  expect(things.get('a')).toEqual({ id: 'a', at: 1 })
  await things.remove(['m', 'unknown'])
  await things.put({ id: 'm', at: 2 })
  expect(things.all().map(({ id }) => id)).toEqual(['a', 'c', 'm'])
  await close()
})

test('one that the disk did not let go of keeps its place', async () => {
  let { things, close } = opened()
  for (const id of ['a', 'b']) await things.put({ id, at: 0 })
  // Stands in for a disk that fails.
  vi.spyOn(RecordCollection.prototype, 'remove').mockRejectedValueOnce(new Error('EIO: i/o error, write'))
  await expect(things.remove('a')).rejects.toThrow('EIO')
  await things.put({ id: 'a', at: 0, state: 'changed' })
  await close()
  ;({ things, close } = opened())
  expect(things.all().map(({ id }) => id)).toEqual(['a', 'b'])
  await close()
})

test('those that an earlier build wrote come first, by their times', async () => {
  let { things, unordered, close } = opened()
  for (const [id, at] of [
    ['b', 7],
    ['a', 8],
    ['c', 3],
  ] as const) {
    await unordered.put({ id, at })
  }
  await things.put({ id: 'new', at: 0 })
  await things.put({ id: 'c', at: 3, state: 'changed' })
  await close()
  ;({ things, close } = opened())
  expect(things.all()).toEqual([
    { id: 'c', at: 3, state: 'changed' },
    { id: 'b', at: 7 },
    { id: 'a', at: 8 },
    { id: 'new', at: 0 },
  ])
  await close()
})
