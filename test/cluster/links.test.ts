/** Links of nodes while writes about them go wrong: where each node is, as the other server sees it, is true in the end. */
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { Engine } from '../../src/hub/cluster/engine.ts'
import { decodePresence } from '../../src/hub/cluster/entries.ts'
import { Links } from '../../src/hub/cluster/links.ts'
import type { VersionedPresence } from '../../src/hub/cluster/picture.ts'
import { PresenceWriter } from '../../src/hub/cluster/presence-writer.ts'
import { newIdentity } from '../../src/link/identity.ts'
import type { LinkSession } from '../../src/link/link.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { clusterServer, HUB_ID, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

let nats: Nats
let buckets = 0
const bucket = () => `links${buckets}`
const closing: (() => unknown)[] = []
beforeAll(async () => {
  nats = await Nats.alone()
})
afterAll(() => nats.close())
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  buckets++
})

/** A server with a proxy of its own before the engine. */
async function server(name: string) {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const facts: string[] = []
  const errors: string[] = []
  const rig = await clusterServer({
    ...{ name, bucket: bucket(), servers: [proxy.address] },
    onFact: ({ kind }) => facts.push(kind),
    onError: (message) => errors.push(message),
  })
  closing.push(() => rig.close())
  return Object.assign(rig, { proxy, facts, errors })
}

/** The subjects of where nodes are. */
const presence = () => `$KV.penstock_${bucket()}_presence.node.`

test('a server that could not note all its links anew tries again with its next renewal', async () => {
  const a = await server('a')
  const b = await server('b')
  const { node, session } = await a.join()
  const isOnline = () => b.listed(node.nodeId)?.online === true
  await until(isOnline)
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost') && !isOnline())
  // Nobody answers for these subjects: the writes fail, and everything else goes through.
  a.proxy.changeToServer((text) => text.replaceAll(presence(), presence().replace('$KV', '$NO')))
  a.proxy.open()
  await until(() => a.errors.some((error) => error.startsWith('the links of this server could not all be noted again')))
  expect(isOnline()).toBe(false)
  a.proxy.changeToServer()
  await until(isOnline)
  expect(b.registry.route(node.nodeId)).toEqual({ kind: 'server', server: a.identity.nodeId })
  session.close('SHUTDOWN', 'the end')
  await until(() => !isOnline())
})

test('a link that ends while its server may not write is over there too, as soon as the others say so', async () => {
  const a = await server('a')
  const b = await server('b')
  const { node, session } = await a.join()
  await until(() => b.listed(node.nodeId)?.online === true)
  a.proxy.cut()
  await until(() => a.facts.includes('lease lost') && b.listed(node.nodeId)?.online === false)
  session.close('SHUTDOWN', 'the node goes down')
  await session.closed
  a.proxy.open()
  await until(() => (a.registry as ClusterRegistry).directory.isInTouch)
  // Long before what the lost life left behind is taken away.
  await until(() => a.listed(node.nodeId)?.online === false, 'the node offline', 10_000)
  expect(b.listed(node.nodeId)?.online).toBe(false)
})

test('a node that asks for its own removal while another server removes it has no link any more', async () => {
  const a = await server('a')
  const b = await server('b')
  const { node, session } = await a.join()
  await until(() => b.listed(node.nodeId)?.online === true)
  const members = `$KV.penstock_${bucket()}_members.node.`
  let isAsked = false
  a.proxy.changeToServer((text) => {
    isAsked ||= text.includes(members)
    return text.replaceAll(members, members.replace('$KV', '$NO'))
  })
  const asked = a.registry.remove(node.nodeId, { answerFirst: true })
  await until(() => isAsked)
  expect(await b.registry.remove(node.nodeId)).toBe(true)
  await until(() => a.listed(node.nodeId) === undefined)
  a.proxy.changeToServer()
  expect(await asked).toBe(false)
  let reason: string | undefined
  void session.closed.then((end) => {
    reason = end.reason
  })
  await until(() => reason === 'REMOVED')
})

test('a node whose claim was made, though no answer said so, is not online where it has no link', async () => {
  const a = await server('a')
  const b = await server('b')
  const node = newIdentity()
  await a.admit(node)
  await until(() => b.listed(node.nodeId) !== undefined)
  b.told()
  // The answers go to somebody who is not there.
  a.proxy.changeToServer((text) =>
    text.replace(`${presence()}${node.nodeId} _INBOX`, `${presence()}${node.nodeId} _NOBOX`),
  )
  await expect(a.dial(node)).rejects.toMatchObject({ reason: 'UNAVAILABLE', signed: true })
  expect(a.facts).not.toContain('lease lost')
  await until(() => b.events.length >= 2)
  expect(b.told()).toEqual(['connected node', 'disconnected node'])
})

test('a node whose changed details may have been stored, or not, is refused UNAVAILABLE and comes again', async () => {
  const a = await server('a')
  const node = newIdentity()
  await a.admit(node, recordOf('before'))
  a.proxy.changeToServer((text) => {
    if (text.includes(`$KV.penstock_${bucket()}_members.node.`)) a.proxy.holdAnswers()
    return text
  })
  await expect(a.dial(node, recordOf('after'))).rejects.toMatchObject({
    ...{ reason: 'UNAVAILABLE', signed: true },
    message: expect.stringContaining('is not known: it has to come again'),
  })
  a.proxy.changeToServer()
  a.proxy.break()
  await until(() => (a.registry as ClusterRegistry).directory.isInTouch)
  const { session } = await a.dial(node, recordOf('after'))
  expect(a.listed(node.nodeId)).toMatchObject({ name: 'after', online: true })
  session.close('SHUTDOWN', 'the end')
})

test('a server that closes while a renewal is under way gives its lease up all the same', async () => {
  const b = await server('b')
  const a = await server('a')
  const { directory } = a.registry as ClusterRegistry
  directory.publish(Buffer.from('a renewal at once'))
  await a.close()
  expect(a.errors).toEqual([])
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  const leases: string[] = []
  for await (const key of await (await new Kvm(connection).open(`penstock_${bucket()}_presence`)).keys('server.>')) {
    leases.push(key)
  }
  expect(leases).toHaveLength(1)
  await until(() => b.listed(a.identity.nodeId)?.online === false)
})

const NEVER: VersionedPresence = { entry: undefined, revision: 0, at: 0 }
const record = recordOf('n')
const member = { key: new Uint8Array(32), record, joined: 1, admission: 1, joinedAt: 1, lastSeen: new Date() }
const { signal: awaited } = new AbortController()

/** A connection to the engine; `found`: where it has node n. */
async function engineAlone() {
  const engine = await Engine.open({
    ...{ servers: nats.addresses, name: bucket(), hubId: HUB_ID, replicas: 1 },
    ...{ connectionName: 'alone', timers: systemClock },
  })
  closing.push(() => engine.close())
  const writer = new PresenceWriter({ engine, clock: systemClock, mayWrite: () => {} })
  return { writer, found: () => engine.session?.presence.get('node.n') }
}

/** The links of a server that sees what `presence` gives. */
const linksOver = (writer: PresenceWriter, presence: () => VersionedPresence) =>
  new Links({
    picture: {
      presence,
      presentIn: () => [],
      versioned: () => ({ entry: { member, requests: [], operations: [] }, revision: 1, at: 0 }),
    },
    writer,
    life: () => 'own',
    isOwn: (life) => life === 'own',
    stands: () => true,
    leave: async () => {},
    noteRecord: async () => true,
    onError: (message, error) => {
      throw new Error(message, { cause: error })
    },
  })

test('a claim that this server has yet to see is given back; what it has seen of another link stays', async () => {
  const { writer, found } = await engineAlone()
  const other = { life: 'other', session: 'other', joined: member.joined }
  const revision = (await writer.put('n', other, NEVER)) as number
  let seen: VersionedPresence = { entry: other, revision, at: 0 }
  const links = linksOver(writer, () => seen)
  const { claim } = await links.claim('n', member, record, awaited)
  claim.release?.()
  await until(async () => (await found())?.operation === 'DEL')
  const again = await links.claim('n', member, record, awaited)
  const newer = (await writer.put('n', other, { ...seen, revision: again.revision })) as number
  seen = { entry: other, revision: newer, at: 0 }
  again.claim.release?.()
  await links.claim('m', member, record, awaited)
  expect((await found())?.revision).toBe(newer)
})

test('where a node is, is written again until this server sees it: its watch may have lost what is there', async () => {
  const { writer, found } = await engineAlone()
  let seen = NEVER
  const links = linksOver(writer, () => seen)
  const { claim, revision } = await links.claim('n', member, record, awaited)
  const session = { peerId: 'n', onLeave: () => {}, close: () => {}, closed: new Promise(() => {}) }
  links.add(session as unknown as LinkSession, record, claim)
  await until(async () => ((await found())?.revision ?? 0) > revision)
  const first = (await found())?.revision as number
  await links.catchUp()
  const { revision: second, value } = (await found())!
  expect(second).toBeGreaterThan(first)
  seen = { entry: decodePresence(value), revision: second, at: 0 }
  await links.catchUp()
  await links.catchUp()
  expect((await found())?.revision).toBe(second)
})

test('a claim that was given up, and whose write came late all the same, is taken away when it is seen', async () => {
  const { writer, found } = await engineAlone()
  let seen = NEVER
  const links = linksOver(writer, () => seen)
  const late = { life: 'own', session: 'given up', joined: member.joined }
  seen = { entry: late, revision: (await writer.put('n', late, NEVER)) as number, at: 0 }
  links.settle('n')
  await until(async () => (await found())?.operation === 'DEL')
  // What another server says, and what is being claimed here, stays.
  const other = { ...late, life: 'other' }
  seen = { entry: other, revision: (await writer.put('n', other, seen)) as number, at: 0 }
  links.settle('n')
  const { claim, revision } = await links.claim('n', member, record, awaited)
  seen = { entry: decodePresence((await found())!.value), revision, at: 0 }
  links.settle('n')
  await writer.put('m', other, NEVER)
  expect(await found()).toMatchObject({ operation: 'PUT', revision })
  claim.release?.()
  await until(async () => (await found())?.operation === 'DEL')
})
