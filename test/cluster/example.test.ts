/** examples/cluster as it is, on this machine: its NATS servers and hub servers come up and are one hub; only ports and directories are others. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { packageRoot } from '../../src/package-root.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { lineOf, penstock, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import '../harness/slow.ts'

const example = join(packageRoot(), 'examples/cluster')
const root = join(temporaryDirectory(), 'cluster')
const path = (name: string) => join(root, name)
const running: ChildProcess[] = []
const NATS = ['n1', 'n2', 'n3']
const HUB = ['a', 'b', 'c']
/** Where each listens here, and the routes between the NATS servers. */
const ports: Record<string, string> = {}

const edit = (file: string, ...changes: [string | RegExp, string][]): string =>
  changes.reduce(
    (text, [what, by]) => {
      expect(text, file).toMatch(what)
      return text.replaceAll(typeof what === 'string' ? what : new RegExp(what, 'g'), by)
    },
    readFileSync(path(file), 'utf8'),
  )

beforeAll(async () => {
  cpSync(example, root, { recursive: true })
  mkdirSync(path('certificates'))
  execFileSync(path('certificates.sh'), [path('certificates')])
  expect((await penstock(['hub', 'key', 'create', path('hub.key')])).code).toBe(0)
  for (const name of [...NATS, ...NATS.map((each) => `route ${each}`), ...HUB]) ports[name] = await freeAddress()
  const routes = NATS.map((name) => `nats://${ports[`route ${name}`]}`)
  const version = execFileSync('nats-server', ['--version'], { encoding: 'utf8' })
  const [, major, minor] = /v(\d+)\.(\d+)/.exec(version) ?? []
  for (const name of NATS) {
    const conf = edit(
      'nats.conf',
      ['0.0.0.0:4222', ports[name] as string],
      ['0.0.0.0:6222', ports[`route ${name}`] as string],
      [/"nats:\/\/n1:6222".*"nats:\/\/n3:6222"/, routes.map((route) => `"${route}"`).join(', ')],
      ['/data', path(`data-${name}`)],
      ['/certificates/server', path(`certificates/${name}`)],
      ['/certificates/ca', path('certificates/ca')],
      // Debian's is older than the setting.
      [/\n +sync_interval: always/, Number(major) * 100 + Number(minor) < 210 ? '' : '\n  sync_interval: always'],
    )
    writeFileSync(path(`${name}.conf`), conf)
    running.push(
      spawn('nats-server', ['-c', path(`${name}.conf`)], { env: { ...process.env, NAME: name }, stdio: 'ignore' }),
    )
  }
  for (const name of HUB) {
    const text = edit(
      `${name}.yaml`,
      ['0.0.0.0:8769', ports[name] as string],
      [`https://${name}:8769`, `https://${ports[name]}`],
      [/tls:\/\/(n\d):4222/, 'tls://$1'],
    ).replaceAll(/tls:\/\/(n\d)/g, (_, nats: string) => `tls://${ports[nats]}`)
    writeFileSync(path(`${name}.yaml`), text)
  }
}, 60_000)
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

test('three NATS servers and three hub servers are one hub', async () => {
  const urls = HUB.map(async (name) => {
    const child = start(['up', '-c', path(`${name}.yaml`), '--data-dir', path(`state-${name}`), '--grpc', 'none'])
    running.push(child)
    return `https://${(await lineOf(child, /^penstock ready http=(\S+) /))[1]}`
  })
  for (const url of await Promise.all(urls)) {
    const shown = async () => JSON.parse((await penstock(['status', '--url', url, '--json'])).stdout)
    await until(async () => {
      const { servers = [] } = await shown()
      return servers.length === 3 && servers.every(({ online }: { online: boolean }) => online)
    })
    expect((await shown()).state).toBe('CONNECTED')
  }
  const [caFile, certFile, keyFile] = ['ca.crt', 'a.crt', 'a.key'].map((file) => path(`certificates/${file}`)) as [
    string,
    string,
    string,
  ]
  const connection = await connect({ servers: ports.n1 as string, tls: { caFile, certFile, keyFile } })
  const { config } = await (await jetstreamManager(connection, { checkAPI: false })).streams.info(
    'KV_penstock_example_members',
  )
  expect(config.num_replicas).toBe(3)
  // Another hub's is none of theirs.
  await expect(connection.request('$JS.API.STREAM.INFO.KV_penstock_other_members')).rejects.toThrow(/[Pp]ermissions/)
  await connection.close()
})

test('the containers are given files that the example has or makes', () => {
  const { services, volumes } = parse(readFileSync(join(example, 'compose.yaml'), 'utf8'), { merge: true })
  expect(Object.keys(services)).toEqual([...NATS, ...HUB])
  const made = [...NATS, ...HUB].flatMap((name) => [`certificates/${name}.crt`, `certificates/${name}.key`])
  const there = new Set([
    'nats.conf',
    ...HUB.map((name) => `${name}.yaml`),
    'hub.key',
    'certificates',
    'certificates/ca.crt',
    ...made,
  ])
  for (const [name, service] of Object.entries<{ image: string; volumes: string[] }>(services)) {
    for (const mount of service.volumes) {
      const [from = '', to = ''] = mount.split(':')
      if (from.startsWith('./')) expect(there, mount).toContain(from.slice(2))
      else expect(volumes, mount).toHaveProperty(from)
      expect(to).toMatch(/^\//)
    }
    expect(service.image).toMatch(NATS.includes(name) ? /^nats:2$/ : /penstock/)
  }
})
