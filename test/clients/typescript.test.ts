/** The TypeScript client against real nodes: failures, cancelling, streams over broken connections, and the package as it is built. */
import { execFile } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import * as client from '../../clients/typescript/src/index.ts'
import { freeAddress } from '../../src/cli/free-address.ts'
import { packageRoot } from '../../src/package-root.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { Between, portOf } from './between.ts'

let node: RunningNode
let connection: client.Connection
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  connection = client.connect({ url: `http://${node.node.http}/` })
})
afterAll(() => node.node.close())

const opened: (() => void)[] = []
afterEach(() => {
  for (const close of opened.splice(0)) close()
})

describe('failures', () => {
  test('are typed: code, status, reason, message, details, problems', async () => {
    const made = client.createPipeline(connection, { nodeId: node.node.id, name: '', jsonConfig: '{"a":1}' })
    const error = await made.catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(client.PenstockError)
    expect(error).toMatchObject({
      name: 'PenstockError',
      code: 'INVALID_ARGUMENT',
      status: 400,
      reason: undefined,
      message: expect.stringMatching(/./),
      details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest' }],
    })
    const { problems } = error as client.PenstockError
    expect(problems.map(({ pointer }) => pointer)).toEqual(expect.arrayContaining(['/name']))
  })

  test('of a google.rpc.ErrorInfo the reason is told', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'PORT_TAKEN', domain: 'x' }]
    expect(new client.PenstockError('ABORTED', 'm', { details }).reason).toBe('PORT_TAKEN')
  })

  test('nobody there: UNAVAILABLE with its cause; no address of a node: TypeError', async () => {
    const away = client.connect({ url: `http://${await freeAddress()}` })
    await expect(client.getNodes(away, {})).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      status: undefined,
      cause: expect.any(Error),
    })
    expect(() => client.connect({ url: 'ftp://node' })).toThrow(TypeError)
  })

  test('what is no answer of a node is told from one', async () => {
    const proxy = (status: number) =>
      client.connect({ url: connection.url, fetch: async () => new Response('<html>', { status }) })
    await expect(client.getTokens(proxy(502))).rejects.toMatchObject({ code: 'UNAVAILABLE', status: 502 })
    await expect(client.getTokens(proxy(418))).rejects.toMatchObject({ code: 'UNKNOWN', status: 418 })
  })

  test.each(['.', '..'])('%s in a path is refused before it is sent: fetch would call another path', async (name) => {
    await expect(client.revokeToken(connection, { name })).rejects.toThrow(
      `name is ${name}, which the path of a URL cannot hold`,
    )
  })

  test('a request that names nothing is refused before it is sent', async () => {
    await expect(client.startPipeline(connection, { nodeId: node.node.id })).rejects.toThrow(
      'the request needs nodeId and id, or nodeId and name',
    )
  })

  test('a call is given up with its signal', async () => {
    const stop = AbortSignal.abort(new Error('enough'))
    await expect(client.getTokens(connection, {}, { signal: stop })).rejects.toThrow('enough')
  })

  test.each([2 ** 31, 2 ** 32, Number.POSITIVE_INFINITY])('a call may be given %s ms', async (timeout) => {
    await expect(client.getLocalNodeId(connection, {}, { timeout })).resolves.toMatchObject({ nodeId: node.node.id })
  })
})

describe.each(['events', 'socket'] as const)('streams by %s', (streams) => {
  const how = { streams, webSocket: (url: string, protocols: string[]) => new WebSocket(url, protocols) }

  test('end with their signal, which the node sees, and when the loop is left', async () => {
    const between = new Between(() => portOf(node))
    const near = client.connect({ ...how, url: await between.listen() })
    const stop = new AbortController()
    const states = client.streamConnectionState(near, {}, { signal: stop.signal })
    expect((await states.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    const waiting = states.next()
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    for await (const { state } of client.streamConnectionState(near, {})) {
      expect(state).toBe('UNAUTHENTICATED')
      break
    }
  })

  test('go on over another connection when one breaks', async () => {
    const between = new Between(() => portOf(node))
    const breaks: (number | string)[] = []
    const near = client.connect({ ...how, url: await between.listen() })
    const onOpen = (count: number): void => void breaks.push(count)
    const onBreak = ({ code }: client.PenstockError): void => void breaks.push(code)
    const states = client.streamConnectionState(near, {}, { onOpen, onBreak })
    await states.next()
    const second = states.next()
    between.cut()
    expect((await second).value).toEqual({ state: 'UNAUTHENTICATED' })
    expect(breaks).toEqual([0, 'UNAVAILABLE', 1])
    await states.return()
  })

  test('go on when a connection has gone silent', async () => {
    const between = new Between(() => portOf(node))
    const near = client.connect({ ...how, url: await between.listen(), silence: 300 })
    const states = client.streamConnectionState(near, {})
    await states.next()
    between.hush()
    const before = between.connections
    expect((await states.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    expect(between.connections).toBeGreaterThan(before)
    await states.return()
  })

  test.each([2 ** 31, Number.POSITIVE_INFINITY])('may be silent for %s ms', async (silence) => {
    const near = client.connect({ ...connection, ...how, silence, reconnect: false })
    const changes = client.streamPipelines(near, { nodeId: node.node.id })
    await changes.opened()
    const next = changes.next()
    const id = await node.create(traffic())
    expect((await next).value).toMatchObject({ create: { pipeline: { id } } })
    await changes.return()
    await node.call('DELETE', `/pipelines/${id}`)
  })

  test('wait for a node that is restarted', async () => {
    const directory = temporaryDirectory()
    let other = await runNode(directory)
    const between = new Between(() => portOf(other))
    const near = client.connect({ ...how, url: await between.listen() })
    const changes = client.streamPipelines(near, { nodeId: other.node.id })
    const stands = new Promise<void>((resolve) => {
      const again = client.streamConnectionState(near, {}, { onOpen: (breaks) => void (breaks > 0 && resolve()) })
      opened.push(() => void again.return())
      void (async () => {
        for await (const _ of again);
      })().catch(() => {})
    })
    await changes.opened()
    await other.create(traffic())
    expect((await changes.next()).value).toMatchObject({ create: {} })
    await other.node.close()
    other = await runNode(directory)
    await stands
    await changes.return()
    await other.node.close()
  })

  test('that the node refuses or fails are not asked for again', async () => {
    const unknown = { nodeId: node.node.id, runId: 'unknown' }
    await expect(client.openLogStream({ ...connection, ...how }, unknown).next()).rejects.toMatchObject({
      code: 'NOT_FOUND',
      status: streams === 'events' ? 404 : undefined,
    })
    const id = await node.create(traffic())
    const runId = await node.start(id)
    const samples = client.openTelemetryStream({ ...connection, ...how }, { nodeId: node.node.id, runId })
    await samples.next()
    await node.call('POST', `/pipelines/${id}/stop`)
    const rest = (async () => {
      for await (const _ of samples);
    })()
    await expect(rest).rejects.toMatchObject({ code: 'ABORTED', status: undefined })
  })

  test('without reconnect a break is told', async () => {
    const between = new Between(() => portOf(node))
    const near = client.connect({ ...how, url: await between.listen() })
    const states = client.streamConnectionState(near, {}, { reconnect: false })
    await states.next()
    const next = states.next()
    between.cut()
    await expect(next).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('a token that the node does not know is told', async () => {
    const stranger = { ...connection, ...how, token: 'penstock_guess' }
    await expect(client.streamConnectionState(stranger).next()).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      status: 401,
    })
  })

  test('messages come in their order, past lines of a log first', async () => {
    const id = await node.create(traffic())
    const runId = await node.start(id)
    const lines = client.openLogStream(
      { ...connection, ...how },
      { nodeId: node.node.id, runId, options: { lines: '1' } },
    )
    const [first] = (await lines.next()).value?.messages ?? []
    expect(first).toMatchObject({ level: expect.any(String) })
    await lines.return()
    await node.call('DELETE', `/pipelines/${id}`)
  })
})

describe('many streams over one WebSocket', () => {
  const how = {
    streams: 'socket' as const,
    webSocket: (url: string, protocols: string[]) => new WebSocket(url, protocols),
  }

  test('share it; it is closed with the last of them, and another is opened for the next', async () => {
    const sockets: WebSocket[] = []
    const near = client.connect({
      ...connection,
      ...how,
      webSocket: (url, protocols) => {
        const socket = new WebSocket(url, protocols)
        sockets.push(socket)
        return socket
      },
    })
    const streams = Array.from({ length: 300 }, () => client.streamConnectionState(near, {}))
    for (const stream of streams) expect((await stream.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    const changes = client.streamPipelines(near, { nodeId: node.node.id })
    await changes.opened()
    expect(sockets).toHaveLength(1)
    for (const stream of streams) await stream.return()
    // The one that is left goes on.
    const id = await node.create(traffic())
    expect((await changes.next()).value).toMatchObject({ create: { pipeline: { id } } })
    await changes.return()
    await until(() => sockets[0]?.readyState === WebSocket.CLOSED)
    await node.call('DELETE', `/pipelines/${id}`)
    const again = client.streamConnectionState(near, {})
    await again.next()
    expect(sockets).toHaveLength(2)
    await again.return()
  })

  test('are opened with the token of the day', async () => {
    const tokens: (string | undefined)[] = []
    const near = client.connect({
      ...connection,
      ...how,
      token: () => tokens[0],
      webSocket: (url, protocols) => {
        tokens.push(protocols.at(-1))
        return new WebSocket(url, protocols)
      },
    })
    tokens.push(undefined)
    const first = client.streamConnectionState(near, {})
    await first.next()
    tokens[0] = 'penstock_guess'
    await expect(client.streamConnectionState(near, {}).next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(tokens.slice(1)).toEqual(['penstock', 'penstock.bearer.penstock_guess'])
    await first.return()
  })

  test('fail one by one, and the others stay', async () => {
    const near = client.connect({ ...connection, ...how })
    const states = client.streamConnectionState(near, {})
    await states.next()
    const unknown = { nodeId: node.node.id, runId: 'unknown' }
    await expect(client.openLogStream(near, unknown).next()).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const stop = new AbortController()
    const changes = client.streamPipelines(near, { nodeId: node.node.id }, { signal: stop.signal })
    await changes.opened()
    stop.abort(new Error('enough'))
    await expect(changes.next()).rejects.toThrow('enough')
    await states.return()
  })

  test('an onOpen that throws ends its own stream alone', async () => {
    const near = client.connect({ ...connection, ...how })
    const changes = client.streamPipelines(near, { nodeId: node.node.id })
    await Promise.race([changes.opened(), changes.next()])
    const onOpen = () => {
      throw new Error('of the page')
    }
    await expect(client.streamConnectionState(near, {}, { onOpen }).next()).rejects.toThrow('of the page')
    const id = await node.create(traffic())
    const states = client.streamConnectionState(near, {})
    expect((await states.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    await states.return()
    await node.call('DELETE', `/pipelines/${id}`)
    await changes.return()
  })

  test('with its signal a stream ends at once, whatever was not read of it', async () => {
    const near = client.connect({ ...connection, ...how })
    const stop = new AbortController()
    const changes = client.streamPipelines(near, { nodeId: node.node.id }, { signal: stop.signal })
    await changes.opened()
    const marks = client.streamPipelines(near, { nodeId: node.node.id })
    await marks.opened()
    for (let i = 0; i < 5; i++) await node.create(traffic())
    // All of them have come on the socket.
    for (let i = 0; i < 5; i++) await marks.next()
    await changes.next()
    stop.abort(new Error('enough'))
    await expect(changes.next()).rejects.toThrow('enough')
    await marks.return()
  })

  test('with its signal a stream is closed, also where no further message of it is asked for', async () => {
    const sockets: WebSocket[] = []
    const closed: unknown[] = []
    const near = client.connect({
      ...connection,
      ...how,
      webSocket: (url, protocols) => {
        const socket = new WebSocket(url, protocols)
        socket.on('message', (text) => {
          const frame = JSON.parse(String(text))
          if ('closed' in frame) closed.push(frame.id)
        })
        sockets.push(socket)
        return socket
      },
    })
    const stops = [new AbortController(), new AbortController()] as const
    const [read, unread] = stops.map(({ signal }) => client.streamConnectionState(near, {}, { signal }))
    await read?.next()
    await unread?.opened()
    const other = client.streamConnectionState(near, {})
    await other.next()
    for (const stop of stops) stop.abort(new Error('enough'))
    await until(() => closed.length === 2)
    expect(closed).toEqual([1, 2])
    await expect(read?.next()).rejects.toThrow('enough')
    await other.return()
    await until(() => sockets[0]?.readyState === WebSocket.CLOSED)
    // The last of them takes the socket along.
    const last = new AbortController()
    await client.streamConnectionState(near, {}, { signal: last.signal }).next()
    last.abort()
    await until(() => sockets[1]?.readyState === WebSocket.CLOSED)
  })

  test('one whose signal comes while it is being opened is closed, whichever moment that is', async () => {
    const sent: { open?: { id: number }; close?: { id: number } }[] = []
    const near = client.connect({
      ...connection,
      ...how,
      webSocket: (url, protocols) => {
        const socket = new WebSocket(url, protocols)
        const send = socket.send.bind(socket)
        socket.send = (text: string) => {
          sent.push(JSON.parse(text))
          send(text)
        }
        return socket
      },
    })
    const other = client.streamConnectionState(near, {})
    await other.next()
    for (let turns = 0; turns < 60; turns++) {
      const stop = new AbortController()
      const first = client.streamConnectionState(near, {}, { signal: stop.signal }).next()
      for (let turn = 0; turn < turns; turn++) await undefined
      stop.abort(new Error('enough'))
      await expect(first).rejects.toThrow('enough')
    }
    await other.return()
    const ids = (key: 'open' | 'close') => sent.flatMap(({ [key]: told }) => (told === undefined ? [] : [told.id]))
    expect(ids('open').length).toBeGreaterThan(1)
    expect(ids('close').sort((a, b) => a - b)).toEqual(ids('open'))
  })

  test('one that is read more slowly than messages come ends, and the others stay', async () => {
    const near = client.connect({ ...connection, ...how })
    let opened = 0
    const slow = client.streamConnectionState(near, {}, { onOpen: () => opened++ })
    const frames: ((text: string) => void)[] = []
    const flooded = client.connect({
      ...connection,
      ...how,
      webSocket: (url, protocols) => {
        const socket = new WebSocket(url, protocols)
        frames.push((text) => socket.emit('message', Buffer.from(text), false))
        return socket
      },
    })
    const states = client.streamConnectionState(flooded, {})
    await states.next()
    const other = client.streamConnectionState(flooded, {})
    await other.next()
    for (let i = 0; i < 5_000; i++) frames[0]?.('{"id":1,"result":{"state":"CONNECTED"}}')
    let read = 0
    const reading = (async () => {
      for await (const _ of states) read++
    })()
    await expect(reading).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    expect(read).toBe(4_096)
    frames[0]?.('{"id":2,"result":{"state":"CONNECTED"}}')
    expect((await other.next()).value).toEqual({ state: 'CONNECTED' })
    await other.return()
    await slow.next()
    expect(opened).toBe(1)
    await slow.return()
  })

  test('one counts as broken in time, and ends with its signal, where nobody says why the socket was not opened', async () => {
    let asked = 0
    const fetch: client.ConnectionOptions['fetch'] = (_, { signal }) =>
      new Promise((_, reject) => {
        asked++
        signal?.addEventListener('abort', () => reject(signal.reason))
      })
    const away = { ...how, url: `http://${await freeAddress()}`, fetch }
    const stop = new AbortController()
    const next = client.streamConnectionState(client.connect(away), {}, { signal: stop.signal }).next()
    await until(() => asked === 1)
    stop.abort(new Error('enough'))
    await expect(next).rejects.toThrow('enough')
    // As long as the first word of a node is waited for.
    const impatient = client.connect({ ...away, silence: 300, reconnect: false })
    await expect(client.streamConnectionState(impatient).next()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('one that is given up before the socket is open does not keep it', async () => {
    const between = new Between(() => portOf(node))
    const near = client.connect({ ...how, url: await between.listen() })
    const stop = new AbortController()
    const states = client.streamConnectionState(near, {}, { signal: stop.signal })
    const first = states.next()
    stop.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    const next = client.streamConnectionState(near, {})
    expect((await next.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    await next.return()
  })
})

test('of events that came in one piece none is told once the signal has ended their stream', async () => {
  const pieces = async () => new Response('data: {"state":"CONNECTED"}\n\n'.repeat(3))
  const stop = new AbortController()
  let told = 0
  const loop = (async () => {
    const near = client.connect({ url: connection.url, fetch: pieces })
    for await (const _ of client.streamConnectionState(near, {}, { signal: stop.signal })) {
      told++
      stop.abort(new Error('enough'))
    }
  })()
  await expect(loop).rejects.toThrow('enough')
  expect(told).toBe(1)
})

describe('a WebSocket whose signal comes', () => {
  const servers: WebSocketServer[] = []
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })
  /** Opens whatever WebSocket is asked for. */
  const server = async () => {
    const made = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    servers.push(made)
    await once(made, 'listening')
    return { url: `http://127.0.0.1:${(made.address() as AddressInfo).port}`, sockets: made.clients }
  }

  test('while its token is fetched is not made', async () => {
    const { url } = await server()
    const stop = new AbortController()
    let made = 0
    const webSocket = (at: string, protocols: string[]) => {
      made++
      return new WebSocket(at, protocols)
    }
    const token = async () => {
      stop.abort(new Error('enough'))
      return 'abc'
    }
    const opening = client.authenticationByRequests(client.connect({ url, token, webSocket }), { signal: stop.signal })
    await expect(opening).rejects.toThrow('enough')
    expect(made).toBe(0)
  })

  test('while it is made is closed', async () => {
    const { url, sockets } = await server()
    const stop = new AbortController()
    const made: WebSocket[] = []
    const webSocket = async (at: string, protocols: string[]) => {
      made.push(new WebSocket(at, protocols))
      stop.abort(new Error('enough'))
      return made[0] as WebSocket
    }
    const opening = client.authenticationByRequests(client.connect({ url, webSocket }), { signal: stop.signal })
    await expect(opening).rejects.toThrow('enough')
    await until(() => made[0]?.readyState === WebSocket.CLOSED && sockets.size === 0)
  })

  test('later on is not kept by one that is closed', async () => {
    const { url } = await server()
    const { signal } = new AbortController()
    const webSocket = (at: string, protocols: string[]) => new WebSocket(at, protocols)
    const requests = await client.authenticationByRequests(client.connect({ url, webSocket }), { signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    requests.close()
    await until(() => getEventListeners(signal, 'abort').length === 0)
  })
})

describe('a WebSocket that does not tell that it is closed where it was not opened, as that of Node.js 22', () => {
  class Untold extends WebSocket {
    #wasOpen = false

    override emit(event: string, ...details: unknown[]): boolean {
      if (event === 'open') this.#wasOpen = true
      return (event !== 'close' || this.#wasOpen) && super.emit(event, ...details)
    }
  }
  const untold = (url: string, protocols: string[]) => new Untold(url, protocols)
  const platform = (url: string, protocols: string[]) => new globalThis.WebSocket(url, protocols)
  const sockets = Object.entries({ untold, ...('WebSocket' in globalThis && { platform }) })

  test.each(sockets)('fails where nobody answers, and with its signal: %s', async (_, webSocket) => {
    const away = client.connect({ url: `http://${await freeAddress()}`, webSocket })
    const failure = { code: 'UNAVAILABLE', loss: 'NO_ANSWER' }
    await expect(client.authenticationByRequests(away)).rejects.toMatchObject(failure)
    const silent = createServer().listen(0, '127.0.0.1')
    opened.push(() => silent.close())
    await once(silent, 'listening')
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const stop = new AbortController()
    const opening = client.authenticationByRequests({ ...away, url }, { signal: stop.signal })
    const [accepted] = (await once(silent, 'connection')) as [Socket]
    stop.abort(new Error('enough'))
    await expect(opening).rejects.toThrow('enough')
    await once(accepted.resume(), 'close')
  })

  test.each(sockets)('its streams are asked for again: %s', async (_, webSocket) => {
    const addresses = [`ws://${await freeAddress()}`]
    const near = client.connect({
      ...connection,
      streams: 'socket',
      webSocket: (at, protocols) => {
        const { origin, pathname } = new URL(at)
        return webSocket(`${addresses.pop() ?? origin}${pathname}`, protocols)
      },
    })
    const breaks: string[] = []
    const states = client.streamConnectionState(near, {}, { onBreak: ({ code }) => breaks.push(code) })
    expect((await states.next()).value).toEqual({ state: 'UNAUTHENTICATED' })
    expect(breaks).toEqual(['UNAVAILABLE'])
    await states.return()
    const stranger = { ...near, token: 'penstock_guess' }
    await expect(client.streamConnectionState(stranger).next()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
  })
})

test('a client has every operation as a method', async () => {
  const made = client.createClient({ url: connection.url })
  expect((await made.getLocalNodeId({})).nodeId).toBe(node.node.id)
  const { pipeline } = await made.createPipeline({
    nodeId: node.node.id,
    ...(settingsOf(traffic()) as { name: string; jsonConfig: string }),
  })
  expect(pipeline?.name).toBe('test')
})

test('the package as it is built is called by its name, and its main part needs nothing of Node.js', async () => {
  const script = `
    import { connect, getLocalNodeId } from '@penstock/client'
    import { nodeFetch } from '@penstock/client/node'
    const { nodeId } = await getLocalNodeId(connect({ url: process.argv[1], fetch: nodeFetch() }), {})
    console.log(nodeId)`
  const args = ['--input-type=module', '-e', script, connection.url]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: packageRoot() })
  expect(stdout.trim()).toBe(node.node.id)
  const built = join(packageRoot(), 'clients/typescript/dist')
  const files = [
    'index',
    'call',
    'stream',
    'events',
    'socket',
    'request',
    'operations',
    'connection',
    'error',
    'client',
  ]
  for (const file of files) {
    expect(readFileSync(join(built, `${file}.js`), 'utf8')).not.toMatch(/'node:|require\(|process\.|Buffer/)
  }
})
