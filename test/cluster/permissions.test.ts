/** What an account has to be allowed on the NATS servers: no more than this, and that is enough. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { ClusterLog } from '../../src/node/cluster-log.ts'
import type { FactLog } from '../../src/node/facts.ts'
import { packageRoot } from '../../src/package-root.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { clusterServer } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** The permissions that the page shows, for the hub `tests`. */
function permissions(): string {
  const page = readFileSync(join(packageRoot(), 'docs/cluster-internals.md'), 'utf8')
  const [, block] = /```\n(permissions \{[\s\S]*?\n\})\n```/.exec(page) ?? []
  if (block === undefined) throw new Error('the page shows no permissions')
  return block.replaceAll('NAME', 'tests')
}

async function restricted(allowed = permissions()): Promise<Nats> {
  const nats = await Nats.alone(
    (store) =>
      `jetstream { store_dir: "${store}" }\nno_auth_user: hub\naccounts { HUBS { jetstream: enabled, users: [{ user: hub, password: hub, ${allowed} }] } }`,
  )
  closing.push(() => nats.close())
  return nats
}

test('two servers of a hub need no more than the permissions that the page shows', async () => {
  const nats = await restricted()
  let later = 0
  const a = await clusterServer({ name: 'a', servers: nats.addresses, engineTime: (seen) => seen + later })
  closing.push(() => a.close())
  const b = await clusterServer({ name: 'b', servers: nats.addresses })
  closing.push(() => b.close())
  const { node, session } = await a.join()
  await until(() => b.listed(node.nodeId)?.online === true)
  session.close('SHUTDOWN', 'the end')
  await until(() => b.listed(node.nodeId)?.online === false)
  expect(await b.registry.remove(node.nodeId)).toBe(true)
  await until(() => a.listed(node.nodeId) === undefined)
  // What is purged after a day.
  await b.close()
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  const { streams } = await jetstreamManager(connection, { checkAPI: false })
  const left = async () => {
    const { state } = await streams.info('KV_penstock_tests_members', { subjects_filter: `*.*.node.${node.nodeId}` })
    return Object.keys(state.subjects ?? {}).length
  }
  expect(await left()).toBe(1)
  later = 25 * 3_600_000
  await until(async () => (await left()) === 0)
})

test('without the permission to purge, that is told once and not with each attempt', async () => {
  const nats = await restricted(permissions().replace(/^.*STREAM\.MSG\.DELETE.*\n/m, ''))
  let later = 0
  const told: { message: string; error: unknown }[] = []
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  // Each look tries to purge the one entry there is.
  let looks = 0
  proxy.changeToServer((text) => {
    looks += text.split('$JS.API.STREAM.MSG.DELETE.KV_penstock_tests_members ').length - 1
    return text
  })
  const a = await clusterServer({
    ...{ name: 'a', servers: [proxy.address], engineTime: (seen) => seen + later },
    onError: (message, error) => told.push({ message, error }),
  })
  closing.push(() => a.close())
  const { node } = await a.join()
  expect(await a.registry.remove(node.nodeId)).toBe(true)
  for (const times of [1, 2, 3]) {
    later += 25 * 3_600_000
    await until(() => looks === times)
    await until(() => told.length > 0)
  }
  expect(told).toMatchObject([{ message: 'what has been of no use for a day could not be purged' }])
  // Nor with a stack.
  const lines: unknown[] = []
  const error = (...line: unknown[]) => lines.push(line)
  new ClusterLog({ error } as unknown as FactLog, systemClock).error('it could not be purged', told[0]?.error)
  expect(lines).toEqual([
    [
      { error: expect.stringContaining('$JS.API.STREAM.MSG.DELETE.KV_penstock_tests_') },
      "it could not be purged: this server's account lacks a permission on the NATS servers (docs/cluster-internals.md has the list)",
    ],
  ])
})

test('the example has just the permissions that the page shows', () => {
  const lines = (text: string) => [...text.matchAll(/"([$_][^"]+)"/g)].map(([, subject]) => subject).sort()
  const conf = readFileSync(join(packageRoot(), 'examples/cluster/nats.conf'), 'utf8')
  const [, allowed = ''] = /^HUB_SERVER (\{[\s\S]*?\n\})/m.exec(conf) ?? []
  expect(lines(allowed)).toEqual(lines(permissions().replaceAll('penstock_tests', 'penstock_example')))
})

test('they allow nothing about the streams of others', async () => {
  const nats = await restricted()
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  for (const subject of [
    '$JS.API.STREAM.CREATE.other',
    '$JS.API.STREAM.DELETE.KV_penstock_tests_members',
    '$KV.other.x',
  ]) {
    await expect(connection.request(subject, '{}', { timeout: 2_000 }), subject).rejects.toThrow(/[Pp]ermissions/)
  }
})
