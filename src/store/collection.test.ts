/** Collections and single records on a real environment: what is put, replaced and removed, and what the disk is asked for. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RecordCollection, SingleRecord } from './collection.ts'
import { reserveWith } from './room.ts'
import { watchWrites } from './writers.ts'

interface Thing {
  id: string
  text: string
}

let directory: string
let root: RootDatabase
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-collection-'))
  root = open({ path: join(directory, 'x.lmdb'), noSubdir: true, eventTurnBatching: false })
  watchWrites(root)
})
afterEach(async () => {
  await root.close()
  rmSync(directory, { recursive: true })
})

const keyOf = ({ id }: Thing) => id

test('a record replaces the one with its key; all come in the order of their keys', async () => {
  const things = new RecordCollection<Thing>(root, { name: 'things', keyOf })
  await things.put({ id: 'b', text: 'first' })
  await things.put({ id: 'a', text: 'other' })
  await things.put({ id: 'b', text: 'second' })
  expect(things.all()).toEqual([
    { id: 'a', text: 'other' },
    { id: 'b', text: 'second' },
  ])
  expect([things.get('b')?.text, things.get('c')]).toEqual(['second', undefined])
})

test('one key or several are removed, those that are not there too', async () => {
  const things = new RecordCollection<Thing>(root, { name: 'things', keyOf })
  for (const id of ['a', 'b', 'c', 'd']) await things.put({ id, text: '' })
  await things.remove('a')
  await things.remove(['b', 'unknown', 'd'])
  await things.remove([])
  expect(things.all().map(keyOf)).toEqual(['c'])
})

test('collections with equal keys do not meet', async () => {
  const [one, two] = ['one', 'two'].map((name) => new RecordCollection<Thing>(root, { name, keyOf }))
  await one?.put({ id: 'a', text: '1' })
  expect([one?.get('a')?.text, two?.get('a')]).toEqual(['1', undefined])
})

test('the disk is asked for a record that says its size, and a refusal leaves what was there', async () => {
  let hasRoom = true
  reserveWith(root, () => {
    if (!hasRoom) throw new Error('no room')
  })
  const bytesOf = ({ text }: Thing) => text.length
  const small = new RecordCollection<Thing>(root, { name: 'small', keyOf })
  const large = new RecordCollection<Thing>(root, { name: 'large', keyOf, bytesOf })
  await large.put({ id: 'a', text: 'x' })
  await large.put({ id: 'b', text: 'x' })
  hasRoom = false
  const text = 'x'.repeat(4 << 20)
  await expect(large.put({ id: 'b', text })).rejects.toThrow('no room')
  expect(large.all().map((thing) => thing.text)).toEqual(['x', 'x'])
  await small.put({ id: 'c', text })
  await large.remove('a')
  expect(large.all().map(keyOf)).toEqual(['b'])
})

test('a single record is absent, there, replaced, and absent again', async () => {
  const single = new SingleRecord<Thing>(root, { name: 'single', key: 'k' })
  expect(single.get()).toBeUndefined()
  await single.put({ id: 'a', text: '1' })
  await single.put({ id: 'b', text: '2' })
  expect(single.get()).toEqual({ id: 'b', text: '2' })
  await single.remove()
  expect(single.get()).toBeUndefined()
})
