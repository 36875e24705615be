/** Requests to join a hub of several servers when time runs out or a server goes: withdrawn, taken up again elsewhere, answered meanwhile. */
import { expect, test, vi } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import type { RequestEntry } from '../../src/hub/cluster/entries.ts'
import { MAX_PENDING_PER_ADDRESS } from '../../src/hub/request-limits.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import { recordOf } from '../harness/registries.ts'
import { settle, until } from '../harness/waiting.ts'
import { MINUTES_5, onlyRequest, server } from './request-servers.ts'

test('withdrawn, timed out: gone at every server, and an answer there is NOT_FOUND', async () => {
  const a = await server('a')
  const b = await server('b')
  const c = await server('c', { timeout: 2_000 })
  const first = a.join(newIdentity())
  const id = await onlyRequest(b)
  first.gone.abort()
  await until(() => b.pending().length === 0)
  await expect(b.answer(id, true)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const { dialled } = c.join(newIdentity())
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  await until(() => b.shown.length === 2 && b.pending().length === 0)
})

test('a server that goes: its request goes on at another with its id and what was left of its time', async () => {
  const a = await server('a', { timeout: 12_000 })
  const b = await server('b', { timeout: MINUTES_5 })
  const node = newIdentity()
  const raised = performance.now()
  void a.join(node)
  const id = await onlyRequest(b)
  await onlyRequest(a)
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost'))
  const { dialled } = b.join(node)
  await settle(5)
  expect(b.pending()).toEqual([id])
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  const took = performance.now() - raised
  expect(took).toBeGreaterThan(11_900)
  expect(took).toBeLessThan(60_000)
  expect(b.shown).toEqual([id])
})

test('as many wait at a server that goes as may from one address: all of them go on at another, and nobody else is let ask', async () => {
  const a = await server('a')
  const b = await server('b')
  const nodes = Array.from({ length: MAX_PENDING_PER_ADDRESS }, () => newIdentity())
  for (const node of nodes) void a.join(node)
  await until(() => b.pending().length === nodes.length)
  const ids = b.pending()
  // That of a server that stands is not gone on with: it would be one more.
  await expect(b.join(nodes[0] as Identity).dialled).rejects.toMatchObject({ reason: 'TOO_MANY' })
  await a.close()
  const joins = nodes.map((node) => b.join(node))
  await expect(b.join(newIdentity()).dialled).rejects.toMatchObject({ reason: 'TOO_MANY' })
  const { requests } = b.registry as ClusterRegistry
  await until(() => [...requests.known()].every(([, [request]]) => requests.hasWaiter(request as RequestEntry)))
  await expect(b.join(nodes[0] as Identity).dialled).rejects.toMatchObject({ reason: 'TOO_MANY' })
  expect(b.pending()).toEqual(ids)
  expect(b.shown).toEqual(ids)
  for (const id of ids) await b.answer(id, false)
  for (const { dialled } of joins) await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
})

test('who goes on at another with what was left is counted once', async () => {
  const a = await server('a')
  const b = await server('b')
  const nodes = Array.from({ length: MAX_PENDING_PER_ADDRESS - 1 }, () => newIdentity())
  for (const node of nodes) void a.join(node)
  await until(() => b.pending().length === nodes.length)
  await a.close()
  const arrivals = vi.spyOn(b.requests, 'join')
  const joins = nodes.map((node) => b.join(node))
  await until(() => arrivals.mock.calls.length === nodes.length)
  const newcomer = b.join(newIdentity())
  await until(() => b.pending().length === MAX_PENDING_PER_ADDRESS)
  for (const id of b.pending()) await b.answer(id, false)
  for (const { dialled } of [...joins, newcomer]) await expect(dialled).rejects.toMatchObject({ reason: 'REJECTED' })
})

test('clocks of servers that differ by two hours change nothing about how long a request waits', async () => {
  const a = await server('a', { timeout: 8_000, now: () => Date.now() - 3_600_000 })
  const b = await server('b', { timeout: MINUTES_5, now: () => Date.now() + 3_600_000 })
  const node = newIdentity()
  const raised = performance.now()
  void a.join(node)
  const id = await onlyRequest(b)
  await a.close()
  const { dialled } = b.join(node)
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  expect(performance.now() - raised).toBeGreaterThan(7_900)
  expect(b.shown).toEqual([id])
})

test('accepted while nobody waits: the node is let in as soon as it asks again', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  void a.join(node)
  const id = await onlyRequest(b)
  await a.close()
  await b.answer(id, true)
  const { session } = await b.join(node).dialled
  session.sendRecord(recordOf('confirmed'))
  await until(() => b.listed(node.nodeId)?.name === 'confirmed')
  expect(b.shown).toEqual([id])
})

test('a server that closes lets its requests go: they are taken up at once', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  void a.join(node)
  const id = await onlyRequest(b)
  await a.close()
  const { dialled } = b.join(node)
  await until(async () => b.pending().length === 1 && (await b.registry.requests.find(id)) !== undefined)
  await b.answer(id, true)
  await dialled
})

test('cut off: it cannot be answered there; accepted elsewhere meanwhile, its node is let in when the server is back', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const { dialled } = a.join(node)
  const id = await onlyRequest(b)
  await onlyRequest(a)
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost'))
  await expect(a.answer(id, true)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(a.pending()).toEqual([id])
  await expect(a.join(newIdentity()).dialled).rejects.toMatchObject({ reason: 'UNAVAILABLE' })
  await b.answer(id, true)
  a.proxy.open()
  await dialled
  await until(() => b.listed(node.nodeId)?.online === true)
})

test('cut off and back: a request that nobody has answered goes on where it waits', async () => {
  const a = await server('a')
  const b = await server('b')
  const { dialled } = a.join(newIdentity())
  const id = await onlyRequest(b)
  await onlyRequest(a)
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost') && b.registry.nodes().some(({ online }) => !online))
  a.proxy.open()
  await until(() => a.facts.filter((fact) => fact === 'lease held').length === 2)
  expect(b.pending()).toEqual([id])
  await b.answer(id, true)
  await dialled
  expect(b.shown).toEqual([id])
})

test('nobody takes it up: it runs out at the servers that are left', async () => {
  let later = 0
  const engineTime = (seen: number) => seen + later
  const a = await server('a')
  const b = await server('b', { engineTime })
  const c = await server('c', { engineTime })
  void a.join(newIdentity())
  await onlyRequest(c)
  await a.close()
  // Twice that long a server looks whether something is to be done.
  const since = performance.now()
  await until(() => performance.now() - since > 2_000)
  expect([b.pending().length, c.pending().length]).toEqual([1, 1])
  later = MINUTES_5
  await until(() => b.pending().length === 0 && c.pending().length === 0)
})
