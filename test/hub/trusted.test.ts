/** Whose configurations may name files outside a node's directory of files: over REST, on this node and through a hub. */
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { type Answer, type RunningNode, settingsOf, temporaryDirectory } from '../api/running-node.ts'
import { SharedHubs } from '../harness/shared-hub.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress, httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
const outside = join(root, 'outside.csv')
const LIST = '0,64\n1,1200\n2,64\n'

/** A pipeline that replays `trace_file`. */
const replaying = (trace_file: string) => ({
  trace: { trace_traffic_source: { output: 'a', trace_file } },
  sink: { traffic_sink: { input: 'a' } },
})
const POINTER = '/engine_config/pipeline/trace/trace_traffic_source/trace_file'

async function joinHub(node: RunningNode, hub: RunningNode): Promise<void> {
  const { stream, answer } = await httpCaller(hub).converse('authenticationByRequests')
  const joined = httpCaller(node).unary('authenticateByRequest', { hubServerAddress: `http://${hub.node.http}` })
  answer({ requestId: (await stream.next()).requestId, accept: true })
  await joined
  stream.close()
}

let hub: RunningNode
let caller: RunningNode
let nodes: Record<'local' | 'hub' | 'members', RunningNode>
const started: RunningNode[] = []

async function start(name: string, flags: Record<string, string> = {}): Promise<RunningNode> {
  const node = await startReal(join(root, name), { 'node-name': name, ...flags })
  started.push(node)
  return node
}

beforeAll(async () => {
  writeFileSync(outside, LIST)
  for (const name of ['local', 'hub-trusting', 'members']) {
    mkdirSync(join(root, name, 'files', 'below'), { recursive: true })
    writeFileSync(join(root, name, 'files', 'below', 'list.csv'), LIST)
  }
  hub = await start('hub', { hub: 'true', trusted: 'hub' })
  caller = await start('caller')
  nodes = {
    local: await start('local'),
    hub: await start('hub-trusting', { trusted: 'hub' }),
    members: await start('members', { trusted: 'members' }),
  }
  for (const node of [caller, ...Object.values(nodes)]) await joinHub(node, hub)
}, 60_000)
afterAll(async () => {
  for (const node of started.reverse()) await node.node.close()
})

/** Asks `at` to create on `on`. */
function create(at: RunningNode, on: RunningNode, trace_file: string): Promise<Answer> {
  const path = `http://${at.node.http}/v1/nodes/${on.node.id}/pipelines`
  return at.call('POST', path, settingsOf(replaying(trace_file)))
}

const denied = (from: RunningNode, on: RunningNode, name: string, setting: string) => ({
  status: 403,
  body: {
    code: 7,
    message: `${POINTER}: node ${from.node.id} may name files in ${join(root, on === nodes.hub ? 'hub-trusting' : on === hub ? 'hub' : 'local', 'files')} only, not "${name}": put the file there and name it relative to that, or let this node trust it, with pipelines.trusted: ${setting}`,
    details: expect.anything(),
  },
})

test('a name is relative to the files of the data directory, and the pipeline runs with what is there', async () => {
  const { local } = nodes
  for (const at of [local, caller, hub]) {
    const { status, body } = await create(at, local, 'below/list.csv')
    expect(status, body.message).toBe(200)
    const { id } = body.pipeline
    expect(JSON.parse(body.pipeline.jsonConfig).engine_config.pipeline).toEqual(replaying('below/list.csv'))
    await local.start(id)
    const ended = await local.when(id, ({ currentRun }) => currentRun?.state === 'ENDED')
    expect(ended.currentRun).toMatchObject({ outcome: 'COMPLETED' })
  }
})

test('a file that is not there fails the start, with its name and where it was looked for', async () => {
  const { body } = await create(nodes.local, nodes.local, 'none.pcap')
  const { status, body: failure } = await nodes.local.call('POST', `/pipelines/${body.pipeline.id}/start`)
  expect(status).toBe(409)
  expect(failure.message).toContain(`cannot read ${join(root, 'local/files/none.pcap')}: it does not exist`)
})

/** Asks `at` to create a pipeline with a Unix socket on `on`. */
function createSocket(at: RunningNode, on: RunningNode, listen_address: string): Promise<Answer> {
  const socket = { unix_socket: { server: { listen_address }, output: 'a' } }
  const path = `http://${at.node.http}/v1/nodes/${on.node.id}/pipelines`
  return at.call('POST', path, settingsOf({ socket, sink: { traffic_sink: { input: 'a' } } }))
}

describe('a Unix socket', () => {
  test('is made in the files of the data directory, by whomever its pipeline was created', async () => {
    const { body } = await createSocket(caller, nodes.local, 'below/x.sock')
    const { status, body: started } = await nodes.local.call('POST', `/pipelines/${body.pipeline.id}/start`)
    expect(status, started.message).toBe(200)
    expect(statSync(join(root, 'local/files/below/x.sock')).isSocket()).toBe(true)
    await nodes.local.call('DELETE', `/pipelines/${body.pipeline.id}`)
  })

  test('outside of it is for whom the node trusts, an abstract one for everybody', async () => {
    const name = join(root, 'x.sock')
    expect(await createSocket(caller, nodes.local, name)).toMatchObject({ status: 403, body: { code: 7 } })
    expect((await createSocket(nodes.local, nodes.local, name)).status).toBe(200)
    expect((await createSocket(caller, nodes.local, '@x.sock')).status).toBe(200)
  })

  test('whose whole path is too long is refused where it stands', async () => {
    const long = 'x'.repeat(100)
    const { status, body } = await createSocket(caller, nodes.local, long)
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(
        /^\/engine_config\/pipeline\/socket\/unix_socket\/server\/listen_address: .* bytes, more than the 107/,
      ),
    ])
  })
})

describe('a file outside', () => {
  test('may be named by callers of the node itself, whatever the setting', async () => {
    for (const node of [...Object.values(nodes), hub]) expect((await create(node, node, outside)).status).toBe(200)
  })

  test.each(['', '../../outside.csv', 'below/../../x', '/etc/passwd'])(
    'trusted local: nobody else may name %j, outside.csv being the first',
    async (given) => {
      const name = given || outside
      expect(await create(caller, nodes.local, name)).toEqual(denied(caller, nodes.local, name, 'members'))
      expect(await create(hub, nodes.local, name)).toEqual(denied(hub, nodes.local, name, 'hub'))
    },
  )

  test('trusted hub: callers on the hub may too, those on other nodes may not; on the hub itself that is nobody else', async () => {
    expect((await create(hub, nodes.hub, outside)).status).toBe(200)
    expect(await create(caller, nodes.hub, outside)).toEqual(denied(caller, nodes.hub, outside, 'members'))
    expect(await create(caller, hub, outside)).toEqual(denied(caller, hub, outside, 'members'))
  })

  test('trusted members: every node on the hub may', async () => {
    for (const at of [caller, hub]) expect((await create(at, nodes.members, outside)).status).toBe(200)
  })

  test('cannot be brought in by an update either, and what was set stays', async () => {
    const { body } = await create(caller, nodes.local, 'below/list.csv')
    const { id } = body.pipeline
    const path = `http://${caller.node.http}/v1/nodes/${nodes.local.node.id}/pipelines/${id}`
    const update = { ...settingsOf(replaying(outside)), defaultLoggingLevel: 'INFO', instructionsTimeout: 5 }
    const { status, body: failure } = await caller.call('PUT', path, update)
    expect([status, failure.code]).toEqual([403, 7])
    expect((await nodes.local.get(id)).jsonConfig).toBe(body.pipeline.jsonConfig)
    // Set on the node itself it is the node's own, and runs.
    expect((await nodes.local.call('PUT', `/pipelines/${id}`, update)).status).toBe(200)
    await nodes.local.start(id)
  })
})

describe('commands', () => {
  const AT = '/engine_config/lifecycle_handler'
  const settings = {
    name: 'commands',
    jsonConfig: JSON.stringify({
      engine_config: { pipeline: replaying('below/list.csv'), lifecycle_handler: { on_setup: [{ cmd: 'true' }] } },
    }),
  }
  const on = (at: RunningNode, of: RunningNode, path: string) =>
    `http://${at.node.http}/v1/nodes/${of.node.id}/pipelines${path}`

  test('may be set by callers of the node itself, and by those that pipelines.trusted names', async () => {
    const allowed: [RunningNode, RunningNode][] = [
      ...Object.values(nodes).map((node): [RunningNode, RunningNode] => [node, node]),
      [hub, nodes.hub],
      [hub, nodes.members],
      [caller, nodes.members],
    ]
    for (const [at, of] of allowed) expect((await at.call('POST', on(at, of, ''), settings)).status).toBe(200)
  })

  test('nobody else may: neither create nor update, and asking beforehand says so', async () => {
    const refused: [RunningNode, RunningNode, string][] = [
      [caller, nodes.local, 'members'],
      [hub, nodes.local, 'hub'],
      [caller, nodes.hub, 'members'],
    ]
    for (const [at, of, setting] of refused) {
      const why = `node ${at.node.id} may not have commands run on this node: leave them out, or let this node trust it, with pipelines.trusted: ${setting}`
      const { status, body } = await at.call('POST', on(at, of, ''), settings)
      expect([status, body.code, body.message]).toEqual([403, 7, `${AT}: ${why}`])
      expect((await at.call('POST', on(at, of, ':validate'), settings)).body).toEqual({
        valid: false,
        problems: [{ pointer: AT, message: why }],
        warnings: [],
      })
      const { body: plain } = await create(at, of, 'below/list.csv')
      const { id } = plain.pipeline
      const update = { ...settings, defaultLoggingLevel: 'INFO', instructionsTimeout: 5 }
      expect((await at.call('PUT', on(at, of, `/${id}`), update)).status).toBe(403)
      expect((await at.call('POST', on(at, of, `/${id}/explain-update`), update)).status).toBe(403)
      const other = { ...update, jsonConfig: plain.pipeline.jsonConfig, name: 'renamed' }
      expect((await at.call('POST', on(at, of, `/${id}/explain-update`), other)).body).toMatchObject({
        running: false,
        live: expect.arrayContaining([expect.objectContaining({ pointer: '/name', reason: 'BESIDE_THE_RUN' })]),
        restart: [],
      })
    }
  })
})

test('a stored pipeline whose author is trusted no longer does not run after the next start of the node', async () => {
  const directory = join(root, 'strict')
  const members = await startReal(directory, { trusted: 'members' })
  await joinHub(members, hub)
  const { body } = await create(caller, members, outside)
  const own = await create(members, members, outside)
  await members.node.close()
  const local = await startReal(directory)
  try {
    const { status, body: failure } = await local.call('POST', `/pipelines/${body.pipeline.id}/start`)
    expect([status, failure.code]).toEqual([400, 9])
    expect(failure.message).toContain(
      `the stored configuration cannot run here: ${POINTER}: node ${caller.node.id} may name files in`,
    )
    await local.start(own.body.pipeline.id)
  } finally {
    await local.node.close()
  }
})

test('what was set from another server of the hub runs after the next start too, at which that one is not known yet', async () => {
  const shared = new SharedHubs(root)
  const keyFile = join(root, 'hub.key')
  writeHubKey(keyFile, newIdentity())
  const server = async (name: string, http: string) => {
    const flags = { hub: 'true', 'hub-key-file': keyFile, http, 'hub-address': `http://${http}`, trusted: 'hub' }
    return await startReal(join(root, name), flags, undefined, { shared: (id, self) => shared.of(id, self) })
  }
  const other = await server('other-server', await freeAddress())
  const http = await freeAddress()
  let one = await server('one-server', http)
  try {
    let created: Answer | undefined
    await until(
      async () => {
        created = await create(other, one, outside)
        return created.status === 200
      },
      () => `the servers have a link with each other: ${JSON.stringify(created)}`,
    )
    shared.leave(one.node.id)
    await one.node.close()
    one = await server('one-server', http)
    await one.start(created?.body.pipeline.id)
  } finally {
    await one.node.close()
    await other.node.close()
  }
})

test('who served the hub that a node was on before is a member like any other of the one that the node serves now', async () => {
  const [first, second] = ['first-hub', 'second-hub']
  const before = [await startReal(join(root, first), { hub: 'true' }), await startReal(join(root, second))] as const
  await joinHub(before[1], before[0])
  for (const { node } of before.toReversed()) await node.close()
  const server = await startReal(join(root, second), { hub: 'true', trusted: 'hub' })
  const member = await startReal(join(root, first))
  try {
    await joinHub(member, server)
    const { status, body } = await create(member, server, outside)
    expect([status, body.message]).toEqual([403, expect.stringContaining('pipelines.trusted: members')])
  } finally {
    await member.node.close()
    await server.node.close()
  }
})
