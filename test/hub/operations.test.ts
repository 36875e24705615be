/** The hub operations on nodes in one process, with both registries: every row of the specification's tables that needs no socket; joining is in joining.test.ts. */
import { describe, expect, test } from 'vitest'
import type { StreamNodesResponse } from '../../src/contract/types.ts'
import type { Network } from '../harness/hub.ts'
import { HUB, idsOf, listed, noFilter, REGISTRIES, useNetworks } from '../harness/networks.ts'
import { until } from '../harness/waiting.ts'

describe.each(REGISTRIES)('%s', (registry, begin) => {
  /** Cases of a hub that is one process. */
  const ofOneProcess = registry === 'embedded' ? test : undefined
  let network: Network
  useNetworks(begin, (next) => {
    network = next
  })

  describe('a hub by itself', () => {
    test('its own node is on it, with HUB_SERVER, authenticated and connected', async () => {
      const hub = await network.hub(HUB, { name: 'the hub' })
      expect(await listed(hub)).toEqual([
        {
          id: hub.id,
          name: 'the hub',
          metadata: { items: {} },
          online: true,
          services: ['HUB_SERVER', 'PIPELINES'],
          lastSeen: expect.any(Date),
        },
      ])
      expect(await hub.call('getLocalNodeId', {})).toEqual({ nodeId: hub.id, isAuthenticated: true })
      const states = await hub.follow('streamConnectionState', {})
      expect(states.messages).toEqual([{ state: 'CONNECTED' }])
    })

    test.each([
      ['authenticateByRequest: node already authenticated', 'ALREADY_EXISTS'],
      ['disconnect', 'FAILED_PRECONDITION'],
      ['removeNode of itself', 'FAILED_PRECONDITION'],
    ])('%s: %s', async (what, code) => {
      const hub = await network.hub(HUB)
      const call = what.startsWith('authenticate')
        ? hub.call('authenticateByRequest', { hubServerAddress: HUB })
        : what === 'disconnect'
          ? hub.call('disconnect', {})
          : hub.call('removeNode', { nodeId: hub.id })
      await expect(call).rejects.toMatchObject({ code })
    })
  })

  describe('any hub server operation: node neither hosts the hub server nor is authenticated with one', () => {
    test.each(['getNodes', 'removeNode', 'getPendingAuthenticationRequests'] as const)('%s', async (name) => {
      const node = network.node()
      const request = name === 'removeNode' ? { nodeId: node.id } : noFilter
      await expect(node.call(name, request as never)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
    })
    test('streamNodes, authenticationByRequests', async () => {
      const node = network.node()
      await expect(node.follow('streamNodes', noFilter)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
      await expect(node.converse('authenticationByRequests')).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
    })
  })

  describe('leaving', () => {
    test('removeNode: cut off, forgotten, signed out; back only by a new request', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      const states = await node.follow('streamConnectionState', {})
      await hub.call('removeNode', { nodeId: node.id })
      expect(idsOf(await listed(hub))).toEqual([hub.id])
      await until(() => node.state === 'UNAUTHENTICATED')
      await until(() => states.messages.length === 2)
      expect(states.messages).toEqual([{ state: 'CONNECTED' }, { state: 'UNAUTHENTICATED' }])
      await expect(hub.call('removeNode', { nodeId: node.id })).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await node.join(HUB)
      expect(idsOf(await listed(hub))).toEqual([hub.id, node.id])
    })

    test('removed while away: learns it at its next connection', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      await node.close()
      await until(async () => (await listed(hub))[1]?.online === false)
      await hub.call('removeNode', { nodeId: node.id })
      const again = network.node({ directory: node.directory })
      expect(again.state).toBe('DISCONNECTED')
      await until(() => again.state === 'UNAUTHENTICATED')
      await until(() => again.store.signIn.get() === undefined)
    })

    test('a node that removes itself hears the answer', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      await node.call('removeNode', { nodeId: node.id })
      await until(() => node.state === 'UNAUTHENTICATED')
      expect(idsOf(await listed(hub))).toEqual([hub.id])
    })

    test('disconnect: off the list, signed out; again: still fine', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      await node.call('disconnect', {})
      expect(await node.call('getLocalNodeId', {})).toMatchObject({ isAuthenticated: false })
      expect(idsOf(await listed(hub))).toEqual([hub.id])
      await node.call('disconnect', {})
    })

    test('disconnect leaves even if the hub server cannot remove the node from its list', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      await hub.close()
      await until(() => node.state === 'DISCONNECTED')
      expect(await node.call('getLocalNodeId', {})).toMatchObject({ isAuthenticated: true })
      await node.call('disconnect', {})
      expect(node.state).toBe('UNAUTHENTICATED')
      expect(node.store.signIn.get()).toBeUndefined()
    })
  })

  describe('the link comes and goes', () => {
    test('a hub that went away and came back: the node is connected again by itself', async () => {
      let hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      const states = await node.follow('streamConnectionState', {})
      await hub.close()
      await until(() => node.state === 'DISCONNECTED')
      await expect(node.call('getNodes', noFilter)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
      hub = await network.hub(HUB, { directory: hub.directory })
      await until(() => node.state === 'CONNECTED')
      expect(idsOf(await listed(node))).toEqual([hub.id, node.id])
      await until(() => states.messages.length === 3)
      expect(states.messages.map(({ state }) => state)).toEqual(['CONNECTED', 'DISCONNECTED', 'CONNECTED'])
    })

    // Of one process: it still answers its nodes while its registry is closed, where one on NATS is UNAVAILABLE (test/cluster/servers.test.ts).
    ofOneProcess?.('a node that comes while the hub shuts down is not signed out', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      const states: string[] = []
      node.part.membership?.onChange((state) => states.push(state))
      await hub.part.registry?.close()
      node.part.membership?.session?.close('SHUTDOWN', 'once more')
      await until(() => states.length === 3)
      expect(states).toEqual(['DISCONNECTED', 'CONNECTED', 'DISCONNECTED'])
      expect(node.store.signIn.get()).toBeDefined()
    })

    test('a second connection of the same node replaces the first', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      const changes = await hub.follow('streamNodes', noFilter)
      const first = node.part.membership?.session
      const signIn = node.store.signIn.get()
      if (signIn === undefined) throw new Error('signed in')
      // The same key from another place, as after a reboot that the hub has not noticed.
      const twin = network.node({ directory: network.directory() })
      Object.assign(twin, { identity: node.identity })
      await twin.store.signIn.put(signIn)
      const { directory } = twin
      await twin.close()
      const { copyFileSync } = await import('node:fs')
      copyFileSync(`${node.directory}/identity.pem`, `${directory}/identity.pem`)
      const second = network.node({ directory })
      expect(second.id).toBe(node.id)
      await until(() => second.state === 'CONNECTED')
      expect(await first?.closed).toMatchObject({ reason: 'REPLACED', byPeer: true })
      await until(() => changes.messages.length >= 3)
      expect(kinds(changes.messages).slice(0, 3)).toEqual(['initial', 'disconnected', 'connected'])
      await second.close()
    })
  })

  describe('details', () => {
    test('setNode replaces name and metadata, is durable, and told to the hub and its subscribers', async () => {
      const hub = await network.hub(HUB)
      const node = network.node({ name: 'first' })
      await node.join(HUB)
      const changes = await hub.follow('streamNodes', noFilter)
      const metadata = { items: { region: { stringValue: 'eu' }, seal: { bytesValue: Uint8Array.of(1) } } }
      // Set at another node's API, run on the node named.
      const { node: set } = await hub.call('setNode', { nodeId: node.id, name: 'second', metadata })
      expect(set).toMatchObject({ id: node.id, name: 'second', online: true })
      await until(() => changes.messages.length === 2)
      expect(changes.messages[1]).toMatchObject({ updateResponse: { updatedNode: { id: node.id, name: 'second' } } })
      expect((await listed(hub))[1]?.metadata?.items.region).toEqual({ stringValue: 'eu' })
      await node.call('setNode', { nodeId: node.id, name: 'third', metadata: { items: {} } })
      await until(async () => (await listed(hub))[1]?.name === 'third')
      expect((await listed(hub))[1]?.metadata).toEqual({ items: {} })
      await node.close()
      const again = network.node({ directory: node.directory, name: 'from the configuration' })
      expect((await again.call('getNode', { nodeId: again.id })).node?.name).toBe('third')
    })

    test('setNode at the same time by several: each is answered with what it has set, and the last one stays', async () => {
      const hub = await network.hub(HUB)
      const names = Array.from({ length: 20 }, (_, i) => `name ${i}`)
      const set = names.map((name) => hub.call('setNode', { nodeId: hub.id, name, metadata: { items: {} } }))
      expect((await Promise.all(set)).map(({ node }) => node?.name)).toEqual(names)
      expect((await hub.call('getNode', { nodeId: hub.id })).node?.name).toBe(names.at(-1))
    })

    ofOneProcess?.('each of several changes made at once is told, in order, with the state that it made', async () => {
      const hub = await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      for (const { id } of [node, hub]) {
        const changes = await hub.follow('streamNodes', noFilter)
        const names = Array.from({ length: 40 }, (_, i) => `q${i}`)
        await Promise.all(names.map((name) => hub.call('setNode', { nodeId: id, name, metadata: { items: {} } })))
        await until(async () => (await listed(hub)).find((each) => each.id === id)?.name === 'q39')
        await until(() => changes.messages.at(-1)?.updateResponse?.updatedNode?.name === 'q39')
        const told = changes.messages.slice(1).map(({ updateResponse }) => updateResponse?.updatedNode)
        expect(told.map((each) => [each?.id, each?.name])).toEqual(names.map((name) => [id, name]))
      }
    })

    test('setNode of the hub itself is told too, and of no change nothing is told', async () => {
      const hub = await network.hub(HUB)
      const changes = await hub.follow('streamNodes', noFilter)
      const change = { nodeId: hub.id, name: 'renamed', metadata: { items: {} } }
      await hub.call('setNode', change)
      await hub.call('setNode', change)
      await hub.call('setNode', { ...change, name: 'again' })
      await until(() => changes.messages.length === 3)
      expect(changes.messages.slice(1)).toMatchObject([
        { updateResponse: { updatedNode: { name: 'renamed' } } },
        { updateResponse: { updatedNode: { name: 'again' } } },
      ])
    })

    test('setNode: node configuration comes from a config file', async () => {
      await network.hub(HUB)
      const node = network.node({ file: '/etc/penstock.yaml', name: 'fixed' })
      const other = network.node()
      await node.join(HUB)
      await other.join(HUB)
      for (const at of [node, other]) {
        await expect(at.call('setNode', { nodeId: node.id, name: 'x', metadata: { items: {} } })).rejects.toMatchObject(
          {
            code: 'PERMISSION_DENIED',
          },
        )
      }
      expect((await other.call('getNode', { nodeId: node.id })).node?.name).toBe('fixed')
    })

    test('setNode: what is too long or has no value is refused', async () => {
      const node = network.node()
      const set = (name: string, items: Record<string, object>) =>
        node.call('setNode', { nodeId: node.id, name, metadata: { items } })
      await expect(set('x'.repeat(9_000), {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(set('x', { 'a/b': {} })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        problems: [{ pointer: '/metadata/items/a~1b' }],
      })
    })
  })

  describe('lists and filters', () => {
    test('equal type and value of every key, every service; the first message only is filtered', async () => {
      const hub = await network.hub(HUB)
      const nodes = [network.node(), network.node()] as const
      for (const node of nodes) await node.join(HUB)
      const items = [
        { region: { stringValue: 'eu' }, rack: { intValue: 4n } },
        { region: { stringValue: 'eu' }, rack: { stringValue: '4' } },
      ]
      for (const [i, node] of nodes.entries()) {
        await node.call('setNode', { nodeId: node.id, name: `n${i}`, metadata: { items: items[i] ?? {} } })
      }
      await until(async () => (await listed(hub)).every(({ name }) => name !== 'unnamed' || name === 'unnamed'))
      await until(async () => (await listed(hub)).slice(1).every(({ name }) => name.startsWith('n')))
      const find = async (metadataFilters: object, serviceFilters: string[] = []) => {
        const request = { metadataFilters, serviceFilters } as never
        const found = await Promise.all([hub, nodes[1]].map(async (at) => (await at.call('getNodes', request)).nodes))
        expect(idsOf(found[0] ?? [])).toEqual(idsOf(found[1] ?? []))
        return idsOf(found[0] ?? [])
      }
      const [a, b] = idsOf((await listed(hub)).slice(1)) as [string, string]
      expect([a, b]).toEqual([nodes[0].id, nodes[1].id])
      expect(await find({ region: { stringValue: 'eu' } })).toEqual([a, b])
      expect(await find({ region: { stringValue: 'eu' }, rack: { intValue: 4n } })).toEqual([a])
      expect(await find({ rack: { stringValue: '4' } })).toEqual([b])
      expect(await find({ rack: { doubleValue: 4 } })).toEqual([])
      expect(await find({ toString: { stringValue: 'x' } })).toEqual([])
      expect(await find({}, ['PIPELINES'])).toEqual([hub.id, a, b])
      expect(await find({}, ['PIPELINES', 'HUB_SERVER'])).toEqual([hub.id])
      expect(await find({ region: { stringValue: 'eu' } }, ['HUB_SERVER'])).toEqual([])
      await expect(find({ region: {} })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      const stream = await nodes[1].follow('streamNodes', {
        metadataFilters: { rack: { intValue: 4n } },
        serviceFilters: [],
      })
      await until(() => stream.messages.length === 1)
      expect(idsOf(stream.messages[0]?.initialResponse?.nodes ?? [])).toEqual([a])
      await hub.call('setNode', { nodeId: hub.id, name: 'unfiltered', metadata: { items: {} } })
      await until(() => stream.messages.length === 2)
      expect(stream.messages[1]).toMatchObject({ updateResponse: { updatedNode: { id: hub.id } } })
    })
  })
})

function kinds(messages: readonly StreamNodesResponse[]): string[] {
  return messages.map(({ initialResponse, updateResponse }) =>
    initialResponse !== undefined ? 'initial' : (Object.keys(updateResponse ?? {})[0]?.replace('Node', '') ?? ''),
  )
}
