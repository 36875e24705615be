/** The dashboard as a node serves it: a build's files, read from a directory of their own here, to callers of every kind. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Access } from '../../src/api/access.ts'
import { readDashboard } from '../../src/api/dashboard.ts'
import { Dispatcher } from '../../src/api/dispatcher.ts'
import { HttpListener } from '../../src/api/http.ts'
import { packageRoot } from '../../src/package-root.ts'
import { handlers, Seen } from '../contract/handlers.ts'
import { runNode, temporaryDirectory } from './running-node.ts'

const PAGE = `<!doctype html><title>penstock</title>${' '.repeat(2_000)}`
const SCRIPT = 'export const answer = 42'

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

let port: number

function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) })
    })
    sent.on('error', reject)
    sent.end()
  })
}

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
const verifyToken = (token: string) => (token === 'right' ? 'name' : undefined)

async function listen(access: Access, directory: string): Promise<HttpListener> {
  const dashboard = readDashboard(directory)
  const listener = new HttpListener({ dispatcher, access, dashboard, address: '127.0.0.1', port: 0 })
  ;({ port } = await listener.start())
  return listener
}

function build(): string {
  const directory = temporaryDirectory()
  mkdirSync(join(directory, 'assets'))
  writeFileSync(join(directory, 'index.html'), PAGE)
  writeFileSync(join(directory, 'index.html.br'), brotliCompressSync(PAGE))
  writeFileSync(join(directory, 'index.html.gz'), gzipSync(PAGE))
  writeFileSync(join(directory, 'assets/app-1a2b.js'), SCRIPT)
  writeFileSync(join(directory, 'assets/note.txt'), 'no file of a page')
  writeFileSync(join(directory, 'secret.js'), 'beside the assets')
  return directory
}

describe('a caller who needs no token', () => {
  let listener: HttpListener
  beforeAll(async () => {
    listener = await listen(new Access({ verifyToken, allowedOrigins: ['https://page.example'] }), build())
  })
  afterAll(() => listener.stop())

  test('gets the page, which may load and reach nothing but this node', async () => {
    const { status, headers, body } = await ask('/')
    expect([status, body.toString()]).toEqual([200, PAGE])
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    })
    const policy = String(headers['content-security-policy'])
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
  })

  test.each([
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['BR', 'br'],
    ['identity', undefined],
    ['', undefined],
    ['br;q=0, *', 'gzip'],
  ])('who accepts %j gets it as %s', async (accepted, coding) => {
    const { headers, body } = await ask('/', { 'accept-encoding': accepted })
    expect(headers['content-encoding']).toBe(coding)
    expect(headers.vary).toContain('accept-encoding')
    const plain = coding === 'br' ? brotliDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body
    expect(plain.toString()).toBe(PAGE)
    expect(Number(headers['content-length'])).toBe(body.length)
  })

  test('who has it already is told so, each form by a tag of its own', async () => {
    const plain = await ask('/')
    const coded = await ask('/', { 'accept-encoding': 'br' })
    expect(coded.headers.etag).not.toBe(plain.headers.etag)
    const again = await ask('/', { 'accept-encoding': 'br', 'if-none-match': String(coded.headers.etag) })
    expect([again.status, again.body.length]).toEqual([304, 0])
    expect((await ask('/', { 'if-none-match': String(coded.headers.etag) })).status).toBe(200)
  })

  test('files with a hash in their name are kept for good, without asking again', async () => {
    const { status, headers, body } = await ask('/assets/app-1a2b.js')
    expect([status, body.toString()]).toEqual([200, SCRIPT])
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
  })

  test('HEAD has the headers of GET and no body', async () => {
    for (const path of ['/', '/assets/app-1a2b.js']) {
      const kept = ({ headers: { date, ...rest } }: Answer) => rest
      const head = await ask(path, { 'accept-encoding': 'br' }, 'HEAD')
      expect(kept(head)).toEqual(kept(await ask(path, { 'accept-encoding': 'br' })))
      expect(head.body.length).toBe(0)
    }
  })

  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND'])('%s is 405', async (method) => {
    const { status, headers } = await ask('/', {}, method)
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect((await ask('/assets/app-1a2b.js', {}, method)).status).toBe(405)
  })

  test.each([
    '/index.html',
    '/index.html.br',
    '/secret.js',
    '/assets/note.txt',
    '/assets/../secret.js',
    '/assets/%2e%2e/secret.js',
    '/assets/',
    '/assets/nope.js',
    '//',
    '/favicon.ico',
  ])('there is no %s', async (path) => {
    expect((await ask(path)).status).toBe(404)
  })

  test('a page of another origin can neither read nor act', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
      for (const path of ['/', '/assets/app-1a2b.js', '/v1/nodes']) {
        const { status, headers: answered } = await ask(path, headers)
        expect([path, status, answered['access-control-allow-origin']]).toEqual([path, 403, undefined])
      }
    }
    expect((await ask('/', { host: 'evil.example' })).status).toBe(403)
  })

  test('a link on a page of another origin leads to the dashboard', async () => {
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect((await ask('/', link)).status).toBe(200)
    // What acts is no page.
    expect((await ask('/v1/nodes', link)).status).toBe(403)
  })
})

describe('a caller who needs a token', () => {
  let listener: HttpListener
  beforeAll(async () => {
    listener = await listen(new Access({ loopback: 'token', verifyToken }), build())
  })
  afterAll(() => listener.stop())

  test('gets the same page as 401, and its files, since they hold nothing of this node', async () => {
    const { status, headers, body } = await ask('/')
    expect([status, headers['www-authenticate'], headers['cache-control']]).toEqual([401, 'Bearer', 'no-store'])
    expect(body.toString()).toBe(PAGE)
    expect((await ask('/assets/app-1a2b.js')).status).toBe(200)
  })

  test('gets nothing else', async () => {
    for (const path of ['/v1/nodes', '/v1/openapi.json', '/docs/api', '/assets/nope.js', '/nope', '/metrics']) {
      expect([path, (await ask(path)).status]).toEqual([path, 401])
    }
    for (const method of ['POST', 'DELETE', 'OPTIONS']) expect((await ask('/', {}, method)).status).toBe(401)
  })

  test('is asked again for a token that is not known, and let in with one that is', async () => {
    expect((await ask('/', { authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await ask('/', { authorization: 'Bearer right' })).status).toBe(200)
  })
})

test('no answer sets a cookie', async () => {
  const listener = await listen(new Access({ loopback: 'token', verifyToken }), build())
  for (const headers of [{}, { authorization: 'Bearer right' }, { cookie: 'a=b' }] as Record<string, string>[]) {
    for (const path of ['/', '/assets/app-1a2b.js', '/v1/hub-client/local-node-id', '/nope']) {
      expect((await ask(path, headers)).headers['set-cookie']).toBeUndefined()
    }
  }
  await listener.stop()
})

test('an installation without the build says so', async () => {
  expect(readDashboard(join(temporaryDirectory(), 'none'))).toBeUndefined()
  const listener = await listen(new Access(), temporaryDirectory())
  const { status, body } = await ask('/')
  expect(status).toBe(404)
  expect(JSON.parse(body.toString())).toMatchObject({ code: 5, message: expect.stringContaining('npm run build') })
  await listener.stop()
})

test('a node serves the build of its installation, whose page names files that are there', async () => {
  const node = await runNode(temporaryDirectory())
  port = Number(node.node.http?.split(':').at(-1))
  const { status, body } = await ask('/')
  expect([status, readDashboard(join(packageRoot(), 'dist/web'))]).toEqual([200, expect.anything()])
  const files = [...body.toString().matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path as string)
  expect(files.length).toBeGreaterThan(1)
  for (const path of files) {
    const { status: found, headers } = await ask(path, { 'accept-encoding': 'br' })
    expect([path, found, headers['content-encoding']]).toEqual([path, 200, 'br'])
  }
  // Nothing in it says which node this is.
  expect(body.toString()).not.toContain(node.node.id)
  await node.node.close()
})
