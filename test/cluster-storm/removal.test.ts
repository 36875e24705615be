/** A node is removed while its server, a process as all are here, is cut off from NATS: it hears of that over the link between the servers. */
import { afterEach, expect, test } from 'vitest'
import { Random } from '../../src/dataplane/engine/random.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { endProcesses } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { natsOfMachine } from './engine.ts'
import { HubRig } from './hub-rig.ts'
import { call, type NodeParty } from './node-party.ts'
import { Operator } from './operators.ts'
import '../harness/slow.ts'

const WAIT_MS = 60_000
const PATIENCE_MS = 4_000
const { replicas } = natsOfMachine()

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await endProcesses()
})

async function stateOf({ caller }: NodeParty): Promise<string> {
  const stream = await caller.stream('streamConnectionState')
  const { state } = await stream.next()
  stream.close()
  return state
}

/** Waits, told by its stream, until that is its state. */
async function comesTo({ caller }: NodeParty, wanted: string): Promise<void> {
  const stream = await caller.stream('streamConnectionState')
  while ((await stream.next()).state !== wanted);
  stream.close()
}

test('removed at another server', { timeout: 240_000 }, async () => {
  const random = new Random(1)
  const quiet = { log: () => {}, killed: () => {} }
  const rig = await HubRig.make({ random, replicas, nodes: 1, directory: temporaryDirectory(), ...quiet })
  closing.push(() => rig.close())
  await rig.start()
  const [own, other] = rig.servers as [NodeParty, NodeParty, NodeParty]
  const [node] = rig.nodes as [NodeParty]
  const operator = new Operator(own, random)
  closing.push(() => operator.close())
  await node.caller.unary('authenticateByRequest', { hubServerAddress: rig.addressOf(own) })
  const isReached = async () => {
    return (await call(other.caller, 'getNode', { nodeId: node.id }, PATIENCE_MS)).kind === 'answered'
  }
  await until(isReached, 'a call that goes from server to server', WAIT_MS)

  // The node has its own server only, and that one has the other servers only.
  const paths = (from: string, to: readonly string[]) =>
    rig.paths.filter((path) => path.from === from && to.includes(path.to))
  for (const { proxy } of paths(node.name, [other.name, 'h3'])) proxy.break('refuse')
  const toNats = paths(own.name, rig.engine.names)
  expect(toNats).toHaveLength(rig.engine.names.length)
  for (const { proxy } of toNats) proxy.break('drop')
  await comesTo(own, 'DISCONNECTED')
  expect(await stateOf(node)).toBe('CONNECTED')
  await other.caller.unary('removeNode', { nodeId: node.id })
  await comesTo(node, 'UNAUTHENTICATED')
  expect(await stateOf(own)).toBe('DISCONNECTED')

  for (const { proxy } of toNats) proxy.heal()
  const isAgreed = async () => (await rig.disagreement()) === undefined
  await until(isAgreed, 'one list at all servers, without the node', WAIT_MS)
  expect((await rig.lists()).flat().filter(({ id }) => id === node.id)).toEqual([])
})
