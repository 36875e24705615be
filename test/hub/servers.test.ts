/** One hub of three servers, over real sockets: its nodes at different servers call each other, and go over when a server goes. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { type RunningNode, settingsOf, temporaryDirectory, traffic } from '../api/running-node.ts'
import { SharedHubs } from '../harness/shared-hub.ts'
import { until } from '../harness/waiting.ts'
import { type Caller, Failed, freeAddress, httpCaller, startReal } from './callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
let directories = 0
const shared = new SharedHubs(root)
const noFilter = { metadataFilters: {}, serviceFilters: [] }

interface Running {
  readonly running: RunningNode
  readonly id: string
  readonly address: string
  readonly caller: Caller
}

async function running(flags: Record<string, string>, options: Parameters<typeof startReal>[3] = {}): Promise<Running> {
  const node = await startReal(join(root, `${directories++}`), { grpc: 'none', ...flags }, undefined, options)
  return { running: node, id: node.node.id, address: `http://${node.node.http}`, caller: httpCaller(node) }
}

async function server(): Promise<Running> {
  const http = await freeAddress()
  const flags = { http, hub: 'true', 'hub-key-file': keyFile, 'hub-address': `http://${http}` }
  return await running(flags, { shared: (nodeId, self) => shared.of(nodeId, self) })
}

async function member(at: Running): Promise<Running> {
  const node = await running({ trusted: 'hub' })
  const { stream, answer } = await at.caller.converse('authenticationByRequests')
  const joined = node.caller.unary('authenticateByRequest', { hubServerAddress: at.address })
  const { requestId } = await stream.next()
  answer({ requestId: BigInt(requestId), accept: true })
  await joined
  stream.close()
  return node
}

/** What a node's log says of its links with the hub: `up` and `down`, each with the server's address. */
function linksOf({ running: { logged } }: Running): string[] {
  return logged
    .map((line) => JSON.parse(line) as { msg: string; hub?: string })
    .flatMap(({ msg, hub = '' }) => (/^link to the hub /.test(msg) ? [`${msg.slice(16)} ${new URL(hub).origin}`] : []))
}
const isAt = (node: Running, { address }: Running) =>
  linksOf(node).lastIndexOf(`up ${address}`) > linksOf(node).lastIndexOf(`down ${address}`)
const logs = ({ running: { logged } }: Running, text: string) => logged.filter((line) => line.includes(text)).length

let servers: [Running, Running, Running]
let nodes: [Running, Running, Running]

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  servers = [await server(), await server(), await server()]
  nodes = [await member(servers[0]), await member(servers[1]), await member(servers[2])]
}, 60_000)
afterAll(async () => {
  await Promise.all([...nodes, ...servers].map((each) => each.running.node.close()))
})

async function expectReached(from: readonly Running[], to: readonly Running[]): Promise<void> {
  for (const caller of from) {
    for (const { id } of to) expect((await caller.caller.unary('getNode', { nodeId: id })).node.id).toBe(id)
  }
}

test('each two servers have one link', async () => {
  const up = 'link with another server of the hub up'
  await until(() => servers.every((each) => logs(each, '"another server of the hub is up"') === 2))
  await until(() => servers.every((each) => logs(each, up) === 2))
  expect(servers.map((each) => logs(each, 'link with another server of the hub down'))).toEqual([0, 0, 0])
})

test('that a server has removed a member is told to every other one', async () => {
  const [a, b, c] = servers
  for (const [i, { id }] of [a, b].entries()) {
    const { heard } = shared.directory
    shared.directory.remove(id, 'x', 7 + i)
    await until(() => heard.length === 2)
    const others = i === 0 ? [b, c] : [a, c]
    const told = others.map((other) => [other.id, 'x', 7 + i])
    expect(heard.splice(0).sort()).toEqual(told.sort())
  }
})

test('nodes at different servers, and the servers, call each other: calls with one answer, with many, and with long ones', async () => {
  await expectReached([...servers, ...nodes], [...servers, ...nodes])
  const [one, two] = nodes
  // Longer than the credit of a stream, there and back.
  const jsonConfig = `${settingsOf(traffic()).jsonConfig}${' '.repeat(500_000)}`
  const stream = await one.caller.stream('streamPipelines', { nodeId: two.id })
  const { pipeline } = await one.caller.unary('createPipeline', { nodeId: two.id, name: 'p', jsonConfig })
  expect((await stream.next()).create.pipeline.id).toBe(pipeline.id)
  stream.close()
  const got = await one.caller.unary('getPipelineById', { nodeId: two.id, id: pipeline.id })
  expect(got.pipeline.jsonConfig).toBe(jsonConfig)
  expect((await one.caller.unary('getNodes', noFilter)).nodes).toHaveLength(6)
})

test('the node that is called hears which node calls, not which server; one that trusts its hub trusts each server', async () => {
  const [one, , other] = nodes
  const source = { trace_traffic_source: { output: 'a', trace_file: '/etc/hostname' } }
  const { jsonConfig } = settingsOf({ source, sink: { traffic_sink: { input: 'a' } } })
  const failure = await one.caller
    .unary('createPipeline', { nodeId: other.id, name: 'p', jsonConfig })
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(Failed)
  expect((failure as Failed).message).toContain(`node ${one.id} may name files in`)
  for (const [i, { caller }] of servers.entries()) {
    const created = await caller.unary('createPipeline', { nodeId: other.id, name: `of server ${i}`, jsonConfig })
    expect(created.pipeline.name).toBe(`of server ${i}`)
  }
})

test('a server that does not have the node says so, and the call is made once more, where it is', async () => {
  const [a, b, c] = servers
  const target = nodes[1]
  shared.mistaken.set(target.id, c.id)
  expect((await a.caller.unary('getNode', { nodeId: target.id })).node.id).toBe(target.id)
  expect(shared.mistaken.size).toBe(0)
  shared.mistaken.set(target.id, c.id)
  expect((await nodes[0].caller.unary('getNode', { nodeId: target.id })).node.id).toBe(target.id)
  expect(isAt(target, b)).toBe(true)
})

describe('when a server goes', () => {
  test('its node is at another, and is reached from everywhere; the others stay', async () => {
    const [a, b, c] = servers
    const [moved, ...others] = nodes
    shared.leave(a.id)
    await a.running.node.close()
    await until(() => isAt(moved, b) || isAt(moved, c))
    expect([b, c].map((each) => logs(each, 'another server of the hub is gone'))).toEqual([1, 1])
    await expectReached([b, c, ...nodes], nodes)
    await expect(b.caller.unary('getNode', { nodeId: a.id })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(others.map((node) => linksOf(node).length)).toEqual([1, 1])
  })

  test('one that is out of touch loses its nodes to the other, each once that has let it in', async () => {
    const [, b, c] = servers
    const there = nodes.filter((node) => isAt(node, b))
    expect(there.length).toBeGreaterThan(0)
    const states = await b.caller.stream('streamConnectionState')
    expect(await states.next()).toEqual({ state: 'CONNECTED' })
    shared.directory.touch(b.id, false)
    expect(await states.next()).toEqual({ state: 'DISCONNECTED' })
    states.close()
    await until(() => nodes.every((node) => isAt(node, c)))
    for (const node of there) {
      await until(() => linksOf(node).at(-1) === `down ${b.address}` && shared.hasNoLink(b.id, node.id))
      expect(linksOf(node).slice(-2)).toEqual([`up ${c.address}`, `down ${b.address}`])
    }
    await expectReached([b, c, ...nodes], nodes)
  })
})
