/** Connections to a node that has no file descriptors left, because of them or of others: they are closed, the log says so, and the node goes on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { until } from '../harness/waiting.ts'
import { temporaryDirectory } from './running-node.ts'

const endings: (() => Promise<unknown> | unknown)[] = []
afterEach(() => Promise.all(endings.splice(0).map((end) => end())))

/** A node in a process of its own that may open 256 descriptors. */
async function limitedNode(flags: Record<string, string> = {}) {
  const script = fileURLToPath(new URL('descriptors-child.mjs', import.meta.url))
  const all = JSON.stringify({ 'log-level': 'warn', 'log-format': 'json', ...flags })
  // It makes no thread ready: one that dies for want of descriptors gives some back.
  const limited = ['-c', 'ulimit -n 256 && exec "$@"', 'sh', process.execPath, script, temporaryDirectory(), all, '0']
  const child = spawn('sh', limited, { stdio: ['pipe', 'pipe', 'pipe'] })
  endings.push(async () => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  })
  /** What is told of connections. */
  const warnings: string[] = []
  const said: Record<string, string>[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      const parsed = JSON.parse(line)
      if (!('msg' in parsed)) said.push(parsed)
      else if (/connections/.test(parsed.msg)) warnings.push(parsed.msg)
    })
  }
  await until(() => said.length > 0)
  const { http = '', grpc = '' } = said.shift() ?? {}
  return {
    http,
    grpc,
    warnings,
    /** Leaves it that many. */
    async left(count: number) {
      child.stdin.write(`${count}\n`)
      await until(() => said.length > 0)
      said.shift()
    },
  }
}

/** A connection of which it is known whether it has received something, and whether it was closed. */
class Caller {
  readonly socket: Socket
  heard = ''
  closed = false

  constructor(address: string, says: string) {
    const [host, port] = address.split(':')
    this.socket = connect(Number(port), host)
    endings.push(() => this.socket.destroy())
    this.socket
      .on('error', () => {})
      .on('close', () => {
        this.closed = true
      })
      .on('data', (bytes) => {
        this.heard += bytes
      })
      .write(says)
  }
}

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
const SHORT =
  /^HTTP connections are refused: 2\d\d of the 256 file descriptors that the process may have open are in use/
// Which of the two it is depends on whether the descriptor is back that HTTP keeps to accept with.
const GRPC = /^gRPC connections are (refused|closed as they come): 2\d\d of the 256 file descriptors/

test('more streams over HTTP than descriptors: some are served, the others closed, and it is told once', {
  timeout: 30_000,
}, async () => {
  const { http, warnings } = await limitedNode()
  const callers = Array.from({ length: 400 }, () => new Caller(http, ask('/v1/streams/hub-client/connection-state')))
  await until(() => callers.every(({ heard, closed }) => heard !== '' || closed))
  const served = callers.filter(({ closed }) => !closed)
  expect(served.length).toBeGreaterThan(100)
  // 32 are kept, eight are let in all the same, and the node itself has more than 20.
  expect(served.length).toBeLessThan(256 - 32 + 8 - 20)
  // Closed at once, so that no newcomer waits for another to go.
  await until(() => callers.filter(({ closed }) => closed).length === 400 - served.length)
  expect(warnings).toEqual([expect.stringMatching(SHORT)])
  for (const { socket } of callers) socket.destroy()
  await until(() =>
    fetch(`http://${http}/metrics`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
})

test('WebSockets that came and went while they were few take nobody a place', { timeout: 30_000 }, async () => {
  const { http, left } = await limitedNode()
  await left(24)
  for (let i = 0; i < 12; i++) {
    const socket = new WebSocket(`ws://${http}/v1/streams`)
    endings.push(() => socket.terminate())
    await once(socket, 'open')
    socket.close()
    await once(socket, 'close')
    const caller = new Caller(http, ask('/metrics'))
    await until(() => caller.heard !== '' || caller.closed)
    expect(caller.heard, `after ${i + 1}`).toContain('process_open_fds')
    caller.socket.destroy()
  }
})

test('silent connections over TLS', { timeout: 30_000 }, async () => {
  const { http, warnings } = await limitedNode({ 'http-tls': 'auto' })
  const callers = Array.from({ length: 400 }, () => new Caller(http, ''))
  await until(() => callers.filter(({ closed }) => closed).length >= 176)
  expect(warnings).toEqual([expect.stringMatching(SHORT)])
  for (const { socket } of callers) socket.destroy()
  const answered = () =>
    new Promise<boolean>((resolve) => {
      request(`https://${http}/`, { rejectUnauthorized: false, agent: false }, (response) => {
        response.resume()
        resolve(true)
      })
        .on('error', () => resolve(false))
        .end()
    })
  await until(answered)
})

test('no descriptor at all: connections are closed and told of, HTTP and gRPC', { timeout: 30_000 }, async () => {
  const { http, grpc, warnings, left } = await limitedNode({ grpc: '127.0.0.1:0' })
  await left(0)
  const callers = [http, grpc].map((address) => new Caller(address, ask('/metrics')))
  await until(() => callers.every(({ closed }) => closed))
  expect(callers.map(({ heard }) => heard)).toEqual(['', ''])
  await until(() => [SHORT, GRPC].every((told) => warnings.some((each) => told.test(each))))
  await left(200)
  await until(() =>
    fetch(`http://${http}/metrics`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
})
