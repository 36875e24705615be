/** A peer that breaks the protocol is cut off with the reason; junk of any kind neither crashes nor leaks. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { acceptLink } from './handshake-hub.ts'
import { joinLink } from './handshake-node.ts'
import { newIdentity } from './identity.ts'
import type { LinkEvent, LinkStream } from './link.ts'
import {
  decodeFrame,
  decodeRecord,
  encodeFrame,
  encodeRecord,
  encodeRecordFrame,
  MAX_MESSAGE_BYTES,
  MAX_RECORD_BYTES,
  MAX_STREAMS,
  Violation,
  WINDOW_BYTES,
} from './messages.ts'
import { MemoryTransport } from './pair.ts'
import { MAX_BACKLOG_BYTES, Session } from './session.ts'
import { record, TestHub } from './testing.ts'
import { closeCodes } from './transport.ts'

/** One real end of a session; the other is played by the test. */
function victim(side: 'hub' | 'node') {
  const hub = new TestHub()
  const [transport, peer] = MemoryTransport.pair(undefined, '192.0.2.7')
  const received: ReturnType<typeof decodeFrame>[] = []
  const state: { closed: [number, string] | undefined } = { closed: undefined }
  peer.handlers = {
    message: (bytes) => received.push(decodeFrame(bytes)),
    foreign() {},
    close: (code, reason) => {
      state.closed = [code, reason]
    },
    drain() {},
  }
  const events: LinkEvent[] = []
  const session = new Session({
    side,
    localId: 'me',
    peerId: 'peer',
    transport,
    clock: hub.clock,
    heartbeat: 0,
    signRemoval: () => new Uint8Array(64),
    verifyRemoval: () => false,
    report: (event) => events.push(event),
  })
  const streams: LinkStream[] = []
  session.onOpen((stream) => {
    stream.handlers = {}
    streams.push(stream)
  })
  return { session, peer, received, state, events, streams, clock: hub.clock }
}

type Play = ReturnType<typeof victim>

const open = (stream: number, more: object = {}) =>
  encodeFrame('open', {
    stream,
    operation: 'x',
    target: '',
    request: undefined,
    requestContinues: false,
    deadlineMs: 0,
    origin: '',
    ...more,
  })
const message = (stream: number, size = 0, more = false) =>
  encodeFrame('message', { stream, payload: new Uint8Array(size), more })

/** Hub's stream 2 is open at a node; at a hub the node's stream 1 is. */
const table: [string, 'hub' | 'node', string, (play: Play) => void][] = [
  ['bytes that are no frame', 'hub', 'the bytes are no frame', ({ peer }) => peer.send(Buffer.from('0a05', 'hex'))],
  ['an empty frame', 'hub', 'a frame without a known member', ({ peer }) => peer.send(new Uint8Array(0))],
  [
    'a member of a later version',
    'hub',
    'a frame without a known member',
    ({ peer }) => peer.send(Buffer.from('fa0600', 'hex')),
  ],
  [
    'a frame beyond the limit',
    'hub',
    'a frame of 131073 bytes, 131072 are allowed',
    ({ peer }) => peer.send(new Uint8Array(128 * 1024 + 1)),
  ],
  [
    'a handshake again',
    'hub',
    'a pending frame from a node in a session',
    ({ peer }) => peer.send(encodeFrame('pending', {})),
  ],
  ['an even stream from a node', 'hub', 'stream 2 cannot be opened, the next is 1', ({ peer }) => peer.send(open(2))],
  ['an odd stream from a hub', 'node', 'stream 1 cannot be opened, the next is 2', ({ peer }) => peer.send(open(1))],
  ['stream 0', 'node', 'stream 0 cannot be opened, the next is 2', ({ peer }) => peer.send(open(0))],
  [
    'a stream opened twice',
    'hub',
    'stream 1 cannot be opened, the next is 3',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(open(1))
    },
  ],
  [
    'a stream id that falls',
    'hub',
    'stream 3 cannot be opened, the next is 7',
    ({ peer }) => {
      peer.send(open(5))
      peer.send(open(3))
    },
  ],
  ['the last id', 'hub', 'a stream id that is too high', ({ peer }) => peer.send(open(0xffff_ffff))],
  ['a call without a name', 'hub', 'a call without a proper name', ({ peer }) => peer.send(open(1, { operation: '' }))],
  [
    'a very long name',
    'hub',
    'a call without a proper name',
    ({ peer }) => peer.send(open(1, { operation: 'x'.repeat(129) })),
  ],
  [
    'a very long target',
    'hub',
    'a node id that is too long',
    ({ peer }) => peer.send(open(1, { target: 'x'.repeat(129) })),
  ],
  [
    'a very long origin',
    'hub',
    'a node id that is too long',
    ({ peer }) => peer.send(open(1, { origin: 'x'.repeat(129) })),
  ],
  [
    'a request without a beginning',
    'hub',
    'a request that goes on without a beginning',
    ({ peer }) => peer.send(open(1, { requestContinues: true })),
  ],
  ['a message on no stream', 'hub', 'stream 1 was never opened', ({ peer }) => peer.send(message(1))],
  [
    'a message on a stream this side never opened',
    'hub',
    'stream 2 was never opened',
    ({ peer }) => peer.send(message(2)),
  ],
  ['a message on stream 0', 'hub', 'stream 0 was never opened', ({ peer }) => peer.send(message(0))],
  [
    'credit for no stream',
    'hub',
    'stream 3 was never opened',
    ({ peer }) => peer.send(encodeFrame('window', { stream: 3, credit: 1 })),
  ],
  [
    'credit of nothing',
    'hub',
    'a window of no credit',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(encodeFrame('window', { stream: 1, credit: 0 }))
    },
  ],
  [
    'credit that was never spent',
    'hub',
    'more credit was returned than was spent',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(encodeFrame('window', { stream: 1, credit: 1 }))
    },
  ],
  [
    'a message beyond the credit',
    'hub',
    'a message beyond the credit',
    ({ peer, session }) => {
      session.onOpen(() => {})
      peer.send(open(1))
      for (let i = 0; i < 4; i++) peer.send(message(1, WINDOW_BYTES / 4 - 64))
      peer.send(message(1))
    },
  ],
  [
    'more than one request of a call with one',
    'hub',
    'a message after the last one',
    ({ peer }) => {
      peer.send(open(1, { request: new Uint8Array(1) }))
      peer.send(message(1))
    },
  ],
  [
    'a message after half-close',
    'hub',
    'a message after the last one',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(encodeFrame('halfClose', { stream: 1 }))
      peer.send(message(1))
    },
  ],
  [
    'half-close twice',
    'hub',
    'the stream was half-closed before',
    ({ peer }) => {
      peer.send(open(1))
      for (let i = 0; i < 2; i++) peer.send(encodeFrame('halfClose', { stream: 1 }))
    },
  ],
  [
    'half-close within a message',
    'hub',
    'a half-close in the middle of a message',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(message(1, 10, true))
      peer.send(encodeFrame('halfClose', { stream: 1 }))
    },
  ],
  [
    'a message longer than any may be',
    'hub',
    `a message longer than ${MAX_MESSAGE_BYTES} bytes`,
    ({ peer }) => {
      peer.send(open(1))
      for (let i = 0; i < MAX_MESSAGE_BYTES / 2 ** 16 + 1; i++) peer.send(message(1, 2 ** 16, true))
    },
  ],
  [
    'an end by the opener',
    'hub',
    'stream 1 was ended from the wrong side',
    ({ peer }) => {
      peer.send(open(1))
      peer.send(encodeFrame('end', { stream: 1, code: 0, message: '', details: [] }))
    },
  ],
  [
    'a cancel by the server',
    'hub',
    'stream 2 was cancelled from the wrong side',
    ({ peer, session }) => {
      session.open('x', '', undefined)
      peer.send(encodeFrame('cancel', { stream: 2 }))
    },
  ],
  [
    'a half-close by the server',
    'hub',
    'stream 2 was half-closed from the wrong side',
    ({ peer, session }) => {
      session.open('x', '', undefined)
      peer.send(encodeFrame('halfClose', { stream: 2 }))
    },
  ],
  [
    'a pong without a ping',
    'hub',
    'a pong 1 that answers no ping',
    ({ peer }) => peer.send(encodeFrame('pong', { sequence: 1 })),
  ],
  [
    'a record from a hub',
    'node',
    'a record frame from a hub in a session',
    ({ peer }) => peer.send(encodeRecordFrame(record)),
  ],
  [
    'a leave from a hub',
    'node',
    'a leave frame from a hub in a session',
    ({ peer }) => peer.send(encodeFrame('leave', {})),
  ],
  [
    'left to a node that stays',
    'node',
    'a left frame from a hub in a session',
    ({ peer }) => peer.send(encodeFrame('left', {})),
  ],
  [
    'a removal from a node',
    'hub',
    'a removed frame from a node in a session',
    ({ peer }) => peer.send(encodeFrame('removed', { signature: new Uint8Array(64) })),
  ],
  [
    'a removal without the hub’s signature',
    'node',
    'a removal that the hub has not signed',
    ({ peer }) => peer.send(encodeFrame('removed', { signature: new Uint8Array(64) })),
  ],
  [
    'a removal with half a signature',
    'node',
    'signature has 32 bytes instead of 64',
    ({ peer }) => peer.send(encodeFrame('removed', { signature: new Uint8Array(32) })),
  ],
  [
    'too many streams',
    'hub',
    `more than ${MAX_STREAMS} open streams`,
    ({ peer }) => {
      for (let i = 0; i <= MAX_STREAMS; i++) peer.send(open(2 * i + 1))
    },
  ],
]

test.each(table)('%s (%s): %s', async (_, side, reason, play) => {
  const setup = victim(side)
  play(setup)
  await settle()
  expect(setup.events).toEqual([{ kind: 'violation', message: reason, remoteAddress: '192.0.2.7', peerId: 'peer' }])
  expect(setup.state.closed).toEqual([closeCodes.PROTOCOL, reason])
  expect(await setup.session.closed).toEqual({ reason: 'PROTOCOL', message: reason, byPeer: false })
  expect(setup.session.streamCount).toBe(0)
})

test('a record that is too long is a violation, in a session and in a proof', async () => {
  const { peer, events } = victim('hub')
  const long = Buffer.concat([Buffer.from([10, 0x80, 0x80, 1]), Buffer.alloc(16384, 'x')])
  expect(() => decodeRecord(long)).toThrow(Violation)
  const wrapped = Buffer.concat([Buffer.from([0x92, 1, 0x84, 0x80, 1]), long])
  peer.send(wrapped)
  await settle()
  expect(events).toMatchObject([{ message: expect.stringMatching(/^a record of \d+ bytes, 15360 are allowed/) }])
  expect(encodeRecord({ ...record, name: 'x'.repeat(MAX_RECORD_BYTES - 200) }).length).toBeLessThanOrEqual(
    MAX_RECORD_BYTES,
  )
})

test('what still arrives for a stream that is over is ignored', async () => {
  const { peer, events, streams, session } = victim('hub')
  peer.send(open(1))
  await settle()
  streams[0]?.end({ code: 'OK', message: '' })
  const own = session.open('x', '', undefined)
  own.cancel()
  await settle()
  for (const stream of [1, 2]) {
    peer.send(message(stream, 100))
    peer.send(encodeFrame('window', { stream, credit: 5 }))
  }
  peer.send(encodeFrame('cancel', { stream: 1 }))
  peer.send(encodeFrame('halfClose', { stream: 1 }))
  peer.send(encodeFrame('end', { stream: 2, code: 0, message: '', details: [] }))
  await settle()
  expect(events).toEqual([])
  expect(session.streamCount).toBe(0)
})

test('a node that names another as the origin of its call is not believed', async () => {
  const { peer, streams } = victim('hub')
  peer.send(open(1, { origin: 'somebody else' }))
  await settle()
  expect(streams[0]?.origin).toBe('peer')
})

test('a peer that asks and asks without reading the answers is cut off', async () => {
  const [transport, peer] = MemoryTransport.pair(() => {})
  const events: LinkEvent[] = []
  const session = new Session({
    side: 'hub',
    localId: 'me',
    peerId: 'peer',
    transport,
    clock: new TestHub().clock,
    heartbeat: 0,
    signRemoval: () => new Uint8Array(64),
    verifyRemoval: () => false,
    report: (event) => events.push(event),
  })
  const ping = encodeFrame('ping', { sequence: 1 })
  let most = 0
  for (let sent = 0; sent <= MAX_BACKLOG_BYTES + 100_000 && events.length === 0; sent += ping.length) {
    peer.send(ping)
    peer.deliver()
    most = Math.max(most, transport.buffered)
  }
  expect(most).toBeLessThan(MAX_BACKLOG_BYTES + 1000)
  expect(events).toMatchObject([{ kind: 'dead', message: 'the other side does not read' }])
  expect(await session.closed).toMatchObject({ reason: 'DEAD' })
})

// Fuzz.

const id = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom(0xffff_fffe, 0xffff_ffff))
const blob = fc.uint8Array({ maxLength: 70, size: 'max' })
const text = fc.string({ maxLength: 10 })
const frame = fc.oneof(
  fc
    .record({
      stream: id,
      operation: text,
      target: text,
      request: fc.option(blob, { nil: undefined }),
      requestContinues: fc.boolean(),
      deadlineMs: id,
      origin: text,
    })
    .map((value) => encodeFrame('open', value)),
  fc.record({ stream: id, payload: blob, more: fc.boolean() }).map((value) => encodeFrame('message', value)),
  fc.record({ stream: id, credit: id }).map((value) => encodeFrame('window', value)),
  fc
    .record({
      stream: id,
      code: fc.nat(30),
      message: text,
      details: fc.array(fc.record({ pointer: text, message: text }), { maxLength: 2 }),
    })
    .map((value) => encodeFrame('end', value)),
  fc.constantFrom('halfClose', 'cancel').chain((kind) => id.map((stream) => encodeFrame(kind as 'cancel', { stream }))),
  fc.record({ sequence: id }).map((value) => encodeFrame('ping', value)),
  fc.constant(encodeRecordFrame(record)),
  fc.constant(encodeFrame('leave', {})),
)
const mutated = fc
  .tuple(frame, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat(3))
  .map(([bytes, changes, cut]) => {
    const changed = Buffer.from(bytes)
    for (const [at, value] of changes) if (changed.length > 0) changed[at % changed.length] = value
    return changed.subarray(0, Math.max(0, changed.length - cut))
  })
const junk = fc.oneof(
  { weight: 6, arbitrary: frame },
  { weight: 2, arbitrary: mutated },
  { weight: 1, arbitrary: blob },
)

test('any row of frames, mutated frames and junk ends in an orderly session or a reason', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('hub' as const, 'node' as const),
      fc.array(junk, { maxLength: 30, size: 'max' }),
      fc.nat(3),
      async (side, frames, own) => {
        const { session, peer, events, streams } = victim(side)
        for (let i = 0; i < own; i++) session.open('x', '', i % 2 ? undefined : new Uint8Array(10)).handlers = {}
        for (const bytes of frames) peer.send(bytes)
        await settle()
        for (const event of events) expect(event.kind).toBe('violation')
        session.close('SHUTDOWN', 'the end')
        await settle()
        expect(session.streamCount).toBe(0)
        expect(session.held).toBe(0)
        for (const stream of streams) expect(stream.closed).toBe(true)
      },
    ),
    { numRuns: 100, seed: 7 },
  )
})

test('junk instead of a handshake, at either end, is cut off and leaves nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(junk, { minLength: 1, maxLength: 4 }), async (frames) => {
      const hub = new TestHub()
      const [transport, end] = MemoryTransport.pair()
      let proven = 0
      acceptLink(transport, hub.options, { proven: () => proven++ })
      for (const bytes of frames) end.send(bytes)
      const [nodeTransport, other] = MemoryTransport.pair()
      const joined = joinLink(nodeTransport, new Uint8Array(0), hub.node({ identity: newIdentity() }))
      const refused = expect(joined).rejects.toMatchObject({ name: 'LinkRefused', reason: 'NOT_A_HUB' })
      for (const bytes of frames) other.send(bytes)
      await refused
      await settle()
      expect(hub.events.map((event) => event.kind)).toEqual(['violation'])
      expect(proven).toBe(1)
      expect(hub.sessions).toEqual([])
    }),
    { numRuns: 100, seed: 11 },
  )
})

test('decoding random bytes gives a frame or a Violation, nothing else', () => {
  for (let i = 0; i < 20_000; i++) {
    const bytes = randomBytes(i % 97)
    for (const read of [() => decodeFrame(bytes), () => decodeRecord(bytes)]) {
      try {
        read()
      } catch (error) {
        if (!(error instanceof Violation)) throw error
      }
    }
  }
})

test('records keep every kind of value, odd keys included', () => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 20, size: 'max', unit: 'grapheme' }),
      fc.array(
        fc.tuple(
          fc.oneof(fc.constantFrom('__proto__', 'constructor', ''), fc.string({ maxLength: 8, unit: 'grapheme' })),
          fc.oneof(
            fc.string({ unit: 'grapheme', maxLength: 20, size: 'max' }).map((stringValue) => ({ stringValue })),
            fc.uint8Array({ maxLength: 20, size: 'max' }).map((bytesValue) => ({ bytesValue })),
            fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((intValue) => ({ intValue })),
            fc.double({ noNaN: true }).map((doubleValue) => ({ doubleValue })),
            fc.boolean().map((boolValue) => ({ boolValue })),
            fc.constant({}),
          ),
        ),
        { maxLength: 8 },
      ),
      (name, entries) => {
        const items = Object.create(null) as Record<string, object>
        for (const [key, item] of entries) items[key] = item
        const read = decodeRecord(encodeRecord({ name, metadata: { items }, services: ['HUB_SERVER', 'PIPELINES'] }))
        expect(read.name).toBe(name)
        expect(read.services).toEqual(['HUB_SERVER', 'PIPELINES'])
        expect(Object.entries(read.metadata.items).sort(byKey)).toEqual(Object.entries(items).sort(byKey))
      },
    ),
    { seed: 3 },
  )
})

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1
}
