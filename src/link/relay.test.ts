/** Calls through a hub: bytes unread, waiting and giving up from end to end, the loss of either link. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { settle, until } from '../../test/harness/waiting.ts'
import { MAX_HELD_BYTES } from './accounting.ts'
import type { LinkStream } from './link.ts'
import { decodeFrame, encodeFrame, MAX_MESSAGE_BYTES, MESSAGE_OVERHEAD, PIECE_BYTES, WINDOW_BYTES } from './messages.ts'
import { relay } from './relay.ts'
import { Recorder, sessionPair } from './testing.ts'
import { deaf } from './transport.ts'

const ok = { code: 'OK', message: '' } as const

/** A caller and a server, each linked to a hub that relays everything the caller opens. */
function setup() {
  const caller = sessionPair()
  /** While it is stalled, nothing that the hub sends to the server arrives. */
  const stall = { isStalled: false }
  const server = sessionPair((transport) => {
    if (!stall.isStalled || transport !== server.hubTransport) queueMicrotask(() => transport.deliver())
  })
  caller.hub.onOpen((stream, request) => relay(stream, request, server.hub))
  const counts = () => [caller.node, caller.hub, server.hub, server.node].map((session) => session.streamCount)
  const held = () => [caller.node, caller.hub, server.hub, server.node].map((session) => session.held)
  return { caller, server, stall, counts, held }
}

test('operation, target, origin, deadline, request, messages and status pass', async () => {
  const { caller, server, counts } = setup()
  let seen: LinkStream | undefined
  server.node.onOpen((stream, request) => {
    seen = stream
    for (let i = 0; i < 100; i++) stream.send(Buffer.from(`${Buffer.from(request ?? []).toString()} ${i}`))
    stream.end({ code: 'ABORTED', message: 'run ended', details: [{ pointer: '/id', message: 'gone' }] })
  })
  const call = new Recorder(caller.node.open('streamTelemetry', 'far', Buffer.from('run'), { deadlineMs: 30_000 }))
  await call.over
  expect(seen).toMatchObject({ operation: 'streamTelemetry', target: 'far', origin: 'node', deadlineMs: 30_000 })
  expect(call.text).toEqual(Array.from({ length: 100 }, (_, i) => `run ${i}`))
  expect(call.status).toEqual({ code: 'ABORTED', message: 'run ended', details: [{ pointer: '/id', message: 'gone' }] })
  expect(counts()).toEqual([0, 0, 0, 0])
})

test('large requests and messages pass whole, both ways, with half-close', async () => {
  const { caller, server, counts, held } = setup()
  server.node.onOpen((stream, request) => {
    if (request !== undefined) {
      stream.send(request)
      stream.end(ok)
      return
    }
    stream.handlers = { message: (bytes) => void stream.send(bytes), halfClose: () => stream.end(ok) }
  })
  const large = Buffer.alloc(MAX_MESSAGE_BYTES, 'upstream ')
  const unary = new Recorder(caller.node.open('x', 'far', large))
  await unary.over
  expect(unary.status).toEqual(ok)
  expect(Buffer.compare(unary.messages[0] as Uint8Array, large)).toBe(0)
  const bidi = caller.node.open('x', 'far', undefined)
  const call = new Recorder(bidi)
  bidi.send(large.subarray(0, 3_000_000))
  bidi.send(new Uint8Array(0))
  bidi.halfClose()
  await call.over
  expect(call.messages.map((message) => message.length)).toEqual([3_000_000, 0])
  expect(counts()).toEqual([0, 0, 0, 0])
  expect(held()).toEqual([0, 0, 0, 0])
})

test('a caller that does not read stops the server far away; the hub holds a window at most', async () => {
  const { caller, server, held } = setup()
  let sent = 0
  const message = new Uint8Array(10_000)
  server.node.onOpen((stream) => {
    const fill = () => {
      while (sent < 1000 && stream.send(message)) sent++
      if (sent < 1000) sent++
      else stream.end(ok)
    }
    stream.handlers = { drain: fill }
    fill()
  })
  const stream = caller.node.open('x', 'far', new Uint8Array(0))
  let received = 0
  let isReading = false
  const over = new Promise<void>((resolve) => {
    stream.handlers = {
      message: () => {
        received++
        return isReading
      },
      end: () => resolve(),
    }
  })
  await settle()
  const stalled = sent
  expect(stalled).toBeGreaterThan(25)
  expect(stalled * message.length).toBeLessThan(3 * WINDOW_BYTES)
  await settle()
  expect(sent).toBe(stalled)
  const window = WINDOW_BYTES + Math.ceil(WINDOW_BYTES / message.length) * PIECE_BYTES
  for (const bytes of held()) expect(bytes).toBeLessThanOrEqual(window)
  isReading = true
  stream.resume()
  await over
  expect(received).toBe(1000)
  expect(held()).toEqual([0, 0, 0, 0])
})

test('cancelling reaches the server, ending reaches the caller, while both are blocked', async () => {
  const { caller, server, counts } = setup()
  const served: Recorder[] = []
  server.node.onOpen((stream) => {
    served.push(new Recorder(stream))
    stream.send(new Uint8Array(2_000_000))
  })
  const stream = caller.node.open('x', 'far', undefined)
  stream.handlers = { message: () => false }
  stream.send(new Uint8Array(2_000_000))
  await settle()
  stream.cancel()
  await served[0]?.over
  expect(served[0]?.log.at(-1)).toBe('cancel')
  await settle()
  expect(counts()).toEqual([0, 0, 0, 0])
})

test('when the server’s link is lost the caller hears UNAVAILABLE, and so does who calls afterwards', async () => {
  const { caller, server, counts } = setup()
  const call = new Recorder(caller.node.open('x', 'far', undefined))
  await settle()
  server.hubTransport.cut()
  await call.over
  expect(call.status?.code).toBe('UNAVAILABLE')
  const next = new Recorder(caller.node.open('x', 'far', new Uint8Array(0)))
  await next.over
  expect(next.status?.code).toBe('UNAVAILABLE')
  await settle()
  expect(counts()).toEqual([0, 0, 0, 0])
})

test('when the caller’s link is lost the server is told to stop', async () => {
  const { caller, server, counts } = setup()
  const served: Recorder[] = []
  server.node.onOpen((stream) => served.push(new Recorder(stream)))
  const stream = caller.node.open('x', 'far', undefined)
  stream.handlers = {}
  await settle()
  caller.nodeTransport.cut()
  await served[0]?.over
  expect(served[0]?.log).toEqual(['cancel'])
  expect(counts()).toEqual([0, 0, 0, 0])
})

test('a message that is too long is the fault of the link it came from', async () => {
  const { caller, server } = setup()
  server.node.onOpen((stream) => {
    stream.handlers = { message() {} }
  })
  const stream = caller.node.open('x', 'far', undefined)
  const call = new Recorder(stream)
  const piece = new Uint8Array(60_000)
  const transport = caller.node
  // Pieces without an end, as fast as credit allows.
  const fill = () => {
    while (!stream.closed && stream.sendFragment(piece, true));
  }
  stream.handlers = { ...stream.handlers, drain: fill }
  fill()
  await call.over.catch(() => {})
  expect((await transport.closed).reason).toBe('PROTOCOL')
  expect(caller.events).toMatchObject([
    { kind: 'violation', message: `a message longer than ${MAX_MESSAGE_BYTES} bytes` },
  ])
  expect(server.events).toEqual([])
})

test('requests that wait for a node that does not read are held for their caller, and refused beyond its limit', async () => {
  const { caller, server, stall, counts, held } = setup()
  stall.isStalled = true
  const request = new Uint8Array(MAX_MESSAGE_BYTES)
  const calls = Array.from({ length: 12 }, () => new Recorder(caller.node.open('x', 'far', request)))
  const refused = () => calls.filter(({ status }) => status !== undefined)
  await until(() => refused().length >= 8)
  for (const { status } of refused()) {
    expect(status).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      message: expect.stringMatching(/that do not read$|^too much waits to be read/),
    })
  }
  expect(held()[1]).toBeGreaterThan(3 * MAX_MESSAGE_BYTES)
  expect(held()[1]).toBeLessThanOrEqual(MAX_HELD_BYTES)
  // Another caller of that node is not concerned.
  const other = sessionPair()
  other.hub.onOpen((stream, bytes) => relay(stream, bytes, server.hub))
  const small = new Recorder(other.node.open('x', 'far', Buffer.from('small')))
  const served: number[] = []
  server.node.onOpen((stream, bytes) => {
    served.push(bytes?.length ?? 0)
    stream.end(ok)
  })
  stall.isStalled = false
  while (server.hubTransport.deliver());
  await small.over
  expect(small.status).toEqual(ok)
  await Promise.all(calls.map(({ over }) => over))
  expect(served.sort((a, b) => a - b)).toEqual([
    5,
    ...calls.filter(({ status }) => status?.code === 'OK').map(() => MAX_MESSAGE_BYTES),
  ])
  expect(counts()).toEqual([0, 0, 0, 0])
  expect(held()).toEqual([0, 0, 0, 0])
})

test('a request whose caller gives up, or whose server is lost, is held no longer', async () => {
  const { caller, server, stall, held } = setup()
  stall.isStalled = true
  const given = caller.node.open('x', 'far', new Uint8Array(MAX_MESSAGE_BYTES))
  const lost = new Recorder(caller.node.open('x', 'far', new Uint8Array(MAX_MESSAGE_BYTES)))
  const waiting = MAX_MESSAGE_BYTES + PIECE_BYTES
  await until(() => held()[1] === 2 * waiting)
  given.cancel()
  await until(() => held()[1] === waiting)
  server.hubTransport.cut()
  await lost.over
  expect(lost.status).toMatchObject({ code: 'UNAVAILABLE' })
  expect(held()[1]).toBe(0)
})

test('messages of one byte that wait for a node that gives no credit are held for what they take in memory', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const { caller, server, held } = setup()
  server.nodeTransport.handlers = deaf
  const before = used()
  let refused = 0
  const byte = new Uint8Array(1)
  // The server's credit, and most of the caller's once more: what waits at the hub.
  const count = Math.floor((1.7 * WINDOW_BYTES) / (byte.length + MESSAGE_OVERHEAD))
  for (let i = 0; i < 250 && refused === 0; i++) {
    const stream = caller.node.open('x', 'far', undefined)
    stream.handlers = {
      end: ({ code }) => {
        if (code === 'RESOURCE_EXHAUSTED') refused++
      },
    }
    for (let sent = 0; sent < count; sent++) stream.sendFragment(byte, false)
    await settle()
  }
  expect(refused).toBeGreaterThan(0)
  expect(held()[1]).toBeGreaterThan(MAX_HELD_BYTES / 2)
  expect(used() - before).toBeLessThan(MAX_HELD_BYTES)
})

test('answers that their caller gives no credit for are bounded for its link', async () => {
  const { hub, node } = sessionPair()
  const outcomes: (boolean | undefined)[] = []
  hub.onOpen((stream) => {
    stream.handlers = { cancel: () => outcomes.push(undefined) }
    outcomes.push(stream.send(new Uint8Array(MAX_MESSAGE_BYTES / 2)))
    if (!stream.closed) stream.end(ok)
  })
  const calls = Array.from({ length: 50 }, () => {
    const stream = node.open('x', '', new Uint8Array(0))
    const statuses: string[] = []
    stream.handlers = { message: () => false, fragment: () => false, end: ({ code }) => statuses.push(code) }
    return { stream, statuses }
  })
  await settle()
  expect(hub.held).toBeLessThanOrEqual(MAX_HELD_BYTES)
  const refused = calls.filter(({ statuses }) => statuses[0] === 'RESOURCE_EXHAUSTED')
  expect(refused.length).toBeGreaterThanOrEqual(50 - 8)
  for (const { stream, statuses } of calls) if (statuses.length === 0) stream.cancel()
  await settle()
  expect([hub.held, hub.streamCount, node.held, node.streamCount]).toEqual([0, 0, 0, 0])
})

test('a small payload does not keep the frame it came in', () => {
  // An unknown field (number 100, length-delimited) of 100,000 bytes beside a message of one byte.
  const padding = Buffer.concat([Buffer.from([0xa2, 0x06, 0xa0, 0x8d, 0x06]), Buffer.alloc(100_000)])
  const bytes = Buffer.concat([encodeFrame('message', { stream: 1, payload: new Uint8Array(1), more: false }), padding])
  const { value } = decodeFrame(bytes) as { value: { payload: Uint8Array } }
  expect(value.payload.buffer.byteLength).toBe(1)
  const whole = encodeFrame('message', { stream: 1, payload: new Uint8Array(100_000), more: false })
  const { payload } = decodeFrame(whole).value as { payload: Uint8Array }
  expect(payload.buffer).toBe(whole.buffer)
})
