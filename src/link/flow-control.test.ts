/** Credit: nobody sends beyond it, none is lost, a reader that stops bounds what waits for it, and all that is sent arrives in order. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { settle, until } from '../../test/harness/waiting.ts'
import { MAX_HELD_BYTES } from './accounting.ts'
import type { LinkStream } from './link.ts'
import { decodeFrame, MESSAGE_OVERHEAD, PIECE_BYTES, WINDOW_BYTES } from './messages.ts'
import type { MemoryTransport } from './pair.ts'
import { relay } from './relay.ts'
import { Recorder, sessionPair } from './testing.ts'

const ok = { code: 'OK', message: '' } as const

/** Counts, frame by frame, what one side of a connection spends and is given back on each stream. */
function audit(from: MemoryTransport, to: MemoryTransport): () => void {
  const spent = new Map<number, number>()
  const returned = new Map<number, number>()
  const add = (map: Map<number, number>, stream: number, amount: number) =>
    map.set(stream, (map.get(stream) ?? 0) + amount)
  const check = (stream: number) => {
    const outstanding = (spent.get(stream) ?? 0) - (returned.get(stream) ?? 0)
    if (outstanding < 0 || outstanding > WINDOW_BYTES)
      throw new Error(`stream ${stream}: ${outstanding} bytes of credit are out`)
  }
  tap(from, (bytes) => {
    const frame = decodeFrame(bytes)
    if (frame.kind === 'message') add(spent, frame.value.stream, frame.value.payload.length + MESSAGE_OVERHEAD)
    else if (frame.kind === 'open' && frame.value.request !== undefined) {
      add(spent, frame.value.stream, frame.value.request.length + MESSAGE_OVERHEAD)
    } else return
    check((frame.value as { stream: number }).stream)
  })
  tap(to, (bytes) => {
    const frame = decodeFrame(bytes)
    if (frame.kind !== 'window') return
    add(returned, frame.value.stream, frame.value.credit)
    check(frame.value.stream)
  })
  return () => {
    // What is not back yet is less than a step.
    for (const [stream, amount] of spent) expect(amount - (returned.get(stream) ?? 0)).toBeLessThan(WINDOW_BYTES / 4)
  }
}

function tap(transport: MemoryTransport, look: (bytes: Uint8Array) => void): void {
  const send = transport.send.bind(transport)
  transport.send = (bytes) => {
    look(bytes)
    return send(bytes)
  }
}

interface Direction {
  sender: LinkStream
  reader: LinkStream
  next: number
  waiting: boolean
  reading: boolean
  got: number
  unread: number
}

const size = (n: number) => [0, 1, 100, 40_000, 300_000, 5_000, 64, 131_072][n % 8] as number

/** One message of a direction: its number, then filling. */
function messageOf(n: number): Uint8Array {
  const bytes = new Uint8Array(size(n) + 4)
  new DataView(bytes.buffer).setUint32(0, n)
  return bytes
}

test('over any interleaving: order, credit, bounds, and an end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.tuple(fc.constantFrom('send', 'toHub', 'toNode', 'toggle'), fc.nat(7)), {
        maxLength: 250,
        size: 'max',
      }),
      async (streamCount, steps) => {
        const { hub, node, hubTransport, nodeTransport, events } = sessionPair(() => {})
        const audits = [audit(hubTransport, nodeTransport), audit(nodeTransport, hubTransport)]
        const served: LinkStream[] = []
        hub.onOpen((stream) => served.push(stream))
        const opened = Array.from({ length: streamCount }, (_, i) => node.open(String(i), '', undefined))
        while (nodeTransport.deliver());
        const directions = opened.flatMap((stream, i) => {
          const other = served[i] as LinkStream
          const make = (sender: LinkStream, reader: LinkStream): Direction => ({
            sender,
            reader,
            next: 0,
            waiting: false,
            reading: true,
            got: 0,
            unread: 0,
          })
          const both = [make(stream, other), make(other, stream)] as const
          const handlers = (incoming: Direction, outgoing: Direction) => ({
            message(bytes: Uint8Array) {
              const n = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
              expect([n, bytes.length]).toEqual([incoming.got, size(n) + 4])
              incoming.got++
              if (!incoming.reading) {
                incoming.unread += bytes.length
                return false
              }
              return true
            },
            drain() {
              outgoing.waiting = false
            },
          })
          other.handlers = handlers(both[0], both[1])
          stream.handlers = handlers(both[1], both[0])
          return both
        })
        const push = (direction: Direction) => {
          if (direction.waiting) return
          direction.waiting = !direction.sender.send(messageOf(direction.next++))
        }
        for (const [step, n] of steps) {
          const direction = directions[n % directions.length] as Direction
          if (step === 'send') push(direction)
          else if (step === 'toHub') nodeTransport.deliver()
          else if (step === 'toNode') hubTransport.deliver()
          else {
            direction.reading = !direction.reading
            if (direction.reading) {
              direction.unread = 0
              direction.reader.resume()
            }
          }
          // One message may be under assembly when reading stops; beyond that a window at most comes through.
          for (const { unread } of directions) expect(unread).toBeLessThanOrEqual(300_004 + WINDOW_BYTES)
        }
        for (const direction of directions) {
          direction.reading = true
          direction.reader.resume()
        }
        for (;;) {
          const moved = nodeTransport.deliver()
          if (!hubTransport.deliver() && !moved) break
        }
        for (const direction of directions) {
          expect(direction.got).toBe(direction.next)
          expect(direction.sender.writable).toBe(true)
          expect(direction.waiting).toBe(false)
        }
        for (const check of audits) check()
        expect([hub.held, node.held]).toEqual([0, 0])
        expect(events).toEqual([])
      },
    ),
    { numRuns: 150, seed: 5 },
  )
}, 60_000)

test('over any interleaving through a relay: order, bounds at the hub, and an end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 300, size: 'max' }), async (steps) => {
      const near = sessionPair(() => {})
      const far = sessionPair(() => {})
      const transports = [near.nodeTransport, near.hubTransport, far.hubTransport, far.nodeTransport]
      near.hub.onOpen((stream, request) => relay(stream, request, far.hub))
      let sent = 0
      far.node.onOpen((stream) => {
        const fill = () => {
          let room = true
          while (room && sent < 60) room = stream.send(messageOf(sent++))
          if (room && sent === 60) stream.end(ok)
        }
        stream.handlers = {
          drain: fill,
        }
        fill()
      })
      let got = 0
      let status: unknown
      let reading = true
      const call = near.node.open('x', '', new Uint8Array(0))
      call.handlers = {
        message(bytes) {
          expect(new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)).toBe(got++)
          return reading
        },
        end(end) {
          status = end
        },
      }
      for (const [transport, toggle] of steps) {
        transports[transport]?.deliver()
        if (toggle) {
          reading = !reading
          if (reading) call.resume()
        }
        expect(near.hub.held + far.hub.held).toBeLessThanOrEqual(WINDOW_BYTES + 60 * PIECE_BYTES)
      }
      reading = true
      call.resume()
      while (transports.map((transport) => transport.deliver()).includes(true));
      expect(got).toBe(60)
      expect(status).toEqual(ok)
      expect([near, far].flatMap(({ hub, node }) => [hub.streamCount, node.streamCount, hub.held, node.held])).toEqual(
        Array(8).fill(0),
      )
    }),
    { numRuns: 100, seed: 6 },
  )
}, 60_000)

test('not a byte of credit is lost or invented', async () => {
  const { hub, node, hubTransport, nodeTransport } = sessionPair()
  let [spent, returned] = [0, 0]
  tap(nodeTransport, (bytes) => {
    const frame = decodeFrame(bytes)
    if (frame.kind === 'message') spent += frame.value.payload.length + MESSAGE_OVERHEAD
  })
  tap(hubTransport, (bytes) => {
    const frame = decodeFrame(bytes)
    if (frame.kind === 'window') returned += frame.value.credit
  })
  hub.onOpen((stream) => {
    stream.handlers = { message() {} }
  })
  const stream = node.open('x', '', undefined)
  // Two of these are what is returned at a time.
  const half = new Uint8Array(WINDOW_BYTES / 8 - MESSAGE_OVERHEAD)
  for (let i = 1; i <= 100; i++) {
    stream.send(half)
    stream.send(half)
    await settle()
    expect([spent, returned]).toEqual([(i * WINDOW_BYTES) / 4, (i * WINDOW_BYTES) / 4])
  }
})

test('a sender that minds `writable` keeps a window and a message at most; one that does not is ended', async () => {
  const { hub, node, events } = sessionPair()
  const server: LinkStream[] = []
  hub.onOpen((stream) => server.push(stream))
  const call = node.open('x', '', undefined)
  call.handlers = { fragment: () => false }
  await settle()
  const log: string[] = []
  const stream = server[0] as LinkStream
  stream.handlers = { cancel: () => log.push('cancel'), drain: () => log.push('drain') }
  const megabyte = new Uint8Array(1_000_000)
  expect(stream.send(megabyte)).toBe(false)
  await settle()
  expect(log).toEqual([])
  for (let i = 0; i < 40 && !stream.closed; i++) stream.send(megabyte)
  expect(stream.closed).toBe(true)
  expect(log).toEqual(['cancel'])
  await settle()
  expect(call.closed).toBe(true)
  expect(hub.streamCount).toBe(0)
  expect(events).toEqual([])
})

test('an opener that sends on and on is told RESOURCE_EXHAUSTED, and its server that it has gone', async () => {
  const { hub, node } = sessionPair()
  const servers: Recorder[] = []
  hub.onOpen((stream) => {
    servers.push(new Recorder(stream))
    stream.handlers = { ...stream.handlers, message: () => false }
  })
  const stream = node.open('x', '', undefined)
  const call = new Recorder(stream)
  await settle()
  while (!stream.closed) stream.send(new Uint8Array(1_000_000))
  expect(call.log.at(-1)).toBe('end RESOURCE_EXHAUSTED')
  await settle()
  expect(servers[0]?.log).toEqual(['cancel'])
})

test('what all readers of a link leave unread is bounded; the ones that go over it are ended', async () => {
  const { hub, node, events } = sessionPair()
  node.onOpen((stream) => {
    stream.send(new Uint8Array(WINDOW_BYTES - MESSAGE_OVERHEAD * 10))
  })
  const count = Math.ceil(MAX_HELD_BYTES / WINDOW_BYTES) + 50
  const calls = Array.from({ length: count }, () => {
    const stream = hub.open('x', '', new Uint8Array(0))
    const call = new Recorder(stream)
    stream.handlers = { ...stream.handlers, message: () => false }
    return { stream, call }
  })
  await settle()
  await settle()
  expect(hub.held).toBeLessThanOrEqual(MAX_HELD_BYTES)
  const ended = calls.filter(({ call }) => call.status?.code === 'RESOURCE_EXHAUSTED').length
  expect(ended).toBeGreaterThan(0)
  expect(ended).toBeLessThan(100)
  for (const { stream } of calls) stream.cancel()
  await settle()
  expect([hub.held, hub.streamCount, node.streamCount]).toEqual([0, 0, 0])
  expect(events).toEqual([])
})

test('where too much waits of streams that nobody reads, these end, and who reads goes on', async () => {
  const { hub, node, clock } = sessionPair()
  const long = new Uint8Array(4 * WINDOW_BYTES)
  node.onOpen((stream) => stream.send(stream.operation === 'read' ? long : long.subarray(0, WINDOW_BYTES - 10_000)))
  const ended: unknown[] = []
  const open = () => {
    const stream = hub.open('leave', '', new Uint8Array(0))
    stream.handlers = { fragment: () => false, end: (status) => ended.push(status) }
    return stream
  }
  const left: LinkStream[] = []
  while (hub.held < MAX_HELD_BYTES - WINDOW_BYTES) {
    left.push(open())
    await settle(1)
  }
  clock.increment(1_000)
  left.push(open())
  await settle()
  const call = new Recorder(hub.open('read', '', new Uint8Array(0)))
  await until(() => call.log.length > 0)
  expect(call.log).toEqual(['message'])
  expect(call.messages[0]?.length).toBe(long.length)
  expect(ended.length).toBeGreaterThan(0)
  expect(ended.length).toBeLessThan(10)
  expect(ended[0]).toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    message: expect.stringMatching(/^nothing was read of this stream/),
  })
  expect(left.at(-1)?.closed).toBe(false)
  for (const stream of left) stream.cancel()
  expect(hub.held).toBe(0)
})

test('what waits for credit of streams that nobody reads gives way to who reads', async () => {
  const { hub, node, clock } = sessionPair()
  const send = () => new Uint8Array(8 * 1024 * 1024)
  hub.onOpen((stream) => stream.send(send()))
  const calls = Array.from({ length: 7 }, () => {
    const stream = node.open('leave', '', new Uint8Array(0))
    const call = new Recorder(stream)
    stream.handlers = { ...stream.handlers, fragment: () => false }
    return call
  })
  await settle()
  clock.increment(1_000)
  const reading = [0, 1].map(() => new Recorder(node.open('read', '', new Uint8Array(0))))
  await until(() => reading.every(({ log }) => log.length > 0))
  expect(reading.map(({ log }) => log)).toEqual([['message'], ['message']])
  // Of as many bytes each, those that were read longest ago.
  expect(calls.map(({ status }) => status?.code)).toEqual([
    'RESOURCE_EXHAUSTED',
    'RESOURCE_EXHAUSTED',
    ...Array(5).fill(undefined),
  ])
})

test('a long message that came before anybody listened, and with it the end, arrives whole', async () => {
  const { hub, node } = sessionPair()
  hub.onOpen((stream) => {
    stream.send(new Uint8Array(WINDOW_BYTES / 2))
    stream.end(ok)
  })
  const stream = node.open('x', '', new Uint8Array(0))
  await until(() => stream.closed)
  const call = new Recorder(stream)
  expect(call.log).toEqual(['message', 'end OK'])
  expect([call.messages[0]?.length, node.held]).toEqual([WINDOW_BYTES / 2, 0])
})

test('a message in pieces of one byte takes the memory of its bytes', async () => {
  const { hub, node } = sessionPair()
  const servers: Recorder[] = []
  hub.onOpen((stream) => servers.push(new Recorder(stream)))
  const stream = node.open('x', '', undefined)
  stream.handlers = {}
  for (let i = 0; i < 20_000; i++) stream.sendFragment(Uint8Array.of(i), i < 19_999)
  for (let i = 0; i < 20; i++) await settle()
  expect(servers[0]?.messages).toHaveLength(1)
  expect(servers[0]?.messages[0]).toEqual(Buffer.from(Array.from({ length: 20_000 }, (_, i) => i & 255)))
  expect(hub.held).toBe(0)
})

test('a stream that waits does not hold up the others', async () => {
  const { hub, node } = sessionPair()
  hub.onOpen((stream, request) => {
    if (stream.operation === 'slow') {
      stream.send(new Uint8Array(10_000_000))
      return
    }
    stream.send(request as Uint8Array)
    stream.end(ok)
  })
  const slow = node.open('slow', '', new Uint8Array(0))
  slow.handlers = { fragment: () => false }
  await settle()
  const quick = new Recorder(node.open('quick', '', Buffer.from('hello')))
  await quick.over
  expect(quick.text).toEqual(['hello'])
})
