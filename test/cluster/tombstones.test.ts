/** What says that something is no more: kept for a day by the engine's clock, then purged, unless somebody has written it anew. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { Engine } from '../../src/hub/cluster/engine.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { clusterServer, type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

const DAY = 24 * 3_600_000

const closing: (() => unknown)[] = []
let nats: Nats
let connection: NatsConnection
/** What the clock of the engine says for the servers, beyond what it is. */
let later: number
beforeEach(async () => {
  nats = await Nats.alone()
  closing.push(() => nats.close())
  connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  later = 0
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function server(name: string, hasLaterClock = true): Promise<HubServerRig> {
  const engineTime = (seen: number) => seen + (hasLaterClock ? later : 0)
  const rig = await clusterServer({ name, servers: nats.addresses, engineTime })
  closing.push(() => rig.close())
  return rig
}

/** The keys that a bucket has, tombstones too. */
async function keys(bucket: 'members' | 'presence'): Promise<string[]> {
  const stream = `KV_penstock_tests_${bucket}`
  const manager = await jetstreamManager(connection)
  const { state } = await manager.streams.info(stream, { subjects_filter: '>' })
  return Object.keys(state.subjects ?? {}).map((subject) => subject.split('.').slice(2).join('.'))
}
const has = async (bucket: 'members' | 'presence', key: string) => (await keys(bucket)).includes(key)

/** Every renewal of the lease that comes back has the servers look, if their clock has gone on by enough. */
async function severalLooks(): Promise<void> {
  const since = performance.now()
  await until(() => performance.now() - since > 2_500)
}

test('a removed node is forgotten after a day, with its presence; a member that is offline is not', async () => {
  const a = await server('a')
  const removed = await a.join(recordOf('removed'))
  const offline = await a.join(recordOf('offline'))
  const keyOf = ({ node }: typeof removed) => `node.${node.nodeId}`
  await a.registry.remove(removed.node.nodeId)
  offline.session.close('SHUTDOWN', 'the end')
  await until(() => a.listed(offline.node.nodeId)?.online === false)
  const seen = a.listed(offline.node.nodeId)?.lastSeen
  await until(async () => await has('presence', keyOf(removed)))
  later = DAY - 60_000
  await severalLooks()
  expect(await keys('members')).toContain(keyOf(removed))
  later = DAY + 120_000
  await until(async () => !(await has('members', keyOf(removed))) && !(await has('presence', keyOf(removed))))
  expect(await keys('members')).toContain(keyOf(offline))
  expect(await keys('presence')).toContain(keyOf(offline))
  expect(a.listed(offline.node.nodeId)?.lastSeen).toEqual(seen)
  // A node that comes again is as any other.
  expect(await a.admit(removed.node)).toMatchObject({ isNew: true })
})

test('what a server has known before its connection broke is forgotten after a day, too', async () => {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  let connections = 0
  const a = await clusterServer({
    name: 'a',
    servers: [proxy.address],
    engineTime: (seen) => seen + later,
    onFact: ({ kind }) => {
      if (kind === 'connected') connections++
    },
  })
  closing.push(() => a.close())
  const { node } = await a.join()
  const key = `node.${node.nodeId}`
  await a.registry.remove(node.nodeId)
  proxy.break()
  await until(() => connections === 2)
  later = DAY + 120_000
  await until(async () => !(await has('members', key)) && !(await has('presence', key)))
})

test('the end of a server is forgotten too', async () => {
  const a = await server('a')
  const b = await server('b')
  const leases = async () => (await keys('presence')).filter((key) => key.startsWith('server.'))
  const both = await leases()
  await b.close()
  await until(() => a.listed(b.identity.nodeId)?.online === false)
  expect((await leases()).sort()).toEqual(both.sort())
  later = DAY + 120_000
  await until(async () => (await leases()).length === 1)
})

test('only the server whose life has the smallest name purges; the others go on with what they have', async () => {
  const servers = [await server('a'), await server('b')]
  const [a, b] = servers as [HubServerRig, HubServerRig]
  const node = newIdentity()
  await a.admit(node)
  await a.registry.remove(node.nodeId)
  await until(() => b.listed(node.nodeId) === undefined)
  later = DAY + 120_000
  await until(async () => !(await has('members', `node.${node.nodeId}`)))
  // Both write on what they have seen: one the tombstone, the other nothing.
  for (const hub of [a, b]) {
    expect(await hub.admit(node)).toMatchObject({ isNew: true })
    expect(await hub.registry.remove(node.nodeId)).toBe(true)
  }
})

test('one that was written anew meanwhile is not purged', async () => {
  const a = await server('a')
  const node = newIdentity()
  await a.admit(node)
  await a.registry.remove(node.nodeId)
  later = DAY - 10_000
  await a.admit(node, recordOf('again'))
  later = 2 * DAY
  await severalLooks()
  expect(await keys('members')).toContain(`node.${node.nodeId}`)
  expect(a.listed(node.nodeId)?.name).toBe('again')
})

test('a purge of a revision that is another by now, or none, takes nothing', async () => {
  const a = await server('a')
  const node = newIdentity()
  await a.admit(node, recordOf('one'))
  const manager = await jetstreamManager(connection)
  const before = (await manager.streams.info('KV_penstock_tests_members')).state.last_seq
  await a.admit(node, recordOf('two'))
  const engine = await Engine.open({
    servers: nats.addresses,
    name: 'tests',
    hubId: new Uint8Array(32).fill(1),
    replicas: 1,
    connectionName: 'purge',
    timers: systemClock,
  })
  closing.push(() => engine.close())
  await engine.session?.purge('members', before)
  await engine.session?.purge('members', 1_000_000)
  expect(await keys('members')).toContain(`node.${node.nodeId}`)
})
