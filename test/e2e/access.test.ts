/** What a node lets in from another machine: the link and holders of a token, nothing else, on any transport. */
import type { ChildProcess } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadOperations } from '../../src/contract/operations.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, scratch } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import { Cable, Caller, NEAR, namespacesLack } from './namespaces.ts'

const missing = namespacesLack()
if (missing.length > 0) console.warn(`SKIPPED: the access tests lack ${missing.join(', ')}`)

const HTTP = 8769
const GRPC = 8770

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PURGE', 'SEARCH']

const fill = (path: string): string => path.replaceAll(/\{\w+\}/g, 'x')

describe.skipIf(missing.length > 0)('a node that listens on every address', () => {
  const directory = scratch()
  const logged: string[] = []
  let cable: Cable
  let node: ChildProcess
  /** On the machine of the node, and on another one. */
  let near: Caller
  let far: Caller
  let id: string

  beforeAll(async () => {
    cable = new Cable()
    node = cable.spawn(cable.near, `${packageRoot()}/bin/penstock.js`, [
      'up',
      '--hub',
      ...['--data-dir', directory.path],
      ...['--http', `0.0.0.0:${HTTP}`],
      ...['--grpc', `0.0.0.0:${GRPC}`],
      ...['--http-hostnames', 'node.example'],
      ...['--http-allowed-origins', 'https://page.example'],
      ...['--log-format', 'json'],
    ])
    node.stderr?.on('data', (text) => logged.push(String(text)))
    id = (await lineOf(node, /^penstock ready .*node=(\S+)$/))[1] as string
    near = new Caller(cable, cable.near)
    far = new Caller(cable, cable.far)
  })

  afterAll(async () => {
    await cable?.dispose()
    directory.dispose()
  })

  const api = (host: string, path: string) => `http://${host}:${HTTP}/v1${path}`
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  async function createToken(name: string): Promise<string> {
    const made = await near.call({
      kind: 'http',
      method: 'POST',
      url: api('127.0.0.1', '/access/tokens'),
      body: JSON.stringify({ name }),
    })
    expect(made.status).toBe(200)
    return JSON.parse(made.body as string).secret
  }

  const revokeToken = (name: string) =>
    near.call({ kind: 'http', method: 'DELETE', url: api('127.0.0.1', `/access/tokens/${name}`) })

  it('warns of addresses without TLS', async () => {
    const says = (text: string) => until(() => logged.join('').includes(text), text)
    await says('http.address 0.0.0.0:8769 is served without TLS: for trusted networks only')
    await says('grpc.address 0.0.0.0:8770 is served without TLS')
  })

  it('answers callers of its own machine', async () => {
    const url = api('127.0.0.1', '/hub-client/local-node-id')
    expect(await near.call({ kind: 'http', url })).toMatchObject({ status: 200 })
    const health = { kind: 'rpc', address: `127.0.0.1:${GRPC}`, path: '/grpc.health.v1.Health/Check' }
    expect(await near.call(health)).toMatchObject({ code: 0 })
  })

  it('gives no HTTP form of any operation to another machine, whatever Host it claims', async () => {
    const answers: [string, number | undefined][] = []
    for (const operation of loadOperations()) {
      for (const { verb, path, transport } of operation.http) {
        for (const headers of [
          undefined,
          { host: 'localhost' },
          { origin: 'https://page.example' },
          bearer('penstock_guess'),
        ]) {
          const url = `${transport === 'websocket' ? 'ws' : 'http'}://${NEAR}:${HTTP}${fill(path)}`
          const command =
            transport === 'websocket' ? { kind: 'websocket' } : { kind: 'http', method: verb, stream: true }
          answers.push([operation.name, (await far.call({ ...command, url, headers })).status])
        }
      }
    }
    expect(answers.length).toBeGreaterThan(60)
    expect(answers.filter(([, status]) => status !== 401)).toEqual([])
  })

  it('nor anything by another method, HEAD and invented ones included', async () => {
    const paths = loadOperations().flatMap(({ http }) => http.map(({ path }) => fill(path)))
    const answers: [string, string, number | undefined][] = []
    for (const path of [...new Set([...paths, '/', '/v1/nope', '/v1/link', '/metrics', '/favicon.ico'])]) {
      for (const method of METHODS) {
        const { status } = await far.call({ kind: 'http', method, url: `http://${NEAR}:${HTTP}${path}` })
        if (status !== 401) answers.push([method, path, status])
      }
    }
    expect(answers).toEqual([])
    expect(node.exitCode ?? node.signalCode).toBeNull()
  })

  it('gives no gRPC method to another machine, health and reflection included', async () => {
    const paths = [
      ...loadOperations().map(({ grpcPath }) => grpcPath),
      '/grpc.health.v1.Health/Check',
      '/grpc.health.v1.Health/Watch',
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
    ]
    const codes: unknown[] = []
    for (const path of paths) {
      for (const token of [undefined, 'penstock_guess']) {
        const { code } = await far.call({ kind: 'rpc', address: `${NEAR}:${GRPC}`, path, token })
        if (code !== 16) codes.push([path, code])
      }
    }
    expect(codes).toEqual([])
  })

  it('opens the link, and only the link, to everyone', async () => {
    const url = `ws://${NEAR}:${HTTP}/v1/link`
    expect(await far.call({ kind: 'websocket', url, protocol: 'penstock-link.v1' })).toMatchObject({ status: 101 })
  })

  it('takes a token, and refuses it from the moment it is revoked, open streams included', async () => {
    const secret = await createToken('laptop')
    const url = api(NEAR, '/hub-client/local-node-id')
    expect(await far.call({ kind: 'http', url, headers: bearer(secret) })).toMatchObject({ status: 200 })
    expect(await far.call({ kind: 'http', url, headers: { ...bearer(secret), host: 'any.example' } })).toMatchObject({
      status: 200,
    })
    const stream = { kind: 'http', url: api(NEAR, `/streams/nodes/${id}/pipelines`), stream: true }
    expect(await far.call({ ...stream, headers: bearer(secret) })).toEqual({ status: 200 })
    const events = far.last
    expect((await far.call({ kind: 'read', stream: events, until: ': ready' })).over).toBe(false)
    const requests = `ws://${NEAR}:${HTTP}/v1/streams/hub-server/authentication-requests`
    expect(await far.call({ kind: 'websocket', url: requests, headers: bearer(secret) })).toEqual({ status: 101 })
    const socket = far.last
    const rpc = { kind: 'rpc', address: `${NEAR}:${GRPC}`, token: secret }
    const watch = { ...rpc, path: '/servicegrpc.hub.HubClientService/streamConnectionState', stream: true }
    expect(await far.call(watch)).toMatchObject({ open: true })
    const states = far.last
    const idOf = { ...rpc, path: '/servicegrpc.hub.HubClientService/getLocalNodeId' }
    expect(await far.call(idOf)).toMatchObject({ code: 0 })

    const listed = await near.call({ kind: 'http', url: api('127.0.0.1', '/access/tokens') })
    expect(listed.body).not.toContain(secret)
    expect(JSON.parse(listed.body as string)).toEqual({
      tokens: [{ name: 'laptop', createdAt: expect.any(String), lastUsed: expect.any(String) }],
    })

    expect(await revokeToken('laptop')).toMatchObject({ status: 200 })
    expect(await far.call({ kind: 'http', url, headers: bearer(secret) })).toMatchObject({ status: 401 })
    expect(await far.call(idOf)).toMatchObject({ code: 16 })
    const end = await far.call({ kind: 'read', stream: events, until: 'event: error' })
    expect(end.text).toContain('"code":16')
    expect((await far.call({ kind: 'read', stream: socket, until: 'close' })).text).toContain('close 4016')
    expect((await far.call({ kind: 'read', stream: states, until: 'status' })).text).toContain('status 16')
    expect(await revokeToken('laptop')).toMatchObject({ status: 404 })
  })

  it('looks at the token once more when an empty body in chunks has taken its time', async () => {
    const secret = await createToken('chunked')
    const kept = await createToken('kept')
    const head = [
      `DELETE /v1/access/tokens/kept HTTP/1.1`,
      `host: ${NEAR}`,
      `authorization: Bearer ${secret}`,
      'transfer-encoding: chunked',
    ]
    expect(await far.call({ kind: 'held', host: NEAR, port: HTTP, head, begin: '' })).toEqual({ open: true })
    const request = far.last
    await far.call({ kind: 'http', url: api(NEAR, '/nodes'), headers: bearer(secret) })
    expect(await revokeToken('chunked')).toMatchObject({ status: 200 })
    await far.call({ kind: 'finish', stream: request, rest: '0\r\n\r\n' })
    expect((await far.call({ kind: 'read', stream: request, until: '"code"' })).text).toMatch(/^HTTP\/1\.1 401 /)
    expect(await far.call({ kind: 'http', url: api(NEAR, '/nodes'), headers: bearer(kept) })).toMatchObject({
      status: 200,
    })
    expect(await revokeToken('kept')).toMatchObject({ status: 200 })
  })

  it('looks at the token once more when a body has taken its time', async () => {
    const secret = await createToken('slow')
    const held = await far.call({
      kind: 'held',
      host: NEAR,
      port: HTTP,
      head: [
        'POST /v1/access/tokens HTTP/1.1',
        `host: ${NEAR}`,
        `authorization: Bearer ${secret}`,
        'content-type: application/json',
        'content-length: 16',
      ],
      begin: '{"name":',
    })
    expect(held).toEqual({ open: true })
    const request = far.last
    // A call on another connection behind it: the head has been read by then.
    await far.call({ kind: 'http', url: api(NEAR, '/nodes'), headers: bearer(secret) })
    expect(await revokeToken('slow')).toMatchObject({ status: 200 })
    await far.call({ kind: 'finish', stream: request, rest: '"later"}' })
    expect((await far.call({ kind: 'read', stream: request, until: '"code"' })).text).toMatch(/^HTTP\/1\.1 401 /)
    const listed = await near.call({ kind: 'http', url: api('127.0.0.1', '/access/tokens') })
    expect(JSON.parse(listed.body as string)).toEqual({ tokens: [] })
  })

  it('knows its own machine and others on an address that takes IPv6 and IPv4', async () => {
    const both = cable.spawn(cable.near, `${packageRoot()}/bin/penstock.js`, [
      'up',
      ...['--data-dir', `${directory.path}/both`],
      ...['--http', '[::]:8779'],
      ...['--grpc', '[::]:8780'],
      ...['--log-level', 'error'],
    ])
    await lineOf(both, /^penstock ready /)
    const path = '/v1/hub-client/local-node-id'
    for (const host of ['127.0.0.1', '[::1]']) {
      expect([host, await near.call({ kind: 'http', url: `http://${host}:8779${path}` })]).toMatchObject([
        host,
        { status: 200 },
      ])
      const health = { kind: 'rpc', address: `${host}:8780`, path: '/grpc.health.v1.Health/Check' }
      expect([host, await near.call(health)]).toMatchObject([host, { code: 0 }])
    }
    expect(await far.call({ kind: 'http', url: `http://${NEAR}:8779${path}` })).toMatchObject({ status: 401 })
    const health = { kind: 'rpc', address: `${NEAR}:8780`, path: '/grpc.health.v1.Health/Check' }
    expect(await far.call(health)).toMatchObject({ code: 16 })
  })

  it('lets a web page of another origin do nothing on a person’s behalf (DNS rebinding, cross-site requests)', async () => {
    const url = api('127.0.0.1', '/hub-client/local-node-id')
    const requests = `ws://127.0.0.1:${HTTP}/v1/streams/hub-server/authentication-requests`
    for (const headers of [
      { host: `evil.example:${HTTP}` },
      { host: NEAR },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      expect([headers, (await near.call({ kind: 'http', url, headers })).status]).toEqual([headers, 403])
      expect([headers, (await near.call({ kind: 'websocket', url: requests, headers })).status]).toEqual([headers, 403])
    }
    const own = { host: 'node.example', origin: 'http://node.example' }
    expect(await near.call({ kind: 'http', url, headers: own })).toMatchObject({ status: 200 })
    const secret = await createToken('page')
    const elsewhere = { ...bearer(secret), origin: 'https://elsewhere.example' }
    expect(await near.call({ kind: 'http', url, headers: elsewhere })).toMatchObject({ status: 403 })
    const page = { ...bearer(secret), origin: 'https://page.example' }
    expect(await near.call({ kind: 'http', url, headers: page })).toMatchObject({ status: 200 })
    await revokeToken('page')
  })

  it('never says a secret in its log', async () => {
    const secret = await createToken('quiet')
    await far.call({ kind: 'http', url: api(NEAR, '/nodes'), headers: bearer(secret) })
    await revokeToken('quiet')
    expect(logged.join('')).not.toContain(secret)
  })
})
