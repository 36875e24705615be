/** Calls over the links between servers: made once more where the node is by then, and with everything that was sent. */
import { describe, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { ServiceError } from '../contract/errors.ts'
import type { LinkStream } from '../link/link.ts'
import { MAX_MESSAGE_BYTES } from '../link/messages.ts'
import { relay } from '../link/relay.ts'
import { Recorder, sessionPair } from '../link/testing.ts'
import type { NodeRoute } from './registry.ts'
import { MOVE_MS, ServerCalls } from './server-calls.ts'

const NOT_HERE = { code: 'UNAVAILABLE', message: 'not here', notHere: true } as const
const bytes = (text: string) => new Uint8Array(Buffer.from(text))

/** This server with links to two others, `b` and `c`, and the calls that reach each. */
function rig() {
  const clock = new SimulatedClock()
  const links = { b: link('b'), c: link('c') }
  let route: NodeRoute = { kind: 'server', server: 'b' }
  const calls = new ServerCalls({
    registry: { route: () => route },
    links: { with: (id) => links[id as 'b' | 'c']?.here },
    clock,
  })
  const open = (request?: Uint8Array, deadlineMs?: number) =>
    calls.opener('n', 'b').open('op', 'n', request, { origin: 'caller', deadlineMs })
  const moveTo = (next: NodeRoute) => {
    route = next
  }
  return { ...links, calls, clock, open, moveTo }
}

function link(id: string) {
  const { node, hub } = sessionPair(undefined, { isServerLink: true })
  const here = Object.create(node, { peerId: { value: id } }) as typeof node
  Object.assign(here, { open: node.open.bind(node) })
  const served: { stream: LinkStream; request: Uint8Array | undefined }[] = []
  hub.onOpen((stream, request) => served.push({ stream, request }))
  return { here, node, hub, served }
}

test('a call that is answered is one like any other', async () => {
  const { b, open } = rig()
  const recorder = new Recorder(open(bytes('ask')))
  await settle()
  const [{ stream, request }] = b.served as [(typeof b.served)[0]]
  expect({ target: stream.target, origin: stream.origin, request: Buffer.from(request!).toString() }).toEqual({
    target: 'n',
    origin: 'caller',
    request: 'ask',
  })
  stream.send(bytes('answer'))
  stream.end({ code: 'OK', message: '' })
  await recorder.over
  expect([recorder.text, recorder.status?.code]).toEqual([['answer'], 'OK'])
})

describe('when the other server does not have the node', () => {
  test('the call is made where it is by then, with the request and the time that is left', async () => {
    const { b, c, open, moveTo, clock } = rig()
    const recorder = new Recorder(open(bytes('ask'), 5_000))
    await settle()
    clock.increment(1_000)
    moveTo({ kind: 'server', server: 'c' })
    b.served[0]?.stream.end(NOT_HERE)
    await settle()
    const [again] = c.served
    expect([Buffer.from(again?.request ?? []).toString(), again?.stream.deadlineMs, again?.stream.origin]).toEqual([
      'ask',
      4_000,
      'caller',
    ])
    again?.stream.send(bytes('answer'))
    again?.stream.end({ code: 'OK', message: '' })
    await recorder.over
    expect([recorder.text, recorder.status?.code]).toEqual([['answer'], 'OK'])
  })

  test('what was sent on before an answer came is sent there too, in order, and what comes after', async () => {
    const { b, c, open, moveTo } = rig()
    const call = open()
    const recorder = new Recorder(call)
    for (const text of ['one', 'two']) expect(call.send(bytes(text))).toBe(false)
    await settle()
    const there = new Recorder(b.served[0]!.stream)
    moveTo({ kind: 'server', server: 'c' })
    b.served[0]?.stream.end(NOT_HERE)
    await settle()
    const here = new Recorder(c.served[0]!.stream)
    c.served[0]?.stream.send(bytes('ready'))
    await settle()
    expect(call.send(bytes('three'))).toBe(true)
    call.halfClose()
    await settle()
    expect([there.text, here.text, here.log.at(-1), recorder.text]).toEqual([
      [],
      ['one', 'two', 'three'],
      'halfClose',
      ['ready'],
    ])
    expect(recorder.log).toContain('drain')
  })

  test('a node that has come to this server is called over its own link', async () => {
    const { b, c, open, moveTo } = rig()
    const recorder = new Recorder(open(bytes('ask')))
    await settle()
    moveTo({ kind: 'session', session: c.here })
    b.served[0]?.stream.end(NOT_HERE)
    await settle()
    c.served[0]?.stream.end({ code: 'NOT_FOUND', message: 'no such pipeline' })
    await recorder.over
    expect(recorder.status).toMatchObject({ code: 'NOT_FOUND', message: 'no such pipeline' })
  })

  test.each<[string, NodeRoute, string]>([
    ['has no link at all', { kind: 'offline' }, 'UNAVAILABLE'],
    ['was removed', { kind: 'unknown' }, 'NOT_FOUND'],
    ['is at a server without a link', { kind: 'server', server: 'd' }, 'UNAVAILABLE'],
  ])('and the node %s: the caller hears that', async (_what, route, code) => {
    const { b, open, moveTo } = rig()
    const recorder = new Recorder(open(bytes('ask')))
    await settle()
    moveTo(route)
    b.served[0]?.stream.end(NOT_HERE)
    await recorder.over
    expect(recorder.status?.code).toBe(code)
  })

  test('and nobody knows better: it is asked once more, after a while, and then no more', async () => {
    const { b, open, clock } = rig()
    const recorder = new Recorder(open(bytes('ask')))
    await settle()
    b.served[0]?.stream.end(NOT_HERE)
    await settle()
    clock.increment(MOVE_MS - 1)
    await settle()
    expect(b.served).toHaveLength(1)
    clock.increment(1)
    await settle()
    b.served[1]?.stream.end(NOT_HERE)
    await recorder.over
    expect(recorder.status).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('node n') })
    expect(b.served).toHaveLength(2)
  })

  test('a caller that gives up meanwhile is not called for', async () => {
    const { b, open, clock } = rig()
    const call = open(bytes('ask'))
    const recorder = new Recorder(call)
    await settle()
    b.served[0]?.stream.end(NOT_HERE)
    await settle()
    call.cancel()
    clock.increment(MOVE_MS)
    await settle()
    expect([b.served.length, recorder.log]).toEqual([1, []])
  })
})

test('once something has come back, the call is not made again', async () => {
  const { b, c, open, moveTo } = rig()
  const recorder = new Recorder(open(bytes('ask')))
  await settle()
  moveTo({ kind: 'server', server: 'c' })
  b.served[0]?.stream.send(bytes('first'))
  b.served[0]?.stream.end(NOT_HERE)
  await recorder.over
  expect([recorder.text, recorder.status?.code, c.served.length]).toEqual([['first'], 'UNAVAILABLE', 0])
})

test('the request counts as held for its caller until the other server has answered', async () => {
  const { b, calls } = rig()
  const held: number[] = []
  const holder = { hold: (size: number) => held.push(size) > 0 }
  const call = calls.opener('n', 'b').open('op', 'n', bytes('ask'), { holder })
  new Recorder(call)
  await settle()
  const sum = () => held.reduce((total, size) => total + size, 0)
  expect(sum()).toBe(3)
  b.served[0]?.stream.send(bytes('answer'))
  await settle()
  expect(sum()).toBe(0)
  const refusing = { hold: () => false }
  expect(() => calls.opener('n', 'b').open('op', 'n', bytes('ask'), { holder: refusing })).toThrow(ServiceError)
})

test('a call of another node is relayed: its messages wait with that node until there is an answer', async () => {
  const { b, calls, moveTo, c } = rig()
  const member = sessionPair()
  member.hub.onOpen((stream, request) => relay(stream, request, calls.opener('n', 'b')))
  const call = member.node.open('op', 'n', undefined)
  const recorder = new Recorder(call)
  call.send(bytes('early'))
  await settle()
  moveTo({ kind: 'server', server: 'c' })
  b.served[0]?.stream.end(NOT_HERE)
  await settle()
  const far = new Recorder(c.served[0]!.stream)
  c.served[0]?.stream.send(bytes('ready'))
  await settle()
  call.send(bytes('late'))
  await settle()
  expect([far.text, recorder.text]).toEqual([['early', 'late'], ['ready']])
  expect(member.hub.held).toBe(0)
})

test('without a link with the server the caller hears which server it is', () => {
  const { calls } = rig()
  expect(() => calls.opener('n', 'd')).toThrow('node n is connected to another server of this hub, d,')
})

test('a call that cannot be made holds nothing for its caller', () => {
  const { calls } = rig()
  let held = 0
  const holder = {
    hold: (bytes: number) => {
      held += bytes
      return true
    },
  }
  const request = new Uint8Array(MAX_MESSAGE_BYTES + 1)
  expect(() => calls.opener('n', 'b').open('op', 'n', request, { holder })).toThrow('the most a link carries')
  expect(held).toBe(0)
})
