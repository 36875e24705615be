/** Several servers of one hub on NATS JetStream: what each sees of the others' nodes, and what becomes of it when something breaks. */
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterEach, expect, test } from 'vitest'
import type { ClusterFact, ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import type { Directory } from '../../src/hub/cluster/directory.ts'
import type { Identity } from '../../src/link/identity.ts'
import { newIdentity } from '../../src/link/identity.ts'
import type { LinkSession } from '../../src/link/link.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { type ClusterServerOptions, clusterServer, type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(nats = Nats.alone()): Promise<Nats> {
  const started = await nats
  closing.push(() => started.close())
  return started
}

/** A server with a proxy of its own before the engine. */
async function server(nats: Nats, name: string, options: Partial<ClusterServerOptions> = {}) {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const facts: ClusterFact['kind'][] = []
  const errors: string[] = []
  const rig = await clusterServer({
    name,
    servers: [proxy.address],
    onFact: ({ kind }) => facts.push(kind),
    onError: (message) => errors.push(message),
    ...options,
  })
  closing.push(() => rig.close())
  rig.told()
  return Object.assign(rig, { proxy, facts, errors })
}

const isOnline = (hub: HubServerRig, { nodeId }: Identity) => hub.listed(nodeId)?.online === true
const routes = (hub: HubServerRig, { nodeId }: Identity) => hub.registry.route(nodeId)
const hasClosed = (session: LinkSession) => {
  const seen = { reason: '' }
  void session.closed.then(({ reason }) => {
    seen.reason = reason
  })
  return seen
}

async function client(nats: Nats) {
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  return connection
}

/** Switches whether a stream takes messages. */
async function writable(nats: Nats, stream: string) {
  const { streams } = await jetstreamManager(await client(nats))
  return (isWritable: boolean) => streams.update(stream, { max_msg_size: isWritable ? -1 : 1 })
}

/** Two servers, and a node at the first that the second has seen; `end` tells why its link closed. */
async function pairWithNode() {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node, session } = await a.join()
  const end = hasClosed(session)
  await until(() => isOnline(b, node))
  return { nats, a, b, node, session, end }
}

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
  const known = () => other.servers().map(({ id, details }) => [id, Buffer.from(details).toString()])
  let changes = 0
  other.followServers(() => changes++)
  one.publish(Buffer.from('first'))
  await until(() => changes === 1)
  expect(known()).toEqual([
    [b.identity.nodeId, ''],
    [a.identity.nodeId, 'first'],
  ])
  one.publish(Buffer.from('second'))
  await until(() => changes === 2)
  expect(known()).toEqual([
    [b.identity.nodeId, ''],
    [a.identity.nodeId, 'second'],
  ])
  const touch: boolean[] = []
  one.followTouch(() => touch.push(one.isInTouch))
  expect(one.isInTouch).toBe(true)
  a.proxy.cut()
  await until(() => changes === 3)
  expect(known()).toEqual([[b.identity.nodeId, '']])
  a.proxy.open()
  await until(() => one.isInTouch && known().length === 2)
  // A process that is held up may lose its lease once more on the way.
  expect(touch).toEqual(touch.map((_, i) => i % 2 === 1))
  expect(touch.at(-1)).toBe(true)
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

test('the engine is away for all: nobody is declared dead, nobody is told anything; back, all goes on', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const here = await a.join(recordOf('here'))
  const there = await b.join(recordOf('there'))
  await until(() => isOnline(a, there.node) && isOnline(b, here.node))
  a.told()
  b.told()
  nats.servers[0]!.signal('SIGSTOP')
  await until(() => a.facts.includes('lease lost') && b.facts.includes('lease lost'))
  // Twice the time after which a silent server would count as dead.
  const since = performance.now()
  await until(() => performance.now() - since > 10_000)
  nats.servers[0]!.signal('SIGCONT')
  await until(async () => (await a.admit(newIdentity(), recordOf('new')).catch(() => undefined)) !== undefined)
  await until(() => b.registry.nodes().some(({ name }) => name === 'new'))
  for (const hub of [a, b]) {
    await until(() => isOnline(hub, here.node) && isOnline(hub, there.node))
    expect(hub.told()).toEqual(['authenticated new'])
  }
}, 60_000)

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
}, 60_000)

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
}, 60_000)

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

test('three NATS servers, one killed: what was answered is kept, both servers go on', async () => {
  const nats = await start(Nats.three())
  const a = await clusterServer({ name: 'a', servers: nats.addresses, replicas: 3 })
  closing.push(() => a.close())
  const b = await clusterServer({ name: 'b', servers: [...nats.addresses].reverse(), replicas: 3 })
  closing.push(() => b.close())
  const { node } = await a.join(recordOf('before'))
  await until(() => isOnline(b, node))
  await nats.servers[0]!.kill()
  await until(async () => (await a.admit(newIdentity(), recordOf('after')).catch(() => undefined)) !== undefined)
  await until(() => b.registry.nodes().some(({ name }) => name === 'after'))
  await until(() => isOnline(a, node) && isOnline(b, node))
}, 60_000)

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
  await Promise.all(nats.servers.map((each) => each.start()))
  const isIn = ({ registry }: HubServerRig) => (registry as ClusterRegistry).directory.isInTouch
  await until(() => !isIn(a) && !isIn(b))
  await until(() => isIn(a) && isIn(b), undefined, 60_000)
  await until(() => isOnline(b, node) && routes(b, node).kind === 'server')
}, 120_000)
