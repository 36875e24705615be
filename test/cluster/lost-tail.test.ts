/** NATS that has lost the end of what it had on disk, as after a power failure: what is left is what the hub has. */
import { expect, test } from 'vitest'
import { newIdentity } from '../../src/link/identity.ts'
import { recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { server, start } from './server-rig.ts'

test('changes that are lost are gone from every list, and told of; those after them count', async () => {
  const nats = await start()
  const [engine] = nats.servers as [(typeof nats.servers)[0]]
  const a = await server(nats, 'a')
  const [node, removed, lost] = [newIdentity(), newIdentity(), newIdentity()]
  await a.admit(node, recordOf('before'))
  await a.admit(removed, recordOf('removed'))
  const names = () =>
    a.registry
      .nodes()
      .map(({ name }) => name)
      .join()
  await engine.kill()
  const store = nats.copyOfStore()
  await engine.start()
  const isMade = async (change: () => Promise<unknown>) =>
    await until(() =>
      change().then(
        () => true,
        () => false,
      ),
    )
  await isMade(() => a.admit(node, recordOf('after')))
  await isMade(() => a.admit(lost, recordOf('lost')))
  await isMade(() => a.registry.remove(removed.nodeId))
  await until(() => names() === 'a,after,lost')
  a.told()
  await engine.kill()
  store.putBack()
  await engine.start()
  await until(() => names() === 'a,before,removed')
  expect(a.told().sort()).toEqual(['authenticated before', 'authenticated removed', 'deauthenticated lost'])
  await isMade(() => a.admit(node, recordOf('again')))
  await until(() => names() === 'a,again,removed')
})
