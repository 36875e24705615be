/** What a server finds where its hub's state should be: buckets that it makes, or a clear error and nothing written. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import { type ConnectionOptions, connect } from '@nats-io/transport-node'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { Engine, type EngineFact, type EngineOptions } from '../../src/hub/cluster/engine.ts'
import { encodeHub } from '../../src/hub/cluster/entries.ts'
import { messageOf } from '../../src/text/error-message.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { Nats, NatsProxy, type NatsServer } from '../harness/nats.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(nats: Promise<Nats>): Promise<Nats> {
  const started = await nats
  closing.push(() => started.close())
  return started
}

const hubId = new Uint8Array(32).fill(1)
const options = (servers: string[], more: Partial<EngineOptions> = {}): EngineOptions => ({
  servers,
  name: 'tests',
  hubId,
  replicas: 1,
  connectionName: 'test',
  timers: systemClock,
  ...more,
})

async function open(servers: string[], more: Partial<EngineOptions> = {}): Promise<Engine> {
  const engine = await Engine.open(options(servers, more))
  closing.push(() => engine.close())
  return engine
}

/** The streams there are, by name, and how many messages each has. */
async function streams(address: string, login: ConnectionOptions = {}): Promise<Record<string, number>> {
  const connection = await connect({ servers: address, ...login })
  const found: Record<string, number> = {}
  for await (const { config, state } of (await jetstreamManager(connection)).streams.list()) {
    found[config.name] = state.messages
  }
  await connection.close()
  return found
}

/** Makes a bucket by hand. */
async function bucket(address: string, name: string, settings: object, hub?: Uint8Array): Promise<void> {
  const connection = await connect({ servers: address })
  const made = await new Kvm(connection).create(name, { allow_direct: false, history: 1, ...settings })
  if (hub !== undefined) await made.put('hub', hub)
  await connection.close()
}

test('the first server makes both buckets, the second finds them', async () => {
  const nats = await start(Nats.alone())
  const first = await open(nats.addresses)
  const second = await open(nats.addresses)
  expect(second.session?.hub).toMatchObject({ layout: 1, requestBase: 0n })
  const status = await first.session?.members.status()
  expect(status?.streamInfo.config).toMatchObject({ storage: 'file', max_msgs_per_subject: 1, allow_direct: false })
  const presence = await first.session?.presence.status()
  expect(presence?.streamInfo.config).toMatchObject({ storage: 'memory', max_msgs_per_subject: 1, allow_direct: false })
  expect(await streams(nats.addresses[0]!)).toEqual({ KV_penstock_tests_members: 1, KV_penstock_tests_presence: 1 })
})

test('a bucket that is listed and takes no changes yet, as while another server makes it, is waited for', async () => {
  const nats = await start(Nats.alone())
  const [address] = nats.addresses as [string]
  const proxy = await NatsProxy.before(address)
  closing.push(() => proxy.close())
  // Asked for a value of one that it is still making, a NATS server of 2.9 ends.
  let asked = ''
  proxy.changeToServer((text) => {
    asked += text
    return text
  })
  const valuesAsked = () => asked.split('$JS.API.STREAM.MSG.GET.KV_penstock_tests_members').length - 1
  const connection = await connect({ servers: address })
  closing.push(() => connection.close())
  const { streams: manager } = await jetstreamManager(connection)
  const settings = { max_msgs_per_subject: 1, allow_rollup_hdrs: true }
  await manager.add({ name: 'KV_penstock_tests_members', subjects: ['elsewhere'], ...settings })
  const failures: string[] = []
  let unusable = 0
  const opening = open([proxy.address, ...(await lockedOut()).addresses], {
    onFact: (fact) => {
      if (fact.kind === 'failed') failures.push(String(fact.error))
      if (fact.kind === 'unusable') unusable++
    },
  })
  opening.catch(() => {})
  await until(() => failures.length > 9)
  // That one of the others cannot be used is told where there is a connection.
  expect(unusable).toBe(0)
  expect(valuesAsked()).toBe(0)
  expect(new Set(failures)).toEqual(
    new Set(['Error: the bucket penstock_tests_members takes no changes yet: it is being made, or has no leader']),
  )
  await manager.update('KV_penstock_tests_members', { subjects: ['$KV.penstock_tests_members.>'] })
  expect((await opening).session?.hub).toMatchObject({ layout: 1, requestBase: 0n })
  expect(valuesAsked()).toBeGreaterThan(0)
})

test('three NATS servers as a cluster: three replicas; a connection that breaks is opened to another of them', async () => {
  const nats = await start(Nats.three())
  const lost: unknown[] = []
  const connected: string[] = []
  const outdated: string[] = []
  const engine = await open(nats.addresses, {
    replicas: 3,
    onFact: (fact) => {
      if (fact.kind === 'lost') lost.push(fact)
      if (fact.kind === 'connected') connected.push(fact.server)
      if (fact.kind === 'outdated') outdated.push(fact.version)
    },
  })
  const { config } = (await engine.session!.members.status()).streamInfo
  expect(config.num_replicas).toBe(3)
  await nats.servers.find(({ address }) => connected[0]!.endsWith(address))!.kill()
  // The others elect leaders first.
  await until(() => connected.length === 2, 'a connection with another', 60_000)
  expect(lost).toHaveLength(1)
  expect(connected[1]).not.toBe(connected[0])
  // 2.9.x, x below 21: said each time.
  const isOld = execFileSync('nats-server', ['--version'], { encoding: 'utf8' }).match(/v2\.9\.(\d+)/)
  expect(outdated).toHaveLength(isOld !== null && Number(isOld[1]) < 21 ? 2 : 0)
  await until(
    async () => (await engine.session?.members.get('hub').catch(() => null)) != null,
    'the bucket of members',
    60_000,
  )
})

test('connections that break as soon as they stand are opened ever later, until one has lasted', async () => {
  const nats = await start(Nats.alone())
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const waits: number[] = []
  let hasLasted = () => {}
  const engine = await open([proxy.address], {
    timers: {
      setTimeout: (callback, milliseconds) => {
        waits.push(milliseconds)
        if (milliseconds === 2_000) hasLasted = callback
        return systemClock.setTimeout(callback, milliseconds)
      },
      clearTimeout: (timer) => systemClock.clearTimeout(timer),
    },
  })
  let connections = 0
  engine.follow((session) => {
    if (session === undefined) return
    if (++connections === 3) hasLasted()
    if (connections < 4) setImmediate(() => proxy.break())
  })
  proxy.break()
  await until(() => connections === 4)
  expect(waits.filter((wait) => wait < 2_000)).toEqual([100, 200, 400, 100])
})

/** One that wants a login. */
const lockedOut = () =>
  start(
    Nats.alone(
      (store) => `jetstream { store_dir: "${store}" }\nauthorization { users: [{ user: "hub", password: "right" }] }`,
    ),
  )

test('wrong credentials', async () => {
  const nats = await lockedOut()
  await expect(open(nats.addresses)).rejects.toThrow(/does not accept this server's credentials/)
  const login = { user: 'hub', password: 'wrong' }
  await expect(open(nats.addresses, { access: () => ({ login }) })).rejects.toThrow(
    /does not accept this server's credentials/,
  )
  expect(await streams(nats.addresses[0]!, { user: 'hub', pass: 'right' })).toEqual({})
})

test('a NATS server that cannot be used keeps nobody from those that can, and is told of', async () => {
  const [refusing] = (await lockedOut()).addresses as [string]
  const [without] = (await start(Nats.alone(() => 'max_payload: 1MB'))).addresses as [string]
  const [fit] = (await start(Nats.alone())).addresses as [string]
  const told = new Set<string>()
  const onFact = (fact: EngineFact) => {
    if (fact.kind === 'unusable') told.add(fact.error.message)
  }
  // Whichever is tried first.
  for (let round = 0; round < 40; round++) await (await open([refusing, without, fit], { onFact })).close()
  expect(told).toEqual(
    new Set([
      expect.stringContaining(`the NATS server at ${refusing} does not accept this server's credentials`),
      expect.stringContaining(`the NATS server at ${without} runs without JetStream`),
    ]),
  )
})

test('nor from one that is slower to answer', async () => {
  const [refusing] = (await lockedOut()).addresses as [string]
  const [near, far] = await Promise.all([
    NatsProxy.before(refusing),
    NatsProxy.before((await start(Nats.alone())).addresses[0] as string),
  ])
  closing.push(
    () => near.close(),
    () => far.close(),
  )
  far.cut()
  near.changeToServer((text) => {
    far.open()
    return text
  })
  await (await open([near.address, far.address])).close()
})

test('nor from one that is not there yet: until then it is told, once in the same words, why there is no other', async () => {
  const refusing = [await lockedOut(), await lockedOut()].flatMap(({ addresses }) => addresses)
  const late = await start(Nats.alone())
  const [accepting] = late.servers as [NatsServer]
  await accepting.kill()
  const failures: string[] = []
  const opening = open([...refusing, ...late.addresses], {
    onFact: (fact) => {
      if (fact.kind === 'failed') failures.push(messageOf(fact.error))
    },
  })
  opening.catch(() => {})
  await until(() => failures.length === 10)
  const login = (server: string) =>
    `the NATS server at ${server} does not accept this server's credentials \\(.*\\): see .*; `
  expect([...new Set(failures)]).toEqual([
    expect.stringMatching(`^${refusing.map(login).join('')}${accepting.address} refuses the connection$`),
  ])
  await accepting.start()
  await opening
})

test('by an address over TLS: its certificate is for that address, one for localhost does not do', async () => {
  const directory = temporaryDirectory()
  const opened = async (name: string) => {
    const [key, certificate] = ['key', 'crt'].map((end) => join(directory, `${name}.${end}`)) as [string, string]
    const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=n1']
    execFileSync('openssl', [...made, '-keyout', key, '-out', certificate, '-addext', `subjectAltName=${name}`], {
      stdio: 'ignore',
    })
    const { addresses } = await start(
      Nats.alone(
        (store) => `jetstream { store_dir: "${store}" }\ntls { cert_file: "${certificate}", key_file: "${key}" }`,
      ),
    )
    return await open(addresses, { access: () => ({ tls: { ca: readFileSync(certificate, 'utf8') } }) })
  }
  await opened('IP:127.0.0.1')
  await expect(opened('DNS:localhost')).rejects.toThrow(
    /this server does not accept the certificate of the NATS server at .*127\.0\.0\.1.*: see hubServer\.cluster\.tls$/,
  )
})

test('an engine without JetStream, and an account without it', async () => {
  const without = await start(Nats.alone(() => 'max_payload: 1MB'))
  await expect(open(without.addresses)).rejects.toThrow(/runs without JetStream: start it with jetstream/)
  const noAccount = await start(
    Nats.alone(
      (store) =>
        `jetstream { store_dir: "${store}" }\nno_auth_user: u\naccounts { A { users: [{ user: "u", password: "p" }] }, B { jetstream: enabled, users: [{ user: "v", password: "p" }] } }`,
    ),
  )
  await expect(open(noAccount.addresses)).rejects.toThrow(/answers no JetStream request in this account/)
  expect(await streams(noAccount.addresses[0]!, { user: 'v', pass: 'p' })).toEqual({})
})

test('an engine that is too old', async () => {
  const nats = await start(Nats.alone())
  const proxy = await NatsProxy.before(nats.addresses[0]!, (text) =>
    text.replace(/"version":"[^"]*"/, '"version":"2.8.4"'),
  )
  closing.push(() => proxy.close())
  await expect(open([proxy.address])).rejects.toThrow(/is version 2\.8\.4: .* needs 2\.9\.0 or later/)
  expect(await streams(nats.addresses[0]!)).toEqual({})
})

test.each([
  ['another hub', { layout: 1, hubId: new Uint8Array(32).fill(2), requestBase: 0n }, /is that of another hub/],
  [
    'a later layout',
    { layout: 2, hubId, requestBase: 0n },
    /has layout 2, and this version of penstock knows layout 1/,
  ],
])('a bucket of %s', async (_, hub, message) => {
  const nats = await start(Nats.alone())
  const [address] = nats.addresses as [string]
  for (const name of ['members', 'presence'] as const) {
    const other = `x${name}`
    await bucket(
      address,
      `penstock_${other}_${name}`,
      { storage: name === 'members' ? 'file' : 'memory' },
      encodeHub(hub),
    )
    const before = await streams(address)
    await expect(open([address], { name: other })).rejects.toThrow(message)
    expect(await streams(address)).toEqual(before)
  }
})

test.each([
  ['members', { storage: 'memory' }, /has storage memory, and this hub needs file/],
  ['members', { storage: 'file', history: 5 }, /has history 5, and this hub needs 1/],
  ['members', { storage: 'file', allow_direct: true }, /has direct reads on, and this hub needs off/],
  ['presence', { storage: 'file' }, /has storage file, and this hub needs memory/],
])('a bucket of %s with %o', async (name, settings, message) => {
  const nats = await start(Nats.alone())
  const [address] = nats.addresses as [string]
  await bucket(address, `penstock_tests_${name}`, settings)
  await expect(open([address])).rejects.toThrow(message)
  expect(await streams(address)).toEqual({ [`KV_penstock_tests_${name}`]: 0 })
})

test('fewer replicas than the configuration asks for', async () => {
  const nats = await start(Nats.alone())
  await open(nats.addresses)
  const before = await streams(nats.addresses[0]!)
  await expect(open(nats.addresses, { replicas: 3 })).rejects.toThrow(/has replicas 1, and this hub needs 3/)
  expect(await streams(nats.addresses[0]!)).toEqual(before)
})

test('a bucket of members that somebody has made anew is not taken for the one that was known', async () => {
  const nats = await start(Nats.alone())
  const [address] = nats.addresses as [string]
  const failures: string[] = []
  const engine = await open([address], {
    onFact: (fact) => {
      if (fact.kind === 'failed') failures.push(String(fact.error))
    },
  })
  const connection = await connect({ servers: address })
  closing.push(() => connection.close())
  const { streams: manager } = await jetstreamManager(connection)
  await manager.delete('KV_penstock_tests_members')
  await bucket(address, 'penstock_tests_members', { storage: 'file' }, encodeHub(engine.hub))
  engine.reconnect()
  await until(() => failures.some((failure) => failure.includes('is not the one that this server knew')))
  expect(engine.session).toBeUndefined()
})

test('a connection that is given up is told as lost, with the reason; one that breaks later, without it', async () => {
  const nats = await start(Nats.alone())
  const lost: unknown[] = []
  let connections = 0
  const engine = await open(nats.addresses, {
    onFact: (fact) => {
      if (fact.kind === 'lost') lost.push(fact.error)
      if (fact.kind === 'connected') connections++
    },
  })
  const reason = new Error('it takes nothing')
  engine.reconnect(reason)
  await until(() => connections === 2)
  expect(lost).toEqual([reason])
  engine.reconnect()
  await until(() => lost.length === 2)
  expect(lost[1]).toBeUndefined()
})
