/** A server that is cut off from NATS JetStream while the others go on: what becomes of its nodes, and of what the others did meanwhile. */
import { expect, test } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { hasClosed, isOnline, pairWithNode, routes, server, start } from './server-rig.ts'

test('cut off: past its lease UNAVAILABLE, links stay; the others see its nodes offline; back, they are online again', async () => {
  const { a, b, node, session, end } = await pairWithNode()
  b.told()
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost'))
  const refused = { code: 'UNAVAILABLE', message: expect.stringContaining('cut off from the state of its hub') }
  await expect(a.registry.remove(node.nodeId)).rejects.toMatchObject(refused)
  await expect(a.admit(newIdentity())).rejects.toMatchObject(refused)
  await expect(a.dial(newIdentity())).rejects.toMatchObject({ reason: 'UNAVAILABLE', signed: true })
  await expect(a.dial(node)).rejects.toMatchObject({ reason: 'UNAVAILABLE' })
  await until(() => !isOnline(b, node) && !isOnline(b, a.identity))
  expect(isOnline(a, node)).toBe(true)
  expect(a.told().filter((event) => event.startsWith('dis'))).toEqual([])
  session.sendRecord(recordOf('renamed'))
  a.proxy.open()
  await until(() => isOnline(b, node) && routes(b, node).kind === 'server' && b.listed(node.nodeId)?.name === 'renamed')
  expect(end.reason).toBe('')
  expect(routes(a, node).kind).toBe('session')
  const told = b.told().filter((event) => /node|renamed/.test(event))
  expect(told.filter((event) => event.startsWith('updated'))).toEqual(['updated renamed'])
  // A server that is slow to come back may lose its lease once more on the way.
  const turns = told.map((event) => event.split(' ')[0]).filter((type) => type !== 'updated')
  expect(turns).toEqual(turns.map((_, i) => (i % 2 === 0 ? 'disconnected' : 'connected')))
  expect(turns.at(-1)).toBe('connected')
})

test('cut off while its node goes elsewhere: back, it lets the node go', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node, session } = await a.join()
  await until(() => isOnline(b, node))
  a.proxy.cut()
  await until(() => !isOnline(b, node))
  const second = await b.dial(node)
  const gone = newIdentity()
  await b.admit(gone)
  expect(await b.registry.remove(gone.nodeId)).toBe(true)
  a.proxy.open()
  expect((await session.closed).reason).toBe('REPLACED')
  await until(() => routes(a, node).kind === 'server')
  expect(routes(b, node).kind).toBe('session')
  expect(hasClosed(second.session).reason).toBe('')
  expect(
    b.registry
      .nodes()
      .map(({ id }) => id)
      .sort(),
  ).toEqual(
    a.registry
      .nodes()
      .map(({ id }) => id)
      .sort(),
  )
})

test('cut off while its node is removed and let in anew: back, it cuts the link of the membership that is over', async () => {
  const { a, b, node, end } = await pairWithNode()
  a.proxy.cut()
  expect(await b.registry.remove(node.nodeId)).toBe(true)
  await b.admit(node)
  a.proxy.open()
  a.proxy.break()
  await until(() => end.reason === 'SHUTDOWN')
  await until(() => !isOnline(a, node) && !isOnline(b, node))
  expect(routes(a, node).kind).toBe('offline')
})

test('cut off while its node is removed elsewhere: it hears of that from the server that removed it, but cuts no newer membership', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const directoryOf = ({ registry }: HubServerRig) => (registry as ClusterRegistry).directory
  const told: [string, number][] = []
  directoryOf(b).followRemovals((...removal) => told.push(removal))
  const { node, session } = await a.join()
  await until(() => isOnline(b, node))
  a.proxy.cut()
  expect(await b.registry.remove(node.nodeId)).toBe(true)
  const [removal] = told as [[string, number]]
  expect(removal[0]).toBe(node.nodeId)
  directoryOf(a).removed(...removal)
  expect((await session.closed).reason).toBe('REMOVED')
  a.proxy.open()
  a.proxy.break()
  await until(() => a.listed(node.nodeId) === undefined)
  await b.admit(node)
  const { session: second } = await a.dial(node)
  const end = hasClosed(second)
  directoryOf(a).removed(...removal)
  await until(() => isOnline(b, node))
  expect(end.reason).toBe('')
})
