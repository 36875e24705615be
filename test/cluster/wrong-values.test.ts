/** What another server of the hub, or somebody else with its rights, has written wrongly: it counts for nothing, is told, and disturbs nobody. */
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { afterEach, expect, test } from 'vitest'
import type { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { clusterServer, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('values that are none, of leases, of members and of where nodes are', async () => {
  const nats = await Nats.alone()
  closing.push(() => nats.close())
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const errors: string[] = []
  const facts: string[] = []
  const a = await clusterServer({
    ...{ name: 'a', servers: [proxy.address] },
    onFact: ({ kind }) => facts.push(kind),
    onError: (message) => errors.push(message),
  })
  closing.push(() => a.close())
  const { node, session } = await a.join(recordOf('before'))
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  const put = async (bucket: string, key: string) =>
    await (await new Kvm(connection).open(`penstock_tests_${bucket}`)).put(key, Uint8Array.of(255, 255, 255))
  const keys = [
    ['presence', `server.${'0'.repeat(32)}`],
    ['presence', `node.${newIdentity().nodeId}`],
    ['members', `node.${newIdentity().nodeId}`],
  ] as const
  for (const [bucket, key] of keys) await put(bucket, key)
  const told = keys.map(([, key]) => `the key ${key} of the hub's state cannot be read, and counts for nothing`)
  await until(() => errors.length >= keys.length)
  expect(errors.toSorted()).toEqual(told.toSorted())
  await a.admit(newIdentity(), recordOf('after'))
  expect(facts).toEqual(['connected', 'lease held'])
  // The same when everything is read anew.
  proxy.break()
  const isInTouch = () => (a.registry as ClusterRegistry).directory.isInTouch
  await until(() => !isInTouch())
  await until(isInTouch)
  expect(a.registry.nodes().map(({ name }) => name)).toEqual(['a', 'before', 'after'])
  expect(a.listed(node.nodeId)?.online).toBe(true)
  session.close('SHUTDOWN', 'the end')
  await until(() => a.listed(node.nodeId)?.online === false)
})
