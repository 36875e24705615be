/** The time that a caller gives its call: counted from the Open on, however long the request takes to come, and passed on as what is left. */
import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import type { LinkStream } from './link.ts'
import { decodeFrame, encodeFrame, encodeMessageFrame, type Frame, WINDOW_BYTES } from './messages.ts'
import { relay } from './relay.ts'
import { Recorder, sessionPair } from './testing.ts'
import { deaf } from './transport.ts'

/** A hub whose node is played by the test, frame by frame. */
function rig() {
  const { hub, nodeTransport, clock } = sessionPair()
  const heard: Frame[] = []
  nodeTransport.handlers = { ...deaf, message: (bytes) => void heard.push(decodeFrame(bytes)) }
  const served: { stream: LinkStream; request: Uint8Array | undefined }[] = []
  hub.onOpen((stream, request) => served.push({ stream, request }))
  const open = (stream: number, deadlineMs: number, more: { request?: Uint8Array; requestContinues?: boolean } = {}) =>
    nodeTransport.send(
      encodeFrame('open', {
        stream,
        operation: 'createPipeline',
        target: '',
        origin: '',
        deadlineMs,
        request: new Uint8Array(0),
        requestContinues: true,
        ...more,
      }),
    )
  const last = (stream: number) => nodeTransport.send(encodeMessageFrame(stream, Buffer.from('the rest'), false))
  return { hub, nodeTransport, clock, heard, served, open, last }
}

test('a request that does not come whole is ended when its caller waits no more, and what comes of it later is ignored', async () => {
  const { hub, clock, heard, served, open, last } = rig()
  open(1, 1_000)
  await settle()
  clock.increment(999)
  await settle()
  expect(heard).toEqual([])
  clock.increment(1)
  await settle()
  expect(heard).toMatchObject([{ kind: 'end', value: { stream: 1, code: 4 } }])
  expect([hub.streamCount, hub.held]).toEqual([0, 0])
  last(1)
  await settle()
  expect([served.length, heard.length]).toEqual([0, 1])
})

test('a request without a deadline may take any time; one that is over leaves no timer behind', async () => {
  const { nodeTransport, clock, heard, served, open, last } = rig()
  open(1, 0)
  open(3, 1_000)
  open(5, 1_000)
  nodeTransport.send(encodeFrame('cancel', { stream: 3 }))
  last(5)
  await settle()
  // Less than the heartbeat waits for.
  clock.increment(9_000)
  last(1)
  await settle()
  expect(served.map(({ request }) => String(Buffer.from(request ?? [])))).toEqual(['the rest', 'the rest'])
  expect(heard).toEqual([])
})

test('whoever serves a request that took a while has what is left', async () => {
  const { clock, served, open, last } = rig()
  open(1, 1_000)
  await settle()
  clock.increment(700)
  last(1)
  await settle()
  expect(served[0]?.stream).toMatchObject({ deadlineMs: 1_000, timeLeft: 300 })
})

test('a call that waited for somebody to serve it until nobody waits for it is not served', async () => {
  const { hub, node, clock } = sessionPair()
  const call = new Recorder(node.open('x', '', new Uint8Array(0), { deadlineMs: 1_000 }))
  await settle()
  clock.increment(1_000)
  let served = 0
  hub.onOpen(() => served++)
  await call.over
  expect([served, call.status?.code]).toEqual([0, 'DEADLINE_EXCEEDED'])
})

test('a call is passed on with what is left, and not at all when nothing is', async () => {
  const caller = rig()
  const far = sessionPair()
  const { hub, clock, heard, open, last } = caller
  const passed: LinkStream[] = []
  far.node.onOpen((stream) => passed.push(stream))
  hub.onOpen((stream, request) => {
    // As when looking for the node takes time.
    if (stream.deadlineMs === 500) clock.increment(500)
    relay(stream, request, far.hub)
  })
  open(1, 1_000)
  await settle()
  clock.increment(999.5)
  last(1)
  open(3, 500, { requestContinues: false })
  await settle()
  // At least 1 ms: 0 would be all the time of the world.
  expect(passed.map(({ deadlineMs }) => deadlineMs)).toEqual([1])
  expect(heard).toMatchObject([{ kind: 'end', value: { stream: 3, code: 4 } }])
})

test('a call that waits for the connection says what is left when it leaves, and does not leave when nothing is', async () => {
  const { hub, nodeTransport, clock } = sessionPair()
  const frames: Frame[] = []
  nodeTransport.handlers = { ...deaf, message: (bytes) => void frames.push(decodeFrame(bytes)) }
  // Until a Pong has come, 16,384 frames are the most.
  for (let i = 0; i < 5; i++) {
    const busy = hub.open('busy', '', undefined)
    for (let sent = 0; sent < 4_000; sent++) busy.send(new Uint8Array(0))
  }
  await settle()
  const waiting = new Recorder(hub.open('late', '', new Uint8Array(0), { deadlineMs: 1_000 }))
  hub.open('in time', '', new Uint8Array(0), { deadlineMs: 5_000 }).handlers = {}
  clock.increment(1_500)
  for (const frame of frames) {
    if (frame.kind === 'ping') nodeTransport.send(encodeFrame('pong', { sequence: frame.value.sequence }))
  }
  await waiting.over
  await settle()
  expect(waiting.status?.code).toBe('DEADLINE_EXCEEDED')
  const opens = frames.filter((frame) => frame.kind === 'open')
  expect(opens.at(-1)).toMatchObject({ value: { operation: 'in time', deadlineMs: 3_500 } })
  expect(opens.filter(({ value }) => value.operation === 'late')).toEqual([])
})

test('of a long request only a little comes with its Open; a caller that gives up says so before the last piece that waits', async () => {
  const { node, hubTransport } = sessionPair()
  const frames: Frame[] = []
  hubTransport.handlers = { ...deaf, message: (bytes) => void frames.push(decodeFrame(bytes)) }
  node.open('short', '', new Uint8Array(4_096)).handlers = {}
  const stream = node.open('long', '', new Uint8Array(2 * WINDOW_BYTES), { deadlineMs: 1_000 })
  stream.handlers = {}
  await settle()
  stream.cancel()
  await settle()
  const opens = frames.filter((frame) => frame.kind === 'open')
  expect(opens.map(({ value }) => [value.request?.length, value.requestContinues])).toEqual([
    [4_096, false],
    [4_096, true],
  ])
  expect(frames.at(-1)).toEqual({ kind: 'cancel', value: { stream: 3 } })
  const pieces = frames.filter((frame) => frame.kind === 'message')
  expect(pieces.length).toBeGreaterThan(0)
  expect(pieces.every(({ value }) => value.more)).toBe(true)
})
