/** Links over real sockets through the node's HTTP listener, plain and TLS; what is refused before anything is proven. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Access } from '../../src/api/access.ts'
import { Dispatcher } from '../../src/api/dispatcher.ts'
import { HttpListener } from '../../src/api/http.ts'
import { systemClock } from '../../src/contract/clock.ts'
import { autoCertificate, fingerprintOf, keyFingerprintOf, makeCertificate } from '../../src/link/certificate.ts'
import { type DialOptions, dialHub, LINK_PATH, SUBPROTOCOL } from '../../src/link/dial.ts'
import { acceptLink } from '../../src/link/handshake-hub.ts'
import { joinLink } from '../../src/link/handshake-node.ts'
import { hubAddress } from '../../src/link/hub-address.ts'
import type { LinkSession, ShownCertificate } from '../../src/link/link.ts'
import { createLinkServer, type LinkServerOptions } from '../../src/link/link-server.ts'
import { encodeFrame } from '../../src/link/messages.ts'
import { relay } from '../../src/link/relay.ts'
import { Recorder, TestHub } from '../../src/link/testing.ts'
import { deaf, type LinkTransport } from '../../src/link/transport.ts'
import { settle, until } from '../harness/waiting.ts'

const ok = { code: 'OK', message: '' } as const

let directory: string
const cleanup: (() => unknown)[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-link-'))
})
afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
  rmSync(directory, { recursive: true })
})

interface Tls {
  certFile: string
  keyFile: string
  certificate?: ShownCertificate | undefined
}

/** A hub on a port of its own. */
async function listen(hub: TestHub, tls?: Tls, options: Partial<LinkServerOptions> = {}): Promise<URL> {
  const links = createLinkServer({ ...hub.options, clock: systemClock, ...options })
  const listener = new HttpListener({
    dispatcher: new Dispatcher({ handlers: {}, report: () => {} }),
    access: new Access(),
    address: '127.0.0.1',
    port: 0,
    extend: (app) => links.attach(app),
    ...(tls === undefined ? {} : { tls: { certificate: shownOf(tls.certFile), ...tls } }),
  })
  const { port } = await listener.start()
  cleanup.push(async () => {
    links.close()
    await listener.stop()
  })
  return new URL(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`)
}

function shownOf(certFile: string): ShownCertificate {
  const { raw } = new X509Certificate(readFileSync(certFile))
  return { fingerprint: Buffer.from(fingerprintOf(raw), 'hex'), key: Buffer.from(keyFingerprintOf(raw), 'hex') }
}

async function dial(hub: TestHub, address: URL, options: Partial<DialOptions> = {}) {
  const dialled = await dialHub({ ...hub.node(), clock: systemClock, address, ...options })
  cleanup.push(() => dialled.session.close('SHUTDOWN', 'the test is over'))
  return dialled
}

function echo(session: LinkSession): void {
  session.onOpen((stream, message) => {
    stream.send(message as Uint8Array)
    stream.end(ok)
  })
}

async function call(session: LinkSession, message: Uint8Array): Promise<Uint8Array> {
  const recorder = new Recorder(session.open('echo', '', message))
  await recorder.over
  expect(recorder.status).toEqual(ok)
  return recorder.messages[0] as Uint8Array
}

test.each(['plain', 'TLS'])('%s: calls of all sizes both ways, then an orderly end', async (kind) => {
  const tls = kind === 'TLS' ? autoCertificate({ directory, hostnames: [] }) : undefined
  const hub = new TestHub()
  hub.onSession = echo
  const address = await listen(hub, tls)
  const { session, certificate, hubId } = await dial(hub, address)
  expect(hubId).toBe(hub.identity.nodeId)
  expect(certificate).toEqual(tls && { fingerprint: tls.fingerprint, key: expect.any(String), trust: 'FIRST_USE' })
  echo(session)
  const hubSession = hub.sessions[0]?.session as LinkSession
  expect([hubSession.remoteAddress, session.remoteAddress]).toEqual(['127.0.0.1', '127.0.0.1'])
  for (const size of [0, 1, 100_000, 3_000_000]) {
    const message = Buffer.alloc(size, 'penstock')
    expect(Buffer.compare(await call(session, message), message)).toBe(0)
    expect(Buffer.compare(await call(hubSession, message), message)).toBe(0)
  }
  await Promise.all(Array.from({ length: 200 }, (_, i) => call(i % 2 ? session : hubSession, Buffer.alloc(20_000, i))))
  session.close('LEFT', 'the node leaves')
  expect(await session.closed).toMatchObject({ reason: 'LEFT' })
  expect(await hubSession.closed).toMatchObject({ reason: 'LEFT', byPeer: true })
  expect(hub.events).toEqual([])
})

test('a call from node to node through the hub over two sockets', async () => {
  const hub = new TestHub()
  hub.onSession = (session) => {
    session.onOpen((stream, message) => {
      const target = hub.sessions.find(({ session }) => session.peerId === stream.target)
      if (target !== undefined) relay(stream, message, target.session)
    })
  }
  const address = await listen(hub)
  const [near, far] = [hub.node(), hub.node()]
  const { session } = await dial(hub, address, near)
  const other = await dial(hub, address, far)
  other.session.onOpen((stream, message) => {
    stream.send(Buffer.from(`${stream.origin} says ${Buffer.from(message ?? []).length}`))
    stream.end(ok)
  })
  const recorder = new Recorder(session.open('x', far.identity.nodeId, new Uint8Array(1_000_000)))
  await recorder.over
  expect(recorder.text).toEqual([`${near.identity.nodeId} says 1000000`])
})

test('a pinned certificate is the only one taken', async () => {
  const tls = autoCertificate({ directory, hostnames: [] })
  const hub = new TestHub()
  const address = await listen(hub, tls)
  const { certificate } = await dial(hub, address, { pinnedCertificate: tls.fingerprint })
  expect(certificate).toMatchObject({ fingerprint: tls.fingerprint, trust: 'PINNED' })
  // Another one with the same key will do for who has pinned the key too; the key alone pins nothing.
  const pins = { pinnedCertificate: 'ab'.repeat(32), pinnedCertificateKey: certificate?.key }
  expect((await dial(hub, address, pins)).certificate?.trust).toBe('PINNED')
  expect((await dial(hub, address, { pinnedCertificateKey: 'cd'.repeat(32) })).certificate?.trust).toBe('FIRST_USE')
  const wrong = { pinnedCertificate: 'ab'.repeat(32), pinnedCertificateKey: 'cd'.repeat(32) }
  await expect(dial(hub, address, wrong)).rejects.toMatchObject({ reason: 'WRONG_CERTIFICATE' })
  await expect(dial(hub, address, { pinnedCertificate: 'ab'.repeat(32) })).rejects.toMatchObject({
    name: 'LinkRefused',
    reason: 'WRONG_CERTIFICATE',
    signed: false,
    // As the hub logs the one, and status shows it.
    message: expect.stringContaining(
      `(${new X509Certificate(readFileSync(tls.certFile)).fingerprint256}), with another key, than the one pinned (AB:AB:`,
    ),
  })
  expect(hub.sessions).toHaveLength(3)
})

test('a hub that serves TLS, called by http://, and one that does not by https://: what to write', async () => {
  const hub = new TestHub()
  const secure = await listen(hub, autoCertificate({ directory, hostnames: [] }))
  secure.protocol = 'http:'
  await expect(dial(hub, secure)).rejects.toMatchObject({
    name: 'LinkUnreachable',
    message: expect.stringContaining('; if it is a hub that serves TLS, write https://'),
  })
  const plain = await listen(hub)
  plain.protocol = 'https:'
  await expect(dial(hub, plain)).rejects.toThrow('if it is a hub on plain HTTP, write http://')
})

test('a certificate that an authority vouches for is known as such, under its own name only', async () => {
  const tls = autoCertificate({ directory, hostnames: [] })
  const hub = new TestHub()
  const address = await listen(hub, tls)
  const ca = readFileSync(tls.certFile, 'utf8')
  expect((await dial(hub, address, { ca })).certificate?.trust).toBe('CA')
  const foreign = makeCertificate([], Date.now()).certificate
  expect((await dial(hub, address, { ca: foreign })).certificate?.trust).toBe('FIRST_USE')
})

test('whoever ends the TLS in between, with a certificate of their own, is found out', async () => {
  const tls = autoCertificate({ directory, hostnames: [] })
  const hub = new TestHub()
  // The hub believes it has another certificate: what it would see behind such a relay.
  const other = { fingerprint: new Uint8Array(32), key: new Uint8Array(32) }
  const address = await listen(hub, { ...tls, certificate: other })
  await expect(dial(hub, address)).rejects.toMatchObject({ reason: 'WRONG_CERTIFICATE', signed: true })
  // Or a relay that ends TLS before a hub that speaks plain HTTP.
  const plain = await listen(hub, { ...tls, certificate: undefined })
  await expect(dial(hub, plain)).rejects.toMatchObject({ reason: 'WRONG_CERTIFICATE', signed: true })
})

test('the link is reached under any name, without token; browsers and others are turned away', async () => {
  const hub = new TestHub()
  const address = await listen(hub)
  const upgrade = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const sent = request(new URL(LINK_PATH, address), {
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': Buffer.alloc(16).toString('base64'),
          'sec-websocket-protocol': SUBPROTOCOL,
          ...headers,
        },
      })
      sent.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode ?? 0)
      })
      sent.on('response', (response) => resolve(response.statusCode ?? 0))
      sent.on('error', reject)
      sent.end()
    })
  expect(await upgrade({ host: 'some.name.example' })).toBe(101)
  expect(await upgrade({ origin: 'http://evil.example' })).toBe(403)
  expect(await upgrade({ origin: address.origin })).toBe(403)
  expect(await upgrade({ 'sec-websocket-protocol': 'chat' })).toBe(400)
  expect((await fetch(new URL(LINK_PATH, address))).status).toBe(404)
})

test('connections that prove nothing are limited, and make room when they go', async () => {
  const hub = new TestHub()
  const address = await listen(hub, undefined, { unprovenLimit: 2 })
  const idle = await Promise.all([1, 2].map(() => openSocket(address)))
  await expect(dial(hub, address)).rejects.toMatchObject({ name: 'LinkRefused', reason: 'TOO_MANY', signed: false })
  const gone = new Promise((resolve) => idle[0]?.on('close', resolve))
  idle[0]?.close()
  await gone
  const { session } = await dial(hub, address)
  // A proven one does not count.
  await dial(hub, address)
  expect(session.peerId).toBe(hub.identity.nodeId)
})

test('a thousand nodes that come at once all wait for their turn, and nobody is sent away', async () => {
  const hub = new TestHub()
  const address = await listen(hub)
  await Promise.all(Array.from({ length: 1_100 }, () => openSocket(address)))
  const { session } = await dial(hub, address)
  expect(session.peerId).toBe(hub.identity.nodeId)
})

function openSocket(address: URL): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${address.host}${LINK_PATH}`, SUBPROTOCOL)
  cleanup.push(() => socket.terminate())
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(socket))
    socket.on('error', reject)
  })
}

test.each([
  ['text', 'hello', 'a text message'],
  ['junk', Buffer.from('ffffffff', 'hex'), 'the bytes are no frame'],
  ['nothing', Buffer.alloc(0), 'a frame without a known member'],
  ['too much', Buffer.alloc(20_000), 'a frame of 20000 bytes, 16384 are allowed'],
  ['more than any frame has', Buffer.alloc(131_073), 'a frame of 131073 bytes, 16384 are allowed'],
  ['a KiB more', Buffer.alloc(132_096), 'a frame of 132096 bytes, 16384 are allowed'],
])('who begins with %s is cut off with the reason', async (_, message, reason) => {
  const hub = new TestHub()
  const address = await listen(hub)
  const socket = await openSocket(address)
  const closed = new Promise((resolve) => socket.on('close', (code, text) => resolve([code, text.toString()])))
  socket.send(message)
  expect(await closed).toEqual([4400, reason])
  expect(hub.events).toMatchObject([{ kind: 'violation', message: reason, remoteAddress: '127.0.0.1' }])
})

test('a frame far beyond the limit never gets into memory whole, and is told of too', async () => {
  const hub = new TestHub()
  const address = await listen(hub)
  const socket = await openSocket(address)
  const closed = new Promise((resolve) => socket.on('close', (code) => resolve(code)))
  socket.on('error', () => {})
  socket.send(Buffer.alloc(132_097))
  expect([1006, 1009]).toContain(await closed)
  await until(() => hub.events.length > 0)
  expect(hub.events).toMatchObject([
    { kind: 'violation', message: 'a frame of more than 132096 bytes', remoteAddress: '127.0.0.1' },
  ])
  expect(hub.sessions).toEqual([])
})

/** The link's end on a socket whose frames the test sends beside it. */
function transportOf(socket: WebSocket): LinkTransport {
  const transport: LinkTransport = {
    ...{ remoteAddress: '', buffered: 0, handlers: deaf, close: () => {} },
    send: (sent) => {
      socket.send(sent)
      return true
    },
  }
  socket.on('message', (sent: Buffer) => transport.handlers.message(sent))
  return transport
}

test.each([
  ['a frame too long', 131_073, 'a frame of 131073 bytes, 131072 are allowed', 4400],
  ['one that is not even taken', 132_097, 'a frame of more than 132096 bytes', 1006],
])('a member that sends %s is cut off, and the hub tells of it', async (_, bytes, reason, code) => {
  const hub = new TestHub()
  const address = await listen(hub)
  const socket = await openSocket(address)
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => {})
  const transport = transportOf(socket)
  const { session } = await joinLink(transport, new Uint8Array(0), { ...hub.node(), clock: systemClock })
  socket.send(Buffer.alloc(bytes))
  expect(await closed).toBe(code)
  const served = hub.sessions[0]?.session as LinkSession
  expect(await served.closed).toMatchObject({ reason: 'PROTOCOL', message: reason, byPeer: false })
  const { peerId } = served
  expect(hub.events).toMatchObject([{ kind: 'violation', message: reason, peerId }])
  session.close('SHUTDOWN', 'the test is over')
})

test.each([
  ['too long', 131_073, 'a frame of 131073 bytes, 131072 are allowed', 4400],
  ['not even taken', 132_097, 'Max payload size exceeded', 1009],
])('a hub whose frame is %s is cut off by its node', async (_, bytes, reason, code) => {
  const hub = new TestHub()
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  cleanup.push(() => server.close())
  const closed = new Promise((resolve) => {
    server.on('connection', (socket) => {
      socket.on('close', resolve)
      const transport = transportOf(socket)
      acceptLink(
        transport,
        { ...hub.options, clock: systemClock },
        { admitted: () => socket.send(Buffer.alloc(bytes)) },
      )
    })
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { session } = await dial(hub, new URL(`http://127.0.0.1:${port}`))
  expect(await session.closed).toMatchObject({ reason: 'PROTOCOL', message: reason, byPeer: false })
  expect(await closed).toBe(code)
  hub.sessions[0]?.session.close('SHUTDOWN', 'the test is over')
})

test('a hub that shuts down says so; a process that vanishes is noticed at the other end', async () => {
  const hub = new TestHub()
  const links = createLinkServer({ ...hub.options, clock: systemClock })
  const listener = new HttpListener({
    dispatcher: new Dispatcher({ handlers: {}, report: () => {} }),
    access: new Access(),
    address: '127.0.0.1',
    port: 0,
    extend: (app) => links.attach(app),
  })
  const { port } = await listener.start()
  const address = new URL(`http://127.0.0.1:${port}`)
  // Through a proxy that can be cut.
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
    cut.push(() => {
      near.destroy()
      far.destroy()
    })
  })
  const cut: (() => void)[] = []
  const proxied = new URL(`http://127.0.0.1:${await port0(proxy)}`)
  const first = await dial(hub, address)
  const second = await dial(hub, proxied)
  for (const step of cut) step()
  expect(await second.session.closed).toMatchObject({ reason: 'LOST' })
  expect(await hub.sessions[1]?.session.closed).toMatchObject({ reason: 'LOST' })
  links.close()
  expect(await first.session.closed).toEqual({ reason: 'SHUTDOWN', message: 'the hub is shutting down', byPeer: true })
  await expect(dial(hub, address)).rejects.toMatchObject({ name: 'LinkUnreachable' })
  await listener.stop()
  await expect(dial(hub, address)).rejects.toMatchObject({
    name: 'LinkUnreachable',
    message: expect.stringContaining('ECONNREFUSED'),
  })
})

async function port0(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup.push(() => server.close())
  return (server.address() as AddressInfo).port
}

test('what is no hub is told from what cannot be reached', async () => {
  const hub = new TestHub()
  const answer = async (status: number, headers: Record<string, string> = {}) => {
    const server = createHttpServer((_, response) =>
      response.writeHead(status, { connection: 'close', ...headers }).end(),
    )
    return new URL(`http://127.0.0.1:${await port0(server)}`)
  }
  const goal = await listen(hub)
  for (const address of [
    await answer(404),
    await answer(200),
    // Not followed.
    await answer(302, { location: `${goal.origin}${LINK_PATH}` }),
  ]) {
    await expect(dial(hub, address)).rejects.toMatchObject({ name: 'LinkRefused', reason: 'NOT_A_HUB' })
  }
  for (const subprotocol of ['chat', false] as const) {
    const server = createHttpServer()
    const chat = new WebSocketServer({ server, handleProtocols: () => subprotocol })
    cleanup.push(() => chat.close())
    await expect(dial(hub, new URL(`http://127.0.0.1:${await port0(server)}`))).rejects.toMatchObject({
      name: 'LinkRefused',
      reason: 'NOT_A_HUB',
    })
  }
  await expect(dial(hub, await answer(503))).rejects.toMatchObject({ name: 'LinkUnreachable' })
  const talker = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('SSH-2.0-OpenSSH_9.6\r\n')
  })
  await expect(dial(hub, new URL(`http://127.0.0.1:${await port0(talker)}`))).rejects.toMatchObject({
    reason: 'NOT_A_HUB',
  })
  expect(hub.sessions).toEqual([])
})

test('whoever accepts a connection and says nothing is given up after 10 s, or when the caller has enough', async () => {
  const hub = new TestHub()
  const accepted: (() => void)[] = []
  const silent = createServer((socket) => {
    socket.on('error', () => {})
    cleanup.push(() => socket.destroy())
    accepted.shift()?.()
  })
  const address = new URL(`http://127.0.0.1:${await port0(silent)}`)
  const wait = () => new Promise<void>((resolve) => accepted.push(resolve))
  let connected = wait()
  const slow = dialHub({ ...hub.node(), address })
  await connected
  hub.clock.increment(10_000)
  await expect(slow).rejects.toMatchObject({ name: 'LinkUnreachable', message: expect.stringContaining('within 10 s') })
  connected = wait()
  const leaving = new AbortController()
  const left = dialHub({ ...hub.node(), address, signal: leaving.signal })
  await connected
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  await expect(dialHub({ ...hub.node(), address, signal: leaving.signal })).rejects.toThrow('enough')
})

test('who takes the connection late and then says nothing is unreachable after the same ten seconds', async () => {
  const hub = new TestHub()
  const silent = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => SUBPROTOCOL })
  cleanup.push(() => {
    for (const client of silent.clients) client.terminate()
    silent.close()
  })
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const said = new Promise((resolve) => {
    silent.once('connection', (socket) => socket.once('message', resolve))
  })
  const joining = dialHub({ ...hub.node(), address: hubAddress(`http://127.0.0.1:${port}`) })
  hub.clock.increment(6_000)
  await said
  let over = false
  joining.catch(() => {
    over = true
  })
  hub.clock.increment(3_999)
  await settle(1)
  expect(over).toBe(false)
  hub.clock.increment(1)
  await expect(joining).rejects.toMatchObject({ name: 'LinkUnreachable' })
})

test('addresses of hubs', () => {
  for (const good of ['http://hub.example', 'https://192.0.2.7:8769/', 'http://[::1]:1', 'https://hub.example/a/b']) {
    hubAddress(good)
  }
  for (const [bad, message] of [
    ['hub.example', 'is no address'],
    ['http://hub.example:99999/x', 'has the port 99999: ports end at 65535'],
    ['', 'is no address'],
    ['ftp://hub.example', 'must begin with http'],
    ['ws://hub.example', 'must begin with http'],
    ['file:///etc/passwd', 'must begin with http'],
    ['http://user:secret@hub.example', 'no user name or password'],
    ['http://hub.example/#x', 'must hold no ? and no #'],
    ['http://hub.example/path?x=1', 'must hold no ? and no #'],
  ] as const) {
    expect(() => hubAddress(bad)).toThrow(message)
  }
})

test('a node that reads nothing does not fill the memory of the hub', async () => {
  const hub = new TestHub()
  const address = await listen(hub)
  const { session } = await dial(hub, address)
  const served = hub.sessions[0]?.session as LinkSession
  session.onOpen((stream) => {
    stream.handlers = { message: () => false }
  })
  const streams = Array.from({ length: 50 }, () => served.open('x', '', undefined))
  let taken = 0
  for (const stream of streams) {
    stream.handlers = {}
    while (stream.send(new Uint8Array(10_000))) taken += 10_000
    taken += 10_000
  }
  await call2(session)
  expect(taken).toBeLessThan(50 * 300_000)

  /** Other calls go on. */
  async function call2(node: LinkSession): Promise<void> {
    echo(served)
    expect(await call(node, Buffer.from('still here'))).toEqual(Buffer.from('still here'))
  }
})

test('a node that sends faster than the hub can handle is cut off, while others are served', async () => {
  const hub = new TestHub()
  const address = await listen(hub, undefined, { inboxLimit: 1024 * 1024 })
  const other = await dial(hub, address)
  echo(hub.sessions[0]?.session as LinkSession)
  const socket = await openSocket(address)
  const send = (bytes: Uint8Array): boolean => {
    socket.send(bytes)
    return true
  }
  // A transport that never says that it is full.
  const transport: LinkTransport = { remoteAddress: '', buffered: 0, handlers: deaf, send, close: () => {} }
  socket.on('message', (bytes: Buffer) => transport.handlers.message(bytes))
  const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve([code, reason.toString()])))
  const { session } = await joinLink(transport, new Uint8Array(0), { ...hub.node(), clock: systemClock })
  // Nor does what sends from here on heed what is in flight.
  transport.handlers = deaf
  for (let i = 1; i <= 20_000; i++) send(encodeFrame('ping', { sequence: i }))
  expect(await closed).toEqual([4400, 'frames come faster than they can be handled'])
  expect(await call(other.session, Buffer.from('still here'))).toEqual(Buffer.from('still here'))
  expect(hub.events.map(({ kind }) => kind)).toEqual(['violation'])
  session.close('SHUTDOWN', 'the test is over')
})

test('a member that keeps to its credit is not cut off, however many and small its messages are', async () => {
  const hub = new TestHub()
  const address = await listen(hub)
  const { session } = await dial(hub, address)
  const served = hub.sessions[0]?.session as LinkSession
  const [streams, each] = [50, 2_000]
  let got = 0
  served.onOpen((stream) => {
    stream.handlers = {
      message: () => {
        got++
      },
      halfClose: () => stream.end({ code: 'OK', message: '' }),
    }
  })
  const calls = Array.from({ length: streams }, () => {
    const stream = session.open('x', '', undefined)
    let left = each
    const fill = () => {
      while (left > 0) {
        left--
        if (!stream.send(new Uint8Array(0))) break
      }
      if (left === 0) stream.halfClose()
    }
    return new Promise((resolve) => {
      stream.handlers = { drain: fill, end: ({ code }) => resolve(code) }
      fill()
    })
  })
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['OK']))
  expect(got).toBe(streams * each)
  expect(hub.events).toEqual([])
  session.close('SHUTDOWN', 'the test is over')
})

test('a certificate file of two certificates shows its first', () => {
  const [one, two] = [makeCertificate([], Date.now()), makeCertificate([], Date.now())]
  const file = join(directory, 'chain.crt')
  writeFileSync(file, one.certificate + two.certificate)
  expect(Buffer.from(shownOf(file).fingerprint).toString('hex')).toBe(
    new X509Certificate(one.certificate).fingerprint256.replaceAll(':', '').toLowerCase(),
  )
})
