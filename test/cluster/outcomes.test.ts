/** Changes whose answer never came: looked up, and never called a success that they were not. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { systemClock } from '../../src/contract/clock.ts'
import { Engine } from '../../src/hub/cluster/engine.ts'
import { PresenceWriter } from '../../src/hub/cluster/presence-writer.ts'
import { Sweeper } from '../../src/hub/cluster/sweeper.ts'
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
const isListedAt = (hub: HubServerRig, node: Identity) => () => hub.listed(node.nodeId) !== undefined
const isListed = (node: Identity) => isListedAt(near, node)

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

test('a place that this server has yet to see is given back', async () => {
  const node = newIdentity()
  await near.admit(node, recordOf('first'))
  await until(isListedAt(far, node))
  proxy.cut()
  const place = await near.admit(node, recordOf('second'))
  const expelled = far.registry.expel(place)
  proxy.open()
  expect(await expelled).toBe(true)
  await until(() => near.listed(node.nodeId) === undefined)
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

const never = { entry: undefined, revision: 0, at: 0 }

async function writing(step: (writer: PresenceWriter, engine: Engine) => Promise<void>): Promise<void> {
  const engine = await Engine.open({
    servers: nats.addresses,
    name: 'tests',
    hubId: new Uint8Array(32).fill(1),
    replicas: 1,
    connectionName: 'late',
    timers: systemClock,
  })
  try {
    await step(new PresenceWriter({ engine, clock: systemClock, mayWrite: () => {} }), engine)
  } finally {
    await engine.close()
  }
}

test('a writer of an older life changes nothing: neither the place of its node nor its absence', () =>
  writing(async (writer, engine) => {
    const old = { life: 'old', session: 's1', joined: 1 }
    const first = await writer.put('n', old, never)
    const seen = { entry: old, revision: first as number, at: 0 }
    const second = await writer.put('n', { life: 'new', session: 's2', joined: 1 }, seen)
    await writer.delete('n', seen.revision, ({ session }) => session === 's1')
    expect((await engine.session?.presence.get('node.n'))?.revision).toBe(second)
    expect(await writer.put('n', old, seen, (found) => found?.life === 'old')).toBeUndefined()
    expect((await engine.session?.presence.get('node.n'))?.revision).toBe(second)
    await writer.delete('n', 0, ({ session }) => session === 's2')
    expect((await engine.session?.presence.get('node.n'))?.operation).toBe('DEL')
  }))

test('what a life has left behind is not swept once its server has noted the same link for its next life', () =>
  writing(async (writer, engine) => {
    const entry = { life: 'old', session: 's', joined: 1 }
    const seen = { entry, revision: (await writer.put('back', entry, never)) as number, at: 0 }
    const noted = await writer.put('back', { ...entry, life: 'next' }, seen)
    const failures: unknown[] = []
    const clock = new SimulatedClock()
    const sweeper = new Sweeper({
      clock,
      engine,
      picture: { presentIn: () => ['back', 'gone'], presence: (id) => (id === 'back' ? seen : left) },
      writer,
      lives: { isHeld: true },
      stands: () => false,
      isFirst: () => true,
      onError: (_, error) => failures.push(error),
    })
    const gone = { ...entry, session: 'other' }
    const left = { entry: gone, revision: (await writer.put('gone', gone, never)) as number, at: 0 }
    const isSwept = async () => (await engine.session?.presence.get('node.gone'))?.operation === 'DEL'
    sweeper.ended('old')
    clock.increment(19_999)
    expect(await isSwept()).toBe(false)
    clock.increment(1)
    await until(isSwept)
    expect((await engine.session?.presence.get('node.back'))?.revision).toBe(noted)
    expect(failures).toEqual([])
  }))
