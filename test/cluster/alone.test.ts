/** One hub server that started while the others were down, and went before its nodes came elsewhere: they find the others. */
import { join } from 'node:path'
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterAll, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { Nats } from '../harness/nats.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress } from '../hub/callers.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
let nats: Nats | undefined
afterAll(async () => {
  await endProcesses()
  await nats?.close()
})

async function startServer(name: string, { addresses }: Nats): Promise<NodeProcess> {
  const http = await freeAddress()
  const flags = {
    ...{ http, 'node-name': name, hub: 'true', 'hub-key-file': keyFile, 'hub-address': `http://${http}` },
    ...{ 'hub-cluster-name': 'tests', 'hub-cluster-replicas': '1' },
    'hub-cluster-nats-servers': addresses.map((address) => `nats://${address}`).join(),
  }
  return await NodeProcess.start({ directory: join(root, name), flags })
}

/** As if the servers had been down for long. */
async function endLeases({ addresses }: Nats): Promise<void> {
  const connection = await connect({ servers: [...addresses] })
  const presence = await new Kvm(connection).open('penstock_tests_presence')
  for await (const key of await presence.keys('server.>')) await presence.delete(key)
  await connection.close()
}

const isOnline = async (server: NodeProcess, { id }: NodeProcess) =>
  (await server.list()).some((node) => node.id === id && node.online)

test('a node that only such a server has told of the servers comes to the others', async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
  let a = await startServer('a', nats)
  const [b, c] = [await startServer('b', nats), await startServer('c', nats)]
  const node = await NodeProcess.start({ directory: join(root, 'node'), flags: { 'node-name': 'node' } })
  const { stream, answer } = await a.caller.converse('authenticationByRequests')
  const joined = node.caller.unary('authenticateByRequest', { hubServerAddress: `http://${a.address}` })
  answer({ requestId: (await stream.next()).requestId, accept: true })
  await joined
  stream.close()
  await until(async () => (await isOnline(a, b)) && (await isOnline(a, c)))
  await Promise.all([a.kill(), b.kill(), c.kill()])
  await node.reaches('DISCONNECTED')
  await endLeases(nats)
  a = await a.again()
  await node.reaches('CONNECTED')
  await a.kill()
  await node.reaches('DISCONNECTED')
  await Promise.all([b.again(), c.again()])
  await node.reaches('CONNECTED')
})
