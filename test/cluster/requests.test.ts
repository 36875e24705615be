/** Requests to join a hub of several servers: seen, answered and waited for at any of them. */
import { expect, test } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { readMembers, writeMembers } from '../../src/hub/cluster/moving.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { engine, onlyRequest, server } from './request-servers.ts'

test('a request that waits at one server is shown and accepted at another; who waits hears so', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const { dialled } = a.join(node)
  const id = await onlyRequest(b)
  expect(b.shown).toEqual([id])
  await until(() => a.pending().length === 1 && a.shown.length === 1)
  expect([a.pending(), a.shown]).toEqual([[id], [id]])
  expect(b.requests.pending()).toMatchObject([{ node: { id: node.nodeId, name: 'north', online: false } }])
  await b.answer(id, true)
  const { session } = await dialled
  await until(() => b.listed(node.nodeId)?.online === true)
  await until(() => a.pending().length === 0 && b.pending().length === 0)
  session.sendRecord(recordOf('confirmed'))
  await until(() => b.listed(node.nodeId)?.name === 'confirmed')
  session.close('SHUTDOWN', 'the end')
  await until(() => b.listed(node.nodeId)?.online === false)
})

test('rejected at another server; the first answer wins wherever it is given', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const { dialled } = a.join(node)
  const id = await onlyRequest(b)
  const answers = await Promise.allSettled([b.answer(id, false), a.answer(id, true)])
  const lost = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  expect(lost).toMatchObject([{ code: 'NOT_FOUND' }])
  if (answers[0].status === 'fulfilled') await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
  else await dialled
  await until(() => a.pending().length === 0 && b.pending().length === 0)
  await expect(b.answer(id, true)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a request raised a moment ago can be answered anywhere; one that never was is NOT_FOUND', async () => {
  const a = await server('a')
  const b = await server('b')
  for (let i = 0; i < 10; i++) {
    const { dialled } = a.join(newIdentity())
    const id = await onlyRequest(a)
    await b.answer(id, false)
    await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
  }
  await expect(b.answer(77n, true)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('ids rise over all servers', async () => {
  const a = await server('a')
  const b = await server('b')
  let last = 0n
  for (let i = 0; i < 6; i++) {
    const { dialled } = [a, b][i % 2]!.join(newIdentity())
    const id = await onlyRequest(a)
    expect(id).toBeGreaterThan(last)
    last = id
    await a.answer(id, false)
    await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
    await until(() => a.pending().length === 0)
  }
})

test('ids rise past those of a hub that was imported, at every server, and so does what is exported', async () => {
  await writeMembers(engine(), { members: [], requestIds: 5_000 })
  const a = await server('a')
  const b = await server('b')
  const rejected = a.join(newIdentity())
  const first = await onlyRequest(b)
  expect(first).toBeGreaterThanOrEqual(5_000n)
  await until(() => a.shown.length === 1)
  await b.answer(first, false)
  await expect(rejected.dialled).rejects.toMatchObject({ reason: 'REJECTED' })
  const accepted = b.join(newIdentity())
  await until(() => a.shown.length === 2)
  const second = a.shown[1] as bigint
  expect(second).toBeGreaterThan(first)
  await a.answer(second, true)
  await accepted.dialled
  expect((await readMembers(engine())).requestIds).toBeGreaterThan(Number(second))
})

test('a second call of the same node at another server is a request of its own', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const first = a.join(node)
  const id = await onlyRequest(b)
  const second = b.join(node)
  await until(() => a.pending().length === 2)
  const other = a.pending()[1] as bigint
  await a.answer(other, false)
  await expect(second.dialled).rejects.toMatchObject({ reason: 'REJECTED' })
  await b.answer(id, true)
  await first.dialled
})

test('a place that was given at another server is taken back when the node goes before it has its sign-in', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const { dialled } = a.join(node)
  await b.answer(await onlyRequest(b), true)
  const { session } = await dialled
  session.close('SHUTDOWN', 'the node does not join after all')
  await until(() => b.listed(node.nodeId) === undefined)
})

test('two requests of one node at two servers, both accepted, one confirmed: the other takes no place back', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const gone = new AbortController()
  const joiner = { nodeId: node.nodeId, key: new Uint8Array(32), record: recordOf('north'), remoteAddress: '' }
  // At once, so that neither server has seen the other's.
  const first = a.requests.join(joiner, new AbortController().signal)
  const second = b.requests.join(joiner, gone.signal)
  await until(() => a.pending().length === 2)
  for (const id of a.pending()) await a.answer(id, true)
  expect([await first, await second]).toEqual([{ admitted: true }, { admitted: true }])
  const { session } = await a.dial(node)
  a.requests.established(session, await first)?.confirm()
  const standing = () => [...(b.registry as ClusterRegistry).requests.known()].flatMap(([, requests]) => requests)
  await until(() => standing().length === 1)
  expect(standing()[0]?.decision?.isNew).toBe(false)
  gone.abort()
  await b.admit(newIdentity())
  await b.admit(newIdentity())
  expect(b.listed(node.nodeId)).toBeDefined()
})

test('as many as can be pending of one address count over all servers', async () => {
  const a = await server('a')
  const b = await server('b')
  const joins = Array.from({ length: 20 }, () => a.join(newIdentity()))
  await until(() => b.pending().length === 20)
  await expect(b.join(newIdentity()).dialled).rejects.toMatchObject({ reason: 'TOO_MANY' })
  for (const { gone } of joins) gone.abort()
  await until(() => b.pending().length === 0)
  const { dialled } = b.join(newIdentity())
  await b.answer(await onlyRequest(a), false)
  await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
})
