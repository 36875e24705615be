/** A node behind nginx as docs/proxy.md sets it up: everything gets through, and what uWebSockets.js gets wrong does not. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { makeCertificate } from '../../src/link/certificate.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, scratch, start } from '../cli/cli.ts'
import { freePort, nginx, startNginx } from './nginx.ts'

if (nginx === undefined) console.warn('SKIPPED: the tests of a proxy lack nginx (Debian package nginx-light)')

const page = readFileSync(join(packageRoot(), 'docs/proxy.md'), 'utf8')
const site = readFileSync(join(packageRoot(), 'examples/nginx/penstock.conf'), 'utf8')
/** What every node answers. */
const ID = '/v1/hub-client/local-node-id'

describe.skipIf(nginx === undefined).each([
  ['a hub with the certificate of its proxy', true],
  ['a node without TLS', false],
])('%s', (_, nodeHasTls) => {
  const directory = scratch()
  const children: ChildProcess[] = []
  let certificate: string
  let direct: string
  let port: number
  let node: string
  let token: string
  let bearer: { authorization: string }

  async function up(name: string, ...flags: string[]) {
    const child = start(['up', '--data-dir', `${directory.path}/${name}`, '--node-name', name, ...flags])
    children.push(child)
    const ready = await lineOf(child, /^penstock ready http=(\S+) grpc=(\S+) node=(\S+)/)
    return { http: ready[1] as string, grpc: ready[2] as string, id: ready[3] as string }
  }

  beforeAll(async () => {
    const made = makeCertificate(['penstock.example'], Date.now())
    certificate = directory.file('tls.crt', made.certificate)
    const key = directory.file('tls.key', made.key)
    const tls = nodeHasTls ? ['--http-tls', JSON.stringify({ certificate, key }), '--hub'] : []
    const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-level', 'error']
    const { http, grpc, id } = await up('node', ...free, ...tls, '--http-allowed-origins', 'https://page.example')
    direct = http
    node = id
    port = await freePort()
    const proxied = { directory: `${directory.path}/nginx`, port, http, grpc, certificate, key, nodeHasTls }
    children.push(await startNginx(proxied))
    // As the page says it, of a node at another port.
    const [, said = ''] = /^4\. `penstock ([^`]+)`/m.exec(page) ?? []
    const typed = said.replace('NAME', 'proxied').replace('127.0.0.1:8769', http).split(' ')
    const made2 = nodeHasTls
      ? await penstock([...typed, '-o', 'json'], { env: at(http, false) })
      : await penstock(['token', 'create', 'proxied', '-o', 'json'], { env: at(http, false) })
    token = JSON.parse(made2.stdout).secret
    bearer = { authorization: `Bearer ${token}` }
  })

  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    directory.dispose()
  })

  const at = (address: string, tls: boolean) => ({ PENSTOCK_URL: `${tls ? 'https' : 'http'}://${address}` })

  async function call(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, rejectUnauthorized: false, agent: false })
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.setEncoding('utf8')
    return response
  }

  async function read(response: IncomingMessage, until = '\uffff'): Promise<string> {
    let text = ''
    for await (const chunk of response) {
      text += chunk
      if (text.includes(until)) break
    }
    return text
  }

  it('asks everybody who comes through it for a token, though nginx is on the same machine', async () => {
    for (const host of ['penstock.example', 'localhost', `127.0.0.1:${port}`]) {
      const refused = await call('GET', ID, { host })
      expect([host, refused.statusCode, refused.headers['www-authenticate']]).toEqual([host, 401, 'Bearer'])
      expect(await read(refused)).toContain('what comes through a proxy')
    }
    expect((await call('GET', ID, { host: 'penstock.example', ...bearer })).statusCode).toBe(200)
    expect((await call('GET', ID, { host: 'any.example', ...bearer })).statusCode).toBe(200)
    // The machine's own callers go on without one.
    expect(await penstock(['status'], { env: at(direct, nodeHasTls) })).toMatchObject({ code: 0 })
    const through = { ...at(`127.0.0.1:${port}`, true), PENSTOCK_TOKEN: token }
    expect(await penstock(['status', '--ca', certificate], { env: through })).toMatchObject({ code: 0, stderr: '' })
  })

  it('serves HEAD, bodies of any allowed length, and pages of other origins', async () => {
    const head = await call('HEAD', ID, bearer)
    const get = await call('GET', ID, bearer)
    expect([head.statusCode, head.headers['content-type']]).toEqual([200, get.headers['content-type']])
    expect((await call('HEAD', '/v1/streams/nodes/unknown/pipelines', bearer)).statusCode).toBeGreaterThanOrEqual(400)
    const name = JSON.stringify({ name: '', jsonConfig: ' '.repeat(3_000_000) })
    const refused = await call('POST', `/v1/nodes/${node}/pipelines`, bearer, name)
    expect([refused.statusCode, JSON.parse(await read(refused)).code]).toEqual([400, 3])
    const origin = 'https://page.example'
    const preflight = await call('OPTIONS', ID, { origin, 'access-control-request-method': 'GET' })
    expect([preflight.statusCode, preflight.headers['access-control-allow-origin']]).toEqual([204, origin])
    const served = await call('GET', ID, { origin, ...bearer })
    expect([served.statusCode, served.headers['access-control-allow-origin']]).toEqual([200, origin])
    // A page of the proxy's own origin, port included.
    const own = { host: `penstock.example:${port}`, origin: `https://penstock.example:${port}`, ...bearer }
    expect((await call('GET', ID, own)).statusCode).toBe(200)
  })

  it('gives up idle connections before the node does', () => {
    // Not seen from outside, which would take its time: the node closes them after 8 s at the soonest (docs/proxy.md).
    const [, seconds] = /upstream penstock_http {[^}]*\n {4}keepalive_timeout (\d+)s;/.exec(site) ?? []
    expect(Number(seconds)).toBeLessThan(8)
  })

  it('passes events on when they happen', async () => {
    const response = await call('GET', `/v1/streams/nodes/${node}/pipelines`, bearer)
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream'])
    let text = ''
    const has = (words: string) =>
      new Promise<void>((resolve) => {
        const look = () => text.includes(words) && resolve()
        response.on('data', (chunk) => {
          text += chunk
          look()
        })
        look()
      })
    await has(': ready')
    const jsonConfig = readFileSync(join(import.meta.dirname, '../../examples/generator.json'), 'utf8')
    const body = JSON.stringify({ name: 'seen', jsonConfig })
    const created = await call('POST', `/v1/nodes/${node}/pipelines`, bearer, body)
    expect(created.statusCode).toBe(200)
    await has('"name":"seen"')
    response.destroy()
  })

  it('passes WebSockets on, the token among their subprotocols too', async () => {
    const url = `wss://127.0.0.1:${port}/v1/streams/hub-server/authentication-requests`
    const open = (protocols: string[], headers: Record<string, string>) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(url, protocols, { headers, rejectUnauthorized: false })
        socket.on('open', () => {
          // On no hub the stream ends at once.
          if (nodeHasTls) socket.send('{"requestId": 404}')
        })
        socket.on('message', (data) => {
          resolve(`${socket.protocol} ${data}`)
          socket.terminate()
        })
        socket.on('unexpected-response', (_, response) => resolve(`${response.statusCode}`))
        socket.on('error', () => undefined)
      })
    const code = nodeHasTls ? '"code":5' : '"code":9'
    expect(await open([], bearer)).toContain(code)
    const page = { origin: 'https://page.example' }
    expect(await open(['penstock', `penstock.bearer.${token}`], page)).toMatch(
      new RegExp(`^penstock \\{"error":\\{${code}`),
    )
    expect(await open(['penstock', 'penstock.bearer.x'], page)).toBe('401')
    expect(await open(['penstock'], {})).toBe('401')
  })

  it('passes gRPC on', async () => {
    const secure = credentials.createSsl(readFileSync(certificate))
    const client = new Client(`127.0.0.1:${port}`, secure, { 'grpc.ssl_target_name_override': 'penstock.example' })
    const pass = (bytes: Buffer) => bytes
    const ask = (authorization?: string) =>
      new Promise<number>((resolve) => {
        const metadata = new Metadata()
        if (authorization !== undefined) metadata.set('authorization', authorization)
        const path = '/servicegrpc.hub.HubClientService/getLocalNodeId'
        const deadline = { deadline: Date.now() + 10_000 }
        client.makeUnaryRequest(path, pass, pass, Buffer.alloc(0), metadata, deadline, (error) =>
          resolve(error?.code ?? 0),
        )
      })
    expect(await ask(bearer.authorization)).toBe(0)
    expect(await ask()).toBe(16)
    const metadata = new Metadata()
    metadata.set('authorization', bearer.authorization)
    const path = '/servicegrpc.hub.HubClientService/streamConnectionState'
    const stream = client.makeServerStreamRequest(path, pass, pass, Buffer.alloc(0), metadata)
    stream.on('error', () => undefined)
    // The first message comes while the stream goes on.
    await once(stream, 'data')
    stream.cancel()
    client.close()
  })

  if (nodeHasTls)
    it('lets nodes join and call each other', async () => {
      const edge = await up('edge', '--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error')
      const env = at(edge.http, false)
      const joining = penstock(['authenticate-by-request', `https://127.0.0.1:${port}`], { env })
      const hub = at(direct, true)
      for (let pending = ''; !pending.includes(edge.id); ) {
        pending = await read(await call('GET', '/v1/hub-server/authentication-requests', bearer))
      }
      expect(await penstock(['authentication-requests', 'approve', '--all'], { env: hub })).toMatchObject({ code: 0 })
      expect(await joining).toMatchObject({ code: 0 })
      const far = await penstock(['pipelines', 'list', '--node', 'node', '-o', 'json'], { env })
      expect([far.code, far.stdout.includes('"seen"')]).toEqual([0, true])
      const back = await penstock(['pipelines', 'list', '--node', 'edge', '-o', 'json'], { env: hub })
      expect(back.code).toBe(0)
    }, 90_000)

  /** What comes back for bytes sent in pieces, each as a packet of its own, until nothing is left to wait for. */
  function talk(pieces: (string | (() => Promise<void>))[], isOver: (received: string) => boolean): Promise<string> {
    return new Promise((resolve) => {
      const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
      socket.setNoDelay(true)
      let received = ''
      socket.on('data', (bytes) => {
        received += bytes
        if (isOver(received)) socket.destroy()
      })
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(received))
      socket.on('secureConnect', async () => {
        for (const piece of pieces) {
          if (typeof piece === 'string') socket.write(piece)
          else await piece()
        }
      })
    })
  }

  const head = (line: string, ...fields: string[]) =>
    [line, 'host: localhost', `authorization: Bearer ${token}`, ...fields, '', ''].join('\r\n')
  const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  const count = (number: number) => (text: string) => statuses(text).length >= number
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 30))

  it('takes away what the node’s HTTP server gets wrong (docs/limits.md)', async () => {
    // A request behind one that waits two seconds for a run that never comes.
    const waiting = `/v1/nodes/${node}/pipeline-runs/unknown`
    const both = head(`GET ${waiting} HTTP/1.1`) + head(`GET ${ID} HTTP/1.1`)
    expect(statuses(await talk([both], count(2)))).toEqual([504, 200])
    // A request line in two packets.
    const whole = head(`GET ${ID} HTTP/1.1`)
    const cut = whole.indexOf('/1.1')
    expect(statuses(await talk([whole.slice(0, cut), pause, whole.slice(cut)], count(1)))).toEqual([200])
    // Chunk extensions and trailers.
    const chunked = head('POST /v1/nodes/x/pipelines/y/start HTTP/1.1', 'transfer-encoding: chunked')
    const chunks = `${chunked}2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n`
    expect([404, 400, 503]).toContain(statuses(await talk([chunks], count(1)))[0])
    // Two lengths, a length that is none, encodings that are no chunks.
    for (const fields of [
      ['content-length: 2', 'content-length: 3'],
      ['content-length: 2', 'transfer-encoding: chunked'],
      ['transfer-encoding: gzip'],
      ['transfer-encoding: identity', 'transfer-encoding: chunked'],
    ]) {
      const refused = statuses(await talk([`${head('POST /v1/nodes HTTP/1.1', ...fields)}{}`], count(1)))
      expect([fields, [400, 501].includes(refused[0] as number)]).toEqual([fields, true])
    }
    // No header field at all.
    expect(statuses(await talk([`GET ${ID} HTTP/1.1\r\n\r\n`], count(1)))).toEqual([400])
    // HTTP/1.0.
    expect(statuses(await talk([head(`GET ${ID} HTTP/1.0`)], count(1)))).toEqual([200])
  })
})
