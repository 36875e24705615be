/** The hub on real nodes with real sockets: every row of the specification's error table over REST, gRPC, events and WebSockets. */
import { once } from 'node:events'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join as joinPath } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { type Caller, Failed, freeAddress, grpcCaller, httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
let directories = 0
const directory = () => joinPath(root, `${directories++}`)
let hub: RunningNode
/** A node on the hub, and one on none. */
let member: RunningNode
let lone: RunningNode
/** On the hub, with a configuration file that does not name it. */
let fixed: RunningNode
const opened: { close(): unknown }[] = []
const callersOf = (node: RunningNode): Caller[] => {
  const callers = [httpCaller(node), httpCaller(node, 1), grpcCaller(node)]
  opened.push(...callers)
  return callers
}
const addressOf = (node: RunningNode) => `http://${node.node.http}`
const REFUSED = 'authenticationByRequests: a message was refused, which its caller over gRPC is not told'
const everything = { metadataFilters: {}, serviceFilters: [] }

/** Joins, with an operator at the hub's WebSocket who answers `accept`. */
async function join(node: RunningNode, at = hub, accept = true): Promise<void> {
  const { stream, answer } = await httpCaller(at).converse('authenticationByRequests')
  const joined = httpCaller(node).unary('authenticateByRequest', { hubServerAddress: addressOf(at) })
  const { requestId } = await stream.next()
  answer({ requestId, accept })
  try {
    await joined
  } finally {
    stream.close()
  }
}

async function stop(node: RunningNode): Promise<void> {
  await node.node.close()
}

beforeAll(async () => {
  ;[hub, member, lone, fixed] = await Promise.all([
    startReal(directory(), { hub: 'true', 'node-name': 'hub' }),
    startReal(directory(), { 'node-name': 'member' }),
    startReal(directory(), { 'node-name': 'lone' }),
    startReal(directory(), {}, { name: '/etc/penstock.yaml', text: 'telemetry: { interval: 2s }\n' }),
  ])
  await join(member)
  await join(fixed)
})
afterAll(async () => {
  for (const each of opened) each.close()
  await Promise.all([lone, member, fixed].map(stop))
  await stop(hub)
})

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'OK',
    (error: unknown) => (error instanceof Failed ? error.code : String(error)),
  )

describe('any hub server operation: node neither hosts the hub server nor is authenticated with one', () => {
  test('getNodes, removeNode, getPendingAuthenticationRequests, streamNodes over REST, events and gRPC', async () => {
    for (const caller of callersOf(lone)) {
      expect(await codeOf(caller.unary('getNodes', everything)), caller.transport).toBe('FAILED_PRECONDITION')
      expect(await codeOf(caller.unary('removeNode', { nodeId: 'x' })), caller.transport).toBe('FAILED_PRECONDITION')
      expect(await codeOf(caller.unary('getPendingAuthenticationRequests'))).toBe('FAILED_PRECONDITION')
      expect(await codeOf(caller.stream('streamNodes', everything)), caller.transport).toBe('FAILED_PRECONDITION')
    }
  })

  test('authenticationByRequests: an error frame and close code 4009; the status of gRPC', async () => {
    const { stream } = await httpCaller(lone).converse('authenticationByRequests')
    expect((await stream.next()).error).toMatchObject({ code: 'FAILED_PRECONDITION' })
    expect(await codeOf(stream.next())).toBe('FAILED_PRECONDITION')
    const far = await (callersOf(lone)[2] as Caller).converse('authenticationByRequests')
    expect(await codeOf(far.stream.next())).toBe('FAILED_PRECONDITION')
  })
})

test('getNode: node cannot be reached', async () => {
  const gone = await startReal(directory())
  await join(gone)
  await stop(gone)
  for (const at of [hub, member]) {
    for (const caller of callersOf(at)) {
      expect(await codeOf(caller.unary('getNode', { nodeId: gone.node.id })), caller.transport).toBe('UNAVAILABLE')
      await expect(caller.unary('getNode', { nodeId: gone.node.id })).rejects.toThrow('not connected to it now')
      expect(await codeOf(caller.unary('getNode', { nodeId: 'nobody' })), caller.transport).toBe('UNAVAILABLE')
      await expect(caller.unary('getNode', { nodeId: 'nobody' })).rejects.toThrow('no node nobody is on this hub')
      // The specification names no other code for getNode alone.
      expect(await codeOf(caller.unary('getPipelines', { nodeId: 'nobody' })), caller.transport).toBe('NOT_FOUND')
    }
  }
  for (const caller of callersOf(lone)) {
    expect(await codeOf(caller.unary('getNode', { nodeId: gone.node.id }))).toBe('UNAVAILABLE')
    await expect(caller.unary('getNode', { nodeId: gone.node.id })).rejects.toThrow('this node is on no hub')
    expect(await codeOf(caller.unary('getPipelines', { nodeId: 'nobody' }))).toBe('FAILED_PRECONDITION')
  }
  await httpCaller(hub).unary('removeNode', { nodeId: gone.node.id })
})

test('setNode: node configuration comes from a config file', async () => {
  for (const at of [fixed, hub, member]) {
    for (const caller of callersOf(at)) {
      const change = { nodeId: fixed.node.id, name: 'other', metadata: { items: {} } }
      expect(await codeOf(caller.unary('setNode', change)), caller.transport).toBe('PERMISSION_DENIED')
      await expect(caller.unary('setNode', change)).rejects.toThrow('/etc/penstock.yaml')
    }
  }
})

describe('authenticateByRequest', () => {
  const asks = (caller: Caller, hubServerAddress: string, signal?: AbortSignal) =>
    codeOf(caller.unary('authenticateByRequest', { hubServerAddress }, signal))

  test('node already authenticated', async () => {
    for (const at of [hub, member]) {
      for (const caller of callersOf(at)) {
        for (const address of [addressOf(hub), '', 'no address', 'ftp://hub', 'http://127.0.0.1:1/']) {
          expect([address, await asks(caller, address)]).toEqual([address, 'ALREADY_EXISTS'])
        }
      }
    }
  })

  test('request rejected', async () => {
    for (const caller of callersOf(lone)) {
      const { stream, answer } = await httpCaller(hub).converse('authenticationByRequests')
      const asking = asks(caller, addressOf(hub))
      const { requestId, node } = await stream.next()
      expect(node).toMatchObject({ id: lone.node.id, name: 'lone' })
      answer({ requestId, accept: false })
      expect(await asking, caller.transport).toBe('UNAUTHENTICATED')
      stream.close()
    }
  })

  test('hub server did not answer in time', async () => {
    const hasty = await startReal(directory(), { hub: 'true', 'authentication-request-timeout': '1s' })
    const outcomes = await Promise.all(callersOf(lone).map((caller) => asks(caller, addressOf(hasty))))
    expect(outcomes).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
    await stop(hasty)
  })

  test('hub server could not be reached', async () => {
    const address = `http://${await freeAddress()}`
    for (const caller of callersOf(lone)) expect(await asks(caller, address)).toBe('UNAVAILABLE')
  })

  test('hub server does not accept authentication by request, or is none', async () => {
    const closed = await startReal(directory(), { hub: 'true', 'authentication-by-request': 'none' })
    const plain: Server = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
    await new Promise((resolve) => plain.once('listening', resolve))
    const { port } = plain.address() as { port: number }
    // What it is sent comes back, the subprotocol too.
    const echo = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: ([first = '']) => first })
    echo.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
    await once(echo, 'listening')
    for (const caller of callersOf(lone)) {
      expect(await asks(caller, addressOf(closed)), 'no section').toBe('NOT_FOUND')
      expect(await asks(caller, addressOf(member)), 'a node that is no hub').toBe('NOT_FOUND')
      expect(await asks(caller, `http://127.0.0.1:${port}`), 'something else').toBe('NOT_FOUND')
      const echoed = `http://127.0.0.1:${(echo.address() as { port: number }).port}`
      expect(await asks(caller, echoed), 'another WebSocket').toBe('NOT_FOUND')
    }
    echo.close()
    plain.close()
    await stop(closed)
  })

  test("a node with a copy of the hub's data directory", async () => {
    const [original, copied] = [directory(), directory()]
    const own = await startReal(original, { hub: 'true' })
    mkdirSync(copied)
    copyFileSync(joinPath(original, 'identity.pem'), joinPath(copied, 'identity.pem'))
    const copy = await startReal(copied)
    for (const caller of callersOf(copy)) {
      await expect(caller.unary('authenticateByRequest', { hubServerAddress: addressOf(own) })).rejects.toThrow(
        "the node has this hub's identity: is it the hub itself, or does it run with a copy of the hub's data directory?",
      )
    }
    await Promise.all([copy, own].map(stop))
  })

  test('a bad address', async () => {
    for (const caller of callersOf(lone)) expect(await asks(caller, 'nonsense')).toBe('INVALID_ARGUMENT')
  })

  test('too many from one address; callers that go away withdraw theirs', async () => {
    const { stream } = await httpCaller(hub).converse('authenticationByRequests')
    const abort = new AbortController()
    const callers = callersOf(lone)
    const asking = Array.from({ length: 20 }, (_, i) => asks(callers[i % 3] as Caller, addressOf(hub), abort.signal))
    for (let i = 0; i < 20; i++) await stream.next()
    for (const caller of callers) expect(await asks(caller, addressOf(hub))).toBe('RESOURCE_EXHAUSTED')
    abort.abort()
    await Promise.all(asking)
    for (;;) {
      const { requests } = await httpCaller(hub).unary('getPendingAuthenticationRequests')
      if (requests.length === 0) break
    }
    stream.close()
  })
})

describe('authenticationByRequests', () => {
  test('malformed and unknown answers get an error frame; the WebSocket stays open; on the hub and on a member', async () => {
    for (const at of [hub, member]) {
      const { stream, answer, raw } = await httpCaller(at).converse('authenticationByRequests')
      raw('{')
      expect((await stream.next()).error).toMatchObject({ code: 'INVALID_ARGUMENT' })
      raw('{"requestId": "1", "maybe": true}')
      expect((await stream.next()).error).toMatchObject({ code: 'INVALID_ARGUMENT' })
      raw('{}')
      expect((await stream.next()).error).toMatchObject({ code: 'INVALID_ARGUMENT' })
      answer({ requestId: 1n << 60n, accept: true })
      expect((await stream.next()).error).toMatchObject({ code: 'NOT_FOUND' })
      stream.close()
    }
  })

  test('over gRPC refused answers are passed over and logged, the stream goes on; on the hub and on a member', async () => {
    for (const at of [hub, member]) {
      const { stream, answer } = await (callersOf(at)[2] as Caller).converse('authenticationByRequests')
      answer({ requestId: 1n << 60n, accept: true })
      answer({ requestId: 0n, accept: true })
      for (let round = 0; round < 2; round++) {
        const asking = codeOf(httpCaller(lone).unary('authenticateByRequest', { hubServerAddress: addressOf(hub) }))
        const { requestId, node } = await stream.next()
        expect(node.id).toBe(lone.node.id)
        answer({ requestId, accept: false })
        expect(await asking).toBe('UNAUTHENTICATED')
        // The second answer to one request comes too late.
        answer({ requestId, accept: true })
      }
      const refused = () => at.logged.filter((line) => line.includes(REFUSED)).length
      await until(() => refused() >= 4)
      stream.close()
    }
  })

  test('two operators answer at once: one wins, the other gets the error frame', async () => {
    const operators = await Promise.all([
      httpCaller(hub).converse('authenticationByRequests'),
      httpCaller(member).converse('authenticationByRequests'),
    ])
    const asking = codeOf(httpCaller(lone).unary('authenticateByRequest', { hubServerAddress: addressOf(hub) }))
    const requests = await Promise.all(operators.map(({ stream }) => stream.next()))
    expect(requests[0].requestId).toBe(requests[1].requestId)
    for (const { answer } of operators) answer({ requestId: requests[0].requestId, accept: false })
    expect(await asking).toBe('UNAUTHENTICATED')
    const loser = await Promise.race(operators.map(({ stream }) => stream.next()))
    expect(loser.error).toMatchObject({ code: 'NOT_FOUND' })
    for (const { stream } of operators) {
      expect(stream.waiting).toBe(0)
      stream.close()
    }
  })
})

describe('streams', () => {
  test('streamNodes in every form: the list first, then every change', async () => {
    for (const at of [hub, member]) {
      for (const caller of callersOf(at)) {
        const stream = await caller.stream('streamNodes', {
          metadataFilters: {},
          serviceFilters: ['HUB_SERVER'],
        })
        const first = await stream.next()
        expect(first.initialResponse.nodes, caller.transport).toMatchObject([{ id: hub.node.id }])
        const name = `via ${caller.transport} at ${at.node.id}`
        await caller.unary('setNode', { nodeId: member.node.id, name, metadata: { items: {} } })
        expect(await stream.next()).toMatchObject({ updateResponse: { updatedNode: { id: member.node.id, name } } })
        stream.close()
      }
    }
  })

  test('an SSE stream fails after it was ready: an event of type error', async () => {
    const gone = await startReal(directory())
    await join(gone)
    const streams = await Promise.all(
      [hub, member].flatMap(callersOf).map((caller) => caller.stream('streamPipelines', { nodeId: gone.node.id })),
    )
    await stop(gone)
    for (const stream of streams) expect(await codeOf(stream.next())).toBe('UNAVAILABLE')
    await httpCaller(hub).unary('removeNode', { nodeId: gone.node.id })
  })

  test('streamConnectionState: the current state, then every change', async () => {
    for (const caller of callersOf(lone)) {
      const stream = await caller.stream('streamConnectionState')
      expect(await stream.next()).toEqual({ state: 'UNAUTHENTICATED' })
      await join(lone)
      expect(await stream.next()).toEqual({ state: 'CONNECTED' })
      expect(await caller.unary('getLocalNodeId')).toEqual({ nodeId: lone.node.id, isAuthenticated: true })
      await caller.unary('disconnect')
      expect(await stream.next()).toEqual({ state: 'UNAUTHENTICATED' })
      const { nodes } = await httpCaller(hub).unary('getNodes', everything)
      expect(nodes.map(({ id }: { id: string }) => id)).not.toContain(lone.node.id)
      stream.close()
    }
  })
})

test('a hub with a certificate of its own making: the joiner pins it, comes back by it, and takes no other', async () => {
  const [hubDirectory, nodeDirectory] = [directory(), directory()]
  const http = await freeAddress()
  const flags = { hub: 'true', 'http-tls': 'auto', grpc: 'none', http }
  let secure = await startReal(hubDirectory, flags)
  const address = `https://${http}`
  let node = await startReal(nodeDirectory)
  const operator = new WebSocket(`wss://${http}/v1/streams/hub-server/authentication-requests`, {
    rejectUnauthorized: false,
  })
  operator.on('message', (data) => {
    const { requestId } = JSON.parse(String(data)).result
    operator.send(JSON.stringify({ requestId, accept: true }))
  })
  await once(operator, 'open')
  await httpCaller(node).unary('authenticateByRequest', { hubServerAddress: address })
  operator.terminate()
  await stop(node)
  node = await startReal(nodeDirectory)
  const states = await httpCaller(node).stream('streamConnectionState')
  while ((await states.next()).state !== 'CONNECTED');
  await stop(secure)
  expect(await states.next()).toEqual({ state: 'DISCONNECTED' })
  // The hub renews its certificate for another name: the key is the same, so the node is back, and pins the new one.
  secure = await startReal(hubDirectory, { ...flags, 'http-hostnames': 'hub.example' })
  expect(
    secure.logged.some((line) =>
      line.includes('auto has renewed the certificate, for the last one is not for hub.example'),
    ),
  ).toBe(true)
  while ((await states.next()).state !== 'CONNECTED');
  await until(() => node.logged.some((line) => line.includes('the hub has renewed its certificate, with the same key')))
  await stop(secure)
  expect(await states.next()).toEqual({ state: 'DISCONNECTED' })
  // The same hub with another certificate, as one would show who sits between.
  for (const file of ['tls.crt', 'tls.key']) rmSync(joinPath(hubDirectory, file))
  secure = await startReal(hubDirectory, flags)
  await until(() => node.logged.some((line) => line.includes('another certificate')))
  expect(await httpCaller(node).unary('getLocalNodeId')).toMatchObject({ isAuthenticated: true })
  expect(states.waiting).toBe(0)
  await stop(node)
  await stop(secure)
})

test('nothing unexpected was logged', () => {
  for (const node of [hub, member, lone, fixed]) {
    const unexpected = (line: string) => /"level":"(error|warn)"/.test(line) && !line.includes(REFUSED)
    expect(node.logged.filter(unexpected)).toEqual([])
  }
})

test('telemetry of an ended run: its last sample, then ABORTED, on its own node and through the hub', async () => {
  const jsonConfig = JSON.stringify({
    engine_config: {
      pipeline: {
        source: { uniform_traffic_source: { output: 'a', total_packets: 5, interval: 1 } },
        sink: { traffic_sink: { input: 'a' } },
      },
    },
  })
  const own = httpCaller(member)
  const nodeId = member.node.id
  const { pipeline } = await own.unary('createPipeline', { nodeId, name: 'counted', jsonConfig })
  const { runId } = await own.unary('startPipeline', { nodeId, id: pipeline.id })
  const live = await own.stream('openTelemetryStream', { nodeId, runId })
  const taken = async (stream: typeof live) =>
    (await stream.next()).metricCollections.find(({ path }: { path: string }) => path === 'sink').metrics.input_packets
      .uint64Value
  while (Number(await taken(live)) < 5);
  // It may have ended by itself by now.
  await own.unary('stopPipeline', { nodeId, id: pipeline.id }).catch(() => {})
  const untilTheEnd = async () => {
    for (;;) await live.next()
  }
  await expect(untilTheEnd()).rejects.toMatchObject({ code: 'ABORTED', message: 'run ended' })
  for (const at of [member, hub, fixed]) {
    for (const caller of callersOf(at)) {
      const stream = await caller.stream('openTelemetryStream', { nodeId, runId })
      expect(Number(await taken(stream)), caller.transport).toBe(5)
      await expect(stream.next(), caller.transport).rejects.toMatchObject({ code: 'ABORTED', message: 'run ended' })
      const { run } = await caller.unary('getPipelineByRunId', { nodeId, id: runId })
      expect(run, caller.transport).toMatchObject({ id: runId, state: 'ENDED' })
    }
  }
})
