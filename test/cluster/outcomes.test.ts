/** Changes whose answer never came: looked up, and never called a success that they were not. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { Engine } from '../../src/hub/cluster/engine.ts'
import { PresenceWriter } from '../../src/hub/cluster/presence-writer.ts'
import type { Identity } from '../../src/link/identity.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { clusterServer, type HubServerRig, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

let nats: Nats
let proxy: NatsProxy
/** Behind the proxy. */
let far: HubServerRig
let near: HubServerRig
beforeEach(async () => {
  nats = await Nats.alone()
  proxy = await NatsProxy.before(nats.addresses[0] as string)
  far = await clusterServer({ name: 'far', servers: [proxy.address], onError: () => {} })
  near = await clusterServer({ name: 'near', servers: nats.addresses })
})
afterEach(async () => {
  await far.close()
  await near.close()
  proxy.close()
  await nats.close()
})

/** What comes of `change` at the far server when its answer is lost, and others have done `meanwhile` before it looks. */
async function withoutAnswer<T>(change: () => Promise<T>, isMade: () => boolean, meanwhile: () => Promise<unknown>) {
  proxy.holdAnswers()
  const outcome = change().then(
    (value) => ({ value }),
    (error: { code?: string }) => ({ code: error.code }),
  )
  await until(isMade)
  await meanwhile()
  proxy.break()
  return await outcome
}

const admissions = (node: Identity, count: number) => async () => {
  for (let i = 0; i < count; i++) await near.admit(node, recordOf(`near ${i}`))
}
const isListed = (node: Identity) => () => near.listed(node.nodeId) !== undefined

test('an admission that was made is a success, made once', async () => {
  const node = newIdentity()
  near.told()
  const outcome = await withoutAnswer(
    () => far.admit(node),
    isListed(node),
    async () => {},
  )
  expect(outcome).toMatchObject({ value: { nodeId: node.nodeId, isNew: true } })
  await until(() => far.listed(node.nodeId) !== undefined)
  expect(near.told()).toEqual(['authenticated node'])
})

test('seven others followed: it is known all the same, and its place is not theirs', async () => {
  const node = newIdentity()
  const outcome = await withoutAnswer(() => far.admit(node), isListed(node), admissions(node, 7))
  const { value: place } = outcome as { value: Awaited<ReturnType<HubServerRig['admit']>> }
  expect(place).toMatchObject({ isNew: true })
  expect(await far.registry.expel(place)).toBe(false)
  expect(near.listed(node.nodeId)?.name).toBe('near 6')
})

test('more followed than are remembered: UNKNOWN', async () => {
  const node = newIdentity()
  const outcome = await withoutAnswer(() => far.admit(node), isListed(node), admissions(node, 9))
  expect(outcome).toEqual({ code: 'UNKNOWN' })
})

test('a removal that was made and undone by another is a success', async () => {
  const node = newIdentity()
  await near.admit(node)
  await until(() => far.listed(node.nodeId) !== undefined)
  const outcome = await withoutAnswer(
    () => far.registry.remove(node.nodeId),
    () => near.listed(node.nodeId) === undefined,
    admissions(node, 1),
  )
  expect(outcome).toEqual({ value: true })
  expect(near.listed(node.nodeId)?.name).toBe('near 0')
})

test('no answer at all: UNKNOWN, never a success', async () => {
  const node = newIdentity()
  proxy.holdAnswers()
  await expect(far.admit(node)).rejects.toMatchObject({ code: 'UNKNOWN' })
  expect(near.listed(node.nodeId)).toBeDefined()
})

test('a writer of an older life changes nothing: neither the place of its node nor its absence', async () => {
  const engine = await Engine.open({
    servers: nats.addresses,
    name: 'tests',
    hubId: new Uint8Array(32).fill(1),
    replicas: 1,
    connectionName: 'late',
    timers: systemClock,
  })
  try {
    const writer = new PresenceWriter({ engine, clock: systemClock, mayWrite: () => {} })
    const never = { entry: undefined, revision: 0, at: 0 }
    const old = { life: 'old', session: 's1', joined: 1 }
    const first = await writer.put('n', old, never)
    const seen = { entry: old, revision: first as number, at: 0 }
    const second = await writer.put('n', { life: 'new', session: 's2', joined: 1 }, seen)
    await writer.delete('n', 's1', seen)
    expect((await engine.session?.presence.get('node.n'))?.revision).toBe(second)
    expect(await writer.put('n', old, seen, (found) => found?.life === 'old')).toBeUndefined()
    expect((await engine.session?.presence.get('node.n'))?.revision).toBe(second)
    await writer.delete('n', 's2', never)
    expect((await engine.session?.presence.get('node.n'))?.operation).toBe('DEL')
  } finally {
    await engine.close()
  }
})
