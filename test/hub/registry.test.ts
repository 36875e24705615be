/** What a hub promises of its nodes, whichever registry keeps them: one table of cases for both. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Node } from '../../src/contract/types.ts'
import type { NodeEvent } from '../../src/hub/registry.ts'
import type { Identity } from '../../src/link/identity.ts'
import { newIdentity } from '../../src/link/identity.ts'
import type { NodeRecord } from '../../src/link/link.ts'
import { clusterState, embeddedState, type HubServerRig, type HubState, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'

describe.each([
  ['embedded', embeddedState],
  ['on NATS JetStream', clusterState],
])('%s', (_, begin) => {
  let state: HubState
  let hub: HubServerRig
  beforeEach(async () => {
    state = await begin()
    hub = await state.server()
    hub.told()
  })
  afterEach(async () => {
    await hub.close()
    await state.close()
  })

  const offline = (node: Identity) => until(() => hub.listed(node.nodeId)?.online === false)

  test('the hub itself is on its list, first, online', async () => {
    const { nodeId } = hub.identity
    expect(hub.registry.nodes()).toMatchObject([
      { id: nodeId, name: 'hub', online: true, services: ['HUB_SERVER', 'PIPELINES'] },
    ])
    expect(hub.registry.route(nodeId)).toEqual({ kind: 'self' })
    hub.registry.setSelf(recordOf('renamed'))
    await until(() => hub.listed(nodeId)?.name === 'renamed')
    hub.registry.setSelf(recordOf('renamed'))
    expect(hub.told()).toEqual(['updated renamed'])
  })

  test('admit: listed, offline, and told; a second time it is no new place, and told again', async () => {
    const node = newIdentity()
    expect(await hub.admit(node, recordOf('one'))).toMatchObject({ nodeId: node.nodeId, isNew: true })
    expect(hub.listed(node.nodeId)).toMatchObject({ name: 'one', online: false })
    expect(hub.registry.route(node.nodeId)).toEqual({ kind: 'offline' })
    expect(await hub.admit(node, recordOf('two'))).toMatchObject({ isNew: false })
    expect(hub.listed(node.nodeId)).toMatchObject({ name: 'two' })
    expect(hub.told()).toEqual(['authenticated one', 'authenticated two'])
  })

  test('who is no member is refused', async () => {
    const stranger = newIdentity()
    await expect(hub.dial(stranger)).rejects.toMatchObject({ reason: 'NOT_A_MEMBER', signed: true })
    expect(hub.registry.route(stranger.nodeId)).toEqual({ kind: 'unknown' })
    expect(hub.told()).toEqual([])
  })

  test('a link: online once the node is welcomed, offline when it closes', async () => {
    const { node, session } = await hub.join()
    await until(() => hub.registry.route(node.nodeId).kind === 'session')
    expect(hub.listed(node.nodeId)).toMatchObject({ online: true })
    const before = Date.now()
    session.close('SHUTDOWN', 'the end')
    await offline(node)
    expect(hub.registry.route(node.nodeId)).toEqual({ kind: 'offline' })
    expect(hub.listed(node.nodeId)?.lastSeen?.getTime()).toBeGreaterThanOrEqual(before)
    expect(hub.told()).toEqual(['authenticated node', 'connected node', 'disconnected node'])
  })

  test('a second link of a node replaces the first', async () => {
    const { node, session } = await hub.join()
    const shown: string[] = []
    hub.registry.follow(({ type, node: { online } }) => shown.push(`${type} ${online ? 'online' : 'offline'}`))
    const second = await hub.dial(node)
    expect(await session.closed).toMatchObject({ reason: 'REPLACED', byPeer: true })
    await until(() => hub.registry.route(node.nodeId).kind === 'session')
    expect(hub.told()).toEqual(['authenticated node', 'connected node', 'disconnected node', 'connected node'])
    expect(shown).toEqual(['disconnected offline', 'connected online'])
    second.session.close('SHUTDOWN', 'the end')
    await offline(node)
  })

  test('changed details are told once, unchanged ones not', async () => {
    const { node, session } = await hub.join()
    session.sendRecord(recordOf('changed'))
    await until(() => hub.listed(node.nodeId)?.name === 'changed')
    session.sendRecord(recordOf('changed'))
    session.sendRecord(recordOf('again'))
    await until(() => hub.listed(node.nodeId)?.name === 'again')
    expect(hub.told().slice(2)).toEqual(['updated changed', 'updated again'])
  })

  test('a member that says of itself that it hosts the hub is not believed', async () => {
    const { node, session } = await hub.join()
    const lie: NodeRecord = { ...recordOf('changed'), services: ['HUB_SERVER', 'PIPELINES'] }
    session.sendRecord(lie)
    await until(() => hub.listed(node.nodeId)?.name === 'changed')
    expect(hub.listed(node.nodeId)?.services).toEqual(['PIPELINES'])
    const { session: second } = await hub.dial(node, { ...lie, name: 'again' })
    await until(() => hub.listed(node.nodeId)?.name === 'again')
    expect(hub.listed(node.nodeId)?.services).toEqual(['PIPELINES'])
    second.close('SHUTDOWN', 'the end')
  })

  test('remove: off the list, the link is cut, and the node is refused; again it is not on the list', async () => {
    const { node, session } = await hub.join()
    expect(await hub.registry.remove(node.nodeId)).toBe(true)
    expect(hub.listed(node.nodeId)).toBeUndefined()
    expect(await session.closed).toMatchObject({ reason: 'REMOVED', byPeer: true })
    expect(await hub.registry.remove(node.nodeId)).toBe(false)
    expect(await hub.registry.remove('nobody')).toBe(false)
    await expect(hub.dial(node)).rejects.toMatchObject({ reason: 'NOT_A_MEMBER' })
    expect(hub.told()).toEqual(['authenticated node', 'connected node', 'deauthenticated node'])
  })

  test('remove, answer first: the link stands until the answer has left', async () => {
    const { node, session } = await hub.join()
    let isClosed = false
    void session.closed.then(() => {
      isClosed = true
    })
    expect(await hub.registry.remove(node.nodeId, { answerFirst: true })).toBe(true)
    expect(isClosed).toBe(false)
    expect(await session.closed).toMatchObject({ reason: 'REMOVED' })
  })

  test('a node that leaves is off the list before it hears so', async () => {
    const { node, session } = await hub.join()
    session.close('LEFT', 'leaving')
    await session.closed
    expect(hub.listed(node.nodeId)).toBeUndefined()
    expect(hub.told()).toEqual(['authenticated node', 'connected node', 'deauthenticated node'])
  })

  test('a place is given back, unless the node was let in anew', async () => {
    const node = newIdentity()
    const first = await hub.admit(node)
    const second = await hub.admit(node)
    expect(await hub.registry.expel(first)).toBe(false)
    expect(hub.listed(node.nodeId)).toBeDefined()
    expect(await hub.registry.expel(second)).toBe(true)
    expect(hub.listed(node.nodeId)).toBeUndefined()
    expect(await hub.registry.expel(second)).toBe(false)
    expect(await hub.admit(node)).toMatchObject({ isNew: true })
    expect(await hub.registry.expel(second)).toBe(false)
  })

  test('what was answered is there after a new start, offline, in the order of joining', async () => {
    const nodes = [newIdentity(), newIdentity(), newIdentity()]
    for (const [i, node] of nodes.entries()) await hub.admit(node, recordOf(`n${i}`))
    await hub.admit(nodes[0] as Identity, recordOf('n0 again'))
    await hub.registry.remove((nodes[1] as Identity).nodeId)
    const { session } = await hub.join(recordOf('last'))
    const { identity } = hub
    await hub.close()
    session.close('SHUTDOWN', 'the hub is gone')
    hub = await state.server(identity)
    const listed = hub.registry.nodes().map(({ name, online }) => `${name}${online ? ' online' : ''}`)
    expect(listed).toEqual(['hub online', 'n0 again', 'n2', 'last'])
  })

  test('many at once: the list before and the events after make the list at any time', async () => {
    const shown = new Map<string, Pick<Node, 'name' | 'online'>>()
    const show = ({ id, name, online }: Node) => shown.set(id, { name, online })
    for (const node of hub.registry.nodes()) show(node)
    hub.registry.follow(({ type, node }: NodeEvent) => {
      if (type === 'deauthenticated') shown.delete(node.id)
      else show(node)
      const listed = new Map(hub.registry.nodes().map(({ id, name, online }) => [id, { name, online }]))
      expect(listed.get(node.id)).toEqual(shown.get(node.id))
    })
    const nodes = Array.from({ length: 8 }, newIdentity)
    const live = async (node: Identity, i: number) => {
      for (let round = 0; round < 4; round++) {
        await hub.admit(node, recordOf(`${i}.${round}`))
        const { session } = await hub.dial(node, recordOf(`${i}.${round}`))
        session.sendRecord(recordOf(`${i}.${round} changed`))
        if (round % 2 === 0) await hub.registry.remove(node.nodeId)
        else session.close('SHUTDOWN', 'the end')
        await session.closed
      }
    }
    await Promise.all(nodes.map(live))
    await until(() => hub.registry.nodes().every(({ id, online }) => id === hub.identity.nodeId || !online))
    const listed = new Map(hub.registry.nodes().map(({ id, name, online }) => [id, { name, online }]))
    expect(shown).toEqual(listed)
    expect(listed.size).toBe(9)
  })
})
