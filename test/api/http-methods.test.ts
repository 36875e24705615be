/** Every method on every path of a node, and on paths that it has not, let in or refused, with and without TLS: each has its answer. */
import type { ChildProcess } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOperations } from '../../src/contract/operations.ts'
import { lineOf, scratch, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import { descriptors, type RawAnswer, RawConnection } from './raw-http.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND', 'X']

const fill = (path: string): string => path.replaceAll(/\{\w+\}/g, 'unknown')

/** The methods of each path, with the transport of each. */
const routes = new Map<string, Map<string, string>>()
for (const { http } of loadOperations()) {
  for (const { verb, path, transport } of http) {
    const verbs = routes.get(fill(path)) ?? new Map<string, string>()
    routes.set(fill(path), verbs.set(verb, transport))
  }
}
routes.set('/v1/streams', new Map([['GET', 'websocket']]))
/** The link's path is one for upgrades only, / is the dashboard; the others are none at all. */
const strangers = ['/', '/v1', '/v1/', '/v1/link', '/v1/nope', '/v1/nodes/%ff', '/favicon.ico', '//', '/..']

/** Why a caller is refused, and with which status. */
const refusals: [string, Record<string, string>, number][] = [
  ['a foreign Host', { host: 'evil.example' }, 403],
  ['no Host that is ours', { host: '10.0.0.1' }, 403],
  ['a foreign Origin', { origin: 'https://evil.example' }, 403],
  ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
  ['an unknown token', { authorization: 'Bearer penstock_guess' }, 401],
  ['no token through a proxy', { 'x-forwarded-for': '203.0.113.9' }, 401],
  ['no token through another proxy', { forwarded: 'for=203.0.113.9' }, 401],
  ['no token from an origin served, through a proxy', { forwarded: 'x', origin: 'https://page.example' }, 401],
]

const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

describe.each([
  ['plain', false],
  ['TLS', true],
])('%s', (_, tls) => {
  const directory = scratch()
  let node: ChildProcess
  let port: number
  let connection: RawConnection
  let before: number
  const pid = () => node.pid as number

  beforeAll(async () => {
    const http = ['--http', '127.0.0.1:0', '--grpc', 'none', '--hub', '--http-allowed-origins', 'https://page.example']
    const certificate = tls ? ['--http-tls', 'auto'] : []
    node = start(['up', '--data-dir', `${directory.path}/data`, '--log-level', 'error', ...http, ...certificate])
    port = Number((await lineOf(node, /^penstock ready http=\S*:(\d+)/))[1])
    before = descriptors(pid())
    connection = new RawConnection(port, tls)
  })

  afterAll(() => {
    connection.close()
    node.kill('SIGKILL')
    directory.dispose()
  })

  /** The node lives, and has closed what it opened. */
  async function expectUnharmed(): Promise<void> {
    connection.close()
    await until(
      () => descriptors(pid()) <= before,
      () => `${descriptors(pid())} descriptors are open, ${before} were`,
    )
    expect([node.exitCode, node.signalCode]).toEqual([null, null])
  }

  function summary(answer: RawAnswer | undefined) {
    if (answer === undefined) return 'no answer'
    return answer.status
  }

  it.each(refusals)('refuses %s, whatever is asked', async (_why, headers, status) => {
    const wrong: unknown[] = []
    for (const path of [...routes.keys(), ...strangers]) {
      for (const method of METHODS) {
        const answer = await connection.ask(method, path, headers)
        // The dashboard asks for a token itself.
        const isPage = answer?.headers.get('content-type')?.startsWith('text/html') === true
        const isAsking = path === '/' && method === 'GET' && status === 401 && isPage
        const isComplete =
          method === 'HEAD' || isAsking || (answer !== undefined && 'code' in JSON.parse(answer.body || 'null'))
        if (answer?.status !== status || !isComplete) wrong.push([method, path, summary(answer)])
      }
    }
    expect(wrong).toEqual([])
    await expectUnharmed()
  })

  it('answers what it has, and says what it has not', async () => {
    const wrong: unknown[] = []
    for (const [path, verbs] of routes) {
      for (const method of METHODS) {
        const transport = verbs.get(method) ?? (method === 'HEAD' ? verbs.get('GET') : undefined)
        const answer = await connection.ask(method, path)
        const status = answer?.status ?? 0
        // No operation succeeds for a node, pipeline or token called unknown, but for those that name none.
        const isRight =
          transport === 'websocket'
            ? status === 426
            : transport !== undefined
              ? [200, 400, 404, 409, 503].includes(status)
              : status === (method === 'OPTIONS' ? 204 : 405) && (answer?.headers.get('allow') ?? '') !== ''
        if (!isRight) wrong.push([method, path, summary(answer)])
      }
    }
    expect(wrong).toEqual([])
    await expectUnharmed()
  })

  it('has nothing but the dashboard at other paths', async () => {
    const wrong: unknown[] = []
    for (const path of strangers) {
      for (const method of METHODS) {
        const answer = await connection.ask(method, path)
        // An id that is empty, or not UTF-8.
        const isBad =
          ['/v1/nodes/', '/v1/nodes/%ff'].includes(path) && ['GET', 'HEAD', 'PUT', 'DELETE'].includes(method)
        const isDashboard = path === '/' && ['GET', 'HEAD'].includes(method)
        const expected = isBad ? [400] : isDashboard ? [200] : [404, 405, 204]
        if (!expected.includes(answer?.status ?? 0)) wrong.push([method, path, summary(answer)])
      }
    }
    expect(wrong).toEqual([])
    await expectUnharmed()
  })

  it('refuses a body in an encoding, and several hosts, whatever is asked', async () => {
    const body = '{"serviceFilters":["HUB_SERVER"]}'
    const search = (headers: Record<string, string>) => connection.ask('POST', '/v1/nodes/search', headers, body)
    const encoded = await search({ 'content-encoding': 'gzip' })
    expect([encoded?.status, encoded?.headers.get('accept-encoding')]).toEqual([415, 'identity'])
    expect(encoded?.body).toContain('Content-Encoding: gzip')
    expect((await search({ 'content-encoding': 'identity' }))?.status).toBe(200)
    for (const second of ['localhost', 'evil.example']) {
      const several = await search({ host: `localhost\r\nhost: ${second}` })
      expect([several?.status, JSON.parse(several?.body ?? '').message]).toEqual([400, expect.stringContaining('Host')])
      const socket = await connection.ask('GET', '/v1/streams', { ...upgrade, host: `localhost\r\nhost: ${second}` })
      expect(socket?.status).toBe(400)
    }
    await expectUnharmed()
  })

  it('answers HEAD as GET, status and headers, without a body', async () => {
    const compared: string[] = []
    const kept = (answer: RawAnswer | undefined) =>
      [...(answer?.headers ?? [])].filter(([name]) => !['date', 'transfer-encoding'].includes(name)).sort()
    for (const path of [...routes.keys(), ...strangers]) {
      const get = await connection.ask('GET', path)
      const head = await connection.ask('HEAD', path)
      expect([path, head?.status, kept(head)]).toEqual([path, get?.status, kept(get)])
      expect(head?.body).toBe('')
      compared.push(`${head?.status}`)
    }
    // Streams that stand and streams of what does not exist were among them.
    for (const status of ['200', '404', '405', '426']) expect(compared).toContain(status)
    await expectUnharmed()
  })

  it('upgrades GET on the paths of WebSockets and streams alone', async () => {
    const wrong: unknown[] = []
    for (const path of [...routes.keys(), ...strangers]) {
      const isSocket = ['websocket', 'sse'].includes(routes.get(path)?.get('GET') ?? '')
      for (const method of METHODS) {
        for (const [, headers, refused] of [['', {}, undefined] as const, ...refusals]) {
          const answer = await connection.ask(method, path, { ...headers, ...upgrade })
          const status = answer?.status ?? 0
          let isRight = refused === undefined ? status !== 101 && status >= 200 && status <= 503 : status === refused
          if (method === 'GET' && isSocket && refused === undefined) isRight = status === 101
          // The link has rules of its own: no Origin, and its subprotocol.
          if (method === 'GET' && path === '/v1/link') isRight = status === ('origin' in headers ? 403 : 400)
          if (!isRight) wrong.push([method, path, headers, summary(answer)])
        }
      }
    }
    expect(wrong).toEqual([])
    const link = { ...upgrade, 'sec-websocket-protocol': 'penstock-link.v1' }
    expect((await connection.ask('GET', '/v1/link', link))?.status).toBe(101)
    await expectUnharmed()
  })
})
