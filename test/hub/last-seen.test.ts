/** When a hub last heard of a node: as it is shown, and as it is on the disk when the process is killed. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../src/contract/clock.ts'
import { EmbeddedRegistry } from '../../src/hub/embedded-registry.ts'
import { hubPolicy } from '../../src/hub/policy.ts'
import { type Identity, newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import type { LinkSession } from '../../src/link/link.ts'
import { connectPair } from '../../src/link/pair.ts'
import { Store } from '../../src/store/store.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { recordOf } from '../harness/registries.ts'
import { settle, until } from '../harness/waiting.ts'

const EPOCH = Date.UTC(2026, 0, 1)
const identity = newIdentity()
let clock: SimulatedClock
let store: Store
let registry: EmbeddedRegistry
const report = () => {}

/** A hub on the disk as it is now; one that was there is killed. */
const start = () =>
  new EmbeddedRegistry({
    selfId: identity.nodeId,
    self: recordOf('hub'),
    store: store.nodes,
    requestIds: store.requestIds,
    onError: (error) => expect.unreachable(String(error)),
    now: () => EPOCH + clock.now(),
    timers: clock as Clock,
  })

beforeEach(() => {
  clock = new SimulatedClock()
  store = new Store(temporaryDirectory())
  registry = start()
})
afterEach(async () => {
  await registry.close()
  await store.close()
})

/** A member of the hub that is connected. */
async function join(node: Identity = newIdentity()): Promise<{ id: string; session: LinkSession }> {
  const record = recordOf('node')
  await registry.admit({ nodeId: node.nodeId, key: rawKey(node.publicKey), record, remoteAddress: '' })
  const { session } = await connectPair(
    { identity, policy: hubPolicy({ registry, serve: () => {} }), clock: clock as Clock, report },
    { identity: node, record, intent: 'CONNECT', clock: clock as Clock, report },
  )
  return { id: node.nodeId, session }
}

const shown = (id: string, { nodes } = { nodes: registry.nodes() }) => nodes.find((node) => node.id === id)
/** Seconds after the start. */
const seen = (id: string, hub = registry) =>
  ((shown(id, { nodes: hub.nodes() })?.lastSeen?.getTime() ?? Number.NaN) - EPOCH) / 1_000

/** Seconds in which a node that is there is asked and answers. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.increment(1_000)
    await settle()
  }
}

test('of a node that is connected, and of one whose link is dead: when something came over its link last', async () => {
  const { id } = await join()
  await pass(9)
  expect([seen(id), shown(id)?.online]).toEqual([0, true])
  // It is asked, and answers.
  await pass(6)
  expect([seen(id), shown(id)?.online]).toEqual([10, true])
  // It has no time to answer.
  clock.increment(60_000)
  await until(() => shown(id)?.online === false)
  await pass(5)
  expect(seen(id)).toBe(10)
  await until(() => seen(id, start()) === 10)
})

test('each minute it goes to disk, of those too that did not come again after the hub was killed', async () => {
  const [first, second] = [await join(), await join()]
  await pass(59)
  expect([seen(first.id, start()), seen(second.id, start())]).toEqual([0, 0])
  await pass(1)
  await until(() => seen(first.id, start()) === 50 && seen(second.id, start()) === 50)
  await pass(30)
  registry = start()
  expect([seen(first.id), shown(first.id)?.online]).toEqual([50, false])
  await join()
  await pass(60)
  await until(() => store.nodes.all().some(({ lastSeen }) => lastSeen >= EPOCH + 140_000))
  expect([seen(first.id, start()), seen(second.id, start())]).toEqual([50, 50])
})

test('a hub that is stopped brings it to disk', async () => {
  const { id } = await join()
  await pass(25)
  await registry.close()
  expect(seen(id, start())).toBe(20)
})
