/** One hub of three servers as processes, on a real NATS server: nodes at different servers, one killed with -9, and NATS away for a while. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { settingsOf, temporaryDirectory, traffic } from '../api/running-node.ts'
import { Nats } from '../harness/nats.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress, type Stream } from '../hub/callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
const everything = { metadataFilters: {}, serviceFilters: [] }
let directories = 0
let nats: Nats
let a: NodeProcess
let b: NodeProcess
let c: NodeProcess
/** Nodes that joined at a, b and c. */
let nodes: [NodeProcess, NodeProcess, NodeProcess]

const start = (flags: Record<string, string>) => NodeProcess.start({ directory: join(root, `${directories++}`), flags })

async function startServer(name: string): Promise<NodeProcess> {
  const http = await freeAddress()
  return await start({
    ...{ http, 'node-name': name, hub: 'true', 'hub-key-file': keyFile, 'hub-address': `http://${http}` },
    ...{ 'hub-cluster-name': 'tests', 'hub-cluster-replicas': '1' },
    'hub-cluster-nats-servers': nats.addresses.map((address) => `nats://${address}`).join(),
  })
}

/** A node that asks one server to join and is accepted at another. */
async function joinAt(server: NodeProcess, name: string, decider = server): Promise<NodeProcess> {
  const node = await start({ 'node-name': name })
  const { stream, answer } = await decider.caller.converse('authenticationByRequests')
  const joined = node.caller.unary('authenticateByRequest', { hubServerAddress: `http://${server.address}` })
  joined.catch(() => {})
  const { requestId } = await stream.next()
  answer({ requestId, accept: true })
  await joined
  stream.close()
  return node
}

/** Reads updates of streamNodes up to the one of this kind for this node. */
async function told(stream: Stream, kind: string, id: string): Promise<void> {
  while ((await stream.next()).updateResponse?.[kind]?.id !== id);
}

const isListed = async (server: NodeProcess, { id }: NodeProcess, online: boolean) =>
  (await server.list()).some((node) => node.id === id && node.online === online)

/** Calls a node through a server again and again; what failed, once it is stopped. */
function calling(server: NodeProcess, { id: nodeId }: NodeProcess): () => Promise<unknown[]> {
  const failures: unknown[] = []
  let isOver = false
  const loop = async () => {
    while (!isOver) await server.caller.unary('getNode', { nodeId }).catch((error: unknown) => failures.push(error))
  }
  const done = loop()
  return async () => {
    isOver = true
    await done
    return failures
  }
}

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
  ;[a, b, c] = await Promise.all([startServer('a'), startServer('b'), startServer('c')])
}, 60_000)
afterAll(async () => {
  await endProcesses()
  await nats.close()
})

test('a node that asks one server to join is accepted at another and told of by all, with the servers, which are nodes too', async () => {
  const changes = await b.caller.stream('streamNodes', everything)
  const first = await joinAt(a, 'n1', b)
  await told(changes, 'authenticatedNode', first.id)
  changes.close()
  nodes = [first, await joinAt(b, 'n2'), await joinAt(c, 'n3')]
  for (const each of [a, b, c, ...nodes]) {
    await until(async () => (await each.list()).filter(({ online }) => online).length === 6)
    expect((await each.list()).map(({ name }) => name).sort()).toEqual(['a', 'b', 'c', 'n1', 'n2', 'n3'])
  }
})

test('a pipeline on it is made through a second server and started through the third', async () => {
  const nodeId = nodes[0].id
  const made = await b.caller.unary('createPipeline', { nodeId, ...settingsOf(traffic()) })
  const { id } = made.pipeline
  await c.caller.unary('startPipeline', { nodeId, id })
  await until(async () => {
    const { pipeline } = await b.caller.unary('getPipelineById', { nodeId, id })
    return pipeline.currentRun?.state === 'RUNNING'
  })
  await nodes[2].caller.unary('stopPipeline', { nodeId, id })
})

test('a living server is not removed', async () => {
  const removal = b.caller.unary('removeNode', { nodeId: a.id })
  await expect(removal).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
    message: expect.stringContaining('stop it'),
  })
})

describe('a server killed with -9', () => {
  test('its node is at another server, and no call among the others fails', async () => {
    const [first, second, third] = nodes
    const changes = await c.caller.stream('streamNodes', everything)
    const stops = [calling(c, second), calling(b, third), calling(second, third)]
    await a.kill()
    // Its lease stands for five seconds more.
    await expect(b.caller.unary('removeNode', { nodeId: a.id })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
    await told(changes, 'connectedNode', first.id)
    changes.close()
    // Each server sees it by itself.
    await until(async () => (await isListed(b, first, true)) && (await isListed(c, first, true)))
    for (const caller of [b, c, second, third]) {
      expect((await caller.caller.unary('getNode', { nodeId: first.id })).node.name).toBe('n1')
    }
    expect((await Promise.all(stops.map((stop) => stop()))).flat()).toEqual([])
    await until(() => isListed(b, a, false))
  })

  test('it can be removed once its lease is over', async () => {
    await b.caller.unary('removeNode', { nodeId: a.id })
    await until(async () => !(await c.list()).some(({ id }) => id === a.id))
  })

  test('it is one of the servers again when it is started anew', async () => {
    a = await a.again()
    await until(async () => (await isListed(b, a, true)) && (await isListed(c, a, true)))
    expect((await a.list()).filter(({ online }) => online)).toHaveLength(6)
    // Its links with the others come a moment after it is up.
    const isReached = () => a.caller.unary('getNode', { nodeId: nodes[0].id }).then(Boolean, () => false)
    await until(isReached)
  })
})

describe('NATS that answers nobody', () => {
  test('nobody is let in or removed; nodes stay, and calls among them go on', async () => {
    const [first, second, third] = nodes
    const changes = await b.caller.stream('streamNodes', everything)
    await changes.next()
    nats.servers[0]!.signal('SIGSTOP')
    await Promise.all([a, b, c].map((server) => server.reaches('DISCONNECTED')))
    for (const server of [a, b, c]) {
      await expect(server.caller.unary('removeNode', { nodeId: first.id })).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        // The one once its lease is lost, the other where the connection was lost before that.
        message: expect.stringMatching(/cut off from the state of its hub|the state of this hub cannot be reached/),
      })
    }
    for (const caller of [a, b, c, first, second, third]) {
      for (const { id: nodeId } of nodes) await caller.caller.unary('getNode', { nodeId })
    }
    nats.servers[0]!.signal('SIGCONT')
    await Promise.all([a, b, c].map((server) => server.reaches('CONNECTED')))
    const another = await joinAt(a, 'n4')
    // A server that is back before the others may have let nodes of theirs in; none has left the hub.
    for (let isTold = false; !isTold; ) {
      const { updateResponse } = await changes.next()
      expect(updateResponse.deauthenticatedNode).toBeUndefined()
      isTold = updateResponse.authenticatedNode?.id === another.id
    }
    changes.close()
    for (const node of nodes) await until(() => isListed(c, node, true))
    await until(() => isListed(c, another, true))
    await c.caller.unary('removeNode', { nodeId: another.id })
    await another.reaches('UNAUTHENTICATED')
  })
})
