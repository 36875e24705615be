/**
 * A node among clients that speak HTTP badly: it lives, reports nothing unforeseen, closes what it opened, and serves others.
 *
 * PENSTOCK_TEST_SEED repeats a round; PENSTOCK_TEST_LONG, seconds, makes one of that length instead of the short one.
 */
import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOperations } from '../../src/contract/operations.ts'
import { lineOf, scratch, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import { descriptors, RawConnection } from './raw-http.ts'

const SEED = Number(process.env.PENSTOCK_TEST_SEED ?? randomInt(2 ** 31))
const LONG_S = Number(process.env.PENSTOCK_TEST_LONG ?? 0)
/** Conversations of the short round, and how many are held at once. */
const SHORT = 3_000
const AT_ONCE = 24
/** Longest time a client waits for an answer that may never come. */
const PATIENCE_MS = 50

/** Mulberry32: numbers in [0, 1) that a seed determines. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const paths = [
  ...loadOperations().flatMap(({ http }) => http.map(({ path }) => path.replaceAll(/\{\w+\}/g, 'x'))),
  ...['/', '/v1/link', '/v1/nodes/%', '/v1/nodes/%ff', '/v1/%2e%2e', '//', '*', 'http://localhost/v1/nodes', '/é', ''],
]
const sockets = [
  '/v1/link',
  ...loadOperations().flatMap(({ http }) =>
    http.filter(({ transport }) => transport === 'websocket').map(({ path }) => path),
  ),
]
const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PRI',
  'X',
  'get',
  '',
  'G\0T',
]
const versions = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/1.', 'HTTP', '']
const headers = [
  ['host', 'localhost', '127.0.0.1', 'evil.example', '', '[::1]:1', 'a'.repeat(300)],
  ['origin', 'null', 'https://evil.example', 'https://page.example', 'http://localhost', 'x'],
  ['authorization', 'Bearer x', 'Bearer', 'Basic eA==', 'Bearer \xff\xfe'],
  ['content-length', '0', '2', '5', '00002', '-1', '4194305', '99999999999999999999', 'x', '2, 2', ''],
  ['transfer-encoding', 'chunked', 'gzip, chunked', 'identity', ''],
  ['connection', 'close', 'keep-alive', 'upgrade', 'Upgrade, close'],
  ['upgrade', 'websocket', 'h2c', ''],
  ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA==', 'short', ''],
  ['sec-websocket-version', '13', '8', 'x'],
  ['sec-websocket-protocol', 'penstock', 'penstock-link.v1', 'penstock.bearer.x', 'penstock, penstock.bearer.x', ',,'],
  ['sec-websocket-extensions', 'permessage-deflate', 'x; y=z'],
  ['sec-fetch-site', 'cross-site', 'none'],
  ['access-control-request-method', 'PUT', ''],
  ['x-forwarded-for', '203.0.113.9', ''],
  ['expect', '100-continue', 'x'],
  ['x'.repeat(500), 'y'.repeat(5_000)],
  ['', ''],
  ['x y', 'z\0'],
] as const
const bodies = [
  '',
  '{}',
  '[]',
  '{',
  '{"name":"x"}',
  '{"nodeId":"x","name":5}',
  '"\xff"',
  '0\r\n\r\n',
  '2\r\n{}\r\n0\r\n\r\n',
  '2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n',
  'ffffffffffffffff\r\n',
  '{"a":'.repeat(2_000),
]

/** What one client says, and how. */
class Script {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = randomOf(seed)
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  bytes(): Buffer {
    const kind = this.below(10)
    if (kind === 0) return this.#noise(this.below(2_000))
    if (kind <= 2)
      return Buffer.concat([this.#upgrade(), ...Array.from({ length: this.below(6) }, () => this.#frame())])
    const requests = Array.from({ length: 1 + this.below(3) }, () => this.#request())
    const whole = Buffer.from(requests.join(''), 'latin1')
    return kind <= 5 ? this.#mutated(whole) : whole
  }

  #noise(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }

  #request(): string {
    const lines = [
      `${this.pick(methods)} ${this.pick(paths)}${this.pick(['', '', '?a=b', '?%ff', '?nodeId=x'])} ${this.pick(versions)}`,
    ]
    if (this.below(8) > 0) lines.push('host: localhost')
    for (let left = this.below(5); left > 0; left--) {
      const [name, ...values] = this.pick(headers)
      lines.push(`${name}: ${this.pick(values as readonly string[])}`)
    }
    if (this.below(60) === 0) lines.push(...Array.from({ length: 200 }, (_, i) => `x-${i}: y`))
    const body = this.pick(bodies)
    if (this.below(2) > 0) lines.push(`content-length: ${body.length}`)
    return `${lines.join('\r\n')}\r\n\r\n${body}`
  }

  #upgrade(): Buffer {
    const path = this.pick(sockets)
    const protocol = this.pick(['penstock', 'penstock-link.v1'])
    return Buffer.from(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
        `sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: ${protocol}\r\n\r\n`,
    )
  }

  #frame(): Buffer {
    const payload = this.pick([
      Buffer.from('{"requestId":"404","accept":true}'),
      Buffer.from('{'),
      Buffer.alloc(126),
      this.#noise(this.below(300)),
      Buffer.alloc(70_000, ' '),
      Buffer.alloc(0),
    ])
    const first = this.pick([0x81, 0x82, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8a, 0xc1, 0x83, this.below(256)])
    const announced = this.below(12) === 0 ? this.below(2 ** 31) : payload.length
    const length = Buffer.alloc(9)
    if (announced < 126) length[0] = 0x80 | announced
    else if (announced < 65_536) length.writeUInt16BE(announced, 1)
    else length.writeBigUInt64BE(BigInt(announced), 1)
    if (announced >= 126) length[0] = announced < 65_536 ? 0xfe : 0xff
    // Masked with zeros: what is said is what is sent.
    const head = length.subarray(0, announced < 126 ? 1 : announced < 65_536 ? 3 : 9)
    return Buffer.concat([Buffer.from([first]), head, Buffer.alloc(4), payload])
  }

  #mutated(bytes: Buffer): Buffer {
    let changed = Buffer.from(bytes)
    for (let left = 1 + this.below(4); left > 0; left--) {
      const at = this.below(changed.length + 1)
      const to = Math.min(changed.length, at + this.below(20))
      const kind = this.below(4)
      if (kind === 0) changed[Math.min(at, changed.length - 1)] = this.below(256)
      else if (kind === 1) changed = Buffer.concat([changed.subarray(0, at), changed.subarray(to)])
      else if (kind === 2) changed = Buffer.concat([changed.subarray(0, to), changed.subarray(at)])
      else changed = Buffer.concat([changed.subarray(0, at), this.#noise(this.below(10)), changed.subarray(at)])
    }
    return changed
  }
}

/** Says it all, in pieces, and leaves in one of several ways. */
async function converse(port: number, tls: boolean, script: Script): Promise<void> {
  const at = { host: '127.0.0.1', port }
  // Some speak no TLS where it is spoken.
  const isPlain = !tls || script.below(8) === 0
  const socket: Socket = isPlain ? connect(at) : connectTls({ ...at, rejectUnauthorized: false })
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  let rest = script.bytes()
  const pieces = 1 + script.below(4)
  for (let left = pieces; left > 0 && !socket.destroyed; left--) {
    const length = left === 1 ? rest.length : script.below(rest.length + 1)
    await new Promise<void>((resolve) => {
      void closed.then(resolve)
      socket.write(rest.subarray(0, length), () => resolve())
    })
    rest = rest.subarray(length)
  }
  const way = script.below(4)
  if (way === 0) socket.destroy()
  else if (way === 1 && isPlain) socket.resetAndDestroy()
  else {
    if (way === 2) socket.end()
    const given = setTimeout(() => socket.destroy(), PATIENCE_MS)
    await closed
    clearTimeout(given)
  }
  await closed
}

describe.each([
  ['plain', false],
  ['TLS', true],
])('%s', (_, tls) => {
  const directory = scratch()
  let node: ChildProcess
  let port: number
  let said = ''

  beforeAll(async () => {
    const http = ['--http', '127.0.0.1:0', '--grpc', 'none', '--hub', '--http-allowed-origins', 'https://page.example']
    const certificate = tls ? ['--http-tls', 'auto'] : []
    node = start(['up', '--data-dir', `${directory.path}/data`, '--log-level', 'error', ...http, ...certificate])
    node.stderr?.on('data', (text) => {
      said += text
    })
    port = Number((await lineOf(node, /^penstock ready http=\S*:(\d+)/))[1])
  })

  afterAll(() => {
    node.kill('SIGKILL')
    directory.dispose()
  })

  it(
    'survives what is no HTTP, and lets go of it',
    async () => {
      console.info(`fuzz: PENSTOCK_TEST_SEED=${SEED}`)
      const served = async () => {
        const connection = new RawConnection(port, tls)
        const answer = await connection.ask('GET', '/v1/hub-client/local-node-id')
        connection.close()
        return answer?.status
      }
      expect(await served()).toBe(200)
      const pid = node.pid as number
      const before = descriptors(pid)
      const end = performance.now() + LONG_S * 1_000
      let next = 0
      const goesOn = () => (LONG_S > 0 ? performance.now() < end : next < SHORT) && node.exitCode === null
      const client = async (): Promise<void> => {
        while (goesOn()) {
          const index = next
          next++
          await converse(port, tls, new Script(SEED + index * 7919))
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, client))
      const seen = () => `seed ${SEED}, ${next} conversations; the node said: ${said || 'nothing'}`
      expect([node.exitCode, node.signalCode], seen()).toEqual([null, null])
      expect(await served(), seen()).toBe(200)
      await until(
        () => descriptors(pid) <= before,
        () => `${before} descriptors, open are ${descriptors(pid)}; ${seen()}`,
      )
      expect(said, seen()).toBe('')
    },
    (LONG_S + 90) * 1_000,
  )
})
