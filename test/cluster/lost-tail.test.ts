/** NATS that has lost the end of what it had on disk, as after a power failure, or that was put back to what it was: what is left is what the hub has. */
import { jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { newIdentity } from '../../src/link/identity.ts'
import { recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { client, server, start } from './server-rig.ts'

const MEMBERS = 'KV_penstock_tests_members'

/** What `nats stream backup` makes of the bucket of members; resolves to what `nats stream restore` does with it. */
async function backup(connection: NatsConnection): Promise<() => Promise<void>> {
  const ask = async (subject: string, content: string | Uint8Array) =>
    (await connection.request(subject, content)).json()
  const chunks: Uint8Array[] = []
  let isWhole = false
  connection.subscribe('backup', {
    callback: (_, message) => {
      if (message.data.length === 0) isWhole = true
      else chunks.push(new Uint8Array(message.data))
      message.respond()
    },
  })
  const order = JSON.stringify({ deliver_subject: 'backup', no_consumers: true })
  const { config, state } = (await ask(`$JS.API.STREAM.SNAPSHOT.${MEMBERS}`, order)) as Record<string, unknown>
  await until(() => isWhole)
  return async () => {
    const wanted = JSON.stringify({ config, state })
    const { deliver_subject } = (await ask(`$JS.API.STREAM.RESTORE.${MEMBERS}`, wanted)) as { deliver_subject: string }
    for (const chunk of chunks) await connection.request(deliver_subject, chunk)
    await connection.request(deliver_subject, new Uint8Array(0))
  }
}

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

test('a backup that is put in place of what there was while a server is connected is what that server has, too', async () => {
  const nats = await start()
  const a = await server(nats, 'a')
  await a.admit(newIdentity(), recordOf('before'))
  const connection = await client(nats)
  const restore = await backup(connection)
  await a.admit(newIdentity(), recordOf('lost'))
  a.told()
  const { streams } = await jetstreamManager(connection)
  await streams.delete(MEMBERS)
  await restore()
  await until(() => a.events.length > 0)
  expect(a.told()).toEqual(['deauthenticated lost'])
  await until(() =>
    a.admit(newIdentity(), recordOf('after')).then(
      () => true,
      () => false,
    ),
  )
  await until(
    () =>
      a.registry
        .nodes()
        .map(({ name }) => name)
        .join() === 'a,before,after',
  )
})
