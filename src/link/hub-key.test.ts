/** A hub key: its file, and what it says of servers, as nodes that have pinned it or not take it; and what an attacker makes of that. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { acceptLink } from './handshake-hub.ts'
import { joinLink } from './handshake-node.ts'
import { HubSigner, readHubKey, readStatement, STATEMENT_MS, stateServer, writeHubKey } from './hub-key.ts'
import { newIdentity } from './identity.ts'
import { rawKey, signAs, transcript } from './keys.ts'
import { LinkRefused, LinkUnreachable } from './link.ts'
import { decodeFrame, encodeFrame, encodeHubHelloBody } from './messages.ts'
import { connectPair, MemoryTransport } from './pair.ts'
import type { SignedBody } from './signed.ts'
import { record, TestHub } from './testing.ts'

const NOW = Date.UTC(2026, 0, 1)
const none = new Uint8Array(0)
const certificateKey = new Uint8Array(32).fill(5)

/** A hub with a key of its own, and one server. */
function hubWithKey(hubKey = newIdentity(), now: () => number = () => NOW, key = none) {
  const server = new TestHub()
  const signer = new HubSigner({
    hub: hubKey,
    serverKey: rawKey(server.identity.publicKey),
    now,
  })
  const certificate = key === none ? undefined : { fingerprint: new Uint8Array(32), key }
  return { hubKey, raw: rawKey(hubKey.publicKey), server, signer, options: { ...server.options, signer, certificate } }
}

async function refusalOf(promise: Promise<unknown>): Promise<Pick<LinkRefused, 'reason' | 'message' | 'signed'>> {
  const error = await promise.then(
    () => expect.fail('the handshake succeeded'),
    (error: unknown) => error,
  )
  if (error instanceof LinkUnreachable) return { reason: 'UNREACHABLE' as never, message: error.message, signed: false }
  expect(error).toBeInstanceOf(LinkRefused)
  return error as LinkRefused
}

describe('the file', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'penstock-hub-key-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  test('is for its owner only, and never written over', () => {
    const path = join(directory, 'hub.pem')
    const key = newIdentity()
    writeHubKey(path, key)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readHubKey(path).nodeId).toBe(key.nodeId)
    const before = readFileSync(path, 'utf8')
    expect(() => writeHubKey(path, newIdentity())).toThrow(`${path} is there already`)
    expect(readFileSync(path, 'utf8')).toBe(before)
  })

  test.each([
    ['is missing', () => {}, 'there is no hub key in'],
    ['holds something else', (path: string) => writeFileSync(path, 'junk', { mode: 0o600 }), 'holds no private key'],
    [
      'may be read by others',
      (path: string) => {
        writeHubKey(path, newIdentity())
        chmodSync(path, 0o640)
      },
      'others than the owner',
    ],
  ])('that %s is refused', (_what, prepare, message) => {
    const path = join(directory, 'hub.pem')
    prepare(path)
    expect(() => readHubKey(path)).toThrow(message)
  })
})

describe.each(['JOIN', 'CONNECT'] as const)('%s', (intent) => {
  test('the hub is its key, the session is with the server', async () => {
    const { options, hubKey, raw, server } = hubWithKey()
    const node = server.node({ intent, now: () => NOW, ...(intent === 'CONNECT' ? { pinnedHubKey: raw } : {}) })
    const { session, hubId, hubKey: shown } = await connectPair(options, node)
    expect(hubId).toBe(hubKey.nodeId)
    expect(Buffer.from(shown)).toEqual(Buffer.from(raw))
    expect(session.peerId).toBe(server.identity.nodeId)
    expect(server.sessions).toHaveLength(1)
    server.sessions[0]?.session.close('REMOVED', 'out')
    expect(await session.closed).toMatchObject({ reason: 'REMOVED', byPeer: true })
  })

  test('a node of version 1 is told to be updated, and pins nothing', async () => {
    const { options, server } = hubWithKey()
    const [hubTransport, nodeTransport] = MemoryTransport.pair()
    acceptLink(hubTransport, options)
    const said: string[] = []
    const closed = new Promise<[number, string]>((resolve) => {
      nodeTransport.handlers = {
        message: (bytes) => said.push(decodeFrame(bytes).kind),
        foreign() {},
        close: (code, reason) => resolve([code, reason]),
        drain() {},
      }
    })
    const nodeKey = rawKey(newIdentity().publicKey)
    const hello = { version: 1, nodeKey, nonce: new Uint8Array(32), intent, certificateFingerprint: none }
    nodeTransport.send(encodeFrame('hello', hello))
    const text = 'this hub speaks version 2 of the protocol, as it has a hub key: update the node'
    expect(await closed).toEqual([4400, text])
    expect(said).toEqual([])
    expect(server.events).toMatchObject([{ kind: 'violation', message: text }])
  })

  test('a node of this version at a hub without a hub key: the key of its node is the hub’s', async () => {
    const hub = new TestHub()
    const { hubId, session } = await connectPair(hub.options, hub.node({ intent }))
    expect(hubId).toBe(hub.identity.nodeId)
    expect(session.peerId).toBe(hub.identity.nodeId)
  })
})

test('a sign-in stays good when the key of the one server there was becomes the hub key', async () => {
  const before = new TestHub()
  const node = before.node({ intent: 'JOIN', now: () => NOW })
  const { hubKey } = await connectPair(before.options, node)
  const { options, server } = hubWithKey(before.identity)
  const { session, hubId } = await connectPair(options, { ...node, intent: 'CONNECT', pinnedHubKey: hubKey })
  expect(hubId).toBe(before.identity.nodeId)
  expect(session.peerId).toBe(server.identity.nodeId)
})

test('a node with another key pinned sends no proof', async () => {
  const { options, server } = hubWithKey()
  const pinnedHubKey = rawKey(newIdentity().publicKey)
  const refusal = await refusalOf(connectPair(options, server.node({ pinnedHubKey, now: () => NOW })))
  expect(refusal).toMatchObject({ reason: 'WRONG_HUB', signed: false })
  expect(server.sessions).toEqual([])
})

test('a node cannot have the hub key', async () => {
  const { options, server, hubKey } = hubWithKey()
  const refusal = await refusalOf(connectPair(options, server.node({ identity: hubKey, now: () => NOW })))
  expect(refusal).toMatchObject({ reason: 'PROTOCOL', signed: false })
  expect(server.events).toMatchObject([
    { kind: 'violation', message: expect.stringMatching(/^the node has this hub's identity: .*\?$/) },
  ])
})

test('a statement counts for two days, and is made anew every hour', async () => {
  let now = NOW
  const { signer } = hubWithKey(newIdentity(), () => now)
  const first = signer.statement()
  now += 3600_000 - 1
  expect(signer.statement()).toBe(first)
  now += 1
  expect(signer.statement()).not.toBe(first)
  // A clock that is set back far must not keep a statement from the future.
  const second = signer.statement()
  now -= 10 * 3600_000
  expect(signer.statement()).not.toBe(second)
  // Each is about the certificate that its reader has seen.
  for (const key of [certificateKey, none, new Uint8Array(32)]) {
    const about = readStatement(signer.statement(key), { hubKey: signer.key, now })
    expect(Buffer.from(about.certificateKey)).toEqual(Buffer.from(key))
  }
})

test.each([
  ['an hour fast', 3600_000, 'admitted'],
  ['a year slow', -365 * 86_400_000, 'admitted'],
  ['a millisecond short of two days fast', STATEMENT_MS - 1, 'admitted'],
  ['two days fast', STATEMENT_MS, 'WRONG_HUB'],
] as const)('a node whose clock is %s: %s', async (_what, ahead, outcome) => {
  const { options, raw, server } = hubWithKey()
  const joined = connectPair(options, server.node({ pinnedHubKey: raw, now: () => NOW + ahead }))
  if (outcome === 'admitted') await joined
  else {
    const { reason, message, signed } = await refusalOf(joined)
    expect({ reason, signed }).toEqual({ reason: 'WRONG_HUB', signed: false })
    expect(message).toContain('counted until 2026-01-03T00:00:00.000Z: look at the clocks')
    expect(server.sessions).toEqual([])
  }
})

/** A hub played by the test: what it answers to the Hello, and whether the node went on to its Proof. */
async function played(answer: (hello: Uint8Array) => Uint8Array, pinnedHubKey: Uint8Array) {
  const [transport, peer] = MemoryTransport.pair()
  const said: string[] = []
  peer.handlers = {
    message: (bytes) => {
      said.push(decodeFrame(bytes).kind)
      if (said.length === 1) peer.send(answer(bytes))
      else peer.close(1001, 'it went on')
    },
    foreign() {},
    close() {},
    drain() {},
  }
  const node = new TestHub().node({ record, pinnedHubKey, now: () => NOW })
  const refusal = await refusalOf(joinLink(transport, none, node))
  return { refusal, said }
}

describe('an attacker without the hub key', () => {
  const hub = hubWithKey()
  const attacker = newIdentity()
  const helloOf =
    (statement: SignedBody | undefined, signer = attacker, hubKey = hub.raw) =>
    (hello: Uint8Array) => {
      const body = encodeHubHelloBody({ hubKey, nonce: new Uint8Array(32), statement })
      const signature = signAs('hub', signer.privateKey, transcript(hello, body))
      return encodeFrame('hubHello', { body, signature })
    }
  const about = (key: Uint8Array, signer = attacker) =>
    stateServer(signer, { serverKey: key, certificateKey: none, expiresAt: BigInt(NOW + 1000) })
  const own = rawKey(attacker.publicKey)
  const shown = hub.signer.statement()
  const swapped = () => {
    const body = Buffer.from(shown.body)
    const at = body.indexOf(Buffer.from(rawKey(hub.server.identity.publicKey)))
    body.set(own, at)
    return { body, signature: shown.signature }
  }
  test.each([
    ['shows the statement of a server', helloOf(shown), 'a hello that the key in it has not signed'],
    ['signs a statement about itself', helloOf(about(own)), 'that the hub key has not signed'],
    ['puts its key into a statement', helloOf(swapped()), 'that the hub key has not signed'],
    ['shows the hub key alone', helloOf(undefined), 'a hello that the key in it has not signed'],
    [
      'takes another signature of the hub key for one under a statement',
      helloOf({
        body: about(own).body,
        signature: signAs('verdict', hub.hubKey.privateKey, transcript(about(own).body)),
      }),
      'that the hub key has not signed',
    ],
    [
      'has a statement that holds something else',
      helloOf({ body: Buffer.from('0801', 'hex'), signature: shown.signature }),
      'that the hub key has not signed',
    ],
  ])('%s: the node sends no proof', async (_what, answer, message) => {
    const { refusal, said } = await played(answer, hub.raw)
    expect(refusal).toMatchObject({ reason: 'NOT_A_HUB', signed: false })
    expect(refusal.message).toContain(message)
    expect(said).toEqual(['hello'])
  })

  test('would be taken with the key of the server: the cases above fail by what they say', async () => {
    const { refusal, said } = await played(helloOf(shown, hub.server.identity), hub.raw)
    expect(said).toEqual(['hello', 'proof'])
    expect(refusal.message).toContain('it went on')
  })
})

describe('the certificate that the hub key names', () => {
  const seen = (server: TestHub, raw: Uint8Array, more: object = {}) =>
    server.node({ pinnedHubKey: raw, now: () => NOW, ...more })

  test('is the one seen', async () => {
    const { options, raw, server } = hubWithKey(newIdentity(), () => NOW, certificateKey)
    const [hubTransport, nodeTransport] = MemoryTransport.pair()
    acceptLink(hubTransport, options)
    const doubt = new LinkRefused('WRONG_CERTIFICATE', 'another is pinned')
    const node = seen(server, raw, { certificateKey, certificateDoubt: doubt })
    expect(await joinLink(nodeTransport, new Uint8Array(32), node)).toMatchObject({ isCertificateStated: true })
  })

  test.each([
    ['is another', certificateKey, new Uint8Array(32)],
    ['is seen where the server shows none', none, certificateKey],
    ['is not seen where the server shows one', certificateKey, undefined],
  ])('%s: refused before anything is proven', async (_what, stated, key) => {
    const { options, raw, server } = hubWithKey(newIdentity(), () => NOW, stated)
    const refusal = await refusalOf(connectPair(options, seen(server, raw, { certificateKey: key })))
    expect(refusal).toMatchObject({ reason: 'WRONG_CERTIFICATE', signed: false })
    expect(server.sessions).toEqual([])
  })

  test('is none where the hub has no hub key: what is against the certificate counts', async () => {
    const hub = new TestHub()
    const certificateDoubt = new LinkRefused('WRONG_CERTIFICATE', 'another is pinned')
    const refusal = await refusalOf(connectPair(hub.options, hub.node({ certificateDoubt })))
    expect(refusal).toBe(certificateDoubt)
    expect(hub.sessions).toEqual([])
  })
})
