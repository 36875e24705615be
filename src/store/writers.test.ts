/** What lmdb's threads tell of writes that the disk refuses. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { expect, test } from 'vitest'
import { until } from '../../test/harness/waiting.ts'
import { durable } from './durable.ts'
import { MDB_PANIC, watchEnvironment } from './fatal.ts'
import { close, watchWrites } from './writers.ts'

type Told = (status: number) => unknown

test('what is answered is what the thread that wrote it has ended with, in the order of the writes, and the store closes', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-writers-'))
  const root = open<number, string>({ path: join(directory, 'a.lmdb'), noSubdir: true, eventTurnBatching: false })
  const { env } = root as unknown as { env: { startWriting(address: number, told: Told): void } }
  const start = env.startWriting.bind(env)
  const EIO = 5
  const held: (() => unknown)[] = []
  // Its first thread fails, of which lmdb's promise may say that it went well, and is heard of behind the second.
  const startWriting = (address: number, told: Told) =>
    start(address, (status) => {
      if (status !== 0) return told(status)
      const ending = held.length === 0 ? EIO : 0
      held.push(() => told(ending))
      if (held.length === 2) for (const tell of held.splice(0).reverse()) tell()
      return undefined
    })
  Object.defineProperty(env, 'startWriting', { value: startWriting, configurable: true })
  watchWrites(root)
  const told: string[] = []
  const write = (key: string) =>
    durable(root, [() => root.put(key, 1)]).then(
      () => told.push(key),
      ({ message }) => told.push(`${key}: ${message}`),
    )
  const first = write('a')
  await until(() => held.length === 1)
  await Promise.all([first, write('b')])
  expect(told).toEqual([expect.stringMatching(/^a: .* did not take the change \(Input\/output error/), 'b'])
  await close(root)
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
  await durable(root, [() => root.put('a', 1)])
  isFailing = true
  const write = () => durable(root, [() => root.put('a', 2)])
  const refused = /did not take the change .* restart the node/
  await Promise.all([write(), write()].map((written) => expect(written).rejects.toThrow(refused)))
  await expect(write()).rejects.toThrow(refused)
  expect(root.get('a')).toBe(1)
  expect(unlocked).toBe(1)
  await close(root)
  rmSync(directory, { recursive: true })
})
