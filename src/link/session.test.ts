/** Calls over a session: unary, streams both ways, large messages, cancellation, many at once. */
import { expect, test, vi } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import type { LinkSession, LinkStream } from './link.ts'
import { MAX_FRAGMENT_BYTES, MAX_MESSAGE_BYTES, MAX_STREAMS, WINDOW_BYTES } from './messages.ts'
import { StreamTable } from './stream-table.ts'
import { Recorder, record, sessionPair } from './testing.ts'

const ok = { code: 'OK', message: '' } as const
const bytes = (text: string) => Buffer.from(text)

function echo(session: LinkSession): void {
  session.onOpen((stream, request) => {
    if (request !== undefined) {
      stream.send(request)
      stream.end(ok)
      return
    }
    stream.handlers = {
      message: (message) => {
        stream.send(message)
      },
      halfClose: () => stream.end(ok),
    }
  })
}

test.each(['hub', 'node'] as const)(
  'a call that %s opens brings operation, target, origin, deadline and request',
  async (side) => {
    const pair = sessionPair()
    const [caller, server] = side === 'hub' ? [pair.hub, pair.node] : [pair.node, pair.hub]
    let seen: LinkStream | undefined
    server.onOpen((stream, request) => {
      seen = stream
      stream.send(request as Uint8Array)
      stream.end(ok)
    })
    const call = new Recorder(
      caller.open('getPipelines', 'target', bytes('request'), { deadlineMs: 1500, origin: 'someone' }),
    )
    await call.over
    expect(call.text).toEqual(['request'])
    expect(call.log).toEqual(['message', 'end OK'])
    expect(seen).toMatchObject({ operation: 'getPipelines', target: 'target', deadlineMs: 1500 })
    // A node cannot speak for another.
    expect(seen?.origin).toBe(side === 'hub' ? 'someone' : 'node')
    expect([pair.hub.streamCount, pair.node.streamCount]).toEqual([0, 0])
  },
)

test('an empty request is a request, an absent one is none', async () => {
  const { hub, node } = sessionPair()
  const requests: unknown[] = []
  hub.onOpen((stream, request) => {
    requests.push(request?.length)
    stream.end(ok)
  })
  await new Recorder(node.open('one', '', new Uint8Array(0))).over
  await new Recorder(node.open('two', '', undefined)).over
  expect(requests).toEqual([0, undefined])
})

test('an empty message is a message', async () => {
  const { hub, node } = sessionPair()
  echo(hub)
  const call = new Recorder(node.open('x', '', new Uint8Array(0)))
  await call.over
  expect(call.messages).toHaveLength(1)
  expect(call.messages[0]).toBeInstanceOf(Uint8Array)
  expect(call.messages[0]).toHaveLength(0)
})

test('messages both ways keep their order, half-close comes after them', async () => {
  const { hub, node } = sessionPair()
  echo(hub)
  const stream = node.open('bidi', '', undefined)
  const call = new Recorder(stream)
  const sent = Array.from({ length: 500 }, (_, i) => `message ${i}`)
  for (const text of sent) stream.send(bytes(text))
  stream.halfClose()
  await call.over
  expect(call.text).toEqual(sent)
  expect(call.status).toEqual(ok)
})

test.each([MAX_FRAGMENT_BYTES, MAX_FRAGMENT_BYTES + 1, WINDOW_BYTES, 5_000_000, MAX_MESSAGE_BYTES])(
  'a request and a response of %i bytes arrive whole',
  async (size) => {
    const { hub, node } = sessionPair()
    echo(hub)
    const request = Buffer.alloc(size, 'penstock-')
    const call = new Recorder(node.open('large', '', request))
    await call.over
    expect(Buffer.compare(call.messages[0] as Uint8Array, request)).toBe(0)
    expect(call.status).toEqual(ok)
    expect([hub.held, node.held]).toEqual([0, 0])
  },
)

test('what is longer than a message may be is refused to the sender, the session stands', async () => {
  const { hub, node, events } = sessionPair()
  hub.onOpen((stream, request) => {
    if (request?.length === 0) stream.send(new Uint8Array(MAX_MESSAGE_BYTES + 1))
    else stream.end(ok)
  })
  expect(() => node.open('x', '', new Uint8Array(MAX_MESSAGE_BYTES + 1))).toThrow('are the most a link carries')
  const call = new Recorder(node.open('x', '', new Uint8Array(0)))
  await call.over
  expect(call.status).toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    message: expect.stringContaining('the most a link carries'),
  })
  const next = new Recorder(node.open('x', '', new Uint8Array(1)))
  await next.over
  expect(next.status).toEqual(ok)
  expect(events).toEqual([])
})

test('a failure reaches the caller with its details; details that do not fit are left out', async () => {
  const { hub, node } = sessionPair()
  const details = [{ pointer: '/name', message: 'is empty' }]
  const many = Array.from({ length: 10_000 }, (_, i) => ({ pointer: `/items/${i}`, message: 'wrong' }))
  hub.onOpen((stream, request) => {
    stream.end({ code: 'INVALID_ARGUMENT', message: 'name: is empty', details: request?.length === 0 ? details : many })
  })
  const call = new Recorder(node.open('x', '', new Uint8Array(0)))
  await call.over
  expect(call.status).toEqual({ code: 'INVALID_ARGUMENT', message: 'name: is empty', details })
  const long = new Recorder(node.open('x', '', new Uint8Array(1)))
  await long.over
  expect(long.status?.details?.length).toBeGreaterThan(500)
  expect(long.status?.details).toEqual(many.slice(0, long.status?.details?.length))
})

test('cancelling stops the other end, and what it still sends is ignored', async () => {
  const { hub, node, events } = sessionPair()
  let served: LinkStream | undefined
  let server: Recorder | undefined
  hub.onOpen((stream) => {
    served = stream
    server = new Recorder(stream)
    stream.send(bytes('first'))
  })
  const stream = node.open('watch', '', new Uint8Array(0))
  const call = new Recorder(stream)
  await settle()
  expect(call.text).toEqual(['first'])
  stream.cancel()
  served?.send(bytes('under way'))
  await server?.over
  expect(server?.log).toEqual(['cancel'])
  expect(served?.closed).toBe(true)
  expect(served?.send(bytes('late'))).toBe(false)
  served?.end(ok)
  await settle()
  expect(call.log).toEqual(['message'])
  expect([hub.streamCount, node.streamCount]).toEqual([0, 0])
  expect(events).toEqual([])
})

test('cancel and end crossing each other leave nothing behind', async () => {
  const { hub, node, events } = sessionPair()
  let served: LinkStream | undefined
  hub.onOpen((stream) => {
    served = stream
  })
  const stream = node.open('x', '', new Uint8Array(0))
  const call = new Recorder(stream)
  await settle()
  served?.send(bytes('x'))
  served?.end(ok)
  stream.cancel()
  await settle()
  expect(call.log).toEqual([])
  expect([hub.streamCount, node.streamCount]).toEqual([0, 0])
  expect(events).toEqual([])
})

test('a handler that throws ends its stream, not the session', async () => {
  const { hub, node, events } = sessionPair()
  hub.onOpen((stream, request) => {
    if (request !== undefined) throw new Error('secret detail')
    stream.handlers = {
      message() {
        throw new Error('secret detail')
      },
    }
  })
  const unary = new Recorder(node.open('x', '', new Uint8Array(0)))
  await unary.over
  const bidi = node.open('x', '', undefined)
  const call = new Recorder(bidi)
  bidi.send(bytes('x'))
  await call.over
  for (const { status } of [unary, call]) expect(status).toEqual({ code: 'INTERNAL', message: 'internal error' })
  expect(events.map((event) => event.kind)).toEqual(['failed', 'failed'])
  expect([hub.streamCount, node.streamCount]).toEqual([0, 0])
})

test('calls and messages wait for those who come late to hear them', async () => {
  const { hub, node } = sessionPair()
  const stream = node.open('x', '', undefined)
  stream.send(bytes('a'))
  stream.send(bytes('b'))
  stream.halfClose()
  await settle()
  const opened: LinkStream[] = []
  hub.onOpen((served) => opened.push(served))
  await settle()
  opened[0]?.send(bytes('c'))
  opened[0]?.end(ok)
  await settle()
  const server = new Recorder(opened[0] as LinkStream)
  const call = new Recorder(stream)
  await call.over
  expect(call.log).toEqual(['message', 'end OK'])
  // It had ended the stream: what came before is nobody's.
  expect(server.log).toEqual([])
  expect([hub.held, node.held]).toEqual([0, 0])
})

test('1,000 streams at once, each with traffic both ways, all end', async () => {
  const { hub, node, events } = sessionPair()
  echo(hub)
  echo(node)
  const calls = Array.from({ length: 1000 }, (_, i) => {
    const stream = (i % 2 === 0 ? node : hub).open('x', '', undefined)
    const call = new Recorder(stream)
    for (let n = 0; n < 10; n++) stream.send(bytes(`${i}/${n} `.repeat(50)))
    stream.halfClose()
    return call
  })
  expect(hub.streamCount + node.streamCount).toBe(1000)
  await Promise.all(calls.map((call) => call.over))
  for (const [i, call] of calls.entries()) {
    expect(call.status).toEqual(ok)
    expect(call.text).toEqual(Array.from({ length: 10 }, (_, n) => `${i}/${n} `.repeat(50)))
  }
  expect([hub.streamCount, node.streamCount, hub.held, node.held]).toEqual([0, 0, 0, 0])
  expect(events).toEqual([])
})

test('a side may have so many streams open and no more', async () => {
  const { hub, node } = sessionPair()
  const streams: LinkStream[] = []
  for (let i = 0; i < MAX_STREAMS; i++) streams.push(node.open('x', '', undefined))
  expect(() => node.open('x', '', undefined)).toThrow('calls are open on the link')
  await settle()
  expect(hub.streamCount).toBe(MAX_STREAMS)
  streams[17]?.cancel()
  node.open('x', '', undefined)
  await settle()
  expect(hub.streamCount).toBe(MAX_STREAMS)
})

test.each(['a hub', 'a server'])(
  'the calls of one node leave room for those of others on the link of %s',
  async (what) => {
    const { hub, node } = sessionPair(undefined, { isServerLink: what === 'a server' })
    const fill = (origin: string | undefined): LinkStream[] => {
      const streams: LinkStream[] = []
      for (;;) {
        try {
          streams.push(hub.open('x', '', undefined, { origin }))
        } catch (error) {
          expect(error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
          expect(String(error)).toContain(
            `node ${origin ?? 'hub'} has ${streams.length} calls open on the link to node node`,
          )
          return streams
        }
      }
    }
    const first = fill('first')
    expect(first.length).toBe(0.8 * MAX_STREAMS)
    expect(fill('second').length).toBe(0.16 * MAX_STREAMS)
    expect(fill(undefined).length).toBe(0.032 * MAX_STREAMS)
    await settle()
    expect(node.streamCount).toBe(0.992 * MAX_STREAMS)
    for (const stream of first) stream.cancel()
    await settle()
    expect(fill('first').length).toBeGreaterThan(0.6 * MAX_STREAMS)
  },
)

test('when the session ends every call ends UNAVAILABLE, and no new one begins', async () => {
  const { hub, node } = sessionPair()
  const servers: Recorder[] = []
  hub.onOpen((stream) => servers.push(new Recorder(stream)))
  const call = new Recorder(node.open('x', '', undefined))
  await settle()
  hub.close('SHUTDOWN', 'going home')
  await call.over
  expect(call.status?.code).toBe('UNAVAILABLE')
  expect(servers[0]?.log).toEqual(['cancel'])
  expect(await node.closed).toEqual({ reason: 'SHUTDOWN', message: 'going home', byPeer: true })
  expect(await hub.closed).toEqual({ reason: 'SHUTDOWN', message: 'going home', byPeer: false })
  expect(() => node.open('x', '', undefined)).toThrow('the link between node and hub is down')
})

test('a call that there is no id left for ends UNAVAILABLE, as its session does', async () => {
  const { hub, node } = sessionPair()
  const waiting = new Recorder(node.open('x', '', new Uint8Array(0)))
  const ids = vi.spyOn(StreamTable.prototype, 'open').mockReturnValue(false)
  const last = new Recorder(node.open('y', '', undefined))
  ids.mockRestore()
  for (const call of [waiting, last]) {
    await call.over
    expect(call.status?.code).toBe('UNAVAILABLE')
  }
  expect(node.streamCount).toBe(0)
  expect(await hub.closed).toMatchObject({ reason: 'SHUTDOWN' })
})

test('a broken connection is LOST at both ends', async () => {
  const { hub, node, hubTransport } = sessionPair()
  hubTransport.cut()
  expect(await hub.closed).toMatchObject({ reason: 'LOST' })
  expect(await node.closed).toMatchObject({ reason: 'LOST', byPeer: true })
})

test('the newest record reaches the hub whole', async () => {
  const { hub, node } = sessionPair()
  node.sendRecord(record)
  await settle()
  const seen: unknown[] = []
  hub.onRecord((changed) => seen.push(changed))
  node.sendRecord({ ...record, name: 'renamed' })
  await settle()
  expect(seen).toEqual([record, { ...record, name: 'renamed' }])
  expect(() => node.sendRecord({ ...record, name: 'x'.repeat(16_000) })).toThrow(RangeError)
})

test('records that have to wait are sent each, in order; of more than 64 the last takes the place of the one before it', async () => {
  const { hub, node } = sessionPair()
  const seen: string[] = []
  hub.onRecord(({ name }) => seen.push(name))
  // What follows waits for the transport.
  for (let i = 0; i < 4; i++) node.open('x', '', new Uint8Array(200_000))
  const names = Array.from({ length: 70 }, (_, i) => `n${i}`)
  for (const name of names) node.sendRecord({ ...record, name })
  await settle()
  expect(seen).toEqual([...names.slice(0, 63), 'n69'])
})

test('a node leaves: the hub does what it must, then the node hears of it', async () => {
  const { hub, node } = sessionPair()
  const call = new Recorder(node.open('x', '', undefined))
  const log: string[] = []
  hub.onLeave(async () => {
    await settle()
    log.push('forgotten')
  })
  node.close('LEFT', 'the node leaves')
  await call.over
  expect(await node.closed).toEqual({ reason: 'LEFT', message: 'the node leaves', byPeer: false })
  expect(log).toEqual(['forgotten'])
  expect(await hub.closed).toMatchObject({ reason: 'LEFT', byPeer: true })
})

test('a node leaves although the hub does not answer', async () => {
  const { hub, node, clock } = sessionPair()
  hub.onLeave(() => new Promise(() => {}))
  node.close('LEFT', 'the node leaves')
  await settle()
  clock.increment(5_000)
  expect(await node.closed).toMatchObject({ reason: 'LEFT' })
  expect(await hub.closed).toMatchObject({ byPeer: true })
})

test('removal is believed when the hub has signed it', async () => {
  const { hub, node } = sessionPair()
  hub.close('REMOVED', 'removed by an operator')
  expect(await node.closed).toMatchObject({ reason: 'REMOVED', byPeer: true })
})
