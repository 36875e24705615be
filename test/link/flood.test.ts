/** A hub in a process of its own, and peers that send as much as they can: what it costs the hub, and what others notice of it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'
import tls from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { systemClock } from '../../src/contract/clock.ts'
import { LINK_PATH, SUBPROTOCOL } from '../../src/link/dial.ts'
import { type Joined, joinLink } from '../../src/link/handshake-node.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { decodeFrame, encodeFrame } from '../../src/link/messages.ts'
import { record } from '../../src/link/testing.ts'
import { deaf, type LinkTransport } from '../../src/link/transport.ts'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

const MIB = 1024 * 1024
/** What a read of uWebSockets.js takes at most. */
const READ_BYTES = 512 * 1024
/** What a flood may hold others up, and cost: a multiple of what it does on a slow machine, far below what it did without a bound (16 s, 1.6 GiB). */
const SLOWEST_MS = 10_000
const MOST_BYTES = 200 * MIB

let child: ChildProcess
let directory: string
let origin: URL

async function start(flags: Record<string, string>): Promise<void> {
  directory = mkdtempSync(join(tmpdir(), 'penstock-flood-'))
  const script = fileURLToPath(new URL('../hub/node-child.mjs', import.meta.url))
  const given = JSON.stringify({ flags: { 'data-dir': directory, hub: true, ...flags } })
  child = spawn(process.execPath, [script, given], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line')
  const { http } = JSON.parse(line) as { http: string }
  origin = new URL(`${flags['http-tls'] === 'auto' ? 'https' : 'http'}://${http}`)
}

async function call(method: string, path: string, body?: object): Promise<unknown> {
  const { request } = origin.protocol === 'https:' ? https : http
  const sent = request(new URL(path, origin), { method, rejectUnauthorized: false, agent: false })
  sent.end(body === undefined ? '' : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage]
  expect(response.statusCode).toBe(200)
  return json(response)
}

/** Resident memory of the hub, bytes. */
function resident(): number {
  const [line] = /VmRSS:.*/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? ['']
  return Number(line.replace(/\D/g, '')) * 1024
}

/** As many copies of a WebSocket frame (RFC 6455, section 5.2; masked with zeros) around `payload` as fit in `bytes`. */
function frames(bytes: number, opcode: number, payload: Uint8Array): Buffer {
  const frame = Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload])
  return Buffer.concat(Array.from({ length: Math.floor(bytes / frame.length) }, () => frame))
}

/** Calls the hub until `over` is true: how long the slowest answer took, and the most memory seen; milliseconds, bytes. */
async function watch(over: () => boolean): Promise<{ slowest: number; most: number }> {
  let slowest = 0
  let most = 0
  do {
    const start = performance.now()
    await call('GET', '/v1/hub-client/local-node-id')
    slowest = Math.max(slowest, performance.now() - start)
    most = Math.max(most, resident())
    await new Promise((resolve) => setTimeout(resolve, 5))
  } while (!over())
  return { slowest, most }
}

/** A connection that has been upgraded to a link and says nothing yet. */
async function opened(): Promise<Socket> {
  const { hostname, port, host, protocol } = origin
  const isSecure = protocol === 'https:'
  const socket = isSecure
    ? tls.connect({ port: Number(port), host: hostname, rejectUnauthorized: false })
    : connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  socket.write(
    `GET ${LINK_PATH} HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
      `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-protocol: ${SUBPROTOCOL}\r\n\r\n`,
  )
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 101 /)
  return socket
}

function webSocket(path: string, protocol?: string): WebSocket {
  const url = new URL(path, origin.href.replace('http', 'ws'))
  const socket = new WebSocket(url, protocol, { perMessageDeflate: false, rejectUnauthorized: false })
  socket.on('error', () => {})
  return socket
}

/** Peers that have been let in. */
async function members(count: number): Promise<Member[]> {
  const operator = webSocket('/v1/streams/hub-server/authentication-requests')
  operator.on('message', (data) => {
    const { requestId } = (JSON.parse(String(data)) as { result: { requestId: string } }).result
    operator.send(JSON.stringify({ requestId, accept: true }))
  })
  await once(operator, 'open')
  const peers = await Promise.all(Array.from({ length: count }, joiner))
  const all = peers.map(async (peer) => ({ ...peer, session: (await peer.joined).session }))
  const admitted = await Promise.all(all)
  operator.close()
  return admitted
}

function sha256(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes).digest()
}

/** A peer that proves its key and asks to join, and the socket below it; `joined` resolves when it is let in. */
async function joiner() {
  const socket = webSocket(LINK_PATH, SUBPROTOCOL)
  await once(socket, 'open')
  const raw = (socket as unknown as { _socket: Socket })._socket
  const certificate = raw instanceof tls.TLSSocket ? sha256(raw.getPeerCertificate().raw) : new Uint8Array(0)
  const transport: LinkTransport = {
    remoteAddress: '',
    buffered: 0,
    handlers: deaf,
    send: (bytes) => {
      socket.send(bytes)
      return true
    },
    close: () => socket.close(),
  }
  socket.on('message', (data) => transport.handlers.message(data as Buffer))
  const identity = newIdentity()
  let joined: Promise<Joined> | undefined
  const pending = new Promise<void>((resolve) => {
    const onPending = () => resolve()
    const options = { identity, record, clock: systemClock, report: () => {} }
    joined = joinLink(transport, certificate, { ...options, intent: 'JOIN', onPending })
  })
  // Those that are cut off never are.
  joined?.catch(() => {})
  return { socket, raw, transport, id: identity.nodeId, pending, joined: joined as Promise<Joined> }
}

type Member = Awaited<ReturnType<typeof joiner>> & Pick<Joined, 'session'>

describe.each([
  ['plain', {}],
  ['TLS', { 'http-tls': 'auto' }],
])('%s', (_, flags) => {
  beforeAll(() => start(flags))
  afterAll(() => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true })
  })

  test.each([
    ['empty messages', 2, new Uint8Array(0)],
    ['pings', 2, encodeFrame('ping', { sequence: 1 })],
    ['pings of the WebSocket', 9, new Uint8Array(0)],
  ])('600 connections that have proven nothing and send half a megabyte of %s each', async (_, opcode, payload) => {
    const sockets = await Promise.all(Array.from({ length: 600 }, opened))
    let left = sockets.length
    for (const socket of sockets) socket.resume().once('close', () => left--)
    const before = resident()
    const flood = frames(READ_BYTES, opcode, payload)
    for (const socket of sockets) socket.write(flood)
    const { slowest, most } = await watch(() => left === 0)
    // 600 inboxes of one frame are nothing; what is left is the reader's buffers.
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(most - before).toBeLessThan(MOST_BYTES)
  })

  test('20 joiners whose requests are pending, flooding pings', async () => {
    const peers = await Promise.all(Array.from({ length: 20 }, joiner))
    await Promise.all(peers.map(({ pending }) => pending))
    let left = peers.length
    for (const { socket } of peers) socket.once('close', () => left--)
    const before = resident()
    const flood = frames(8 * MIB, 2, encodeFrame('ping', { sequence: 1 }))
    for (const { raw } of peers) raw.write(flood)
    const { slowest, most } = await watch(() => left === 0)
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(most - before).toBeLessThan(MOST_BYTES)
    // What they asked for is withdrawn with them.
    const pending = async () => (await call('GET', '/v1/hub-server/authentication-requests')) as { requests: unknown[] }
    await until(async () => (await pending()).requests.length === 0)
    // Who went away while the request was being raised is not on that list, and counts among the address's 20 until its id is on the disk.
    await until(async () => {
      const next = await joiner()
      // One too many is told that it is pending first, and refused then.
      await next.pending
      const { requests } = await pending()
      next.socket.terminate()
      return requests.length > 0
    })
  })

  test('members that flood pings hold up nobody', async () => {
    const peers = await members(10)
    const before = resident()
    const ping = frames(4 * MIB, 2, encodeFrame('ping', { sequence: 1 }))
    let left = peers.length
    for (const { socket, raw } of peers) {
      socket.once('close', () => left--)
      raw.write(ping)
    }
    const { slowest, most } = await watch(() => left === 0)
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(most - before).toBeLessThan(10 * 64 * MIB)
  })

  test('calls of 16 MiB for a member that gives no credit: its caller is told, the hub holds 64 MiB', async () => {
    const [caller, silent] = (await members(2)) as [Member, Member]
    // It takes what comes from its socket, and never says so. Heartbeats go on: on a loaded machine the calls take longer than the 30 s of silence
    // after which it would count as gone.
    const { handlers } = silent.transport
    silent.transport.handlers = {
      ...deaf,
      message: (bytes) => {
        const { kind } = decodeFrame(bytes)
        if (kind === 'ping' || kind === 'pong') handlers.message(bytes)
      },
    }
    const before = resident()
    const request = new Uint8Array(16 * MIB)
    const refused: string[] = []
    // One after the other, each when the one before has left.
    const sending = (async () => {
      for (let i = 0; i < 60; i++) {
        await new Promise<void>((resolve) => {
          const hold = (bytes: number): boolean => {
            if (bytes < 0) resolve()
            return true
          }
          caller.session.open('getPipelines', silent.id, request, { holder: { hold } }).handlers = {
            end: ({ code }) => refused.push(code),
          }
        })
      }
    })()
    const { most } = await watch(() => refused.length >= 60 - 4)
    await sending
    expect(new Set(refused)).toEqual(new Set(['RESOURCE_EXHAUSTED']))
    // What is held, and what the collector has not come to yet; without a limit it was the 960 MiB that were sent.
    expect(most - before).toBeLessThan(300 * MIB)
    for (const { socket } of [caller, silent]) socket.terminate()
  })

  test('answers to a member that gives no credit: 64 MiB, however many it asks for', async () => {
    const [peer] = (await members(1)) as [Member]
    const { hubId } = await peer.joined
    const jsonConfig = readFileSync(join(packageRoot(), 'examples/generator.json'), 'utf8').padEnd(1_000_000)
    await call('POST', `/v1/nodes/${hubId}/pipelines`, { name: 'large', jsonConfig })
    const before = resident()
    const answers = { refused: 0, other: 0 }
    const { session, transport } = peer
    const handlers = transport.handlers
    // Of what comes it takes the ends of calls and heartbeats only: no message is read, so no credit is given.
    transport.handlers = {
      ...deaf,
      message: (bytes) => {
        if (['end', 'ping', 'pong'].includes(decodeFrame(bytes).kind)) handlers.message(bytes)
      },
    }
    // GetPipelinesRequest: node_id is its field 1.
    const request = Buffer.concat([Buffer.from([0x0a, hubId.length]), Buffer.from(hubId)])
    for (let i = 0; i < 300; i++) {
      session.open('getPipelines', '', request).handlers = {
        end: ({ code }) => (code === 'RESOURCE_EXHAUSTED' ? answers.refused++ : answers.other++),
      }
    }
    const { most } = await watch(() => answers.refused >= 300 - 70)
    expect(answers.other).toBe(0)
    expect(most - before).toBeLessThan(300 * MIB)
    peer.socket.terminate()
  })
})
