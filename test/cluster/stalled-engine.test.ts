/** Members are read and written while NATS stops answering in the middle: the command ends, and says why. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { readMembers, writeMembers } from '../../src/hub/cluster/moving.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import type { StoredNode } from '../../src/store/nodes.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { HUB_ID } from '../harness/registries.ts'
import '../harness/slow.ts'

let nats: Nats
let proxy: NatsProxy
const engine = (address: string) => ({ servers: [address], name: 'tests', hubId: HUB_ID, replicas: 1 })
const member = (name: string): StoredNode => {
  const { nodeId: id, publicKey } = newIdentity()
  const key = rawKey(publicKey)
  return { id, key, name, metadata: {}, services: ['PIPELINES'], joinedAt: 1, lastSeen: 1 }
}
const members = [member('north'), member('south')]

beforeAll(async () => {
  nats = await Nats.alone()
  proxy = await NatsProxy.before(nats.addresses[0] as string)
  await writeMembers(engine(nats.addresses[0] as string), { members, requestIds: 7 })
})
afterEach(() => proxy.changeToServer())
afterAll(async () => {
  proxy.close()
  await nats.close()
})

test.each<[string, (text: string) => string, string]>([
  // They are sent to somebody who is not there.
  ['keys', (text) => text.replaceAll(/SUB _INBOX(?=\.\w+\.\d+ )/g, 'SUB _NOBOX'), 'not a key within 20 s'],
  [
    'values',
    (text) => text.replaceAll(/_INBOX(?=\S* \d+\r\n\{"last_by_subj":"\$KV\.penstock_tests_members\.node\.)/g, '_NOBOX'),
    'timeout',
  ],
])('%s do not come', async (_, change, why) => {
  proxy.changeToServer(change)
  const { address } = proxy
  const error = new Error(
    `the NATS servers at ${address} have stopped answering (${why}): try again once they are well`,
  )
  const more = [...members, member('east')]
  const ends = await Promise.allSettled([
    readMembers(engine(address)),
    writeMembers(engine(address), { members: more, requestIds: 9 }),
  ])
  expect(ends).toEqual([error, error].map((reason) => ({ status: 'rejected', reason })))
  const there = await readMembers(engine(nats.addresses[0] as string))
  expect(there.members.map(({ name }) => name).sort()).toEqual(['north', 'south'])
  expect(there.requestIds).toBeGreaterThanOrEqual(7)
})
