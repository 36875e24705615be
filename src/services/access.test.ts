/** Tokens: who may handle them, what is kept of them, and that a revoked one is of no use from that moment on. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { CallContext } from '../contract/handlers.ts'
import { Store } from '../store/store.ts'
import { AccessService } from './access.ts'

const near: CallContext = {
  remoteAddress: '127.0.0.1',
  isLoopback: true,
  transport: 'rest',
  signal: new AbortController().signal,
  onAbort: () => () => {},
}
const far: CallContext = { ...near, remoteAddress: '192.0.2.7', isLoopback: false }

let directory: string
let store: Store
let access: AccessService
let now: number
const errors: unknown[] = []

function open(): void {
  store = new Store(directory)
  access = new AccessService({ tokens: store.tokens, onError: (error) => errors.push(error), now: () => now })
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
  now = Date.parse('2026-03-04T05:06:07Z')
  open()
})

afterEach(async () => {
  await store.close()
  rmSync(directory, { recursive: true, force: true })
  expect(errors).toEqual([])
})

const create = async (name: string, call = near) => (await access.handlers.createToken({ name }, call)).secret
const list = async () => (await access.handlers.getTokens({}, near)).tokens

test('a token is told once, verified, listed by name, and survives a restart as a hash', async () => {
  const secret = await create('b')
  await create('a')
  expect(secret).toMatch(/^penstock_[\w-]{43}$/)
  expect(access.verify(secret)).toBe('b')
  expect(access.verify(`${secret}x`)).toBeUndefined()
  expect(access.verify('')).toBeUndefined()
  expect((await list()).map(({ name }) => name)).toEqual(['a', 'b'])
  await store.close()
  expect(readFileSync(join(directory, 'penstock.lmdb')).includes(secret)).toBe(false)
  open()
  expect(access.verify(secret)).toBe('b')
  const createdAt = new Date(now)
  expect(await list()).toEqual([
    { name: 'a', createdAt },
    { name: 'b', createdAt, lastUsed: createdAt },
  ])
})

test('its last use is kept to the minute', async () => {
  const secret = await create('a')
  access.verify(secret)
  const first = new Date(now)
  now += 59_999
  access.verify(secret)
  expect((await list())[0]?.lastUsed).toEqual(first)
  now += 1
  access.verify(secret)
  expect((await list())[0]?.lastUsed).toEqual(new Date(now))
})

test('its last use is told where the clock was ahead at the one before', async () => {
  const secret = await create('a')
  access.verify(secret)
  now -= 10 * 365 * 86_400_000
  access.verify(secret)
  expect((await list())[0]?.lastUsed).toEqual(new Date(now))
})

test('revoked: refused before the answer, listeners told, gone after a restart, the name free again', async () => {
  const secret = await create('a')
  const told: string[] = []
  access.onRevoked((name) => told.push(name))
  const revoking = access.handlers.revokeToken({ name: 'a' }, near)
  expect(access.verify(secret)).toBeUndefined()
  expect(told).toEqual(['a'])
  await expect(access.handlers.createToken({ name: 'a' }, near)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  await revoking
  await expect(access.handlers.revokeToken({ name: 'a' }, near)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await store.close()
  open()
  expect(access.verify(secret)).toBeUndefined()
  expect(await list()).toEqual([])
  const other = await create('a')
  expect(access.verify(other)).toBe('a')
  expect(access.verify(secret)).toBeUndefined()
})

test('a use on its way to the disk does not bring a revoked token back', async () => {
  const secret = await create('a')
  access.verify(secret)
  await access.handlers.revokeToken({ name: 'a' }, near)
  await store.close()
  open()
  expect(await list()).toEqual([])
})

test('of two made at once under one name, one is made', async () => {
  const outcomes = await Promise.allSettled([create('a'), create('a')])
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(await list()).toHaveLength(1)
})

test('a token that the disk does not let go of is of no use, and is revoked again', async () => {
  const secret = await create('a')
  const { tokens } = store
  // Stands in for a disk that fails.
  vi.spyOn(tokens, 'remove').mockRejectedValueOnce(new Error('EIO: i/o error, write'))
  const revoke = async () => access.handlers.revokeToken({ name: 'a' }, near)
  await expect(revoke()).rejects.toThrow('EIO')
  expect(access.verify(secret)).toBeUndefined()
  await expect(create('a')).rejects.toMatchObject({ code: 'ALREADY_EXISTS' })
  const both = await Promise.allSettled([revoke(), revoke()])
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  expect(tokens.all()).toEqual([])
  await expect(revoke()).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(await create('a')).not.toBe(secret)
})

test.each(['', 'a b', 'a/b', 'ä', '../x', 'x'.repeat(65)])('the name %j is refused', async (name) => {
  await expect(create(name)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', problems: [{ pointer: '/name' }] })
})

test('only this machine and holders of a token handle tokens: not everyone under open access, not other nodes', async () => {
  await create('a', { ...far, identity: 'laptop' })
  for (const call of [
    far,
    { ...far, transport: 'link' as const, identity: 'node' },
    { ...near, transport: 'link' as const },
  ]) {
    await expect(create('b', call)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
    await expect(access.handlers.getTokens({}, call)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
    await expect(access.handlers.revokeToken({ name: 'a' }, call)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
  }
  expect(await list()).toMatchObject([{ name: 'a' }])
})

test.each(['', 'a b', 'a/b', 'a'.repeat(65), '.', '..'])('%j is no name of a token', async (name) => {
  const problems = [{ pointer: '/name', message: expect.stringContaining('must') }]
  await expect(create(name)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', problems })
})
