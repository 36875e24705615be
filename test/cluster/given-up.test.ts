/** A node that gives up at one server and goes to another, with something newer to say of itself: what it said before does not come back. */
import { Kvm } from '@nats-io/kv'
import { expect, test } from 'vitest'
import { decodeNodeEntry, encodeNodeEntry } from '../../src/hub/cluster/entries.ts'
import type { NodeRegistry } from '../../src/hub/registry.ts'
import { newIdentity } from '../../src/link/identity.ts'
import type { Nats } from '../harness/nats.ts'
import { recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { client, isOnline, routes, server, start, writable } from './server-rig.ts'

/** Two servers, and a member that has no link. */
async function pairWithMember() {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const node = newIdentity()
  await a.admit(node, recordOf('first'))
  await until(() => b.listed(node.nodeId) !== undefined)
  return { nats, a, b, node }
}

function claim(registry: NodeRegistry, nodeId: string, name: string) {
  const withdrawn = new AbortController()
  const claimed = Promise.resolve(registry.claim(nodeId, recordOf(name), withdrawn.signal)).then(
    () => 'claimed',
    ({ code }) => code as string,
  )
  return { claimed, withdraw: () => withdrawn.abort() }
}

/** Resolves to a promise of the answer to the next request on a subject. */
async function answered(nats: Nats, subject: string): Promise<{ answer: Promise<void> }> {
  const connection = await client(nats)
  const requests = connection.subscribe(subject, { max: 1 })
  const answers = connection.subscribe('_INBOX.>')
  await connection.flush()
  const answer = (async () => {
    let inbox: string | undefined
    for await (const request of requests) inbox = request.reply
    for await (const { subject } of answers) if (subject === inbox) return
  })()
  return { answer }
}

test('it gave up before that server could note that it is there', async () => {
  const { a, b, node } = await pairWithMember()
  a.proxy.cut()
  const { claimed, withdraw } = claim(a.registry, node.nodeId, 'second')
  withdraw()
  await b.dial(node, recordOf('third'))
  a.proxy.open()
  expect(await claimed).toBe('UNAVAILABLE')
  await until(() => a.listed(node.nodeId)?.name === 'third' && isOnline(a, node))
  expect(b.listed(node.nodeId)?.name).toBe('third')
  expect(routes(b, node).kind).toBe('session')
})

test('it came to another server while that one could not store what it said', async () => {
  const { nats, a, b, node } = await pairWithMember()
  const switchMembers = await writable(nats, 'KV_penstock_tests_members')
  await switchMembers(false)
  const { answer } = await answered(nats, `$KV.penstock_tests_members.node.${node.nodeId}`)
  const { claimed } = claim(a.registry, node.nodeId, 'second')
  await answer
  await until(() => isOnline(b, node))
  const other = b.dial(node, recordOf('third')).catch(() => b.dial(node, recordOf('third')))
  await until(() => routes(a, node).kind === 'server')
  await switchMembers(true)
  await other
  expect(await claimed).toBe('UNAVAILABLE')
  await until(() => a.listed(node.nodeId)?.name === 'third')
  expect(b.listed(node.nodeId)?.name).toBe('third')
})

test('what it said before and was written late is written over by the server that has it', async () => {
  const { nats, a, b, node } = await pairWithMember()
  await b.dial(node, recordOf('second'))
  await until(() => a.listed(node.nodeId)?.name === 'second')
  const members = await new Kvm(await client(nats)).open('penstock_tests_members')
  const key = `node.${node.nodeId}`
  const found = await members.get(key)
  if (found === null) throw new Error('no entry')
  const { member, ...entry } = decodeNodeEntry(found.value, found.revision, found.created.getTime())
  if (member === undefined) throw new Error('no member')
  a.told()
  const late = encodeNodeEntry({ ...entry, member: { ...member, record: recordOf('first') } })
  await members.put(key, late, { previousSeq: found.revision })
  await until(() => a.told().includes('updated second'))
  expect([a, b].map((each) => each.listed(node.nodeId)?.name)).toEqual(['second', 'second'])
})
