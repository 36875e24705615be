/** When a node was seen last, on a hub of several servers: at the end of its last connection, for all servers, after all restarts, and in what is exported. */
import { expect, test } from 'vitest'
import { readMembers } from '../../src/hub/cluster/moving.ts'
import type { Identity } from '../../src/link/identity.ts'
import { HUB_ID, type HubServerRig } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { isOnline, server, start } from './server-rig.ts'

const MINUTES_10 = 600_000
/** A loaded machine takes its time. */
const SOON_MS = 30_000

const seenAt = (hub: HubServerRig, { nodeId }: Identity) => hub.listed(nodeId)?.lastSeen?.getTime() ?? 0
const toldAt = (hub: HubServerRig, type: string, { nodeId }: Identity) =>
  hub.events.find((event) => event.type === type && event.node.id === nodeId)?.node.lastSeen?.getTime() ?? 0

test('a node that changes servers, or is removed while it is online, was seen until then', async () => {
  let later = 0
  const now = () => Date.now() + later
  const nats = await start()
  const a = await server(nats, 'a', { now })
  const b = await server(nats, 'b', { now })
  const { node } = await a.join()
  await until(() => isOnline(b, node))
  later = MINUTES_10
  await b.dial(node)
  for (const hub of [a, b]) {
    await until(() => toldAt(hub, 'disconnected', node) > 0)
    expect(now() - toldAt(hub, 'disconnected', node)).toBeLessThan(SOON_MS)
  }
  await until(() => isOnline(a, node))
  later = 2 * MINUTES_10
  await a.registry.remove(node.nodeId)
  for (const hub of [a, b]) {
    await until(() => toldAt(hub, 'deauthenticated', node) > 0)
    expect(now() - toldAt(hub, 'deauthenticated', node)).toBeLessThan(SOON_MS)
  }
})

test('a node that has been offline for minutes: a server that starts after NATS has lost its memory says the same as the others', async () => {
  let later = 0
  const now = () => Date.now() + later
  const nats = await start()
  const a = await server(nats, 'a', { now })
  const { node, session } = await a.join()
  later = MINUTES_10
  session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, node))
  const seen = seenAt(a, node)
  expect(now() - seen).toBeLessThan(SOON_MS)
  later = 2 * MINUTES_10
  const held = a.facts.length
  // A renewal of the lease that comes back has the server look.
  const since = performance.now()
  await until(() => performance.now() - since > 2_500)
  await nats.servers[0]!.kill()
  await nats.servers[0]!.start()
  await until(() => a.facts.slice(held).includes('connected'))
  const b = await server(nats, 'b', { now })
  expect(seenAt(b, node)).toBe(seen)
  await until(() => a.listed(node.nodeId) !== undefined)
  expect(seenAt(a, node)).toBe(seen)
})

test('exported: an online node as of now, one that is offline as of the end of its connection', async () => {
  const now = () => Date.now() - MINUTES_10
  const nats = await start()
  const a = await server(nats, 'a', { now })
  const online = await a.join()
  const offline = await a.join()
  offline.session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, offline.node))
  const settings = { servers: nats.addresses, name: 'tests', hubId: HUB_ID, replicas: 1 }
  const { members } = await readMembers(settings)
  for (const { node } of [online, offline]) {
    const exported = members.find(({ id }) => id === node.nodeId)
    expect(Date.now() - (exported?.lastSeen ?? 0)).toBeLessThan(SOON_MS)
  }
})
