/** Two servers of one hub with one identity, as of a data directory that was copied: the second does not come up; who was killed starts anew. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { penstock } from '../cli/cli.ts'
import { Nats } from '../harness/nats.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { clusterServer } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { serverFlags } from './server-flags.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
let nats: Nats

const flags = (name: string) => serverFlags(name, keyFile, nats.addresses[0] as string)

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
})
afterAll(async () => {
  await endProcesses()
  await nats.close()
})

test('the second is refused with what to do, the first goes on and says so; killed and started at once, it comes up', async () => {
  const said: string[] = []
  const command = { spawned: () => {}, said: (line: string) => void said.push(line) }
  const first = await NodeProcess.start({ directory: join(root, 'first'), flags: await flags('first'), command })
  cpSync(join(root, 'first'), join(root, 'copy'), { recursive: true })
  const given = Object.entries({ ...(await flags('copy')), 'data-dir': join(root, 'copy') })
  const second = await penstock(['up', ...given.flatMap(([n, v]) => (v === 'true' ? [`--${n}`] : [`--${n}`, v]))])
  expect(second.code).toBe(1)
  expect(second.stdout).toBe('')
  expect(second.stderr).toContain(
    `penstock: the node did not start: another server of this hub runs with the identity of this node, ${first.id}`,
  )
  expect(second.stderr).toContain('give this one an empty dataDirectory')
  await until(() => said.some((line) => line.includes("runs with this node's identity")))
  expect((await first.list()).map(({ name, online }) => ({ name, online }))).toEqual([{ name: 'first', online: true }])
  await first.kill()
  const again = await first.again()
  expect(again.id).toBe(first.id)
  expect((await again.list()).map(({ online }) => online)).toEqual([true])
})

test('of two that start at the same moment one comes up', async () => {
  const maker = await clusterServer({ bucket: 'rounds', servers: nats.addresses })
  await maker.close()
  for (let round = 0; round < 3; round++) {
    const options = { identity: newIdentity(), bucket: 'rounds', servers: nats.addresses }
    const started = await Promise.allSettled([1, 2].map(() => clusterServer(options)))
    const up = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    expect(started.flatMap((each) => (each.status === 'rejected' ? [each.reason.message] : []))).toEqual([
      expect.stringContaining('another server of this hub runs with the identity of this node'),
    ])
    for (const server of up) await server.close()
  }
})
