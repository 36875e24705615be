/** NATS JetStream away for all servers of a hub, or without what they had there: nobody is declared dead, and everything is there again afterwards. */

import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { expect, test } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { tellArrivals } from '../../src/hub/server-arrivals.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { Nats, type NatsServer } from '../harness/nats.ts'
import { clusterServer, type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { client, closing, hasClosed, isOnline, pairWithNode, routes, server, start, writable } from './server-rig.ts'

/** What three NATS servers may take until they have leaders again, on a loaded machine. */
const ELECTIONS_MS = 60_000

test('the engine is away for all: nobody is declared dead, nobody is told anything; back, all goes on', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const here = await a.join(recordOf('here'))
  const there = await b.join(recordOf('there'))
  await until(() => isOnline(a, there.node) && isOnline(b, here.node))
  a.told()
  b.told()
  const gone: string[] = []
  tellArrivals((b.registry as ClusterRegistry).directory, ({ kind }) => kind === 'server gone' && gone.push(kind))
  nats.servers[0]!.signal('SIGSTOP')
  await until(() => a.facts.includes('lease lost') && b.facts.includes('lease lost'))
  // Twice the time after which a silent server would count as dead.
  const since = performance.now()
  await until(() => performance.now() - since > 10_000)
  // Back later than the other, it reads the end of that one's life before the life that follows.
  b.proxy.cut()
  nats.servers[0]!.signal('SIGCONT')
  await until(async () => (await a.admit(newIdentity(), recordOf('new')).catch(() => undefined)) !== undefined)
  b.proxy.open()
  b.proxy.break()
  await until(() => b.registry.nodes().some(({ name }) => name === 'new'))
  for (const hub of [a, b]) {
    await until(() => isOnline(hub, here.node) && isOnline(hub, there.node))
    expect(hub.told()).toEqual(['authenticated new'])
  }
  expect(gone).toEqual([])
})

test('what a node says of itself while nothing can be written is written later, that of the server too', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node, session } = await a.join()
  await until(() => isOnline(b, node))
  // Leases are renewed meanwhile: they are in the other bucket.
  const members = await writable(nats, 'KV_penstock_tests_members')
  await members(false)
  session.sendRecord(recordOf('renamed'))
  a.registry.setSelf({ ...recordOf('server'), services: ['HUB_SERVER', 'PIPELINES'] })
  await until(() => a.errors.length >= 2)
  expect(a.errors.join()).toMatch(/it is tried again/)
  await members(true)
  await until(() => b.listed(node.nodeId)?.name === 'renamed' && b.listed(a.identity.nodeId)?.name === 'server')
  expect(a.facts).not.toContain('lease lost')
})

test('NATS is full: a server that connects anew says so once and keeps that connection; with room again all goes on', async () => {
  const nats = await start(Nats.alone((store) => `jetstream { store_dir: "${store}", max_file: 1MB }`))
  const a = await server(nats, 'a')
  const makeRoom = await nats.fillDisk()
  await expect(a.admit(newIdentity())).rejects.toMatchObject({
    ...{ code: 'UNAVAILABLE', message: expect.stringContaining('NATS takes no change of this hub now (insufficient') },
  })
  a.proxy.break()
  const isUnread = () => a.errors.some((error) => error.startsWith('the state of the hub could not be read'))
  await until(isUnread)
  // Two renewals, with each of which it is tried again.
  const since = performance.now()
  await until(() => performance.now() - since > 2_200)
  expect(a.facts.filter((fact) => fact === 'connected')).toHaveLength(2)
  expect(a.errors).toHaveLength(1)
  await makeRoom()
  await until(() => (a.registry as ClusterRegistry).directory.isInTouch)
  await a.admit(newIdentity(), recordOf('new'))
  expect(a.facts.filter((fact) => fact === 'connected')).toHaveLength(2)
})

test('NATS is full while a server loses its lease, and keeps its connection: with room again its nodes are online', async () => {
  const nats = await start(Nats.alone((store) => `jetstream { store_dir: "${store}", max_file: 1MB }`))
  const a = await server(nats, 'a')
  const { node, session } = await a.join()
  const end = hasClosed(session)
  const makeRoom = await nats.fillDisk()
  // Leases are in memory.
  const presence = await new Kvm(jetstream(await client(nats))).open('penstock_tests_presence')
  for await (const key of await presence.keys('server.*')) await presence.delete(key)
  await until(() => a.facts.filter((fact) => fact === 'lease held').length === 2)
  await until(() => a.errors.length > 0)
  await makeRoom()
  const b = await server(nats, 'b')
  await until(() => isOnline(b, node))
  expect(routes(b, node).kind).toBe('server')
  expect(end.reason).toBe('')
  expect(a.facts.filter((fact) => fact === 'connected')).toHaveLength(1)
})

test('where a node is is lost in the engine: its server notes it again, its link stays', async () => {
  const { nats, b, node, end } = await pairWithNode()
  b.told()
  const presence = await new Kvm(jetstream(await client(nats))).open('penstock_tests_presence')
  await presence.delete(`node.${node.nodeId}`)
  await until(() => b.events.length >= 2)
  expect(b.told()).toEqual(['disconnected node', 'connected node'])
  expect(routes(b, node).kind).toBe('server')
  expect(end.reason).toBe('')
})

test('the NATS server is killed and started again: members are there, presence is made anew', async () => {
  const { nats, a, b, node, end } = await pairWithNode()
  await nats.servers[0]!.kill()
  await until(() => a.facts.includes('lost') && b.facts.includes('lost'))
  await nats.servers[0]!.start()
  await until(async () => (await b.admit(newIdentity(), recordOf('new')).catch(() => undefined)) !== undefined)
  await until(() => a.registry.nodes().some(({ name }) => name === 'new'))
  await until(() => isOnline(a, node) && isOnline(b, node))
  expect(end.reason).toBe('')
})

test('three NATS servers, one killed: what was answered is kept, both servers go on', async () => {
  const nats = await start(Nats.three())
  const a = await clusterServer({ name: 'a', servers: nats.addresses, replicas: 3 })
  closing.push(() => a.close())
  const b = await clusterServer({ name: 'b', servers: [...nats.addresses].reverse(), replicas: 3 })
  closing.push(() => b.close())
  const { node } = await a.join(recordOf('before'))
  await until(() => isOnline(b, node))
  await nats.servers[0]!.kill()
  const isAdmitted = async () => (await a.admit(newIdentity(), recordOf('after')).catch(() => undefined)) !== undefined
  await until(isAdmitted, 'a node let in', ELECTIONS_MS)
  await until(
    () => b.registry.nodes().some(({ name }) => name === 'after'),
    'that node at the other server',
    ELECTIONS_MS,
  )
  await until(() => isOnline(a, node) && isOnline(b, node), 'the node online at both', ELECTIONS_MS)
})

test('one of three NATS servers that has all of the presence is killed and started again: servers linked to the others see it begin anew', async () => {
  const nats = await start(Nats.three())
  await (await clusterServer({ servers: nats.addresses })).close()
  const { streams } = await jetstreamManager(await client(nats))
  const { cluster } = await streams.info('KV_penstock_tests_presence')
  const holder = nats.servers[Number(cluster?.leader?.slice(1)) - 1] as NatsServer
  const others = nats.addresses.filter((address) => address !== holder.address)
  const facts: string[] = []
  const server = async (name: string) => {
    const rig = await clusterServer({ name, servers: others, onFact: ({ kind }) => facts.push(`${name} ${kind}`) })
    closing.push(() => rig.close())
    return rig
  }
  const a = await server('a')
  const b = await server('b')
  const joined = await a.join()
  const { node } = joined
  let { session } = joined
  // Revisions that the presence made anew does not come to for a while.
  for (let i = 0; i < 50; i++) session = (await a.dial(node)).session
  await until(() => isOnline(b, node))
  await holder.kill()
  await holder.start()
  await until(() => facts.includes('a lease lost') && facts.includes('b lease lost'), 'leases lost', ELECTIONS_MS)
  session.close('SHUTDOWN', 'the end')
  const isSeen = (online: boolean) => [a, b].every((hub) => isOnline(hub, node) === online)
  await until(
    () => isSeen(false),
    () => facts.join(),
    ELECTIONS_MS,
  )
  const isAt = (hub: HubServerRig) =>
    hub.dial(node).then(
      () => true,
      () => false,
    )
  await until(() => isAt(b), 'a link with b', ELECTIONS_MS)
  await until(
    () => isSeen(true) && routes(a, node).kind === 'server',
    () => facts.join(),
    ELECTIONS_MS,
  )
})

test('all three NATS servers killed and started again: the revisions of presence begin anew, and count', async () => {
  const nats = await start(Nats.three())
  const a = await clusterServer({ name: 'a', servers: nats.addresses, replicas: 3 })
  closing.push(() => a.close())
  const b = await clusterServer({ name: 'b', servers: nats.addresses, replicas: 3 })
  closing.push(() => b.close())
  const { node } = await a.join()
  for (let i = 0; i < 50; i++) await a.dial(node)
  await until(() => isOnline(b, node))
  await Promise.all(nats.servers.map((each) => each.kill()))
  const isIn = ({ registry }: HubServerRig) => (registry as ClusterRegistry).directory.isInTouch
  await until(() => !isIn(a) && !isIn(b))
  await Promise.all(nats.servers.map((each) => each.start()))
  await until(() => isIn(a) && isIn(b), 'both servers in touch', ELECTIONS_MS)
  await until(() => isOnline(b, node) && routes(b, node).kind === 'server')
})
