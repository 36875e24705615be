/** What a client is told when the node's own word does not arrive, and what it may have its callers told instead. */
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import * as client from '../../clients/typescript/src/index.ts'
import { nodeFetch } from '../../clients/typescript/src/node/index.ts'
import { freeAddress } from '../../src/cli/free-address.ts'
import { type RunningNode, runNode, temporaryDirectory, traffic } from '../api/running-node.ts'
import { Between, portOf } from './between.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

const servers = new Set<Server>()
afterEach(() => {
  for (const server of servers) server.close()
  servers.clear()
})

async function listening(server: Server): Promise<string> {
  servers.add(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What is no node. */
const other = (listener: RequestListener) => listening(createHttpServer(listener))

/** As the platform's fetch tells of it, and as ours does. */
const FETCHES = [
  ['fetch', undefined],
  ['nodeFetch', nodeFetch()],
] as const

describe.each(FETCHES)('over %s', (_, given) => {
  const options = given === undefined ? {} : { fetch: given }

  test('a call that nobody answers, whose answer breaks off, or is not of a node', async () => {
    const away = client.connect({ url: `http://${await freeAddress()}`, ...options })
    await expect(client.getTokens(away)).rejects.toMatchObject({ code: 'UNAVAILABLE', loss: 'NO_ANSWER' })

    const cut = await other((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"tokens":')
      setImmediate(() => response.destroy())
    })
    const broken = client.getTokens(client.connect({ url: cut, ...options }))
    await expect(broken).rejects.toMatchObject({ code: 'UNAVAILABLE', loss: 'BROKEN_OFF', cause: expect.any(Error) })

    const page = client.connect({ url: await other((_, response) => response.end('<html>')), ...options })
    const foreign = { code: 'UNKNOWN', loss: 'NOT_A_NODE', status: 200 }
    await expect(client.getTokens(page)).rejects.toMatchObject(foreign)
    await expect(client.getTokens(page)).rejects.toThrow("the answer is 200 OK and not a node's")

    const own = client.connect({ url: `http://${node.node.http}`, ...options })
    const missing = client.getPipelineById(own, { nodeId: node.node.id, id: 'nowhere' })
    await expect(missing).rejects.toMatchObject({ code: 'NOT_FOUND', loss: undefined })
  })

  test.each(['{}', '[]', 'null', '1', '{"nodeId":""}', '{"nodes":{}}'])(
    'an answer %s is not of a node',
    async (body) => {
      const page = client.connect({ url: await other((_, response) => response.end(body)), ...options })
      const foreign = { code: 'UNKNOWN', loss: 'NOT_A_NODE', status: 200 }
      await expect(client.getLocalNodeId(page)).rejects.toMatchObject(foreign)
      await expect(client.getNodes(page)).rejects.toMatchObject(foreign)
      await expect(client.createToken(page, { name: 'laptop' })).rejects.toMatchObject(foreign)
    },
  )

  test.each(['null', '[]'])('an event %s is not of a node', async (data) => {
    const page = await other((_, response) => response.end(`data: ${data}\n\n`))
    const states = client.streamConnectionState(client.connect({ url: page, ...options }))
    await expect(states.next()).rejects.toMatchObject({ code: 'UNKNOWN', loss: 'NOT_A_NODE' })
  })

  test('a failure whose details are not those of a node is not of one', async () => {
    const body = JSON.stringify({ code: 5, message: 'm', details: [null] })
    const page = client.connect({ url: await other((_, response) => response.writeHead(404).end(body)), ...options })
    await expect(client.getTokens(page)).rejects.toMatchObject({ code: 'UNKNOWN', loss: 'NOT_A_NODE', status: 404 })
  })

  test('a stream that breaks off, or is not of a node', async () => {
    const between = new Between(() => portOf(node))
    const near = client.connect({ url: await between.listen(), reconnect: false, ...options })
    const states = client.streamConnectionState(near)
    await states.next()
    const next = states.next()
    between.cut()
    await expect(next).rejects.toMatchObject({ code: 'UNAVAILABLE', loss: 'BROKEN_OFF' })

    const page = await other((_, response) => response.end('data: <html>\n\n'))
    const pages = client.streamConnectionState(client.connect({ url: page, ...options }))
    await expect(pages.next()).rejects.toMatchObject({ code: 'UNKNOWN', loss: 'NOT_A_NODE' })
  })

  test('an answer that takes too long, before its head and within its body', async () => {
    const url = await listening(createServer((socket) => void socket.on('error', () => {})))
    const tooLate = { code: 'DEADLINE_EXCEEDED', loss: 'NO_ANSWER' }
    const slow = client.connect({ url, ...options })
    await expect(client.getTokens(slow, {}, { timeout: 50 })).rejects.toMatchObject(tooLate)
    // It never answers the first word of TLS.
    const secret = client.connect({ url: url.replace('http:', 'https:'), ...options })
    await expect(client.getTokens(secret, {}, { timeout: 50 })).rejects.toMatchObject(tooLate)
    const unending = await other((_, response) => response.writeHead(200).write('{'))
    const call = client.getTokens(client.connect({ url: unending, ...options }), {}, { timeout: 200 })
    await expect(call).rejects.toMatchObject(tooLate)
    // The signal of the caller is another matter.
    const both = { timeout: 60_000, signal: AbortSignal.abort(new Error('enough')) }
    await expect(client.getTokens(slow, {}, both)).rejects.toThrow('enough')
  })
})

test('callers are told what explain makes of a failure; attempts to connect again are not told', async () => {
  const told: client.PenstockError[] = []
  const explain = (error: client.PenstockError) => {
    told.push(error)
    return new Error(`explained: ${error.code}`)
  }
  const between = new Between(() => portOf(node))
  const near = client.createClient({ url: await between.listen(), explain })
  const unknown = { nodeId: node.node.id, id: 'nowhere' }
  await expect(near.getPipelineById(unknown)).rejects.toThrow('explained: NOT_FOUND')
  await expect(near.openLogStream({ nodeId: node.node.id, runId: 'nowhere' }).next()).rejects.toThrow(
    'explained: NOT_FOUND',
  )
  const states = near.streamConnectionState()
  await states.next()
  between.cut()
  expect((await states.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
  await states.return()
  expect(told.map(({ code }) => code)).toEqual(['NOT_FOUND', 'NOT_FOUND'])
  const stop = AbortSignal.abort(new Error('enough'))
  await expect(near.getTokens({}, { signal: stop })).rejects.toThrow('enough')
})

test('a connection says whether its streams connect again, a stream may say otherwise', async () => {
  const between = new Between(() => portOf(node))
  const near = client.connect({ url: await between.listen(), reconnect: false })
  const [staying, ending] = [
    client.streamConnectionState(near, {}, { reconnect: true }),
    client.streamConnectionState(near),
  ]
  await Promise.all([staying.next(), ending.next()])
  const both = [staying.next(), ending.next()] as const
  const refused = expect(both[1]).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  between.cut()
  expect((await both[0]).value).toEqual({ state: 'UNAUTHENTICATED' })
  await refused
  await staying.return()
})

test('a stream whose reader takes its time is not taken for silent', async () => {
  const between = new Between(() => portOf(node))
  const breaks: number[] = []
  const near = client.connect({ url: await between.listen(), fetch: nodeFetch() })
  const { nodeId } = await client.getLocalNodeId(near)
  const runId = await node.start(await node.create(traffic()))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const samples = client.openTelemetryStream(near, { nodeId, runId }, { onOpen: (count) => breaks.push(count) })
  try {
    await samples.next()
    vi.advanceTimersByTime(60_000)
  } finally {
    vi.useRealTimers()
  }
  await samples.next()
  expect(breaks).toEqual([0])
  await samples.return()
})

describe('a stream that is opened before it is read', () => {
  test('tells what happens from then on', async () => {
    const own = client.createClient({ url: `http://${node.node.http}` })
    const changes = own.streamPipelines({ nodeId: node.node.id })
    await changes.opened()
    const ids = [await node.create(traffic()), await node.create(traffic())]
    const seen: (string | undefined)[] = []
    for await (const { create } of changes) {
      seen.push(create?.pipeline?.id)
      if (seen.length === 2) break
    }
    expect(seen).toEqual(ids)
  })

  test('says when it does not come to that, and ends with its signal', async () => {
    const own = client.createClient({ url: `http://${node.node.http}` })
    const none = own.openLogStream({ nodeId: node.node.id, runId: 'nowhere' })
    await expect(none.opened()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(none.next()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const stop = new AbortController()
    const changes = own.streamPipelines({ nodeId: node.node.id }, { signal: stop.signal })
    await changes.opened()
    stop.abort(new Error('enough'))
    await expect(changes.next()).rejects.toThrow('enough')
  })
})

test('a token may be none, and one that cannot be carried is not sent', async () => {
  const headers: (string | undefined)[] = []
  const url = await other((request, response) => {
    headers.push(request.headers.authorization)
    response.end('{"tokens":[]}')
  })
  await client.getTokens(client.connect({ url, token: async () => undefined }))
  await client.getTokens(client.connect({ url, token: 'a+b/c=' }))
  for (const token of ['', 'a b', 'a\nb', 'é']) {
    const refused = client.getTokens(client.connect({ url, token }))
    await expect(refused).rejects.toMatchObject({ code: 'UNAUTHENTICATED', loss: undefined })
  }
  const socket = client.authenticationByRequests(client.connect({ url, token: 'a+b/c=' }))
  await expect(socket).rejects.toMatchObject({ code: 'UNAUTHENTICATED', loss: undefined })
  expect(headers).toEqual([undefined, 'Bearer a+b/c='])
})

test('what names a thing is escaped in the path', async () => {
  const url = await other((request, response) => response.end(JSON.stringify({ pipeline: { id: request.url } })))
  const { pipeline } = await client.getPipelineByName(client.connect({ url }), { nodeId: 'n', name: 'a/b ?' })
  expect(pipeline?.id).toBe('/v1/nodes/n/pipelines-by-name/a%2Fb%20%3F')
})
