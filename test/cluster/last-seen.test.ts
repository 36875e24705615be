/** When a node was seen last and when it joined, on a hub of several servers: at the end of its last connection, for all servers, after all restarts, and in what is exported. */
import { type KV, Kvm } from '@nats-io/kv'
import { expect, test } from 'vitest'
import { decodeNodeEntry, encodeNodeEntry } from '../../src/hub/cluster/entries.ts'
import { readMembers } from '../../src/hub/cluster/moving.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import type { Nats } from '../harness/nats.ts'
import { HUB_ID, type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { client, isOnline, server, start } from './server-rig.ts'

const MINUTES_10 = 600_000
/** A loaded machine takes its time. */
const SOON_MS = 30_000

const seenAt = (hub: HubServerRig, { nodeId }: Identity) => hub.listed(nodeId)?.lastSeen?.getTime() ?? 0
const toldAt = (hub: HubServerRig, type: string, { nodeId }: Identity) =>
  hub.events.find((event) => event.type === type && event.node.id === nodeId)?.node.lastSeen?.getTime() ?? 0

const membersOf = async (nats: Nats) => await new Kvm(await client(nats)).open('penstock_tests_members')

/** What the entry of a node says of when it was seen last. */
async function writtenAt(bucket: KV, { nodeId }: Identity): Promise<number> {
  const found = await bucket.get(`node.${nodeId}`)
  return decodeNodeEntry(found!.value, found!.revision, 0).member?.lastSeen.getTime() ?? 0
}

test('a node that changes servers, or is removed while it is online, was seen until then', async () => {
  let later = -2 * MINUTES_10
  const engineTime = (seen: number) => seen + later
  const now = () => engineTime(Date.now())
  const nats = await start()
  const a = await server(nats, 'a', { now, engineTime })
  const b = await server(nats, 'b', { now, engineTime })
  const { node } = await a.join()
  await until(() => isOnline(b, node))
  later = -MINUTES_10
  await b.dial(node)
  for (const hub of [a, b]) {
    await until(() => toldAt(hub, 'disconnected', node) > 0)
    expect(now() - toldAt(hub, 'disconnected', node)).toBeLessThan(SOON_MS)
  }
  await until(() => isOnline(a, node))
  later = 0
  await a.registry.remove(node.nodeId)
  for (const hub of [a, b]) {
    await until(() => toldAt(hub, 'deauthenticated', node) > 0)
    expect(now() - toldAt(hub, 'deauthenticated', node)).toBeLessThan(SOON_MS)
  }
})

test('a node that has been offline for minutes: a server that starts after NATS has lost its memory says the same as the others', async () => {
  let later = -MINUTES_10
  const nats = await start()
  const a = await server(nats, 'a', { engineTime: (seen) => seen + later })
  const { node, session } = await a.join()
  later = 0
  session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, node))
  const seen = seenAt(a, node)
  expect(Date.now() - seen).toBeLessThan(SOON_MS)
  later = MINUTES_10
  const bucket = await membersOf(nats)
  await until(async () => (await writtenAt(bucket, node)) === seen)
  const held = a.facts.length
  await nats.servers[0]!.kill()
  await nats.servers[0]!.start()
  await until(() => a.facts.slice(held).includes('connected'))
  const b = await server(nats, 'b')
  expect(seenAt(b, node)).toBe(seen)
  await until(() => a.listed(node.nodeId) !== undefined)
  expect(seenAt(a, node)).toBe(seen)
})

test('a server whose clock is ahead: what it tells and writes of when nodes were seen is not of a time to come, and does not go back', async () => {
  let later = -MINUTES_10
  const nats = await start()
  const ahead = { now: () => Date.now() + 6 * MINUTES_10, engineTime: (seen: number) => seen + later }
  // Both, since chance has it which of them writes.
  const a = await server(nats, 'a', ahead)
  const b = await server(nats, 'b', ahead)
  const { node, session } = await b.join()
  const bucket = await membersOf(nats)
  const before = await writtenAt(bucket, node)
  expect(before).toBeLessThanOrEqual(Date.now())
  await until(() => isOnline(a, node))
  later = 0
  const online = [a, b].map((hub) => seenAt(hub, node))
  session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, node) && !isOnline(b, node))
  const seen = [a, b].map((hub) => seenAt(hub, node))
  seen.map((time, i) => expect(time).toBeGreaterThanOrEqual(online[i] as number))
  for (const time of seen) expect(time).toBeLessThanOrEqual(Date.now())
  later = MINUTES_10
  await until(async () => (await writtenAt(bucket, node)) > before)
  expect(await writtenAt(bucket, node)).toBeLessThanOrEqual(Math.max(...seen))
  expect([a, b].map((hub) => seenAt(hub, node))).toEqual(seen)
})

test('a time to come that a server of another version has written is that of the writing', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  const node = newIdentity()
  await a.admit(node)
  const bucket = await membersOf(nats)
  const found = await bucket.get(`node.${node.nodeId}`)
  const { member, ...rest } = decodeNodeEntry(found!.value, found!.revision, 0)
  const lastSeen = new Date(Date.now() + MINUTES_10)
  await bucket.put(`node.${node.nodeId}`, encodeNodeEntry({ ...rest, member: { ...member!, lastSeen } }))
  const at = (await bucket.get(`node.${node.nodeId}`))!.created.getTime()
  await until(() => seenAt(a, node) === at)
  const { members } = await readMembers({ servers: nats.addresses, name: 'tests', hubId: HUB_ID, replicas: 1 })
  expect(members.map(({ lastSeen }) => lastSeen)).toEqual([at])
})

test('when a node joined stays what it was in what is exported, whatever is written of the node', async () => {
  let later = -MINUTES_10
  const nats = await start()
  const a = await server(nats, 'a', { engineTime: (seen) => seen + later })
  const settings = { servers: nats.addresses, name: 'tests', hubId: HUB_ID, replicas: 1 }
  const { node, session } = await a.join(recordOf('first'))
  const exported = async () => (await readMembers(settings)).members.map(({ name, joinedAt }) => ({ name, joinedAt }))
  const bucket = await membersOf(nats)
  const joinedAt = (await bucket.get(`node.${node.nodeId}`))!.created.getTime()
  expect(await exported()).toEqual([{ name: 'first', joinedAt }])
  await a.admit(node, recordOf('again'))
  expect(await exported()).toEqual([{ name: 'again', joinedAt }])
  later = 0
  session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline(a, node))
  later = MINUTES_10
  const written = await writtenAt(bucket, node)
  await until(async () => (await writtenAt(bucket, node)) > written)
  expect(await exported()).toEqual([{ name: 'again', joinedAt }])
  // One that was removed and let in anew has joined then.
  await a.registry.remove(node.nodeId)
  await a.admit(node, recordOf('anew'))
  const anew = (await bucket.get(`node.${node.nodeId}`))!.created.getTime()
  expect(await exported()).toEqual([{ name: 'anew', joinedAt: anew }])
  expect(anew).toBeGreaterThan(joinedAt)
})

test('exported: an online node as of now, one that is offline as of the end of its connection', async () => {
  const nats = await start()
  const a = await server(nats, 'a', { engineTime: (seen) => seen - MINUTES_10 })
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
