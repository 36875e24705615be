/** Connections to the gRPC port that send as much as they can, made by hand: a real node in a process of its own ends them and serves others. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants } from 'node:http2'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  COUNTS_CANCELLED_CALLS,
  MAX_INVALID_FRAMES,
  MAX_OPEN_CALLS,
  MAX_UNREAD_BYTES,
  MAX_UNREAD_FRAMES,
  REFUSED_BURST,
} from '../../src/api/grpc-connections.ts'
import { until } from '../harness/waiting.ts'
import { FRAME, frame, PREFACE, RawHttp2 } from './http2-client.ts'
import { settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const MIB = 1024 * 1024
/** What a flood may hold others up, and cost: a multiple of what it does on a slow machine, far below what it did without a bound (4 s, 380 MiB). */
const SLOWEST_MS = 1000
const MOST_BYTES = 120 * MIB
const FLOOD_BYTES = MIB
const END_STREAM = 1
const END_HEADERS = 4

class Child {
  readonly http: string
  readonly grpc: string
  readonly id: string
  readonly process: ChildProcess
  readonly lines: Record<string, unknown>[]

  private constructor(process: ChildProcess, lines: Record<string, unknown>[], said: Record<string, string>) {
    this.process = process
    this.lines = lines
    this.http = said.http as string
    this.grpc = said.grpc as string
    this.id = said.id as string
  }

  static async start(flags: Record<string, string> = {}): Promise<Child> {
    const script = fileURLToPath(new URL('../hub/node-child.mjs', import.meta.url))
    const log = { 'log-level': 'warn', 'log-format': 'json' }
    const all = { 'data-dir': join(temporaryDirectory(), 'node'), grpc: '127.0.0.1:0', ...log, ...flags }
    const child = spawn(process.execPath, [script, JSON.stringify({ flags: all })], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const lines: Record<string, unknown>[] = []
    createInterface({ input: child.stderr }).on('line', (line) => lines.push(JSON.parse(line)))
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const said = JSON.parse(line) as Record<string, string>
    if (said.error !== undefined) throw new Error(said.error)
    return new Child(child, lines, said)
  }

  /** Lines about connections that were ended. */
  get floods(): Record<string, unknown>[] {
    return this.lines.filter(({ reason }) => reason !== undefined)
  }

  async ask(): Promise<void> {
    const answer = await fetch(`http://${this.http}/v1/hub-client/local-node-id`)
    expect(answer.status).toBe(200)
    await answer.arrayBuffer()
  }

  /** Resident memory, bytes. */
  get resident(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))?.[1]) * 1024
  }

  /** Calls over HTTP until `work` is done: milliseconds of the slowest answer, bytes that memory grew by at most. */
  async watch(work: Promise<unknown>): Promise<{ slowest: number; grown: number }> {
    let over = false
    const done = work.finally(() => {
      over = true
    })
    const before = this.resident
    let slowest = 0
    let grown = 0
    do {
      const start = performance.now()
      await this.ask()
      slowest = Math.max(slowest, performance.now() - start)
      grown = Math.max(grown, this.resident - before)
      await new Promise((resolve) => setTimeout(resolve, 5))
    } while (!over)
    await done
    return { slowest, grown }
  }

  async end(): Promise<void> {
    const gone = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await gone
  }
}

/** A header field as a literal that goes into the dynamic table (RFC 7541, section 6.2.1); `name` is text, or its place in the static table. */
function literal(name: string | number, value: string): Buffer {
  const head =
    typeof name === 'number' ? Buffer.from([0x40 | name]) : Buffer.from([0x40, name.length, ...Buffer.from(name)])
  return Buffer.concat([head, Buffer.from([value.length]), Buffer.from(value)])
}

/** The header blocks of the first and of every later call to `path`: POST, http, and four fields, from the table once they are in it. */
function headers(path: string, type = 'application/grpc'): { first: Buffer; later: Buffer } {
  const fields = [literal(4, path), literal(1, 'a'), literal('content-type', type), literal('te', 'trailers')]
  return {
    first: Buffer.concat([Buffer.from([0x83, 0x86]), ...fields]),
    later: Buffer.from([0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe]),
  }
}

/** The frames of calls, one after the other, in FLOOD_BYTES. */
function calls(
  { first, later }: { first: Buffer; later: Buffer },
  of: (id: number, block: Buffer) => Buffer[],
): Buffer {
  const parts: Buffer[] = [PREFACE]
  for (let id = 1, bytes = 0; bytes < FLOOD_BYTES; id += 2) {
    const frames = Buffer.concat(of(id, id === 1 ? first : later))
    bytes += frames.length
    parts.push(frames)
  }
  return Buffer.concat(parts)
}

/** The same frame again and again. */
function repeated(...frames: Buffer[]): Buffer {
  const last = frames.at(-1) as Buffer
  const many = Array.from({ length: Math.floor(FLOOD_BYTES / last.length) }, () => last)
  return Buffer.concat([PREFACE, ...frames, ...many])
}

const KNOWN = '/servicegrpc.hub.HubClientService/getLocalNodeId'
const known = headers(KNOWN)
const state = headers('/servicegrpc.hub.HubClientService/streamConnectionState')
const unknown = headers('/no.Such/method')
const message = (bytes: Uint8Array = new Uint8Array(0)) =>
  Buffer.concat([Buffer.from([0, 0, 0, 0, bytes.length]), bytes])
const CANCEL = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL])
const {
  NGHTTP2_ENHANCE_YOUR_CALM: CALM,
  NGHTTP2_INTERNAL_ERROR: INTERNAL,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
} = constants

const whole = (id: number, block: Buffer) => [frame(FRAME.headers, END_HEADERS | END_STREAM, id, block)]
const open = (id: number, block: Buffer) => [frame(FRAME.headers, END_HEADERS, id, block)]

/** Sends a flood on one connection, then pings until it is closed; resolves with the codes of its GOAWAY frames. */
async function flood(address: string, bytes: Buffer, reads: boolean, isTls = false): Promise<readonly number[]> {
  const connection = await RawHttp2.connect(address, isTls)
  if (!reads) connection.socket.pause()
  connection.send(bytes)
  // Whoever does not read learns of the end by writing only.
  const writing = setInterval(() => connection.send(frame(FRAME.ping, 1, 0, Buffer.alloc(8))), 50)
  await connection.closed
  clearInterval(writing)
  return connection.goaways
}

test('a flood over TLS is ended', async () => {
  const node = await Child.start({ 'http-tls': 'auto', http: 'none' })
  try {
    await flood(node.grpc, calls(unknown, whole), true, true)
    await until(() => node.floods.length === 1)
    expect(node.floods[0]).toMatchObject({ reason: 'REFUSED_CALLS', address: '127.0.0.1', connections: 1 })
  } finally {
    await node.end()
  }
})

describe.each([
  ['methods that do not exist', 'REFUSED_CALLS', [CALM], calls(unknown, whole)],
  ['requests that are not gRPC', 'REFUSED_CALLS', [CALM], calls(headers('/a', 'text/plain'), whole)],
  [
    'calls with their requests',
    'INVALID_FRAMES',
    [INTERNAL],
    calls(known, (id, block) => [...open(id, block), frame(FRAME.data, END_STREAM, id, message())]),
  ],
  ['calls without an end', 'INVALID_FRAMES', [INTERNAL], calls(known, open)],
  // CVE-2023-44487
  [
    'calls that are cancelled at once',
    'CANCELLED_CALLS',
    // The HTTP/2 library ends a thousand of them in one piece by itself, with a code of its own.
    [CALM, INTERNAL],
    calls(known, (id, block) => [...open(id, block), frame(FRAME.reset, 0, id, CANCEL)]),
  ],
] as const)('a flood of %s', (_what, reason, expected, bytes) => {
  let node: Child
  beforeAll(async () => {
    node = await Child.start()
    await node.ask()
  })
  afterAll(() => node.end())

  test('is ended, while others are served', async () => {
    const codes: number[] = []
    const floods = async () => {
      for (let round = 0; round < 4; round++) codes.push(...(await flood(node.grpc, bytes, round % 2 === 1)))
    }
    const { slowest, grown } = await node.watch(floods())
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(grown).toBeLessThan(MOST_BYTES)
    // What is cut before the GOAWAY was read (the socket is reset by what was still sent) brings none.
    expect(codes.filter((code) => !(expected as readonly number[]).includes(code))).toEqual([])
    await until(() => node.floods.length > 0)
    expect(node.floods).toEqual([
      expect.objectContaining({ level: 'warn', reason, address: '127.0.0.1', connections: 1 }),
    ])
  })
})

describe('a flood that the HTTP/2 library ends', () => {
  let node: Child
  beforeAll(async () => {
    node = await Child.start()
    await node.ask()
  })
  afterAll(() => node.end())

  test.each([
    ['PING', repeated(frame(FRAME.ping, 0, 0, Buffer.alloc(8)))],
    ['SETTINGS', repeated(frame(FRAME.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 100])))],
    // CVE-2024-27316
    [
      'CONTINUATION',
      repeated(frame(FRAME.headers, END_STREAM, 1, known.first), frame(FRAME.continuation, 0, 1, literal('x', 'y'))),
    ],
  ])('%s', async (_what, bytes) => {
    const floods = async () => {
      for (let round = 0; round < 4; round++) {
        const connection = await RawHttp2.connect(node.grpc)
        if (round % 2 === 0) connection.socket.pause()
        connection.send(bytes)
        if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 100))
        else await Promise.race([connection.received(FRAME.goaway).catch(() => undefined), connection.closed])
        connection.gone()
      }
    }
    const { slowest, grown } = await node.watch(floods())
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(grown).toBeLessThan(MOST_BYTES)
  })
})

describe('one connection', () => {
  let node: Child
  beforeAll(async () => {
    node = await Child.start()
  })
  afterAll(() => node.end())

  test('is ended by one refused call more than it may have, and told why', async () => {
    const connection = await RawHttp2.connect(node.grpc)
    const block = (id: number) => whole(id, id === 1 ? unknown.first : unknown.later)
    const some = Array.from({ length: REFUSED_BURST }, (_, call) => Buffer.concat(block(2 * call + 1)))
    connection.send(PREFACE, ...some)
    await until(() => connection.count(FRAME.headers) === REFUSED_BURST)
    expect(connection.goaways).toEqual([])
    // More than come back while this is under way, ten a second.
    connection.send(...Array.from({ length: 100 }, (_, call) => Buffer.concat(block(2 * (REFUSED_BURST + call) + 1))))
    await connection.closed
    expect(connection.goaways).toEqual([CALM])
  })

  test('that its client ends with an error amid its calls is ended, and nothing else', async () => {
    const connection = await RawHttp2.connect(node.grpc)
    const goaway = frame(FRAME.goaway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, PROTOCOL_ERROR]))
    const some = Array.from({ length: 20 }, (_, call) => {
      const block = call === 0 ? known.first : known.later
      return Buffer.concat([...open(2 * call + 1, block), frame(FRAME.data, END_STREAM, 2 * call + 1, message())])
    })
    connection.send(PREFACE, some[0], goaway, ...some.slice(1))
    await connection.closed
    await node.ask()
  })

  test('carries as many open calls as it may; more wait, and their cancellation ends nothing', async () => {
    const client = new grpc.Client(node.grpc, grpc.credentials.createInsecure())
    const pass = (bytes: Buffer): Buffer => bytes
    const path = '/servicegrpc.hub.HubClientService/streamConnectionState'
    const wanted = MAX_OPEN_CALLS + MAX_INVALID_FRAMES + 50
    const streams: grpc.ClientReadableStream<Buffer>[] = []
    const refused: grpc.status[] = []
    let begun = 0
    const open = () => {
      const stream = client.makeServerStreamRequest(path, pass, pass, Buffer.alloc(0))
      stream.on('error', ({ code }: grpc.ServiceError) => {
        if (code === grpc.status.CANCELLED) return
        refused.push(code)
        if (code === grpc.status.RESOURCE_EXHAUSTED) open()
      })
      stream.once('data', () => begun++)
      streams.push(stream)
    }
    try {
      for (let stream = 0; stream < wanted; stream++) open()
      await until(() => begun === MAX_OPEN_CALLS)
      for (const stream of streams.slice(0, MAX_OPEN_CALLS)) stream.cancel()
      await until(() => begun === wanted)
      // Where Node.js counts what was cancelled, calls in its place are made again; none is ended for another reason.
      expect(refused.filter((code) => !COUNTS_CANCELLED_CALLS || code !== grpc.status.RESOURCE_EXHAUSTED)).toEqual([])
      expect(node.floods.filter(({ reason }) => reason !== 'REFUSED_CALLS')).toEqual([])
    } finally {
      client.close()
    }
  })

  test('that cancels a thousand streams in turn, of which a quarter is open, is ended, and nothing else', async () => {
    const connection = await RawHttp2.connect(node.grpc)
    const [first, rest] = [MAX_OPEN_CALLS, 4 * MAX_OPEN_CALLS]
    const stream = (call: number): Buffer => {
      const id = 2 * call + 1
      const block = call === 0 ? state.first : state.later
      return Buffer.concat([...open(id, block), frame(FRAME.data, END_STREAM, id, message())])
    }
    connection.send(PREFACE, ...Array.from({ length: first }, (_, call) => stream(call)))
    await until(() => connection.count(FRAME.data) === first)
    const cancel = (call: number): Buffer => frame(FRAME.reset, 0, 2 * call + 1, CANCEL)
    // Each makes room for another.
    const turns = Array.from({ length: rest }, (_, call) =>
      call + first < rest ? Buffer.concat([cancel(call), stream(call + first)]) : cancel(call),
    )
    connection.send(Buffer.concat(turns))
    const { slowest, grown } = await node.watch(connection.closed)
    expect(slowest).toBeLessThan(SLOWEST_MS)
    expect(grown).toBeLessThan(MOST_BYTES)
    expect(connection.goaways).toEqual([CALM])
    await node.ask()
  })

  test('has its calls refused while it does not read its answers', async () => {
    const settings = settingsOf(traffic(), { name: 'a' })
    settings.jsonConfig = String(settings.jsonConfig).padEnd(MIB)
    const url = `http://${node.http}/v1/nodes/${node.id}/pipelines`
    const requested = {
      method: 'POST',
      body: JSON.stringify(settings),
      headers: { 'content-type': 'application/json' },
    }
    for (let pipeline = 0; pipeline < 8; pipeline++) expect((await fetch(url, requested)).status).toBe(200)
    const list = headers('/servicegrpc.pipeline.PipelinesService/getPipelines')
    const request = message(Buffer.concat([Buffer.from([10, node.id.length]), Buffer.from(node.id)]))
    const connection = await RawHttp2.connect(node.grpc)
    const all = Array.from({ length: REFUSED_BURST + 50 }, (_, call) => {
      const id = 2 * call + 1
      const block = id === 1 ? list.first : list.later
      return Buffer.concat([...open(id, block), frame(FRAME.data, END_STREAM, id, request)])
    })
    const work = async () => {
      connection.socket.pause()
      connection.send(PREFACE, ...all)
      await until(() => node.floods.some(({ reason }) => reason === 'REFUSED_CALLS') || connection.socket.destroyed)
    }
    const { grown } = await node.watch(work())
    expect(grown).toBeLessThan(4 * MAX_UNREAD_BYTES)
    connection.gone()
    await node.ask()
  })

  test('is ended when too many small frames of a call wait to be read', async () => {
    const connection = await RawHttp2.connect(node.grpc)
    // No room for answers: of the questions the first few are answered.
    const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
    const { first } = headers('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
    const question = message(Buffer.from([0x3a, 1, 0x2a]))
    const bytes = Array.from(Buffer.concat(Array.from({ length: MAX_UNREAD_FRAMES / 4 }, () => question)))
    connection.send(PREFACE, NO_WINDOW, ...open(1, first))
    connection.send(...bytes.map((byte) => frame(FRAME.data, 0, 1, Buffer.from([byte]))))
    await connection.closed
    expect(connection.goaways.filter((code) => code !== CALM)).toEqual([])
    await node.ask()
  })
})
