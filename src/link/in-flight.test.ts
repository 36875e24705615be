/** What one side has sent and the other has not handled is bounded, whatever credit would allow, and all of it arrives. */
import { expect, test } from 'vitest'
import { LEAST_BYTES_IN_FLIGHT, MAX_BYTES_IN_FLIGHT, MAX_FRAMES_IN_FLIGHT } from './in-flight.ts'
import type { LinkStream } from './link.ts'
import { decodeFrame, MAX_FRAGMENT_BYTES, WINDOW_BYTES } from './messages.ts'
import type { MemoryTransport } from './pair.ts'
import { sessionPair } from './testing.ts'

/** A pair whose node may send without end as far as its transport is concerned. */
function wide() {
  const pair = sessionPair(() => {})
  const send = pair.nodeTransport.send.bind(pair.nodeTransport)
  let [frames, bytes] = [0, 0]
  /** Of the frames that have not been delivered, for a test that takes them out as they are. */
  const lengths: number[] = []
  pair.nodeTransport.send = (frame) => {
    lengths.push(frame.length)
    send(frame)
    frames++
    bytes += frame.length
    return true
  }
  Object.defineProperty(pair.nodeTransport, 'buffered', { get: () => 0, set: () => {} })
  return { ...pair, lengths, sent: () => ({ frames, bytes }) }
}

function exchange(...transports: MemoryTransport[]): void {
  while (transports.map((transport) => transport.deliver()).includes(true));
}

/** Streams that send messages of `size` bytes, `each` on every one, as fast as they may. */
function flood(open: () => LinkStream, streams: number, each: number, size: number): void {
  const message = new Uint8Array(size)
  for (let i = 0; i < streams; i++) {
    const stream = open()
    let left = each
    const fill = () => {
      while (left > 0) {
        left--
        if (!stream.send(message)) break
      }
      if (left === 0) stream.halfClose()
    }
    stream.handlers = { drain: fill }
    fill()
  }
}

test.each([
  ['empty messages', 40, 2_000, 0],
  ['pieces of full length', 200, 7, MAX_FRAGMENT_BYTES],
])('%s: within the bounds until they are handled, then all arrive', (_, streams, each, size) => {
  const { hub, node, hubTransport, nodeTransport, events, sent } = wide()
  let [got, halves] = [0, 0]
  hub.onOpen((stream) => {
    stream.handlers = {
      message: () => {
        got++
      },
      halfClose: () => {
        halves++
        stream.end({ code: 'OK', message: '' })
      },
    }
  })
  flood(() => node.open('x', '', undefined), streams, each, size)
  const { frames, bytes } = sent()
  // Pings come on top, and the frame with which the bound was reached.
  expect(frames).toBeLessThanOrEqual(MAX_FRAMES_IN_FLIGHT + 8)
  expect(bytes).toBeLessThanOrEqual(LEAST_BYTES_IN_FLIGHT + 2 * MAX_FRAGMENT_BYTES)
  expect(Math.max(frames / MAX_FRAMES_IN_FLIGHT, bytes / LEAST_BYTES_IN_FLIGHT)).toBeGreaterThanOrEqual(1)
  expect([got, node.streamCount]).toEqual([0, streams])
  exchange(nodeTransport, hubTransport)
  expect([got, halves]).toEqual([streams * each, streams])
  expect([node.streamCount, hub.streamCount, node.held, hub.held]).toEqual([0, 0, 0, 0])
  expect(events).toEqual([])
})

test.each([
  ['pieces of full length', 200, 7, MAX_FRAGMENT_BYTES],
  ['empty messages', 40, 2_000, 0],
])('the more the faster it is handled, up to a bound: %s', (_, streams, each, size) => {
  const { hub, node, hubTransport, nodeTransport, sent } = wide()
  hub.onOpen((stream) => {
    stream.handlers = { message() {}, halfClose: () => stream.end({ code: 'OK', message: '' }) }
  })
  for (let round = 0; round < 2; round++) {
    flood(() => node.open('x', '', undefined), 200, 7, MAX_FRAGMENT_BYTES)
    exchange(nodeTransport, hubTransport)
  }
  const before = sent()
  flood(() => node.open('x', '', undefined), streams, each, size)
  const [frames, bytes] = [sent().frames - before.frames, sent().bytes - before.bytes]
  // What was handled last is not known to be, as no Ping was due for it.
  expect(Math.max(frames / MAX_FRAMES_IN_FLIGHT, bytes / MAX_BYTES_IN_FLIGHT)).toBeGreaterThanOrEqual(0.75)
  expect(frames).toBeLessThanOrEqual(MAX_FRAMES_IN_FLIGHT + 8)
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES_IN_FLIGHT + 2 * MAX_FRAGMENT_BYTES)
})

test('no more where less is in flight than may be, and less where it is handled slowly', () => {
  const { hub, node, hubTransport, nodeTransport, clock, sent } = wide()
  hub.onOpen((stream) => {
    stream.handlers = { message() {}, halfClose: () => stream.end({ code: 'OK', message: '' }) }
  })
  clock.increment(5_000)
  const stream = node.open('x', '', undefined)
  const mostInFlight = () => {
    const before = sent().bytes
    flood(() => node.open('x', '', undefined), 200, 7, MAX_FRAGMENT_BYTES)
    return sent().bytes - before - 2 * MAX_FRAGMENT_BYTES
  }
  // Once as many as may be, then a quarter of that at a time.
  for (let i = 0; i < 4; i++) stream.send(new Uint8Array(LEAST_BYTES_IN_FLIGHT / 4))
  for (let i = 0; i < 100; i++) {
    exchange(nodeTransport, hubTransport)
    stream.send(new Uint8Array(LEAST_BYTES_IN_FLIGHT / 4))
  }
  exchange(nodeTransport, hubTransport)
  expect(mostInFlight()).toBeLessThanOrEqual(2 * LEAST_BYTES_IN_FLIGHT)
  exchange(nodeTransport, hubTransport)
  expect(mostInFlight()).toBeGreaterThan(LEAST_BYTES_IN_FLIGHT * 100)
  // So many frames of full length are handled in two seconds.
  const [FRAME_MS, framesHandled] = [20, 100]
  let most = 0
  for (let round = 0; round < 8; round++) {
    for (; nodeTransport.deliver(); clock.increment(FRAME_MS)) while (hubTransport.deliver());
    most = mostInFlight()
  }
  expect(most).toBeLessThanOrEqual(2 * framesHandled * MAX_FRAGMENT_BYTES)
})

test.each([
  [20_000, 6],
  [200_000, 20],
])(
  'calls over a link of %d bytes a second with %d long answers do not wait for all that the credit of these allows, and it is never idle meanwhile',
  (rate, answers) => {
    const { hub, node, nodeTransport, hubTransport, clock, lengths } = wide()
    const [TICK_MS, MESSAGES] = [100, 12]
    node.onOpen((stream) => {
      if (stream.operation === 'list') {
        for (let i = 0; i < MESSAGES; i++) stream.send(new Uint8Array(MAX_FRAGMENT_BYTES))
      } else stream.send(new Uint8Array(10))
      stream.end({ code: 'OK', message: '' })
    })
    let left = answers
    for (let i = 0; i < answers; i++) {
      hub.open('list', '', new Uint8Array(0)).handlers = { message() {}, end: () => left-- }
    }
    let longest = 0
    let budget = 0
    for (let ticks = 0; left > 0; ticks++) {
      if (ticks % 10 === 0) {
        const begun = clock.now()
        hub.open('status', '', new Uint8Array(0)).handlers = {
          message: () => {
            longest = Math.max(longest, clock.now() - begun)
          },
        }
      }
      clock.increment(TICK_MS)
      budget += (rate * TICK_MS) / 1_000
      while (hubTransport.deliver());
      while (budget > 0 && lengths.length > 0) {
        budget -= lengths.shift() as number
        nodeTransport.deliver()
      }
    }
    // What is in flight, and a turn of each answer; by the credit it would be seven turns more.
    const turnMs = ((answers * MAX_FRAGMENT_BYTES) / rate) * 1_000
    expect(longest).toBeLessThan(4_000 + turnMs)
    expect(clock.now()).toBeLessThan(MESSAGES * turnMs * 1.1)
  },
)

test('while it waits it cancels and gives credit', () => {
  const { node, hub, nodeTransport, hubTransport, sent } = wide()
  const calls: LinkStream[] = []
  node.onOpen((stream) => {
    stream.handlers = { message() {} }
  })
  const served = hub.open('served', '', undefined)
  flood(
    () => {
      const stream = node.open('x', '', undefined)
      calls.push(stream)
      return stream
    },
    20,
    2_000,
    0,
  )
  const before = sent().frames
  const late = node.open('late', '', undefined)
  expect([late.writable, sent().frames]).toEqual([false, before])
  calls[0]?.cancel()
  expect(sent().frames).toBe(before + 1)
  served.send(new Uint8Array(WINDOW_BYTES / 2))
  while (hubTransport.deliver());
  expect(sent().frames).toBeGreaterThan(before + 1)
  hub.onOpen((stream) => {
    stream.handlers = { message() {}, halfClose: () => stream.end({ code: 'OK', message: '' }) }
  })
  exchange(nodeTransport, hubTransport)
  // `late` and `served`.
  expect([node.streamCount, hub.streamCount]).toEqual([2, 2])
  expect(late.writable).toBe(true)
})

test('few frames are sent without a ping', () => {
  const { node, nodeTransport } = sessionPair(() => {})
  const kinds: string[] = []
  nodeTransport.send = (frame) => {
    kinds.push(decodeFrame(frame).kind)
    return true
  }
  flood(() => node.open('x', '', undefined), 10, 100, 0)
  expect(new Set(kinds)).toEqual(new Set(['open', 'message', 'halfClose']))
})
