/** A server that is cut off from the state of its hub while it is asked to change it: what it answers, shows and logs, and what turns out afterwards. */
import { join } from 'node:path'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { decodeNodeEntry } from '../../src/hub/cluster/entries.ts'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { penstock } from '../cli/cli.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { until } from '../harness/waiting.ts'
import { type Caller, httpCaller, startReal } from '../hub/callers.ts'
import { serverFlags } from './server-flags.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
let nats: Nats
let proxy: NatsProxy
/** Behind the proxy. */
let far: RunningNode
let near: RunningNode
let caller: Caller
let member: RunningNode

const server = async (name: string, address: string): Promise<RunningNode> =>
  await startReal(join(root, name), await serverFlags(name, keyFile, address))

const logged = ({ logged: lines }: RunningNode) =>
  lines.map((line) => JSON.parse(line) as { level: string; msg: string; error?: string })
const status = async (...options: string[]) =>
  await penstock(['status', '--url', `http://${far.node.http}`, ...options])

/** Resolves when nothing more comes of a node's request to join, and `far` has seen that: whatever changes it later is refused where it has not. */
async function joinedForGood(nodeId: string): Promise<void> {
  const connection = await connect({ servers: nats.addresses })
  const members = await new Kvm(connection).open('penstock_tests_members')
  await until(async () => {
    const found = await members.get(`node.${nodeId}`)
    return found !== null && decodeNodeEntry(found.value, found.revision, 0).requests.length === 0
  })
  await connection.close()
  // It waits until everything that stands has been seen.
  await expect(caller.unary('removeNode', { nodeId: newIdentity().nodeId })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
}

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
  proxy = await NatsProxy.before(nats.addresses[0] as string)
  near = await server('near', nats.addresses[0] as string)
  far = await server('far', proxy.address)
  caller = httpCaller(far)
  member = await startReal(join(root, 'member'), { 'node-name': 'member', grpc: 'none' })
  const { stream, answer } = await caller.converse('authenticationByRequests')
  const joined = httpCaller(member).unary('authenticateByRequest', { hubServerAddress: `http://${far.node.http}` })
  const { requestId } = await stream.next()
  answer({ requestId, accept: true })
  await joined
  stream.close()
  await joinedForGood(member.node.id)
})
afterAll(async () => {
  for (const node of [member, far, near]) await node?.node.close()
  proxy?.close()
  await nats?.close()
})

test('a change whose answer does not come is UNKNOWN; the server shows that it is cut off, and why; back, the change is found', async () => {
  const nodeId = member.node.id
  const states = await caller.stream('streamConnectionState')
  expect(await states.next()).toEqual({ state: 'CONNECTED' })
  proxy.holdAnswers()
  const removal = caller.unary('removeNode', { nodeId })
  await expect(removal).rejects.toMatchObject({
    code: 'UNKNOWN',
    message: expect.stringContaining('whether the change was made is not known: look before trying again'),
  })
  expect(await states.next()).toEqual({ state: 'DISCONNECTED' })
  await expect(caller.unary('removeNode', { nodeId })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  const text = await status()
  expect(text.stdout).toContain('cut off from the state that its servers share: it lets nobody in and removes nobody')
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({ state: 'DISCONNECTED' })
  const warns = (text: string) => logged(far).some(({ level, msg }) => level === 'warn' && msg.startsWith(text))
  expect(warns('this server has lost its lease: it cannot reach the state of the hub')).toBe(true)
  proxy.break()
  await until(() => warns('the connection to the state of the hub is lost'))
  expect(await states.next()).toEqual({ state: 'CONNECTED' })
  states.close()
  const { nodes } = await caller.unary('getNodes', { metadataFilters: {}, serviceFilters: [] })
  expect(nodes.map(({ name }: { name: string }) => name)).toEqual(['far', 'near'])
  await until(() => logged(member).some(({ msg }) => msg === 'the hub has removed this node: it is signed out'))
  expect((await status()).stdout).not.toContain('cut off')
})
