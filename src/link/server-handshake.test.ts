/** Links between the servers of one hub: who is let in as a server, what they carry, and what is believed of whom. */

import { describe, expect, test, vi } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { HubSigner, STATEMENT_MS, stateServer } from './hub-key.ts'
import { newIdentity } from './identity.ts'
import { rawKey } from './keys.ts'
import { LinkRefused, type LinkSession, type LinkStream } from './link.ts'
import { encodeFrame } from './messages.ts'
import { connectPair } from './pair.ts'
import type { SignedBody } from './signed.ts'
import { Recorder, sessionPair, TestHub } from './testing.ts'

const NOW = Date.UTC(2026, 0, 1)
const none = new Uint8Array(0)
const hubKey = newIdentity()
const now = () => NOW

function signerOf(serverKey: Uint8Array, hub = hubKey, at = now): HubSigner {
  return new HubSigner({ hub, serverKey, now: at })
}

/** A server of the hub that listens, and the sessions of others with it. */
function listening() {
  const sessions: LinkSession[] = []
  const hub = new TestHub({ serverEstablished: (session) => void sessions.push(session) })
  return { hub, sessions, options: { ...hub.options, signer: signerOf(rawKey(hub.identity.publicKey)) } }
}

/** Another server, which dials. */
function dialling(hub: TestHub, statement?: (key: Uint8Array) => SignedBody | undefined) {
  const identity = newIdentity()
  const key = rawKey(identity.publicKey)
  const stated = statement === undefined ? signerOf(key).statement() : statement(key)
  const pinnedHubKey = rawKey(hubKey.publicKey)
  return hub.node({ identity, intent: 'SERVER', pinnedHubKey, now, statement: stated })
}

test('two servers of a hub know each other by their own ids', async () => {
  const { hub, sessions, options } = listening()
  const node = dialling(hub)
  const { session, hubId } = await connectPair(options, node)
  expect(hubId).toBe(hubKey.nodeId)
  expect(session.peerId).toBe(hub.identity.nodeId)
  expect(sessions.map(({ peerId }) => peerId)).toEqual([node.identity.nodeId])
  // They are no members.
  expect(hub.sessions).toEqual([])
})

const another = rawKey(newIdentity().publicKey)
test.each<[string, (key: Uint8Array) => SignedBody | undefined, string]>([
  ['without a statement', () => undefined, 'a server without a statement of the hub key'],
  ['with the statement of another server', () => signerOf(another).statement(), 'a statement about another server'],
  [
    'with one signed by another hub',
    (key) => signerOf(key, newIdentity()).statement(),
    'that the hub key has not signed',
  ],
  ['with one signed by itself', (key) => signerOf(key, newIdentity()).statement(), 'that the hub key has not signed'],
  ['with one that has expired', (key) => signerOf(key, hubKey, () => NOW - STATEMENT_MS).statement(), 'counted until'],
  [
    'with one that counts for long but was changed',
    (key) => {
      const { body, signature } = signerOf(key).statement()
      const later = stateServer(newIdentity(), { serverKey: key, certificateKey: none, expiresAt: BigInt(NOW * 2) })
      expect(Buffer.compare(body, later.body)).not.toBe(0)
      return { body: later.body, signature }
    },
    'that the hub key has not signed',
  ],
])('a server %s is cut off', async (_what, statement, message) => {
  const { hub, sessions, options } = listening()
  const failure = await connectPair(options, dialling(hub, statement)).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(LinkRefused)
  expect(failure).toMatchObject({ reason: 'PROTOCOL', signed: false })
  expect(sessions).toEqual([])
  expect(hub.events).toMatchObject([{ kind: 'violation', message: expect.stringContaining(message) }])
})

test('a hub without a hub key has no servers to link with', async () => {
  const hub = new TestHub()
  const node = { ...dialling(hub), pinnedHubKey: rawKey(hub.identity.publicKey) }
  await expect(connectPair(hub.options, node)).rejects.toMatchObject({ reason: 'PROTOCOL' })
  expect(hub.events).toMatchObject([{ kind: 'violation', message: 'a hello without a known intent' }])
})

describe('on a link between servers', () => {
  const pair = (isServerLink: boolean) => sessionPair(undefined, { isServerLink })
  const opened = async (from: LinkSession, to: LinkSession, origin: string): Promise<LinkStream> => {
    const stream = new Promise<LinkStream>((resolve) => to.onOpen(resolve))
    from.open('getNode', 'x', none, { origin })
    return await stream
  }

  test('either side says for which node it calls; on the link of a node only the hub does', async () => {
    const servers = pair(true)
    expect((await opened(servers.node, servers.hub, 'caller')).origin).toBe('caller')
    expect((await opened(servers.hub, servers.node, 'caller')).origin).toBe('caller')
    const nodes = pair(false)
    expect((await opened(nodes.node, nodes.hub, 'caller')).origin).toBe('node')
  })

  test.each([true, false])('that a node is not here is believed of servers only: %j', async (isServerLink) => {
    const { hub, node } = pair(isServerLink)
    node.onOpen((stream) => stream.end({ code: 'UNAVAILABLE', message: 'not here', notHere: true }))
    const recorder = new Recorder(hub.open('getNode', 'x', none))
    await recorder.over
    expect(recorder.status?.notHere).toBe(isServerLink ? true : undefined)
  })

  test('either side tells that a member was removed; between a node and its hub that is a violation', async () => {
    for (const side of ['hub', 'node'] as const) {
      const other = side === 'hub' ? 'node' : 'hub'
      const servers = pair(true)
      const heard: unknown[] = []
      servers[side].onRemoval((...removal) => heard.push(removal))
      servers[other].sendRemoval('x', 2 ** 40)
      await vi.waitFor(() => expect(heard).toEqual([['x', 2 ** 40]]))
      const nodes = pair(false)
      nodes[other].sendRemoval('x', 1)
      expect(await nodes[side].closed).toMatchObject({ reason: 'PROTOCOL' })
    }
  })

  test.each(['leave', 'left', 'removed', 'servers', 'lookElsewhere', 'stay'] as const)(
    '%s is a violation',
    async (kind) => {
      const signature = new Uint8Array(64)
      for (const side of ['hub', 'node'] as const) {
        const { events, [side]: session, [side === 'hub' ? 'nodeTransport' : 'hubTransport']: transport } = pair(true)
        transport.send(encodeFrame(kind, (kind === 'servers' ? { body: none, signature } : { signature }) as never))
        expect(await session.closed).toMatchObject({ reason: 'PROTOCOL' })
        expect(events).toMatchObject([{ message: `a ${kind} frame from a server in a session` }])
      }
    },
  )
})

describe('what a server tells a node of the servers', () => {
  const list = { issue: 7n, servers: [{ id: 'a', address: 'https://a:1' }] }

  test('comes with the welcome and when it changes, signed; the last is told to who asks later', async () => {
    const hub = new TestHub()
    const signer = signerOf(rawKey(hub.identity.publicKey))
    const { session } = await connectPair(
      { ...hub.options, signer, servers: () => signer.list(list) },
      hub.node({ now }),
    )
    const told: unknown[] = []
    session.onNews((news) => told.push(news))
    expect(told).toEqual([{ type: 'SERVERS', servers: list }])
    const [side] = hub.sessions
    side?.session.sendServers(signer.list({ ...list, issue: 8n }))
    side?.session.sendWish('LOOK_ELSEWHERE')
    side?.session.sendWish('STAY')
    await settle()
    expect(told.slice(1)).toEqual([
      { type: 'SERVERS', servers: { ...list, issue: 8n } },
      { type: 'LOOK_ELSEWHERE' },
      { type: 'STAY' },
    ])
    const late: unknown[] = []
    session.onNews((news) => late.push(news))
    expect(late).toEqual([{ type: 'SERVERS', servers: { ...list, issue: 8n } }, { type: 'STAY' }])
  })

  test.each<[string, (signer: HubSigner) => SignedBody, string]>([
    ['signed by another key', () => signerOf(another, newIdentity()).list(list), 'that the hub key has not signed'],
    ['that is a statement', (signer) => signer.statement(), 'that the hub key has not signed'],
    [
      'with an address that is none',
      (signer) => signer.list({ issue: 1n, servers: [{ id: 'a', address: 'ftp://a' }] }),
      'a server whose address is none',
    ],
  ])('a list %s ends the session, and fails the handshake', async (_what, make, message) => {
    const hub = new TestHub()
    const signer = signerOf(rawKey(hub.identity.publicKey))
    const { session } = await connectPair({ ...hub.options, signer }, hub.node({ now }))
    hub.sessions[0]?.session.sendServers(make(signer))
    expect(await session.closed).toMatchObject({ reason: 'PROTOCOL', message: expect.stringContaining(message) })
    const welcomed = connectPair({ ...hub.options, signer, servers: () => make(signer) }, hub.node({ now }))
    await expect(welcomed).rejects.toMatchObject({ reason: 'PROTOCOL', message: expect.stringContaining(message) })
  })

  test('is a violation on a hub without a hub key', async () => {
    const hub = new TestHub()
    const { session } = await connectPair(hub.options, hub.node())
    hub.sessions[0]?.session.sendServers(signerOf(another).list(list))
    expect(await session.closed).toMatchObject({ reason: 'PROTOCOL' })
  })
})
