/** What lmdb's threads tell of writes that the disk refuses. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { expect, test } from 'vitest'
import { durable } from './durable.ts'
import { MDB_PANIC, watchEnvironment } from './fatal.ts'
import { close, watchWrites } from './writers.ts'

type Told = (status: number) => unknown

test('what is on disk is answered, and the store closes, though a flush that lmdb waits for as well has failed', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-writers-'))
  const root = open<number, string>({ path: join(directory, 'a.lmdb'), noSubdir: true, eventTurnBatching: false })
  const { env } = root as unknown as { env: { startWriting(address: number, told: Told): void } }
  const start = env.startWriting.bind(env)
  let failed = 0
  // As fdatasync(2) does with EIO: lmdb tells that in place of the end.
  const startWriting = (address: number, told: Told) =>
    start(address, (status) => {
      if (status === 0) failed++
      return told(status === 0 ? 5 : status)
    })
  Object.defineProperty(env, 'startWriting', { value: startWriting, configurable: true })
  watchWrites(root)
  await durable(root, () => [root.put('a', 1)])
  await durable(root, () => [root.put('a', 2)])
  expect(root.get('a')).toBe(2)
  await close(root)
  expect(failed).toBeGreaterThan(0)
  rmSync(directory, { recursive: true })
})

test('where the environment has failed, what waits and every further write is refused, and what was there is read', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-writers-'))
  const root = open<number, string>({ path: join(directory, 'a.lmdb'), noSubdir: true, eventTurnBatching: false })
  const { env } = root as unknown as { env: { startWriting(address: number, told: Told): void } }
  const start = env.startWriting.bind(env)
  let isFailing = false
  let unlocked = 0
  // As lmdb does where the transaction cannot begin: the thread keeps the lock, and nobody is answered.
  const startWriting = (address: number, told: Told) => {
    if (isFailing) setImmediate(told, MDB_PANIC)
    else start(address, told)
  }
  Object.defineProperty(env, 'startWriting', { value: startWriting, configurable: true })
  Object.defineProperty(env, 'resumeWriting', { value: () => unlocked++ })
  watchWrites(root)
  watchEnvironment(root)
  await durable(root, () => [root.put('a', 1)])
  isFailing = true
  const write = () => durable(root, () => [root.put('a', 2)])
  const refused = /did not take the change .* restart the node/
  await Promise.all([write(), write()].map((written) => expect(written).rejects.toThrow(refused)))
  await expect(write()).rejects.toThrow(refused)
  expect(root.get('a')).toBe(1)
  expect(unlocked).toBe(1)
  await close(root)
  rmSync(directory, { recursive: true })
})
