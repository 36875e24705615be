/** A node with TLS: its own certificate on HTTP and gRPC, and whose certificates the commands take. */
import { type ChildProcess, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect, createServer, type Server } from 'node:tls'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeCertificate } from '../../src/link/certificate.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, scratch, start } from './cli.ts'

const directory = scratch()
let node: ChildProcess
let address: string
let rpc: string
let certificate: string
let fingerprint: string

beforeAll(async () => {
  const data = `${directory.path}/data`
  node = start(['up', '--data-dir', data, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--http-tls', 'auto'])
  const match = await lineOf(node, /^penstock ready http=(\S+) grpc=(\S+)/)
  address = match[1] as string
  rpc = match[2] as string
  certificate = `${data}/tls.crt`
  fingerprint = new X509Certificate(readFileSync(certificate)).fingerprint256
})

afterAll(() => {
  node.kill('SIGKILL')
  directory.dispose()
})

const status = (env: Record<string, string>, ...args: string[]) =>
  penstock(['status', '-o', 'json', ...args], { env: { PENSTOCK_URL: `https://${address}`, ...env } })

describe('http.tls: auto', () => {
  it('is there over HTTPS; loopback needs no proof, a fingerprint or an authority counts everywhere', async () => {
    const plain = await status({})
    expect(plain).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(plain.stdout)).toMatchObject({ fingerprint, state: 'UNAUTHENTICATED' })
    expect(await status({}, '--fingerprint', fingerprint)).toMatchObject({ code: 0 })
    expect(await status({ PENSTOCK_FINGERPRINT: fingerprint.replaceAll(':', '').toLowerCase() })).toMatchObject({
      code: 0,
    })
    expect(await status({ PENSTOCK_CA: certificate })).toMatchObject({ code: 0 })
  })

  it('is refused when it is not the one that was meant', async () => {
    const wrong = await status({}, '--fingerprint', '00'.repeat(32))
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain(`its fingerprint is ${fingerprint}`)
    const other = directory.file('other.crt', makeCertificate(['127.0.0.1'], Date.now()).certificate)
    const unknown = await status({}, '--ca', other)
    expect(unknown.code).toBe(1)
    expect(unknown.stderr).toContain(`if its fingerprint ${fingerprint} is the one that the node has logged`)
    expect((await status({}, '--fingerprint', 'abc')).code).toBe(2)
    expect((await status({}, '--ca', '/nowhere')).stderr).toContain('cannot read the certificates to trust')
  })

  it('is told of when it is forgotten', async () => {
    const plain = await status({ PENSTOCK_URL: `http://${address}` })
    expect(plain.code).toBe(1)
    expect(plain.stderr).toContain('if it serves TLS, write https://')
  })

  it('covers gRPC with the same certificate', async () => {
    const call = (credentials: grpc.ChannelCredentials) =>
      new Promise<number>((resolve) => {
        const client = new grpc.Client(rpc, credentials, { 'grpc.ssl_target_name_override': 'localhost' })
        const pass = (bytes: Buffer) => bytes
        const path = '/servicegrpc.hub.HubClientService/getLocalNodeId'
        const deadline = { deadline: Date.now() + 10_000 }
        client.makeUnaryRequest(path, pass, pass, Buffer.alloc(0), new grpc.Metadata(), deadline, (error) => {
          client.close()
          resolve(error?.code ?? 0)
        })
      })
    expect(await call(grpc.credentials.createSsl(readFileSync(certificate)))).toBe(0)
    expect(await call(grpc.credentials.createInsecure())).toBe(14)
  })
})

it('sends nothing, no token either, to a certificate that is not trusted', async () => {
  const { certificate: cert, key } = makeCertificate(['127.0.0.1'], Date.now())
  let received = 0
  const server: Server = createServer({ cert, key }, (socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      received += bytes.length
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const env = { PENSTOCK_URL: `https://127.0.0.1:${port}`, PENSTOCK_TOKEN: 'penstock_secret' }
  const { code, stderr } = await status(env, '--fingerprint', fingerprint)
  expect(code).toBe(1)
  expect(stderr).toContain('another one than asked for')
  expect(received).toBe(0)
  server.close()
})

it('says of one that has expired that it is to be renewed, and takes it by its fingerprint', async () => {
  const { certificate: cert, key } = makeCertificate(['127.0.0.1'], Date.UTC(1999, 0))
  const server: Server = createServer({ cert, key }, (socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const env = { PENSTOCK_URL: `https://127.0.0.1:${port}` }
  const ca = join(directory.path, 'expired.crt')
  writeFileSync(ca, cert)
  const { fingerprint256: own } = new X509Certificate(cert)
  expect((await status(env, '--ca', ca)).stderr).toMatch(
    new RegExp(
      `^penstock: ${env.PENSTOCK_URL}: the certificate expired on .* GMT: renew it there; until then, if its fingerprint ${own} is the one`,
    ),
  )
  expect((await status(env, '--fingerprint', own)).stderr).not.toContain('certificate')
  server.close()
})

describe('what says whom to trust, with an http:// URL', () => {
  const elsewhere = { PENSTOCK_URL: 'http://192.0.2.1:8769', PENSTOCK_TOKEN: 'penstock_secret' }

  it.each<[string, Record<string, string>, string[]]>([
    ['--fingerprint', {}, ['--fingerprint', 'AA'.repeat(32)]],
    ['--ca', {}, ['--ca', '/nowhere']],
    ['PENSTOCK_FINGERPRINT', { PENSTOCK_FINGERPRINT: 'AA'.repeat(32) }, []],
    ['PENSTOCK_CA', { PENSTOCK_CA: '/nowhere' }, []],
  ])('%s is refused: nothing would be compared, and the token sent', async (name, env, args) => {
    const { code, stdout, stderr } = await status({ ...elsewhere, ...env }, ...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(`penstock: ${name} needs an https:// URL, not ${elsewhere.PENSTOCK_URL}; nothing was sent\n`)
  })

  it('on loopback a flag is refused; a variable, which may be for another node, is left aside', async () => {
    const paths: string[] = []
    const server = createHttpServer(({ url = '' }, response) => {
      paths.push(url)
      response.end('{}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const env = { PENSTOCK_URL: `http://127.0.0.1:${port}` }
    const refused = await status(env, '--fingerprint', fingerprint)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('--fingerprint needs an https:// URL')
    expect(paths).toEqual([])
    await status({ ...env, PENSTOCK_FINGERPRINT: fingerprint, PENSTOCK_CA: certificate })
    expect(paths.length).toBeGreaterThan(0)
    server.close()
  })
})

it('says whose a certificate is that is for another host', async () => {
  const { certificate: cert, key } = makeCertificate(['elsewhere.example'], Date.now())
  const file = `${directory.path}/elsewhere.crt`
  writeFileSync(file, cert)
  const server: Server = createServer({ cert, key }, (socket) => void socket.on('error', () => undefined))
  server.listen(0, '127.0.0.5')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { code, stderr } = await status({ PENSTOCK_URL: `https://127.0.0.5:${port}` }, '--ca', file)
  expect(code).toBe(1)
  expect(stderr).toContain('DNS:elsewhere.example, not for 127.0.0.5')
  server.close()
})

it('a hub whose TLS something else ends is not joined: told is that, with what to do, and not that it is away', async () => {
  const up = (name: string, ...args: string[]) =>
    start(['up', '--data-dir', `${directory.path}/${name}`, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', ...args])
  const ready = async (child: ChildProcess) => (await lineOf(child, /^penstock ready http=(\S+)/))[1] as string
  const nodes = [up('hub', '--hub', '--http-tls', 'auto'), up('member')] as const
  const [hub, member] = await Promise.all([ready(nodes[0]), ready(nodes[1])])
  const { certificate: cert, key } = makeCertificate(['127.0.0.1'], Date.now())
  const proxy = createServer({ cert, key }, (near) => {
    const [host, port] = hub.split(':')
    const far = connect({ host, port: Number(port), rejectUnauthorized: false })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => to.destroy())
      from.pipe(to)
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const hubServerAddress = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  try {
    const env = { PENSTOCK_URL: `http://${member}` }
    const { code, stderr } = await penstock(['authenticate-by-request', hubServerAddress], { env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/not that of the hub: .*give the hub the proxy's certificate \(http\.tls\).*\n$/)
    expect(stderr).not.toContain('see that the hub is up')
    const answer = await fetch(`http://${member}/v1/hub-client/authenticate-by-request`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ hubServerAddress }),
    })
    expect([answer.status, ((await answer.json()) as { code: number }).code]).toEqual([400, 9])
  } finally {
    proxy.close()
    for (const child of nodes) child.kill('SIGKILL')
  }
})

const own = 'ip link set lo up && ip link add pst0 type veth peer name pst1 && ip address add 10.9.9.1/24 dev pst0'
const links = 'ip link set pst0 up && ip link set pst1 up'
const privileged = spawnSync('unshare', ['-n', 'sh', '-c', `${own} && ${links}`]).status === 0
if (!privileged) console.warn('SKIPPED: certificates for the addresses of a machine need root, unshare, nsenter and ip')

describe.skipIf(!privileged)('http.tls: auto on every address of a machine', () => {
  const data = `${directory.path}/every`
  const cli = [process.execPath, join(packageRoot(), 'bin/penstock.js')]

  /** A node on 0.0.0.0 in a namespace with the address 10.9.9.1, and with what `before` adds. */
  async function withNode(before: string, use: (run: (...args: string[]) => SpawnSyncReturns<string>) => void) {
    const flags = ['up', '--data-dir', data, '--http', '0.0.0.0:8769', '--grpc', 'none', '--http-tls', 'auto', '--open']
    const script = `${own} && ${before} && ${links} && exec "$@"`
    const child = spawn('unshare', ['-n', 'sh', '-c', script, 'sh', ...cli, ...flags])
    let said = ''
    child.stderr.on('data', (piece) => {
      said += piece
    })
    const gone = once(child, 'close')
    try {
      await lineOf(child, /^penstock ready/)
      use((...args) => spawnSync('nsenter', ['-t', String(child.pid), '-n', ...cli, ...args], { encoding: 'utf8' }))
    } finally {
      child.kill('SIGTERM')
      await gone
    }
    return said
  }

  it('is for its own addresses, and is renewed when it gets another', async () => {
    const ca = `${data}/tls.crt`
    await withNode('true', (run) => {
      const { status, stderr } = run('status', '--url', 'https://10.9.9.1:8769', '--ca', ca)
      expect(status, stderr).toBe(0)
    })
    const first = readFileSync(ca, 'utf8')
    expect(await withNode('true', () => {})).not.toContain('renewed')
    expect(readFileSync(ca, 'utf8')).toBe(first)
    const said = await withNode('ip address add 10.9.9.2/24 dev pst0', (run) => {
      const { status, stderr } = run('status', '--url', 'https://10.9.9.2:8769', '--ca', ca)
      expect(status, stderr).toBe(0)
    })
    expect(said).toMatch(/WARN http\.tls: auto has renewed the certificate, for the last one is not for 10\.9\.9\.2\./)
  }, 120_000)
})
