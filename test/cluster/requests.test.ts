/** Requests to join a hub of several servers: seen, answered and waited for at any of them, and taken up again when one goes. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { readMembers, writeMembers } from '../../src/hub/cluster/moving.ts'
import { JoinRequests } from '../../src/hub/join-requests.ts'
import { hubPolicy } from '../../src/hub/policy.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import { connectPair } from '../../src/link/pair.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { type ClusterServerOptions, clusterServer, HUB_ID, recordOf } from '../harness/registries.ts'
import { settle, until } from '../harness/waiting.ts'

let nats: Nats
beforeAll(async () => {
  nats = await Nats.alone()
})
afterAll(() => nats.close())

const closing: (() => unknown)[] = []
let buckets = 0
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  buckets++
})

const caller = { by: 'this machine', transport: 'internal', address: '' } as const
const MINUTES_5 = 300_000

interface Options extends Partial<ClusterServerOptions> {
  readonly timeout?: number
}

/** A server that takes requests, with a proxy of its own before the engine. */
async function server(name: string, { timeout = MINUTES_5, ...options }: Options = {}) {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const facts: string[] = []
  const rig = await clusterServer({
    name,
    bucket: `requests${buckets}`,
    servers: [proxy.address],
    onFact: ({ kind }) => facts.push(kind),
    onError: () => {},
    ...options,
  })
  closing.push(() => rig.close())
  const { registry } = rig
  const shown: bigint[] = []
  const requests = new JoinRequests({
    timeout,
    store: registry.requests,
    expel: (place) => registry.expel(place),
    onError: () => {},
    clock: systemClock,
  })
  requests.onRequest(({ requestId }) => shown.push(BigInt(requestId)))
  const policy = hubPolicy({ registry, requests, serve: () => {} })
  /** What becomes of a node that asks here, over a real handshake. */
  const join = (node: Identity, record = recordOf('north')) => {
    const gone = new AbortController()
    const report = () => {}
    const dialled = connectPair(
      { identity: rig.identity, policy, clock: systemClock, report },
      { identity: node, record, intent: 'JOIN', clock: systemClock, report, signal: gone.signal },
      '10.0.0.1',
    )
    dialled.catch(() => {})
    return { dialled, gone }
  }
  const pending = () => requests.pending().map(({ requestId }) => BigInt(requestId))
  const answer = (id: bigint, accept: boolean) => requests.answer(id, accept, caller)
  return Object.assign(rig, { proxy, facts, shown, requests, policy, join, pending, answer })
}
type Server = Awaited<ReturnType<typeof server>>

/** The id of the one request that a server shows. */
async function onlyRequest(at: Server): Promise<bigint> {
  await until(() => at.pending().length === 1)
  return at.pending()[0] as bigint
}

test('a request that waits at one server is shown and accepted at another; who waits hears so', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  const { dialled } = a.join(node)
  const id = await onlyRequest(b)
  expect([a.pending(), a.shown, b.shown]).toEqual([[id], [id], [id]])
  expect(b.requests.pending()).toMatchObject([{ node: { id: node.nodeId, name: 'north', online: false } }])
  await b.answer(id, true)
  const { session } = await dialled
  await until(() => b.listed(node.nodeId)?.online === true)
  expect([a.pending(), b.pending()]).toEqual([[], []])
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
  const engine = { servers: nats.addresses, name: `requests${buckets}`, hubId: HUB_ID, replicas: 1 }
  await writeMembers(engine, { members: [], requestIds: 5_000 })
  const a = await server('a')
  const b = await server('b')
  const rejected = a.join(newIdentity())
  const first = await onlyRequest(b)
  expect(first).toBeGreaterThanOrEqual(5_000n)
  await b.answer(first, false)
  await expect(rejected.dialled).rejects.toMatchObject({ reason: 'REJECTED' })
  const accepted = b.join(newIdentity())
  await until(() => a.shown.length === 2)
  const second = a.shown[1] as bigint
  expect(second).toBeGreaterThan(first)
  await a.answer(second, true)
  await accepted.dialled
  expect((await readMembers(engine)).requestIds).toBeGreaterThan(Number(second))
})

test('withdrawn, timed out: gone at every server, and an answer there is NOT_FOUND', async () => {
  const a = await server('a', { timeout: 700 })
  const b = await server('b')
  const first = a.join(newIdentity())
  const id = await onlyRequest(b)
  first.gone.abort()
  await until(() => b.pending().length === 0)
  await expect(b.answer(id, true)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const { dialled } = a.join(newIdentity())
  await onlyRequest(b)
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  await until(() => b.pending().length === 0)
})

test('a server that goes: its request goes on at another with its id and what was left of its time', async () => {
  const a = await server('a', { timeout: 8_000 })
  const b = await server('b', { timeout: MINUTES_5 })
  const node = newIdentity()
  void a.join(node)
  const id = await onlyRequest(b)
  await onlyRequest(a)
  const raised = performance.now()
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost'))
  const { dialled } = b.join(node)
  await settle(5)
  expect(b.pending()).toEqual([id])
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  const took = performance.now() - raised
  expect(took).toBeGreaterThan(7_900)
  expect(took).toBeLessThan(12_000)
  expect(b.shown).toEqual([id])
})

test('clocks of servers that differ by two hours change nothing about how long a request waits', async () => {
  const a = await server('a', { timeout: 4_000, now: () => Date.now() - 3_600_000 })
  const b = await server('b', { timeout: MINUTES_5, now: () => Date.now() + 3_600_000 })
  const node = newIdentity()
  const raised = performance.now()
  void a.join(node)
  const id = await onlyRequest(b)
  await a.close()
  const { dialled } = b.join(node)
  await expect(dialled).rejects.toMatchObject({ reason: 'TIMED_OUT' })
  expect(performance.now() - raised).toBeGreaterThan(3_900)
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
