/** A node that is one server of a hub of several: what it proves to the NATS servers, what stops it from coming up, and what it leaves behind. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { type ConnectionOptions, connect, credsAuthenticator } from '@nats-io/transport-node'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { encodeHub } from '../../src/hub/cluster/entries.ts'
import { makeCertificate } from '../../src/link/certificate.ts'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import { hubIdOf } from '../../src/node/cluster.ts'
import { createLog } from '../../src/node/log.ts'
import type { NodeOptions } from '../../src/node/node.ts'
import { packageRoot } from '../../src/package-root.ts'
import { type RunningNode, temporaryDirectory, traffic } from '../api/running-node.ts'
import { lineOf, penstock, start } from '../cli/cli.ts'
import { Nats, NatsProxy, type NatsServer } from '../harness/nats.ts'
import { NatsOperator } from '../harness/nats-operator.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress, startReal } from '../hub/callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
const hub = newIdentity()
const certificates = join(root, 'certificates')
const certificate = (name: string) => join(certificates, name)
let directories = 0
const closing: (() => unknown)[] = []
beforeAll(() => {
  writeHubKey(keyFile, hub)
  mkdirSync(certificates)
  execFileSync(join(packageRoot(), 'examples/cluster/certificates.sh'), [certificates])
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function nats(started: Promise<Nats>): Promise<Nats> {
  const servers = await started
  closing.push(() => servers.close())
  return servers
}
const natsWith = (settings: string) => nats(Nats.alone((store) => `jetstream { store_dir: "${store}" }\n${settings}`))

async function server(
  flags: Record<string, string>,
  options: Pick<NodeOptions, 'clock' | 'log' | 'signal'> = {},
): Promise<RunningNode> {
  const http = await freeAddress()
  const own = { hub: 'true', 'hub-key-file': keyFile, 'hub-address': `http://${http}`, http, grpc: 'none' }
  const cluster = { 'hub-cluster-name': 'tests', 'hub-cluster-replicas': '1' }
  const node = await startReal(
    flags['data-dir'] ?? join(root, `${directories++}`),
    { ...own, ...cluster, ...flags },
    undefined,
    options,
  )
  closing.push(() => node.node.close())
  return node
}

const at = ({ addresses: [address] }: Nats, user = '') => ({
  'hub-cluster-nats-servers': `nats://${user === '' ? '' : `${user}@`}${address}`,
})
const messages = (node: RunningNode) => node.logged.map((line) => JSON.parse(line) as { level: string; msg: string })

/** The streams there are, and the keys of the bucket of presence. */
async function found(options: ConnectionOptions): Promise<{ streams: string[]; presence: string[] }> {
  const connection = await connect(options)
  const streams: string[] = []
  for await (const { config } of (await jetstreamManager(connection)).streams.list()) streams.push(config.name)
  const presence: string[] = []
  if (streams.includes('KV_penstock_tests_presence')) {
    for await (const key of await (await new Kvm(connection).open('penstock_tests_presence')).keys()) presence.push(key)
  }
  await connection.close()
  return { streams, presence }
}

async function expectStarted(node: RunningNode, options: ConnectionOptions): Promise<void> {
  expect(messages(node).map(({ msg }) => msg)).toEqual(
    expect.arrayContaining([
      'connected to the state of the hub',
      'this server holds its lease: it is one of the hub',
      'node is up',
    ]),
  )
  const { streams, presence } = await found(options)
  expect(streams.sort()).toEqual(['KV_penstock_tests_members', 'KV_penstock_tests_presence'])
  expect(presence.filter((key) => key.startsWith('server.'))).toHaveLength(1)
  await node.node.close()
  expect((await found(options)).presence.filter((key) => key.startsWith('server.'))).toEqual([])
  expect(messages(node).filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
}

describe('what a server proves to the NATS servers', () => {
  test('user and password of the address, which no line of its log has', async () => {
    const there = await natsWith('authorization { users: [{ user: "hub", password: "p:ä" }] }')
    const node = await server(at(there, 'hub:p%3A%C3%A4'))
    expect(node.logged.join()).not.toMatch(/p:ä|p%3A/)
    await expectStarted(node, { servers: there.addresses, user: 'hub', pass: 'p:ä' })
    await expect(server(at(there, 'hub:other'))).rejects.toThrow(
      /does not accept this server's credentials \([^)]+\): see the user and password in hubServer\.cluster\.natsServers$/,
    )
    await expect(server(at(there))).rejects.toThrow(
      /credentials \([^)]+\): see hubServer\.cluster\.credentialsFile, .*: none is set$/,
    )
  })

  test('a credentials file', async () => {
    const operator = new NatsOperator()
    const there = await natsWith(operator.settings)
    const credentials = join(root, 'hub.creds')
    writeFileSync(credentials, operator.credentials('server a'), { mode: 0o600 })
    const node = await server({ ...at(there), 'hub-cluster-credentials-file': credentials })
    const authenticator = credsAuthenticator(Buffer.from(operator.credentials('test')))
    await expectStarted(node, { servers: there.addresses, authenticator })
    writeFileSync(credentials, new NatsOperator().credentials('server a'))
    await expect(server({ ...at(there), 'hub-cluster-credentials-file': credentials })).rejects.toThrow(
      /does not accept this server's credentials .*: see hubServer\.cluster\.credentialsFile$/,
    )
  })

  test('credentials that have expired, and a file without any: the log says which file, until it is renewed', async () => {
    const operator = new NatsOperator()
    const there = await natsWith(operator.settings)
    const credentials = join(root, 'expired.creds')
    const flags = { ...at(there), 'hub-cluster-credentials-file': credentials }
    writeFileSync(credentials, operator.credentials('server a'))
    const node = await server(flags)
    const lines = (text: string) => node.logged.filter((line) => line.includes(text))
    const told = (text: string) =>
      until(() => lines('the state of the hub cannot be reached').some((line) => line.includes(text)), text)
    writeFileSync(credentials, operator.credentials('server a', Date.UTC(2020, 0) / 1_000))
    const [engine] = there.servers as [NatsServer]
    await engine.kill()
    await engine.start()
    const ended = `see hubServer.cluster.credentialsFile; the credentials in ${credentials} expired on 2020-01-01T00:00:00.000Z`
    await told(ended)
    await expect(server(flags)).rejects.toThrow(ended)
    writeFileSync(credentials, 'none')
    const none = `hubServer.cluster.credentialsFile: ${credentials} holds no credentials`
    await told(none)
    await expect(server(flags)).rejects.toThrow(none)
    writeFileSync(credentials, operator.credentials('server a'))
    await until(() => lines('"connected to the state of the hub"').length === 2)
  })

  const pair = (name: string, file = certificate) => ({
    'hub-cluster-tls-certificate-file': file(`${name}.crt`),
    'hub-cluster-tls-key-file': file(`${name}.key`),
  })
  const authority = { 'hub-cluster-tls-ca-file': certificate('ca.crt') }
  const withTls = (file = certificate) =>
    natsWith(
      `tls { ca_file: "${file('ca.crt')}", cert_file: "${file('n1.crt')}", key_file: "${file('n1.key')}", verify_and_map: true }
      accounts { HUB { jetstream: enabled, users: [{ user: "a.hub" }] } }`,
    )

  test('a certificate, over TLS', async () => {
    const there = await withTls()
    const node = await server({ ...at(there), ...authority, ...pair('a') })
    const files = { caFile: certificate('ca.crt'), certFile: certificate('a.crt'), keyFile: certificate('a.key') }
    await expectStarted(node, { servers: there.addresses, tls: files })
  })

  test('certificates that either side does not accept', async () => {
    const there = await withTls()
    await expect(server({ ...at(there), ...pair('a') })).rejects.toThrow(
      /this server does not accept the certificate of the NATS server at \S+ \(unable to verify .*: see hubServer\.cluster\.tls$/,
    )
    const notAccepted =
      /the NATS server at \S+ does not accept this server's certificate \(TLS failed: [a-z0-9 ]+\): see hubServer\.cluster\.tls\.certificateFile/
    await expect(server({ ...at(there), ...authority })).rejects.toThrow(notAccepted)
    const old = makeCertificate(['a.hub'], Date.UTC(1999, 0))
    writeFileSync(certificate('old.crt'), old.certificate)
    writeFileSync(certificate('old.key'), old.key)
    const refused = server({ ...at(there), ...authority, ...pair('old') })
    await expect(refused).rejects.toThrow(notAccepted)
    await expect(refused).rejects.toThrow(/; the certificate in .*old\.crt expired on /)
    await expect(server({ ...at(there), ...authority, ...pair('b') })).rejects.toThrow(
      /does not accept this server's credentials .*: see hubServer\.cluster\.tls\.certificateFile$/,
    )
  })

  test('renewed files count for the next connection, and those that cannot be used are told of until then', async () => {
    const directory = join(root, 'renewed')
    mkdirSync(directory)
    const renew = () => execFileSync(join(packageRoot(), 'examples/cluster/certificates.sh'), [directory])
    const file = (name: string) => join(directory, name)
    renew()
    const there = await withTls(file)
    const node = await server({ ...at(there), 'hub-cluster-tls-ca-file': file('ca.crt'), ...pair('a', file) })
    const lines = (text: string) => node.logged.filter((line) => line.includes(text))
    const [engine] = there.servers as [NatsServer]
    await engine.kill()
    renew()
    writeFileSync(file('a.key'), '')
    await engine.start()
    await until(
      () => lines('the state of the hub cannot be reached').some((line) => line.includes('holds no private key')),
      'a line of the file that cannot be used',
    )
    renew()
    await engine.kill()
    await engine.start()
    await until(() => lines('"connected to the state of the hub"').length === 2, 'another connection')
  })
})

describe('what stops it from coming up, with nothing written into NATS', () => {
  /** Starts a server that does not come up; what NATS has is the same as before. */
  async function refused(there: Nats, flags: Record<string, string>, message: RegExp): Promise<void> {
    const before = await found({ servers: there.addresses })
    await expect(server({ ...at(there), ...flags })).rejects.toThrow(message)
    expect(await found({ servers: there.addresses })).toEqual(before)
  }

  test('NATS servers without JetStream, and too old', async () => {
    const without = await nats(Nats.alone(() => 'max_payload: 1MB'))
    await expect(server(at(without))).rejects.toThrow(/runs without JetStream: start it with jetstream/)
    const there = await natsWith('')
    const proxy = await NatsProxy.before(there.addresses[0]!, (text) =>
      text.replace(/"version":"[^"]*"/, '"version":"2.8.4"'),
    )
    closing.push(() => proxy.close())
    await refused(
      there,
      { 'hub-cluster-nats-servers': `nats://${proxy.address}` },
      /is version 2\.8\.4: .* needs 2\.9\.0/,
    )
  })

  test('the state of another hub: another hub key', async () => {
    const there = await natsWith('')
    const first = await server(at(there))
    await first.node.close()
    const other = join(root, 'other.key')
    writeHubKey(other, newIdentity())
    await refused(
      there,
      { 'hub-key-file': other },
      /is that of another hub: give this hub another hubServer\.cluster\.name/,
    )
    await (await server(at(there))).node.close()
  })

  test('the state of this hub in a later layout', async () => {
    const there = await natsWith('')
    const connection = await connect({ servers: there.addresses })
    const bucket = await new Kvm(connection).create('penstock_tests_members', { storage: 'file', allow_direct: false })
    await bucket.put('hub', encodeHub({ layout: 9, hubId: hubIdOf(rawKey(hub.publicKey)), requestBase: 0n }))
    await connection.close()
    await refused(there, {}, /has layout 9, and this version of penstock knows layout 1/)
  })

  test('more replicas than there are NATS servers', async () => {
    const there = await natsWith('')
    await refused(
      there,
      { 'hub-cluster-replicas': '3' },
      /cannot be made with 3 replicas .*: are 3 NATS servers with JetStream up/,
    )
  })

  test('files that cannot be used', async () => {
    const there = await natsWith('')
    const missing = { 'hub-cluster-credentials-file': '/nowhere/a.creds' }
    await refused(
      there,
      missing,
      /hubServer\.cluster\.credentialsFile: cannot read \/nowhere\/a\.creds: there is no such file/,
    )
    const authority = { 'hub-cluster-tls-ca-file': '/nowhere/ca.crt' }
    await refused(there, authority, /hubServer\.cluster\.tls\.caFile: cannot read/)
    const pair = {
      'hub-cluster-tls-certificate-file': certificate('a.crt'),
      'hub-cluster-tls-key-file': certificate('b.key'),
    }
    await refused(
      there,
      pair,
      /hubServer\.cluster\.tls: the key in .*b\.key does not belong to the certificate in .*a\.crt/,
    )
  })

  test('NATS servers that do not answer: its log says so at once, and after half a minute it ends', async () => {
    const fast = { ...systemClock, setTimeout: (fn: () => void, wait: number) => setTimeout(fn, wait / 20) }
    const lines: string[] = []
    const log = createLog({ level: 'info', format: 'json', destination: { write: (line) => void lines.push(line) } })
    const flags = { 'hub-cluster-nats-servers': `nats://${await freeAddress()}` }
    await expect(server(flags, { clock: fast, log })).rejects.toThrow(
      /the state of the hub cannot be had from the NATS servers at 127\.0\.0\.1:\d+ within 30 s: 127\.0\.0\.1:\d+ refuses the connection/,
    )
    const told = lines.filter((line) => line.includes('"the state of the hub cannot be reached; it is tried again"'))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(/"error":"127\.0\.0\.1:\d+ refuses the connection"/)
  })

  test('NATS that is full: its log says so at once, and after half a minute it ends; told to stop, at once', async () => {
    const there = await nats(Nats.alone((store) => `jetstream { store_dir: "${store}", max_file: 1MB }`))
    await (await server(at(there))).node.close()
    const makeRoom = await there.fillDisk()
    closing.push(makeRoom)
    const fast = { ...systemClock, setTimeout: (fn: () => void, wait: number) => setTimeout(fn, wait / 20) }
    await expect(
      server(at(there), { clock: fast, log: createLog({ level: 'silent', format: 'json' }) }),
    ).rejects.toThrow(/cannot be had from the NATS servers at 127\.0\.0\.1:\d+ within 30 s: insufficient resources/)
    const stop = new AbortController()
    const write = (line: string) => {
      if (line.includes('"the state of the hub could not be read; it is tried again"')) stop.abort(new Error('stopped'))
    }
    const log = createLog({ level: 'info', format: 'json', destination: { write } })
    await expect(server(at(there), { signal: stop.signal, log })).rejects.toThrow('stopped')
  })

  test('its pipelines that start with the node run while it waits for NATS, and go on when it is up', async () => {
    const there = await natsWith('')
    const directory = join(root, 'waiting')
    const before = await server({ ...at(there), 'data-dir': directory })
    const id = await before.create(traffic(), { startupPolicy: { auto: {} } })
    await before.node.close()
    await there.servers[0]!.kill()
    const lines: { msg: string; pipeline?: string; run?: string }[] = []
    const log = createLog({
      ...{ level: 'info', format: 'json' },
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    })
    const starting = server({ ...at(there), 'data-dir': directory }, { log })
    const started = () => lines.find(({ msg }) => msg === 'pipeline started')
    await until(() => started() !== undefined)
    expect(lines.map(({ msg }) => msg)).not.toContain('connected to the state of the hub')
    await there.servers[0]!.start()
    const node = await starting
    expect((await node.get(id)).currentRun).toMatchObject({ id: started()?.run, state: 'RUNNING' })
    expect(lines.filter(({ msg }) => msg === 'pipeline started')).toHaveLength(1)
  })

  test('the command says why and exits with 1; SIGTERM ends a wait for NATS, with 0', async () => {
    const there = await natsWith('authorization { users: [{ user: "hub", password: "right" }] }')
    const http = await freeAddress()
    const flags = (servers: string) => [
      ...[
        'up',
        '--data-dir',
        join(root, 'command'),
        '--http',
        http,
        '--grpc',
        'none',
        '--hub',
        '--hub-key-file',
        keyFile,
      ],
      ...['--hub-address', `http://${http}`, '--hub-cluster-name', 'tests', '--hub-cluster-nats-servers', servers],
    ]
    const failed = await penstock(flags(`nats://hub:wrong@${there.addresses[0]}`))
    expect(failed.code).toBe(1)
    expect(failed.stderr).toMatch(
      /penstock: the node did not start: the NATS server at \S+ does not accept this server's credentials/,
    )
    expect(failed.stderr).not.toContain('wrong')
    const wrongUsage = await penstock([...flags('http://a'), '--hub-cluster-replicas', '2'])
    expect(wrongUsage.code).toBe(1)
    expect(wrongUsage.stderr).toContain('the configuration is wrong:')
    const waiting = start(flags(`nats://${await freeAddress()}`))
    waiting.stderr!.once('data', () => waiting.kill('SIGTERM'))
    expect(await once(waiting, 'exit')).toEqual([0, null])
  })
})

test('a server that is told to stop while NATS accepts connections and says nothing is gone at once', async () => {
  const { servers } = await nats(Nats.alone())
  const [engine] = servers as [NatsServer]
  const http = await freeAddress()
  const own = ['--hub', '--hub-key-file', keyFile, '--hub-address', `http://${http}`, '--http', http, '--grpc', 'none']
  const cluster = ['--hub-cluster-name', 'tests', '--hub-cluster-replicas', '1']
  const child = start([
    ...['up', '--data-dir', join(root, `${directories++}`), ...own, ...cluster],
    ...['--hub-cluster-nats-servers', `nats://${engine.address}`],
  ])
  closing.push(() => child.kill('SIGKILL'))
  await lineOf(child, /^penstock ready/)
  await engine.kill()
  const silent = createServer()
  closing.push(() => silent.close())
  const called = once(silent, 'connection')
  silent.listen(Number(engine.address.split(':')[1]), '127.0.0.1')
  const [socket] = (await called) as [Socket]
  closing.push(() => socket.destroy())
  const asked = performance.now()
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(performance.now() - asked).toBeLessThan(8_000)
})
