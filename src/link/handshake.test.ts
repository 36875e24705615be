/** Who is let in, and what an attacker between node and hub gets for replaying, reflecting, changing and inventing messages. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { acceptLink } from './handshake-hub.ts'
import { joinLink, type NodeHandshakeOptions } from './handshake-node.ts'
import { newIdentity } from './identity.ts'
import { rawKey, signAs, transcript } from './keys.ts'
import { type Admission, LinkRefused, LinkUnreachable } from './link.ts'
import { decodeFrame, encodeFrame, encodeHubHelloBody, encodeRecord, encodeVerdictBody } from './messages.ts'
import { connectPair, MemoryTransport } from './pair.ts'
import { admitted, record, TestHub } from './testing.ts'
import { closeCodes } from './transport.ts'

const none = new Uint8Array(0)

/** A connection whose messages an attacker may see, change, drop (null) and add to. */
function onPath(
  hub: TestHub,
  node: NodeHandshakeOptions,
  attack: {
    toHub?: (bytes: Uint8Array, n: number) => Uint8Array | null
    toNode?: (bytes: Uint8Array, n: number) => Uint8Array | null
  },
  certificate: Uint8Array = none,
  shown?: Uint8Array,
) {
  const [hubTransport, hubSide] = MemoryTransport.pair(undefined, '192.0.2.7')
  const [nodeTransport, nodeSide] = MemoryTransport.pair()
  const seen: Uint8Array[] = []
  const pass = (
    from: MemoryTransport,
    to: MemoryTransport,
    change?: (bytes: Uint8Array, n: number) => Uint8Array | null,
  ) => {
    let n = 0
    from.handlers = {
      message(bytes) {
        seen.push(bytes)
        const changed = change === undefined ? bytes : change(bytes, n++)
        if (changed !== null) to.send(changed)
      },
      foreign() {},
      close: (code, reason) => to.close(code as 4400, reason),
      drain() {},
    }
  }
  pass(nodeSide, hubSide, attack.toHub)
  pass(hubSide, nodeSide, attack.toNode)
  const options = shown && { certificate: { fingerprint: shown, key: shown } }
  acceptLink(hubTransport, { ...hub.options, ...options })
  return { joined: joinLink(nodeTransport, certificate, node), seen }
}

async function refusal(promise: Promise<unknown>): Promise<{ reason: string; signed: boolean }> {
  const error = await promise.then(
    () => {
      throw new Error('the handshake succeeded')
    },
    (error: unknown) => error,
  )
  if (error instanceof LinkUnreachable) return { reason: 'UNREACHABLE', signed: false }
  expect(error).toBeInstanceOf(LinkRefused)
  return error as LinkRefused
}

test.each(['JOIN', 'CONNECT'] as const)('%s: both sides know each other for what they are', async (intent) => {
  const hub = new TestHub()
  const node = hub.node({ intent })
  const { session, hubKey, hubId, certificate } = await connectPair(hub.options, node, '192.0.2.7')
  expect(session.peerId).toBe(hub.identity.nodeId)
  expect(hubId).toBe(hub.identity.nodeId)
  expect(Buffer.from(hubKey)).toEqual(Buffer.from(rawKey(hub.identity.publicKey)))
  expect(certificate).toBeUndefined()
  expect(hub.sessions).toHaveLength(1)
  expect(hub.sessions[0]?.session.peerId).toBe(node.identity.nodeId)
  expect(hub.sessions[0]?.session.remoteAddress).toBe('192.0.2.7')
  expect(hub.sessions[0]?.record).toEqual(record)
  expect(hub.events).toEqual([])
})

test('what the hub sends right behind its welcome is not lost', async () => {
  const hub = new TestHub()
  hub.onSession = (session) => session.open('getNode', '', new Uint8Array([1]))
  const { session } = await connectPair(hub.options, hub.node())
  const opened: string[] = []
  session.onOpen((stream) => opened.push(stream.operation))
  await settle()
  expect(opened).toEqual(['getNode'])
})

test.each([
  'NOT_A_MEMBER',
  'REMOVED',
  'TOO_MANY',
  'REJECTED',
  'TIMED_OUT',
  'NO_AUTHENTICATION_BY_REQUEST',
  'WITHDRAWN',
  'UNAVAILABLE',
] as const)('a refusal with %s arrives, signed', async (reason) => {
  const no: Admission = { admitted: false, reason, message: 'not today' }
  const hub = new TestHub({ admit: () => no, join: async () => no })
  for (const intent of ['JOIN', 'CONNECT'] as const) {
    const error = await refusal(connectPair(hub.options, hub.node({ intent })))
    expect(error).toMatchObject({ reason, message: 'not today', signed: true })
  }
  expect(hub.sessions).toEqual([])
  expect(hub.events.map((event) => event.kind)).toEqual(['refused', 'refused'])
})

test('a policy that fails, at any point, costs its connection only', async () => {
  const broken = () => {
    throw new Error('secret detail')
  }
  for (const hub of [
    new TestHub({ admit: broken }),
    new TestHub({ admit: () => Promise.reject(new Error('secret detail')) }),
  ]) {
    expect((await refusal(connectPair(hub.options, hub.node()))).reason).toBe('UNREACHABLE')
    expect(hub.events).toMatchObject([{ kind: 'failed', message: 'internal error' }])
  }
  const hub = new TestHub({ established: broken })
  const { session } = await connectPair(hub.options, hub.node())
  expect(await session.closed).toEqual({ reason: 'SHUTDOWN', message: 'internal error', byPeer: true })
  expect(hub.events).toMatchObject([{ kind: 'failed', message: 'a session could not be set up' }])
})

test('a join shows who asks, waits for the answer, and is withdrawn when the joiner goes away', async () => {
  let joiner: unknown
  let withdrawn: AbortSignal | undefined
  const hub = new TestHub({
    join: (who, signal) => {
      joiner = who
      withdrawn = signal
      return new Promise(() => {})
    },
  })
  const leaving = new AbortController()
  let pending = 0
  const node = hub.node({ intent: 'JOIN', signal: leaving.signal, onPending: () => pending++ })
  const joined = connectPair(hub.options, node, '192.0.2.7')
  await settle()
  expect(pending).toBe(1)
  expect(joiner).toEqual({
    nodeId: node.identity.nodeId,
    key: rawKey(node.identity.publicKey),
    record,
    remoteAddress: '192.0.2.7',
  })
  expect(withdrawn?.aborted).toBe(false)
  leaving.abort(new Error('the caller left'))
  await expect(joined).rejects.toThrow('the caller left')
  await settle()
  expect(withdrawn?.aborted).toBe(true)
})

test('an admitted join that was withdrawn meanwhile makes no session', async () => {
  let answer: (admission: Admission) => void = () => {}
  const hub = new TestHub({ join: () => new Promise((resolve) => (answer = resolve)) })
  const leaving = new AbortController()
  const joined = connectPair(hub.options, hub.node({ intent: 'JOIN', signal: leaving.signal }))
  joined.catch(() => {})
  await settle()
  leaving.abort(new Error('gone'))
  await settle()
  answer(admitted)
  await settle()
  expect(hub.sessions).toEqual([])
})

test('a hub with another key than the pinned one is refused before anything is proven to it', async () => {
  const hub = new TestHub()
  const pinnedHubKey = rawKey(newIdentity().publicKey)
  const { joined, seen } = onPath(hub, hub.node({ pinnedHubKey }), {})
  expect(await refusal(joined)).toMatchObject({ reason: 'WRONG_HUB', signed: false })
  await settle()
  expect(seen.map((bytes) => decodeFrame(bytes).kind)).toEqual(['hello', 'hubHello'])
  const own = new TestHub()
  const right = own.node({ pinnedHubKey: rawKey(own.identity.publicKey) })
  expect((await connectPair(own.options, right)).hubId).toBe(own.identity.nodeId)
})

test('the certificate that the node sees must be the one that its connection was made with', async () => {
  const [seen, other] = [randomBytes(32), randomBytes(32)]
  const hub = new TestHub()
  const attempt = (certificate: Uint8Array, shown?: Uint8Array) =>
    onPath(hub, hub.node(), {}, certificate, shown).joined
  await attempt(seen, seen)
  await attempt(none)
  for (const [certificate, shown] of [
    [seen, other],
    [seen, undefined],
    [none, other],
  ] as const) {
    expect(await refusal(attempt(certificate, shown))).toMatchObject({
      reason: 'WRONG_CERTIFICATE',
      signed: true,
    })
  }
  expect(hub.sessions).toHaveLength(2)
})

test('every message recorded from one handshake is worthless in the next', async () => {
  const hub = new TestHub()
  const node = hub.node()
  const first = onPath(hub, node, {})
  await first.joined
  const [hello, hubHello, proof, verdict] = first.seen.slice(0, 4) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array]
  expect([hello, hubHello, proof, verdict].map((bytes) => decodeFrame(bytes).kind)).toEqual([
    'hello',
    'hubHello',
    'proof',
    'verdict',
  ])
  // To the hub: somebody without the key replays a node.
  const [transport, end] = MemoryTransport.pair()
  let closed: [number, string] | undefined
  end.handlers = { message() {}, foreign() {}, close: (...how) => (closed = how), drain() {} }
  acceptLink(transport, hub.options)
  end.send(hello)
  await settle()
  end.send(proof)
  await settle()
  expect(closed).toEqual([closeCodes.PROTOCOL, 'a proof that the key of the hello has not signed'])
  // To the node: somebody without the key replays a hub.
  expect(await refusal(onPath(hub, node, { toNode: (bytes, n) => (n === 0 ? hubHello : bytes) }).joined)).toMatchObject(
    { reason: 'NOT_A_HUB' },
  )
  expect(await refusal(onPath(hub, node, { toNode: (bytes, n) => (n === 1 ? verdict : bytes) }).joined)).toMatchObject({
    reason: 'PROTOCOL',
  })
  // Within one: a hello again instead of a proof.
  let repeated: Uint8Array = none
  const twice = onPath(hub, node, {
    toHub: (bytes, n) => {
      if (n === 0) repeated = bytes
      return n === 0 ? bytes : repeated
    },
  })
  expect(await refusal(twice.joined)).toMatchObject({ reason: 'PROTOCOL' })
  await settle()
  expect(hub.events.at(-1)).toMatchObject({ kind: 'violation', message: 'a hello frame during the handshake' })
  // The hub welcomed the one whose verdict was replaced to the node; nobody else.
  expect(hub.sessions.map(({ session }) => session.peerId)).toEqual(Array(2).fill(node.identity.nodeId))
})

test('signatures cannot be reflected: each role signs its own string', async () => {
  const hub = new TestHub()
  const identity = newIdentity()
  // An attacker without any key of its own answers a node with that node's own hello.
  const [nodeTransport, end] = MemoryTransport.pair()
  end.handlers = { message: (bytes) => void end.send(bytes), foreign() {}, close() {}, drain() {} }
  expect(await refusal(joinLink(nodeTransport, none, hub.node({ identity })))).toMatchObject({ reason: 'NOT_A_HUB' })
  // A signature made as hub over the very transcript a node has to sign is no proof, and the other way round.
  const [transport, node] = MemoryTransport.pair()
  acceptLink(transport, hub.options)
  const hello = encodeFrame('hello', {
    version: 1,
    nodeKey: rawKey(identity.publicKey),
    nonce: randomBytes(32),
    intent: 2,
    certificateFingerprint: none,
  })
  node.handlers = {
    message(hubHello) {
      const encoded = encodeRecord(record)
      const signature = signAs('hub', identity.privateKey, transcript(hello, hubHello, encoded))
      node.send(encodeFrame('proof', { record: encoded, signature }))
    },
    foreign() {},
    close() {},
    drain() {},
  }
  node.send(hello)
  await settle()
  expect(hub.events).toMatchObject([{ kind: 'violation', message: 'a proof that the key of the hello has not signed' }])
  expect(hub.sessions).toEqual([])
})

test('a hub that is dialled as itself, and a node that meets its own key, are refused', async () => {
  const hub = new TestHub()
  expect(await refusal(connectPair(hub.options, hub.node({ identity: hub.identity })))).toMatchObject({
    reason: 'PROTOCOL',
  })
  expect(hub.events).toMatchObject([{ message: expect.stringMatching(/^the node has this hub's identity: .*\?$/) }])
})

test('a node cannot act under the key of another', async () => {
  const hub = new TestHub()
  const [victim, attacker] = [newIdentity(), newIdentity()]
  const mixed = { nodeId: victim.nodeId, publicKey: victim.publicKey, privateKey: attacker.privateKey }
  expect(await refusal(connectPair(hub.options, hub.node({ identity: mixed })))).toMatchObject({ reason: 'PROTOCOL' })
  expect(hub.events).toMatchObject([{ kind: 'violation', message: 'a proof that the key of the hello has not signed' }])
  // Nor can a key be one that is none.
  const [transport, end] = MemoryTransport.pair()
  acceptLink(transport, hub.options)
  end.send(
    encodeFrame('hello', {
      version: 1,
      nodeKey: new Uint8Array(32),
      nonce: randomBytes(32),
      intent: 2,
      certificateFingerprint: none,
    }),
  )
  await settle()
  end.send(encodeFrame('proof', { record: encodeRecord(record), signature: randomBytes(64) }))
  await settle()
  expect(hub.events).toHaveLength(2)
  expect(hub.sessions).toEqual([])
})

/** Every message of a good handshake with each of its bytes changed. */
test.each([
  ['toHub', 0, 'hello'],
  ['toNode', 0, 'hubHello'],
  ['toHub', 1, 'proof'],
  ['toNode', 1, 'verdict'],
] as const)('%s message %i (%s): a change of any byte ends in a refusal', async (direction, message, kind) => {
  const hub = new TestHub()
  const node = hub.node()
  let size = 1
  for (let position = 0; position < size; position++) {
    const before = hub.sessions.length
    const attempt = onPath(hub, node, {
      [direction]: (bytes: Uint8Array, n: number) => {
        if (n !== message) return bytes
        expect(decodeFrame(bytes).kind).toBe(kind)
        size = bytes.length
        const changed = Buffer.from(bytes)
        changed[position] = (changed[position] as number) ^ (1 << (position % 8))
        return changed
      },
    })
    const error = await refusal(attempt.joined)
    expect(['NOT_A_HUB', 'PROTOCOL', 'UNREACHABLE']).toContain(error.reason)
    expect(error.signed).toBe(false)
    await settle(1)
    // What the hub decided before its verdict was changed on the way cannot be known to it.
    if (kind !== 'verdict') expect(hub.sessions.length).toBe(before)
  }
  expect(size).toBeGreaterThan(60)
})

test.each([
  ['another version', { version: 2 }, 'version 2 of the protocol is not spoken here, only 1'],
  ['no intent', { intent: 0 }, 'a hello without a known intent'],
  ['a future intent', { intent: 9 }, 'a hello without a known intent'],
  ['a short key', { nodeKey: randomBytes(31) }, 'node_key has 31 bytes instead of 32'],
  ['a short nonce', { nonce: randomBytes(16) }, 'nonce has 16 bytes instead of 32'],
  [
    'a short fingerprint',
    { certificateFingerprint: randomBytes(20) },
    'certificate_fingerprint has 20 bytes instead of 32',
  ],
])('a hello with %s is cut off with the reason', async (_, change, reason) => {
  const hub = new TestHub()
  const [transport, end] = MemoryTransport.pair(undefined, '192.0.2.7')
  let closed: unknown
  end.handlers = { message() {}, foreign() {}, close: (...how) => (closed = how), drain() {} }
  acceptLink(transport, hub.options)
  const good = {
    version: 1,
    nodeKey: rawKey(newIdentity().publicKey),
    nonce: randomBytes(32),
    intent: 2,
    certificateFingerprint: none,
  }
  end.send(encodeFrame('hello', { ...good, ...change }))
  await settle()
  expect(closed).toEqual([closeCodes.PROTOCOL, reason])
  expect(hub.events).toEqual([{ kind: 'violation', message: reason, remoteAddress: '192.0.2.7', peerId: undefined }])
})

test('before the handshake is over a frame has at most 16 KiB', async () => {
  const hub = new TestHub()
  const [transport, end] = MemoryTransport.pair()
  acceptLink(transport, hub.options)
  end.send(new Uint8Array(16 * 1024 + 1))
  await settle()
  expect(hub.events).toMatchObject([{ kind: 'violation', message: 'a frame of 16385 bytes, 16384 are allowed' }])
})

test.each(['nothing', 'a hello'])('who sends %s is cut off after 10 s', async (what) => {
  const hub = new TestHub()
  const [transport, end] = MemoryTransport.pair()
  let proven = 0
  acceptLink(transport, hub.options, { proven: () => proven++ })
  if (what === 'a hello') {
    end.send(
      encodeFrame('hello', {
        version: 1,
        nodeKey: rawKey(newIdentity().publicKey),
        nonce: randomBytes(32),
        intent: 2,
        certificateFingerprint: none,
      }),
    )
  }
  await settle()
  hub.clock.increment(9_999)
  expect(hub.events).toEqual([])
  expect(proven).toBe(0)
  hub.clock.increment(1)
  expect(hub.events).toMatchObject([{ message: 'the handshake took too long' }])
  expect(proven).toBe(1)
})

test('a node gives up on a hub that does not answer for 10 s', async () => {
  const hub = new TestHub()
  const [transport] = MemoryTransport.pair()
  const joined = joinLink(transport, none, hub.node())
  hub.clock.increment(10_000)
  expect((await refusal(joined)).reason).toBe('UNREACHABLE')
})

test('while a join is pending both sides notice that the other has gone silent', async () => {
  let withdrawn: AbortSignal | undefined
  const hub = new TestHub({
    join: (_, signal) => {
      withdrawn = signal
      return new Promise(() => {})
    },
  })
  const alive = connectPair(hub.options, hub.node({ intent: 'JOIN' }))
  alive.catch(() => {})
  for (let second = 0; second < 300; second += 5) {
    await settle()
    hub.clock.increment(5_000)
  }
  await settle()
  expect(withdrawn?.aborted).toBe(false)
  // The connection goes deaf both ways without breaking.
  const silent = new TestHub(hub.policy)
  const attempt = onPath(silent, silent.node({ intent: 'JOIN' }), {
    toHub: (bytes, n) => (n < 2 ? bytes : null),
    toNode: (bytes, n) => (n < 2 ? bytes : null),
  })
  const refused = refusal(attempt.joined)
  await settle()
  for (let second = 0; second < 30; second += 10) {
    silent.clock.increment(10_000)
    await settle()
  }
  expect((await refused).reason).toBe('UNREACHABLE')
  expect(withdrawn?.aborted).toBe(true)
})

test('a forged end of the connection is not taken for the hub’s word', async () => {
  const hub = new TestHub()
  const attack = (bytes: Uint8Array, n: number) => {
    if (n !== 1) return bytes
    const body = encodeVerdictBody({ refused: { reason: 2, message: 'removed' } })
    return encodeFrame('verdict', { body, signature: randomBytes(64) })
  }
  const error = await refusal(onPath(hub, hub.node(), { toNode: attack }).joined)
  expect(error).toMatchObject({ reason: 'PROTOCOL', signed: false })
})

test('an attacker with a key of its own is the hub only to those who pin none', async () => {
  const hub = new TestHub()
  const attacker = newIdentity()
  let hello: Uint8Array = none
  const impersonate = (bytes: Uint8Array, n: number) => {
    if (n !== 0) return bytes
    const body = encodeHubHelloBody({ hubKey: rawKey(attacker.publicKey), nonce: randomBytes(32) })
    return encodeFrame('hubHello', { body, signature: signAs('hub', attacker.privateKey, transcript(hello, body)) })
  }
  const keep = (bytes: Uint8Array, n: number) => {
    if (n === 0) hello = bytes
    return bytes
  }
  const node = hub.node({ pinnedHubKey: rawKey(hub.identity.publicKey) })
  expect(await refusal(onPath(hub, node, { toHub: keep, toNode: impersonate }).joined)).toMatchObject({
    reason: 'WRONG_HUB',
  })
  // Without a pin the node signs for the attacker's key, and the true hub does not take that.
  await refusal(onPath(hub, hub.node(), { toHub: keep, toNode: impersonate }).joined)
  await settle()
  expect(hub.events.at(-1)).toMatchObject({ message: 'a proof that the key of the hello has not signed' })
  expect(hub.sessions).toEqual([])
})
