/** Several servers of one hub on NATS JetStream: what each sees of the others and their nodes. */
import { expect, test } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import type { Directory } from '../../src/hub/cluster/directory.ts'
import { tellArrivals } from '../../src/hub/server-arrivals.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { isOnline, routes, server, start } from './server-rig.ts'

test('what one server answers the other shows: nodes, servers, and where each is', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  await until(() => a.registry.nodes().length === 2 && b.registry.nodes().length === 2)
  expect(a.registry.nodes().map(({ name, online }) => [name, online])).toEqual([
    ['a', true],
    ['b', true],
  ])
  expect(b.registry.nodes().map(({ name, online }) => [name, online])).toEqual([
    ['b', true],
    ['a', true],
  ])
  a.told()
  b.told()
  const { node, session } = await a.join(recordOf('north'))
  await until(() => isOnline(b, node))
  expect(routes(a, node).kind).toBe('session')
  expect(routes(b, node)).toEqual({ kind: 'server', server: a.identity.nodeId })
  expect(routes(b, a.identity)).toEqual({ kind: 'server', server: a.identity.nodeId })
  session.sendRecord(recordOf('renamed'))
  await until(() => b.listed(node.nodeId)?.name === 'renamed')
  expect(await b.registry.remove(node.nodeId)).toBe(true)
  expect((await session.closed).reason).toBe('REMOVED')
  await until(() => a.listed(node.nodeId) === undefined)
  const events = ['authenticated north', 'connected north', 'updated renamed', 'deauthenticated renamed']
  expect(a.told()).toEqual(events)
  expect(b.told()).toEqual(events)
  await expect(a.dial(node)).rejects.toMatchObject({ reason: 'NOT_A_MEMBER' })
})

test('a member that was let in at one server a moment ago is let in at the other at once', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  for (let i = 0; i < 20; i++) {
    const node = newIdentity()
    await a.admit(node)
    const { session } = await b.dial(node)
    expect(await a.registry.remove(node.nodeId)).toBe(true)
    expect((await session.closed).reason).toBe('REMOVED')
  }
})

test('a node that comes to another server is replaced at the first; its end there is no end here', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node, session } = await a.join()
  await until(() => isOnline(b, node))
  a.told()
  const second = await b.dial(node)
  expect((await session.closed).reason).toBe('REPLACED')
  await until(() => routes(a, node).kind === 'server' && routes(b, node).kind === 'session')
  expect(a.told()).toEqual(['disconnected node', 'connected node'])
  // The end of the first link is told to its server last of all.
  await a.admit(newIdentity())
  expect(isOnline(a, node) && isOnline(b, node)).toBe(true)
  second.session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, node) && !isOnline(b, node))
})

test('what a server lets the others know, and whether it is in touch', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const [one, other] = [a, b].map(({ registry }) => (registry as ClusterRegistry).directory) as [Directory, Directory]
  const known = () => other.servers().map(({ id, details }) => `${id} ${Buffer.from(details).toString()}`)
  let told: string[] = []
  other.followServers(() => {
    told = known()
  })
  const ofB = `${b.identity.nodeId} `
  const ofA = (details: string) => `${a.identity.nodeId} ${details}`
  const isTold = (...servers: string[]) => until(() => told.join() === servers.join())
  one.publish(Buffer.from('first'))
  await isTold(ofB, ofA('first'))
  one.publish(Buffer.from('second'))
  await isTold(ofB, ofA('second'))
  const touch: boolean[] = []
  one.followTouch(() => touch.push(one.isInTouch))
  expect(one.isInTouch).toBe(true)
  a.proxy.cut()
  await isTold(ofB)
  a.proxy.open()
  await until(() => one.isInTouch && known().length === 2)
  // A process that is held up may lose its lease once more on the way.
  expect(touch).toEqual(touch.map((_, i) => i % 2 === 1))
  expect(touch.at(-1)).toBe(true)
})

test('a server that loses its connection to NATS and has another finds the others as they are, and takes no lease from them', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node } = await a.join()
  const { directory } = b.registry as ClusterRegistry
  await until(() => isOnline(b, node))
  b.told()
  const gone: string[] = []
  tellArrivals(directory, ({ kind }) => kind === 'server gone' && gone.push(kind))
  for (let round = 0; round < 4; round++) {
    b.facts.splice(0)
    b.proxy.break()
    await until(() => b.facts.includes('connected') && directory.isInTouch)
  }
  expect([gone, b.told()]).toEqual([[], []])
  expect(a.facts).not.toContain('lease lost')
})

test('a server that closes: its nodes are offline at once, and so is it', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node } = await a.join()
  await until(() => isOnline(b, node))
  await expect(b.registry.remove(a.identity.nodeId)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
  await a.close()
  await until(() => !isOnline(b, node) && !isOnline(b, a.identity))
  expect(routes(b, node)).toEqual({ kind: 'offline' })
  expect(await b.registry.remove(a.identity.nodeId)).toBe(true)
})

test('clocks that differ by an hour change nothing', async () => {
  const nats = await start()
  const a = await server(nats, 'a', { now: () => Date.now() - 3_600_000 })
  const b = await server(nats, 'b', { now: () => Date.now() + 3_600_000 })
  const { node } = await a.join()
  const other = await b.join(recordOf('other'))
  await until(() => isOnline(b, node) && isOnline(a, other.node))
  a.told()
  b.told()
  const since = performance.now()
  await until(() => performance.now() - since > 7_000)
  expect([isOnline(a, node), isOnline(b, node), isOnline(a, other.node), isOnline(b, other.node)]).toEqual([
    true,
    true,
    true,
    true,
  ])
  expect([...a.told(), ...b.told()]).toEqual([])
  a.proxy.cut()
  await until(() => !isOnline(b, node))
  expect(isOnline(b, other.node)).toBe(true)
})
