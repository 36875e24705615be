/** Hub and nodes as processes that are killed with -9 and stopped: what was answered is kept, and everybody finds back without help. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { settingsOf, temporaryDirectory, traffic } from '../api/running-node.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { Failed, type Stream } from './callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
let directories = 0
const directory = () => join(root, `${directories++}`)
/** How much faster than real time links live here; PENSTOCK_TEST_SPEED=1 takes the minutes it takes. */
const SPEED = Number(process.env.PENSTOCK_TEST_SPEED ?? 10)
const everything = { metadataFilters: {}, serviceFilters: [] }
afterEach(endProcesses)

/** Reads updates of streamNodes up to the one of this kind for this node. */
async function told(stream: Stream, kind: string, id: string): Promise<void> {
  for (;;) {
    const { updateResponse } = await stream.next()
    if (updateResponse?.[kind]?.id === id) return
  }
}

async function joinHub(hub: NodeProcess, node: NodeProcess): Promise<bigint> {
  const { stream, answer } = await hub.caller.converse('authenticationByRequests')
  const joined = node.caller.unary('authenticateByRequest', { hubServerAddress: `http://${hub.address}` })
  // Whoever cannot even ask fails here.
  const { requestId } = await Promise.race([stream.next(), joined.then(() => expect.fail('joined unasked'))])
  answer({ requestId, accept: true })
  await joined
  stream.close()
  return requestId
}

const start = (flags: Record<string, string>) => NodeProcess.start({ directory: directory(), flags, speed: SPEED })
const startHub = () => start({ hub: 'true', 'node-name': 'hub' })
const startNode = (name = 'node') => start({ 'node-name': name })

test('a node killed the moment it has joined is on the hub when it comes back, and the list tells it', async () => {
  const hub = await startHub()
  let node = await startNode()
  await joinHub(hub, node)
  const changes = await hub.caller.stream('streamNodes', everything)
  await node.kill()
  await told(changes, 'disconnectedNode', node.id)
  node = await node.again()
  await told(changes, 'connectedNode', node.id)
  expect(await node.caller.unary('getLocalNodeId')).toEqual({ nodeId: node.id, isAuthenticated: true })
  expect((await hub.list()).map(({ id, online }) => [id, online])).toEqual([
    [hub.id, true],
    [node.id, true],
  ])
})

test('a hub killed the moment it has answered knows its nodes, their names, and no request id twice', async () => {
  let hub = await startHub()
  const nodes = [await startNode('a'), await startNode('b')] as const
  let last = 0n
  for (const node of nodes) {
    const requestId = await joinHub(hub, node)
    expect(requestId).toBeGreaterThan(last)
    last = requestId
    await hub.kill()
    await node.reaches('DISCONNECTED')
    hub = await hub.again()
    await node.reaches('CONNECTED')
  }
  await Promise.all(nodes.map((node) => node.reaches('CONNECTED')))
  const metadata = { items: { rack: { intValue: 4n } } }
  await hub.caller.unary('setNode', { nodeId: nodes[0].id, name: 'renamed', metadata })
  await hub.caller.unary('setNode', { nodeId: hub.id, name: 'the hub', metadata })
  await Promise.all([hub.kill(), nodes[0].kill()])
  hub = await hub.again()
  const back = await nodes[0].again()
  await back.reaches('CONNECTED')
  expect((await hub.list()).map(({ name }) => name)).toEqual(['the hub', 'renamed', 'b'])
  expect((await hub.caller.unary('getNode', { nodeId: back.id })).node).toMatchObject({ name: 'renamed', metadata })
})

test('a removal that was answered outlives the hub, a leaving that was answered outlives the node', async () => {
  let hub = await startHub()
  const nodes = [await startNode('removed'), await startNode('leaving')] as const
  for (const node of nodes) await joinHub(hub, node)
  await hub.caller.unary('removeNode', { nodeId: nodes[0].id })
  await hub.kill()
  hub = await hub.again()
  await nodes[0].reaches('UNAUTHENTICATED')
  await nodes[1].reaches('CONNECTED')
  await nodes[1].caller.unary('disconnect')
  await Promise.all([nodes[1].kill(), hub.kill()])
  hub = await hub.again()
  const back = await nodes[1].again()
  expect(await back.caller.unary('getLocalNodeId')).toMatchObject({ isAuthenticated: false })
  expect((await hub.list()).map(({ id }) => id)).toEqual([hub.id])
})

/** When somebody dies in a joining: before the hub's operator has answered, so many ms after, or when the node has said that it joined. */
const moments = ['unanswered', 0, 1.5, 3, 5, 8, 'told'] as const

test.each(['hub', 'node'] as const)(
  'the %s killed at any moment of a joining: both come to agree, and a success that was told holds',
  async (victim) => {
    let hub = await startHub()
    let node = await startNode()
    for (const moment of moments) {
      const { stream, answer } = await hub.caller.converse('authenticationByRequests')
      const joining = node.caller
        .unary('authenticateByRequest', { hubServerAddress: `http://${hub.address}` })
        .then(() => true)
        .catch((error: unknown) =>
          error instanceof Failed || error instanceof TypeError ? false : Promise.reject(error),
        )
      const unasked = joining.then(() => expect.fail('it was over before it was asked'))
      const { requestId } = await Promise.race([stream.next(), unasked])
      if (moment !== 'unanswered') answer({ requestId, accept: true })
      if (moment === 'told') expect(await joining).toBe(true)
      else if (moment !== 'unanswered') await new Promise((resolve) => setTimeout(resolve, moment))
      if (victim === 'hub') await hub.kill()
      else await node.kill()
      const success = await joining
      if (moment === 'unanswered') expect(success).toBe(false)
      if (victim === 'hub') hub = await hub.again()
      else node = await node.again()
      const { isAuthenticated } = await node.caller.unary('getLocalNodeId')
      if (success) expect(isAuthenticated).toBe(true)
      if (moment === 'unanswered') expect(isAuthenticated).toBe(false)
      if (isAuthenticated) {
        await node.reaches('CONNECTED')
        expect((await hub.list()).map(({ id, online }) => [id, online])).toEqual([
          [hub.id, true],
          [node.id, true],
        ])
        await node.caller.unary('disconnect')
      } else {
        // A hub that had let it in when the node died may list it, as a node that is away.
        await until(
          async () => (await hub.list()).every(({ id, online }) => online === (id === hub.id)),
          'the hub has nobody online',
        )
        const known = (await hub.list()).filter(({ id }) => id !== hub.id)
        if (moment === 'unanswered') expect(known).toEqual([])
        for (const { id } of known) await hub.caller.unary('removeNode', { nodeId: id })
      }
      stream.close()
    }
  },
)

test('a hub that was stopped (SIGSTOP) for long and continued: the nodes notice, and find back without help', async () => {
  const hub = await startHub()
  const node = await startNode()
  await joinHub(hub, node)
  const states = await node.caller.stream('streamConnectionState')
  expect(await states.next()).toEqual({ state: 'CONNECTED' })
  hub.signal('SIGSTOP')
  // 30 s of silence on a clock that runs faster.
  expect(await states.next()).toEqual({ state: 'DISCONNECTED' })
  expect(await node.caller.unary('getNodes', everything).catch(({ code }) => code)).toBe('UNAVAILABLE')
  hub.signal('SIGCONT')
  expect(await states.next()).toEqual({ state: 'CONNECTED' })
  expect((await node.list()).map(({ id, online }) => [id, online])).toEqual([
    [hub.id, true],
    [node.id, true],
  ])
})

test('a node that was stopped for long and continued: the hub says so, and has it back', async () => {
  const hub = await startHub()
  const node = await startNode()
  await joinHub(hub, node)
  const changes = await hub.caller.stream('streamNodes', everything)
  node.signal('SIGSTOP')
  await told(changes, 'disconnectedNode', node.id)
  expect(await hub.caller.unary('getNode', { nodeId: node.id }).catch(({ code }) => code)).toBe('UNAVAILABLE')
  node.signal('SIGCONT')
  await told(changes, 'connectedNode', node.id)
  expect((await hub.caller.unary('getNode', { nodeId: node.id })).node).toMatchObject({ id: node.id, online: true })
})

test('pipelines of one node, managed from another through the hub; telemetry ends with an error when the node dies', async () => {
  const hub = await startHub()
  const nodes = [await startNode('a'), await startNode('b')] as const
  for (const node of nodes) await joinHub(hub, node)
  const [a, b] = nodes
  const changes = await a.caller.stream('streamPipelines', { nodeId: b.id })
  const { pipeline } = await a.caller.unary('createPipeline', { nodeId: b.id, ...settingsOf(traffic(1)) })
  expect((await changes.next()).create.pipeline).toEqual(pipeline)
  const { runId } = await a.caller.unary('startPipeline', { nodeId: b.id, id: pipeline.id })
  const telemetry = await a.caller.stream('openTelemetryStream', { nodeId: b.id, runId })
  const log = await hub.caller.stream('openLogStream', { nodeId: b.id, runId, options: { lines: 10n } })
  expect(await telemetry.next()).toBeDefined()
  expect(await log.next()).toBeDefined()
  for (const at of [hub, a, b]) {
    const { pipelines } = await at.caller.unary('getPipelines', { nodeId: b.id })
    expect(pipelines).toMatchObject([{ id: pipeline.id, started: true, currentRun: { id: runId } }])
  }
  await b.kill()
  const ending = (async () => {
    for (;;) await telemetry.next()
  })()
  await expect(ending).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})
