/** Calls that come over a link and are carried out here: what their requests make this node hold. */
import { expect, test } from 'vitest'
import { settle, until } from '../../test/harness/waiting.ts'
import { encodeBinary } from '../contract/binary-encode.ts'
import { systemClock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import { Fanout } from '../contract/fanout.ts'
import type { Handlers, Sink } from '../contract/handlers.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import type { StreamPipelinesEvent } from '../contract/types.ts'
import { MAX_HELD_BYTES } from '../link/accounting.ts'
import { Recorder, sessionPair } from '../link/testing.ts'
import { Dispatcher } from './dispatcher.ts'
import { LinkListener } from './link.ts'

const MIB = 1024 * 1024
const operation = loadOperations().find(({ name }) => name === 'getPipelineByRunId') as Operation

test('requests that are being carried out are held for their caller until that is over, and refused beyond its limit', async () => {
  const { hub, node } = sessionPair()
  let underWay = 0
  const finish: (() => void)[] = []
  const handlers: Partial<Handlers> = {
    // As the real one waits for a run to appear.
    getPipelineByRunId: async () => {
      underWay++
      await new Promise<void>((resolve) => finish.push(resolve))
      return {} as never
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const request = encodeBinary(operation.request, { nodeId: 'hub', id: 'x'.repeat(4 * MIB) })
  const calls: Recorder[] = []
  for (let i = 0; i < 24; i++) {
    const stream = node.open(operation.name, '', request)
    calls.push(new Recorder(stream))
    while (underWay + calls.filter(({ status }) => status !== undefined).length <= i) await settle()
    // Nobody waits for the first any more; its request is still there.
    if (i === 0) stream.cancel()
  }
  const refused = calls.filter(({ status }) => status?.code === 'RESOURCE_EXHAUSTED')
  expect(underWay).toBeGreaterThan(10)
  expect(underWay * request.length).toBeLessThan(MAX_HELD_BYTES)
  expect(refused).toHaveLength(24 - underWay)
  expect(hub.held).toBeGreaterThan(underWay * request.length)
  expect(hub.held).toBeLessThanOrEqual(MAX_HELD_BYTES)
  for (const resolve of finish) resolve()
  await settle()
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('a call that was cancelled before it could begin is not carried out', async () => {
  const { hub, node } = sessionPair()
  const begun: string[] = []
  const handlers: Partial<Handlers> = {
    getPipelineByRunId: async ({ id }) => {
      begun.push(id)
      return {} as never
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const requestOf = (id: string) => encodeBinary(operation.request, { nodeId: 'hub', id })
  const first = node.open(operation.name, '', requestOf('cancelled'))
  const second = new Recorder(node.open(operation.name, '', requestOf('awaited')))
  first.cancel()
  while (second.status === undefined) await settle()
  expect(second.status.code).toBe('OK')
  expect(begun).toEqual(['awaited'])
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('a bidirectional call that was cancelled before it could begin leaves nothing of what it sent on the account of its caller', async () => {
  const { hub, node } = sessionPair()
  const begun: string[] = []
  const handlers: Partial<Handlers> = {
    authenticationByRequests: async () => {
      begun.push('call')
      return { message: () => {} }
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const first = node.open('authenticationByRequests', '', undefined)
  first.send(encoded('authenticationByRequests', 'request', { requestId: 1n, accept: true }))
  first.cancel()
  const second = new Recorder(node.open('authenticationByRequests', '', undefined))
  while (second.messages.length === 0) await settle()
  expect(begun).toEqual(['call'])
  expect([hub.held, hub.streamCount]).toEqual([0, 1])
})

test('a stream that stands only after the time of its caller is over is over for its handler as well', async () => {
  const { hub, node, clock } = sessionPair()
  let sink: Sink<unknown> | undefined
  let stand: (() => void) | undefined
  const handlers: Partial<Handlers> = {
    streamNodes: async (_request, _call, opened) => {
      sink = opened
      await new Promise<void>((resolve) => {
        stand = resolve
      })
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const call = new Recorder(node.open('streamNodes', '', new Uint8Array(0), { deadlineMs: 100 }))
  while (stand === undefined) await settle()
  clock.increment(100)
  await call.over
  expect(call.status?.code).toBe('DEADLINE_EXCEEDED')
  stand()
  await settle()
  expect(sink?.closed).toBe(true)
})

/** The stream's end at this side and at the node's, where `handlers` serve. */
function served(handlers: Partial<Handlers>) {
  const { hub, node } = sessionPair()
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  return node
}

const encoded = (name: string, side: 'request' | 'response', message: unknown) =>
  encodeBinary((loadOperations().find((each) => each.name === name) as Operation)[side], message)

test('an event for many streams of a link waits once for all of them, and all that read it get it', async () => {
  const { hub, node } = sessionPair()
  const fanout = new Fanout<StreamPipelinesEvent>({ kind: 'bounded', limit: 1 })
  const handlers: Partial<Handlers> = {
    streamPipelines: async (_request, _call, sink) => {
      sink.ready()
      fanout.add(sink)
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  // As whole messages they take more than a link may hold, at either end.
  const event: StreamPipelinesEvent = { update: { pipeline: { jsonConfig: 'x'.repeat(900_000) } as never } }
  const request = encoded('streamPipelines', 'request', { nodeId: 'hub' })
  const streams = Array.from({ length: 80 }, () => node.open('streamPipelines', '', request))
  const calls = streams.map((stream) => new Recorder(stream))
  await until(() => fanout.size === calls.length)
  fanout.publish(event)
  expect(hub.held).toBeGreaterThan(900_000)
  expect(hub.held).toBeLessThan(1_000_000)
  await until(() => calls.every(({ log }) => log.length === 2))
  expect(new Set(calls.map(({ log }) => log.join()))).toEqual(new Set(['message,message']))
  const length = encoded('streamPipelines', 'response', event).length + 1
  expect(new Set(calls.map(({ messages }) => messages[1]?.length))).toEqual(new Set([length]))
  for (const stream of streams) stream.cancel()
  await settle()
  expect([hub.held, node.held, hub.streamCount]).toEqual([0, 0, 0])
})

test('a stream begins with READY, and each of its messages with its kind (docs/link-protocol.md, 6.7)', async () => {
  const node = { id: 'n', name: 'north' }
  const session = served({
    streamNodes: async (_request, _call, sink) => {
      sink.send({ initialResponse: { nodes: [node as never] } })
      sink.end()
    },
  })
  const call = new Recorder(session.open('streamNodes', '', new Uint8Array(0)))
  await call.over
  const message = encoded('streamNodes', 'response', { initialResponse: { nodes: [node] } })
  expect(call.messages.map((bytes) => [...bytes])).toEqual([[0], [1, ...message]])
  expect(call.status?.code).toBe('OK')
})

test('each message of a bidirectional call is TAKEN or REFUSED, with the failure as JSON, in order', async () => {
  const problems = [{ pointer: '/requestId', message: 'what is wrong there' }]
  const session = served({
    authenticationByRequests: async () => ({
      message: ({ accept }) => {
        if (!accept) throw new ServiceError('NOT_FOUND', 'what was wrong', { problems })
      },
    }),
  })
  const stream = session.open('authenticationByRequests', '', undefined)
  const call = new Recorder(stream)
  for (const accept of [true, false, true]) {
    stream.send(encoded('authenticationByRequests', 'request', { requestId: 1n, accept }))
  }
  while (call.messages.length < 4) await settle()
  const [ready, first, second, third] = call.messages.map((bytes) => Buffer.from(bytes))
  expect([ready, first, third].map((bytes) => [...(bytes ?? [])])).toEqual([[0], [2], [2]])
  expect(second?.[0]).toBe(3)
  expect(JSON.parse(String(second?.subarray(1)))).toEqual({ code: 'NOT_FOUND', message: 'what was wrong', problems })
  stream.cancel()
})

test('of the operations other nodes may call all of the hub server, and what names its node; no two have one name', async () => {
  const session = served({})
  const operations = loadOperations()
  expect(new Set(operations.map(({ name }) => name)).size).toBe(operations.length)
  const denied: string[] = []
  for (const { name, kind, request } of operations) {
    if (kind === 'bidi') continue
    const naming = request.byName.has('node_id') ? encodeBinary(request, { nodeId: 'hub' }) : new Uint8Array(0)
    const call = new Recorder(session.open(name, '', naming))
    await call.over
    if (call.status?.code === 'PERMISSION_DENIED') denied.push(name)
  }
  expect(denied.sort()).toEqual(
    [
      'authenticateByRequest',
      'createToken',
      'disconnect',
      'getLocalNodeId',
      'getTokens',
      'revokeToken',
      'streamConnectionState',
    ].sort(),
  )
})
