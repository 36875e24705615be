/** A server that is removed while the others cannot see it, and goes on: all servers agree afterwards on who is on the hub. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { penstock } from '../cli/cli.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { until } from '../harness/waiting.ts'
import { httpCaller, startReal } from '../hub/callers.ts'
import { serverFlags } from './server-flags.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
const everything = { metadataFilters: {}, serviceFilters: [] }
let nats: Nats
let proxy: NatsProxy
/** Behind the proxy. */
let far: RunningNode
let near: RunningNode

const server = async (name: string, address: string): Promise<RunningNode> =>
  await startReal(join(root, name), await serverFlags(name, keyFile, address))

const logged = ({ logged: lines }: RunningNode) =>
  lines.map((line) => JSON.parse(line) as { level: string; msg: string; node?: string })
const serversAt = async ({ node }: RunningNode) => {
  const { stdout } = await penstock(['status', '--url', `http://${node.http}`, '--json'])
  return JSON.parse(stdout)
    .servers?.map(({ name, online }: { name: string; online: boolean }) => `${name} ${online ? 'up' : 'down'}`)
    .sort()
}

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
  proxy = await NatsProxy.before(nats.addresses[0] as string)
  near = await server('near', nats.addresses[0] as string)
  far = await server('far', proxy.address)
})
afterAll(async () => {
  for (const node of [far, near]) await node?.node.close()
  proxy?.close()
  await nats?.close()
})

test('back, it says so, and is a member again: it is listed by all, and answers as before', async () => {
  const { id } = far.node
  proxy.cut()
  const isRemoved = async () =>
    await httpCaller(near)
      .unary('removeNode', { nodeId: id })
      .then(
        () => true,
        ({ code }) => code !== 'FAILED_PRECONDITION',
      )
  await until(isRemoved)
  await until(
    async () =>
      !(await httpCaller(near).unary('getNodes', everything)).nodes.some((node: { id: string }) => node.id === id),
  )
  proxy.open()
  for (const at of [near, far]) await until(async () => String(await serversAt(at)) === 'far up,near up')
  const isAnswered = () =>
    httpCaller(near)
      .unary('getNode', { nodeId: id })
      .then(
        ({ node }) => node.name === 'far',
        () => false,
      )
  await until(isAnswered)
  const told = logged(far).filter(({ msg }) => msg.startsWith('this server was removed from the hub'))
  expect(told.map(({ level }) => level)).toEqual(['warn'])
  expect(logged(far).filter(({ node, msg }) => node === id && /joined|left/.test(msg))).toEqual([])
})
