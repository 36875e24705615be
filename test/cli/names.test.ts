/** How commands name pipelines, runs, nodes and requests: names that are taken, names of several, the beginnings of ids, ids in tables, names that pretend. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { lossy, penstock, scratch } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import { CommandNode } from './running-node.ts'
import '../harness/slow.ts'

const directory = scratch()
const config = directory.file('lossy.json', lossy)
let hub: CommandNode
let edge: CommandNode

interface Pipeline {
  id: string
  name: string
  currentRun?: { id: string }
}

const create = (name: string, ...flags: string[]) => hub.json<Pipeline>('pipelines', 'create', name, config, ...flags)

beforeAll(async () => {
  ;[hub, edge] = await Promise.all([
    CommandNode.up(`${directory.path}/hub`, '--hub', '--node-name', 'hub'),
    CommandNode.up(`${directory.path}/edge`, '--node-name', 'edge'),
  ])
})
afterAll(async () => {
  await Promise.all([hub, edge].map((node) => node?.end()))
  directory.dispose()
})

it('creates no second pipeline of a name unless it is told to, and lists the ids of both from then on', async () => {
  const first = await create('twin')
  const refused = await hub.call(['pipelines', 'create', 'twin', config])
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(`"twin" is the name of a pipeline on node ${hub.id} already: ${first.id}`)
  expect(refused.stderr).toContain('--force')
  const other = await create('other')
  const renamed = await hub.call(['pipelines', 'update', other.id, '--name', 'twin'])
  expect(renamed).toMatchObject({ code: 1, stdout: '' })
  expect(renamed.stderr).toContain(first.id)
  // Its own name is no other's.
  await hub.json('pipelines', 'update', first.id, '--name', 'twin')
  expect(await hub.json('pipelines', 'list')).toHaveLength(2)
  const second = await create('twin', '--force')
  for (const verb of ['get', 'start', 'stop', 'logs', 'telemetry', 'delete']) {
    const { code, stdout, stderr } = await hub.call(['pipelines', verb, 'twin'])
    expect({ verb, code, stdout }).toEqual({ verb, code: 1, stdout: '' })
    for (const { id } of [first, second]) expect(stderr).toContain(id)
  }
  await hub.json('pipelines', 'update', other.id, '--name', 'twin', '--force')
  for (const { id } of [first, second, other]) await hub.json('pipelines', 'delete', id)
})

it('takes the beginning of an id where only one id begins so', async () => {
  const { id } = await create('whole')
  const start = id.slice(0, 8)
  expect(await hub.json('pipelines', 'get', start)).toMatchObject({ id })
  const { runId } = await hub.json<{ runId: string }>('pipelines', 'start', start)
  const log = hub.call(['pipelines', 'logs', '--run', runId.slice(0, 8)])
  const { stdout } = await hub.call([
    'pipelines',
    'telemetry',
    '--run',
    runId.slice(0, 8),
    '--count',
    '1',
    '-o',
    'json',
  ])
  expect(JSON.parse(stdout)).toHaveProperty('metrics')
  await hub.json('pipelines', 'stop', '--run', runId.slice(0, 8))
  expect((await log).stdout).toMatch(/ended: STOPPED/)
  // Neither a name nor an id that begins like it is taken for the other.
  const named = await create(start)
  const either = await hub.call(['pipelines', 'delete', start])
  expect(either).toMatchObject({ code: 1, stdout: '' })
  for (const candidate of [id, named.id]) expect(either.stderr).toContain(candidate)
  await hub.json('pipelines', 'delete', named.id)
  const short = await hub.call(['pipelines', 'delete', id.slice(0, 3)])
  expect(short.code).toBe(1)
  expect(short.stderr).toContain(`no pipeline has the id or name "${id.slice(0, 3)}" on node ${hub.id}`)
  expect(short.stderr).toContain('4 characters')
  await hub.json('pipelines', 'delete', start)
})

it('takes the beginning of the id of a node, and of one that asks to join', async () => {
  expect(await hub.json('pipelines', 'list', '--node', hub.id.slice(0, 6))).toEqual([])
  expect(await edge.json('pipelines', 'list', '--node', edge.id.slice(0, 6))).toEqual([])
  const asked = edge.call(['authenticate-by-request', hub.url])
  await until(
    async () => (await hub.json<unknown[]>('authentication-requests', 'list')).length === 1,
    'it asks to join',
  )
  const [{ requestId }] = await hub.json<[{ requestId: string }]>('authentication-requests', 'list')
  const wrong = await hub.call(['authentication-requests', 'approve', edge.id.slice(0, 3)])
  expect(wrong.code).toBe(2)
  expect(await hub.json('authentication-requests', 'approve', edge.id.slice(0, 6))).toEqual([
    { requestId, accepted: true },
  ])
  expect(await asked).toMatchObject({ code: 0 })
  expect(await hub.json('nodes', 'set', edge.id.slice(0, 6), '--metadata', 'a=b')).toMatchObject({ id: edge.id })
  expect(await hub.json('pipelines', 'list', '--node', edge.id.slice(0, 6))).toEqual([])
  expect(await hub.json('nodes', 'remove', edge.id.slice(0, 6))).toEqual({ id: edge.id })
})

it('answers all requests of a node that is named, and those that are named twice once', async () => {
  const requests = () => hub.json<{ requestId: string; node: { id: string } }[]>('authentication-requests', 'list')
  const ask = async (times: number) => {
    const asked = Array.from({ length: times }, () => edge.call(['authenticate-by-request', hub.url]))
    await until(async () => (await requests()).length === times, 'all of them ask')
    return { asked, ids: (await requests()).map(({ requestId }) => requestId) }
  }
  const first = await ask(3)
  expect(await hub.json('authentication-requests', 'reject', edge.id.slice(0, 8), first.ids[1] as string)).toEqual(
    first.ids.map((requestId) => ({ requestId, accepted: false })),
  )
  expect((await Promise.all(first.asked)).map(({ code }) => code)).toEqual([1, 1, 1])
  const second = await ask(2)
  expect(await hub.json('authentication-requests', 'approve', edge.id)).toEqual(
    second.ids.map((requestId) => ({ requestId, accepted: true })),
  )
  expect((await Promise.all(second.asked)).map(({ code }) => code)).toEqual([0, 0])
  expect(await requests()).toEqual([])
  expect(await hub.json('nodes', 'remove', edge.id)).toEqual({ id: edge.id })
})

it('cuts no id in a table, however narrow the terminal is', async () => {
  const { id } = await create('a name that has some length of its own')
  const { runId } = await hub.json<{ runId: string }>('pipelines', 'start', id)
  const pipelines = await hub.call(['pipelines', 'list'], { env: { COLUMNS: '60' } })
  expect(pipelines.stdout).toContain(id)
  expect(pipelines.stdout).toContain('…')
  // Whole or not at all.
  expect(pipelines.stdout).not.toContain(runId.slice(0, 8))
  const wide = await hub.call(['pipelines', 'list'], { env: { COLUMNS: '110' } })
  expect(wide.stdout).toContain(runId)
  expect((await hub.call(['nodes'], { env: { COLUMNS: '20' } })).stdout).toContain(hub.id)
  await hub.json('pipelines', 'delete', id, '--force')
})

describe('a name with line ends and escape sequences is written out', () => {
  const name = 'good\u001b[31m\nkept  all of them\u001b[8m'
  const shown = 'good\\u001b[31m\\u000akept  all of them\\u001b[8m'
  const file = directory.file('pretends.json', { name, config: lossy })
  const other = directory.file('other.json', { name: 'other', config: lossy })
  let id: string

  beforeAll(async () => {
    const applied = await hub.call(['pipelines', 'apply', file, '--start'])
    id = (await hub.json<Pipeline[]>('pipelines', 'list'))[0]!.id
    const run = (await hub.json<Pipeline>('pipelines', 'get', id)).currentRun?.id
    expect(applied.stdout).toBe(`created    ${shown}  ${id}\nstarted    ${shown}  ${run}\n`)
  })
  afterAll(() => hub.json('pipelines', 'delete', id, '--force'))

  it.each([
    'pipelines list',
    'pipelines list --all-nodes',
    'pipelines get NAME',
    'pipelines update NAME --name NAME',
    'pipelines apply FILE --dry-run',
    'pipelines apply OTHER --dry-run --prune',
    'pipelines apply OTHER --prune',
    'pipelines delete NAME',
    'pipelines create NAME CONFIG',
    'pipelines update NAME --performance-mode',
    'top --once',
  ])('%s', async (command) => {
    const words: Record<string, string> = { NAME: name, FILE: file, OTHER: other, CONFIG: config }
    const { stdout, stderr } = await hub.call(command.split(' ').map((word) => words[word] ?? word))
    const lines = (stdout + stderr).split('\n')
    expect(lines.join('\n')).toContain(shown)
    expect(lines.filter((line) => line.startsWith('kept') || line.includes('\u001b'))).toEqual([])
  })

  it('where somebody is asked what is to go', async () => {
    for (const [args, question] of [
      [['apply', other, '--prune'], /delete them, whoever made them\? /],
      [['delete', id], /delete it\? /],
    ] as const) {
      const terminal = new PseudoTerminal(['pipelines', ...args], { PENSTOCK_URL: hub.url })
      await terminal.see(question)
      terminal.type(KEYS.interrupt)
      await terminal.code()
      expect(terminal.raw).toContain(`"${shown}"`)
    }
    expect(await hub.json<Pipeline[]>('pipelines', 'list')).toMatchObject([{ id, name }])
  })
})

describe('so is what a configuration calls its components, variables and KPIs', () => {
  const [said, shown] = ['good\u001b[31m\nkept', 'good\\u001b[31m\\u000akept']
  const path = directory.file('calls.json', {
    version: 1,
    engine_config: {
      pipeline: {
        source: { uniform_traffic_source: { output: 'a', interval: 10 } },
        [said]: { traffic_sink: { input: 'a' } },
      },
    },
    kpis: { metrics: [{ id: said, label: said, value: { expression: '1', unit: said } }] },
    variables: [{ id: said, paths: ['/version'] }],
  })
  const failing = (name: string, pipeline: object) => directory.file(name, { version: 1, engine_config: { pipeline } })
  const fails = failing('fails.json', {
    source: { uniform_traffic_source: { output: 'a', interval: 10 } },
    sink: { traffic_sink: { input: 'a' } },
    [said]: { bomb: { delay: 100, poison: 'THROW_EXCEPTION' } },
  })
  // An address that no machine has (RFC 5737).
  const startless = failing('startless.json', {
    [said]: { udp_local: { address: '192.0.2.1:9000', output: 'a' } },
    sink: { traffic_sink: { input: 'a' } },
  })
  const two = ['--duration', '1s', '--set', 'source.interval=10,20']
  let name: string

  beforeAll(async () => {
    name = (await hub.json<Pipeline>('pipelines', 'create', 'calls', path)).name
    await hub.json('pipelines', 'start', name)
  })
  afterAll(() => hub.json('pipelines', 'delete', name, '--force'))

  it.each([
    ['pipelines', 'telemetry', 'calls', '--count', '1'],
    ['pipelines', 'telemetry', 'calls', `${said}!`],
    ['pipelines', 'set', 'calls', 'absent=1'],
    ['run', path, '--duration', '1500ms'],
    ['simulate', path, '--duration', '1s'],
    ['run', fails],
    ['run', startless],
    ['simulate', fails, '--duration', '1s'],
    ['simulate', fails, ...two],
    ['simulate', path, ...two],
    ['simulate', path, ...two, '--kpi', 'absent'],
    ['simulate', path, '--duration', '1s', '--set', 'absent.interval=10,20'],
  ])('%s %s', async (...args) => {
    const { stdout, stderr } = await hub.call(args)
    expect(stdout + stderr).toContain(shown)
    expect((stdout + stderr).split('\n').filter((line) => line.startsWith('kept') || line.includes('\u001b'))).toEqual(
      [],
    )
  })
})

it('repeats what a server says without its colours and line ends', async () => {
  const said = 'no \u001b[31mred\u001b[39m\npenstock: all is well'
  const server = createServer((_, response) => {
    response
      .writeHead(500, { 'content-type': 'application/json' })
      .end(JSON.stringify({ code: 13, message: said, details: [] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, stderr } = await penstock(['pipelines', 'list', '--url', url])
  server.close()
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'penstock: no \\u001b[31mred\\u001b[39m\n  penstock: all is well\n',
  })
})
