/** The hub operations on nodes in one process: every row of the specification's tables that needs no socket. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../src/contract/clock.ts'
import type { Node, StreamNodesResponse } from '../../src/contract/types.ts'
import { MAX_EVENT_BACKLOG } from '../../src/hub/hub-server.ts'
import { JoinRequests } from '../../src/hub/join-requests.ts'
import { WINDOW_BYTES } from '../../src/link/messages.ts'
import { localCall, type Member, Network, operations } from '../harness/hub.ts'
import { CollectingSink } from '../harness/sink.ts'
import { settle, until } from '../harness/waiting.ts'

const HUB = 'http://hub'
let network: Network
beforeEach(() => {
  network = new Network()
})
afterEach(() => network.close())

const noFilter = { metadataFilters: {}, serviceFilters: [] }
const idsOf = (nodes: readonly Node[]) => nodes.map(({ id }) => id)
const listed = async (member: Member) => (await member.call('getNodes', noFilter)).nodes

describe('a hub by itself', () => {
  test('its own node is on it, with HUB_SERVER, authenticated and connected', async () => {
    const hub = network.hub(HUB, { name: 'the hub' })
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
    const hub = network.hub(HUB)
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

describe('joining', () => {
  test('accepted: the call returns, the node is on the hub and stays so after a restart of both', async () => {
    const hub = network.hub(HUB)
    let node = network.node({ name: 'edge' })
    await node.join(HUB)
    expect(await node.call('getLocalNodeId', {})).toEqual({ nodeId: node.id, isAuthenticated: true })
    expect((await listed(hub))[1]).toMatchObject({ id: node.id, name: 'edge', online: true })
    const { directory } = node
    await node.close()
    await hub.close()
    const again = network.hub(HUB, { directory: hub.directory })
    expect((await listed(again))[1]).toMatchObject({ id: node.id, name: 'edge', online: false })
    node = network.node({ directory, name: 'ignored: the hub knows the record at the next connection' })
    await until(() => node.state === 'CONNECTED')
    expect((await listed(again))[1]).toMatchObject({ id: node.id, online: true })
  })

  test('authenticateByRequest: node already authenticated', async () => {
    network.hub(HUB)
    const node = network.node()
    await node.join(HUB)
    await expect(node.call('authenticateByRequest', { hubServerAddress: HUB })).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
    })
  })

  test('authenticateByRequest: request rejected', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const joining = node.call('authenticateByRequest', { hubServerAddress: HUB })
    const request = await sink.next()
    expect(request).toMatchObject({
      node: { id: node.id, name: 'unnamed', online: false },
      requestId: expect.any(BigInt),
    })
    await receiver.message({ requestId: BigInt(request.requestId), accept: false })
    await expect(joining).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(await node.call('getLocalNodeId', {})).toMatchObject({ isAuthenticated: false })
    expect(idsOf(await listed(hub))).toEqual([hub.id])
  })

  test('authenticateByRequest: hub server did not answer in time', async () => {
    const clock = new SimulatedClock()
    const hub = network.hub(HUB, { clock: clock as Clock, requestTimeout: 8_000 })
    const node = network.node()
    const joining = node.call('authenticateByRequest', { hubServerAddress: HUB })
    joining.catch(() => {})
    await until(async () => (await hub.call('getPendingAuthenticationRequests', {})).requests.length === 1)
    clock.increment(7_999)
    expect((await hub.call('getPendingAuthenticationRequests', {})).requests).toHaveLength(1)
    clock.increment(1)
    await expect(joining).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect((await hub.call('getPendingAuthenticationRequests', {})).requests).toEqual([])
  })

  test('authenticateByRequest: hub server could not be reached', async () => {
    const node = network.node()
    await expect(node.call('authenticateByRequest', { hubServerAddress: HUB })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
  })

  test('authenticateByRequest: hub server does not accept authentication by request', async () => {
    network.hub(HUB, { requestTimeout: undefined })
    const node = network.node()
    await expect(node.call('authenticateByRequest', { hubServerAddress: HUB })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
  })

  test.each(['', 'hub', 'ftp://hub', 'http://', 'http://a:b@hub', 'http://hub?x=1', 'http://hub#x'])(
    'authenticateByRequest: bad address %j',
    async (hubServerAddress) => {
      const node = network.node()
      await expect(node.call('authenticateByRequest', { hubServerAddress })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        problems: [{ pointer: '/hubServerAddress' }],
      })
    },
  )

  test('the caller goes away: the request is withdrawn and its answer comes too late', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const call = localCall()
    const joining = node.call('authenticateByRequest', { hubServerAddress: HUB }, call)
    const { requestId } = await sink.next()
    call.abort()
    await expect(joining).rejects.toMatchObject({ code: 'CANCELLED' })
    await until(async () => (await hub.call('getPendingAuthenticationRequests', {})).requests.length === 0)
    await expect(receiver.message({ requestId: BigInt(requestId), accept: true })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(idsOf(await listed(hub))).toEqual([hub.id])
  })

  test('two calls at once: both run, each its own request, with rising ids', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const calls = [1, 2].map(() => node.call('authenticateByRequest', { hubServerAddress: HUB }))
    const requests = [await sink.next(), await sink.next()] as const
    expect(BigInt(requests[1].requestId)).toBeGreaterThan(BigInt(requests[0].requestId))
    await receiver.message({ requestId: BigInt(requests[1].requestId), accept: true })
    await receiver.message({ requestId: BigInt(requests[0].requestId), accept: false })
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await node.call('getLocalNodeId', {})).toMatchObject({ isAuthenticated: true })
    expect(node.state).toBe('CONNECTED')
  })

  test('two calls at once, both accepted: one node, one link', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const calls = [1, 2].map(() => node.call('authenticateByRequest', { hubServerAddress: HUB }))
    for (const _ of calls) await receiver.message({ requestId: BigInt((await sink.next()).requestId), accept: true })
    await Promise.all(calls)
    await until(() => node.state === 'CONNECTED')
    expect(idsOf(await listed(hub))).toEqual([hub.id, node.id])
    expect((await listed(hub))[1]).toMatchObject({ online: true })
  })

  test('ids are never used again, restarts included', async () => {
    let last = 0n
    let hub = network.hub(HUB)
    for (let round = 0; round < 3; round++) {
      const { sink, receiver } = await hub.converse('authenticationByRequests')
      const joining = network.node().call('authenticateByRequest', { hubServerAddress: HUB })
      joining.catch(() => {})
      const requestId = BigInt((await sink.next()).requestId)
      expect(requestId).toBeGreaterThan(last)
      last = requestId
      await receiver.message({ requestId, accept: false })
      await expect(joining).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
      await hub.close()
      hub = network.hub(HUB, { directory: hub.directory })
    }
  })
})

describe('answering', () => {
  test('nothing when the stream opens; every call at every open stream; the first answer wins', async () => {
    const hub = network.hub(HUB)
    const member = network.node()
    await member.join(HUB)
    const early = network.node()
    const joining = early.call('authenticateByRequest', { hubServerAddress: HUB })
    await until(async () => (await hub.call('getPendingAuthenticationRequests', {})).requests.length === 1)
    // One operator on the hub, one on a member, whose answers go over the link.
    const operators = [
      await hub.converse('authenticationByRequests'),
      await member.converse('authenticationByRequests'),
    ]
    await settle(1)
    expect(operators.map(({ sink }) => sink.messages)).toEqual([[], []])
    const late = network.node()
    const second = late.call('authenticateByRequest', { hubServerAddress: HUB })
    const seen = await Promise.all(operators.map(({ sink }) => sink.next()))
    expect(seen.map((request) => request.node?.id)).toEqual([late.id, late.id])
    const requestId = BigInt(seen[0]?.requestId ?? 0)
    const answers = await Promise.allSettled(
      operators.map(async ({ receiver }, i) => await receiver.message({ requestId, accept: i === 0 })),
    )
    const lost = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
    expect(lost).toMatchObject([{ code: 'NOT_FOUND' }])
    const won = answers[0]?.status === 'fulfilled'
    if (won) await second
    else await expect(second).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(idsOf(await listed(hub)).includes(late.id)).toBe(won)
    const pending = await member.call('getPendingAuthenticationRequests', {})
    expect(pending.requests).toMatchObject([{ node: { id: early.id } }])
    // A stream goes on after a failed answer.
    const [answer] = pending.requests
    await operators[1]?.receiver.message({ requestId: BigInt(answer?.requestId ?? 0), accept: true })
    await joining
  })

  test.each([
    ['unknown', 77n, 'NOT_FOUND'],
    ['absent', 0n, 'INVALID_ARGUMENT'],
  ])('%s request id', async (_what, requestId, code) => {
    const hub = network.hub(HUB)
    const member = network.node()
    await member.join(HUB)
    for (const at of [hub, member]) {
      const { receiver, sink } = await at.converse('authenticationByRequests')
      await expect((async () => await receiver.message({ requestId, accept: true }))()).rejects.toMatchObject({ code })
      expect(sink.closed).toBe(false)
    }
  })

  test('1,000 pending requests, 20 from one address; beyond: RESOURCE_EXHAUSTED; all can be answered', async () => {
    const hub = network.hub(HUB)
    const policy = hub.part.policy
    if (policy === undefined) throw new Error('a hub has a policy')
    const never = new AbortController().signal
    const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
    const join = (i: number, remoteAddress: string) =>
      policy.join({ nodeId: `node${i}`, key: new Uint8Array(32), record, remoteAddress }, never)
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const stuck = new CollectingSink<never>({ stuck: true })
    const joins = Array.from({ length: 1_000 }, (_, i) => join(i, `10.0.0.${Math.floor(i / 20)}`))
    await until(() => sink.messages.length === 1_000)
    expect(stuck.messages).toEqual([])
    expect(await join(1_000, '10.0.1.1')).toMatchObject({ admitted: false, reason: 'TOO_MANY' })
    const ids = sink.messages.map(({ requestId }) => BigInt(requestId))
    expect(new Set(ids).size).toBe(1_000)
    await receiver.message({ requestId: ids[0] as bigint, accept: false })
    await joins[0]
    const another = join(1_001, '10.0.0.0')
    expect(await join(1_002, '10.0.0.0')).toMatchObject({ reason: 'TOO_MANY' })
    await until(() => sink.messages.length === 1_001)
    const all = await hub.call('getPendingAuthenticationRequests', {})
    expect(all.requests).toHaveLength(1_000)
    for (const { requestId } of all.requests) await receiver.message({ requestId: BigInt(requestId), accept: false })
    for (const admission of await Promise.all([...joins, another])) {
      expect(admission).toMatchObject({ admitted: false, reason: 'REJECTED' })
    }
    const after = await Promise.race([join(1_003, '10.0.0.0'), settle(1).then(() => 'raised')])
    expect(after).toBe('raised')
  })

  test('an IPv6 /64 counts as one address', async () => {
    const hub = network.hub(HUB)
    const policy = hub.part.policy
    if (policy === undefined) throw new Error('a hub has a policy')
    const gone = new AbortController()
    const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
    const join = (i: number, remoteAddress: string) =>
      policy.join({ nodeId: `node${i}`, key: new Uint8Array(32), record, remoteAddress }, gone.signal)
    const { sink } = await hub.converse('authenticationByRequests')
    const joins = Array.from({ length: 20 }, (_, i) => join(i, `2001:db8:0:7:${i}::1`))
    await until(() => sink.messages.length === 20)
    expect(await join(20, '2001:db8:0:7:ffff::9')).toMatchObject({
      reason: 'TOO_MANY',
      message: '20 requests from 2001:db8:0:7::/64 are pending on this hub',
    })
    joins.push(join(21, '2001:db8:0:8::1'))
    await until(() => sink.messages.length === 21)
    gone.abort()
    for (const admission of await Promise.all(joins)) expect(admission).toMatchObject({ reason: 'WITHDRAWN' })
  })

  test('an accepted node that left before it heard of it, and cannot be taken off the list, is told in the log', async () => {
    const errors: unknown[][] = []
    const removal = new Error('the disk is full')
    const requests = new JoinRequests({
      timeout: 1_000,
      nextId: async () => 1,
      admit: async ({ nodeId }) => ({ nodeId, isNew: true }),
      expel: async () => {
        throw removal
      },
      onError: (...error) => errors.push(error),
    })
    const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
    const joiner = { nodeId: 'north', key: new Uint8Array(32), record, remoteAddress: '' }
    const gone = new AbortController()
    const caller = { by: 'this machine', transport: 'internal', address: '' } as const
    requests.onRequest(({ requestId }) => void requests.answer(BigInt(requestId), true, caller))
    expect(await requests.join(joiner, gone.signal)).toEqual({ admitted: true })
    gone.abort()
    await until(() => errors.length === 1)
    expect(errors).toEqual([
      [expect.stringMatching(/^node north went away .* could not be taken off the list$/), removal],
    ])
  })
})

describe('leaving', () => {
  test('removeNode: cut off, forgotten, signed out; back only by a new request', async () => {
    const hub = network.hub(HUB)
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
    const hub = network.hub(HUB)
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
    const hub = network.hub(HUB)
    const node = network.node()
    await node.join(HUB)
    await node.call('removeNode', { nodeId: node.id })
    await until(() => node.state === 'UNAUTHENTICATED')
    expect(idsOf(await listed(hub))).toEqual([hub.id])
  })

  test('disconnect: off the list, signed out; again: still fine', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    await node.join(HUB)
    await node.call('disconnect', {})
    expect(await node.call('getLocalNodeId', {})).toMatchObject({ isAuthenticated: false })
    expect(idsOf(await listed(hub))).toEqual([hub.id])
    await node.call('disconnect', {})
  })

  test('disconnect leaves even if the hub server cannot remove the node from its list', async () => {
    const hub = network.hub(HUB)
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
    let hub = network.hub(HUB)
    const node = network.node()
    await node.join(HUB)
    const states = await node.follow('streamConnectionState', {})
    await hub.close()
    await until(() => node.state === 'DISCONNECTED')
    await expect(node.call('getNodes', noFilter)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    hub = network.hub(HUB, { directory: hub.directory })
    await until(() => node.state === 'CONNECTED')
    expect(idsOf(await listed(node))).toEqual([hub.id, node.id])
    await until(() => states.messages.length === 3)
    expect(states.messages.map(({ state }) => state)).toEqual(['CONNECTED', 'DISCONNECTED', 'CONNECTED'])
  })

  test('a node that comes while the hub shuts down is not signed out', async () => {
    const hub = network.hub(HUB)
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
    const hub = network.hub(HUB)
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
    const hub = network.hub(HUB)
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

  test('setNode of the hub itself is told too, and of no change nothing is told', async () => {
    const hub = network.hub(HUB)
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
    network.hub(HUB)
    const node = network.node({ file: '/etc/penstock.yaml', name: 'fixed' })
    const other = network.node()
    await node.join(HUB)
    await other.join(HUB)
    for (const at of [node, other]) {
      await expect(at.call('setNode', { nodeId: node.id, name: 'x', metadata: { items: {} } })).rejects.toMatchObject({
        code: 'PERMISSION_DENIED',
      })
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
    const hub = network.hub(HUB)
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

describe('subscribers that never read', () => {
  test('their streams end, on the hub and across a link; nothing grows and others are served', async () => {
    const hub = network.hub(HUB)
    const member = network.node()
    await member.join(HUB)
    const reader = await member.follow('streamNodes', noFilter)
    const stuck = [
      await hub.follow('streamNodes', noFilter, new CollectingSink({ stuck: true })),
      await member.follow('streamNodes', noFilter, new CollectingSink({ stuck: true })),
    ]
    const metadata = { items: { long: { stringValue: 'x'.repeat(2_000) } } }
    const changes = 3 * MAX_EVENT_BACKLOG
    for (let i = 0; i < changes; i++) {
      hub.part.registry?.setSelf({ name: `change ${i}`, metadata, services: ['HUB_SERVER'] })
      if (i % 64 === 0) await settle(1)
    }
    const [near, far] = stuck as [CollectingSink<StreamNodesResponse>, CollectingSink<StreamNodesResponse>]
    await until(() => near.closed)
    expect(near.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    expect(near.messages).toHaveLength(1)
    // What was on its way when it stopped reading: a window of the link. The end is told behind that.
    expect(far.messages.length).toBeLessThan((2 * WINDOW_BYTES) / 2_000)
    await until(() => {
      far.drain()
      return far.closed
    })
    expect(far.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    expect(far.messages.length).toBeLessThan((3 * WINDOW_BYTES) / 2_000)
    await until(() => reader.messages.length === changes + 1)
    expect(reader.messages.at(-1)).toMatchObject({ updateResponse: { updatedNode: { name: `change ${changes - 1}` } } })
  })

  test('an operator who never reads misses requests and nobody else does', async () => {
    const hub = network.hub(HUB)
    const stuck = new CollectingSink<never>({ stuck: true })
    await hub.dispatcher.bidi(operations.get('authenticationByRequests') as never, localCall(), stuck as never)
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const never = new AbortController().signal
    const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
    for (let i = 0; i < 1_010; i++) {
      const joining = hub.part.policy?.join(
        { nodeId: `n${i}`, key: new Uint8Array(32), record, remoteAddress: '' },
        never,
      )
      const { requestId } = await sink.next()
      await receiver.message({ requestId: BigInt(requestId), accept: false })
      expect(await joining).toMatchObject({ reason: 'REJECTED' })
    }
    expect(stuck.messages).toHaveLength(1)
    expect(stuck.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
  })
})

describe('answer, timeout and withdrawal at once: one outcome, the same on both sides', () => {
  /** What both sides hold in the end. */
  const agreement = async (hub: Member, node: Member) => {
    await until(async () => {
      const isListed = idsOf(await listed(hub)).includes(node.id)
      return isListed === (node.state === 'CONNECTED') && isListed === (node.store.signIn.get() !== undefined)
    })
    return node.state === 'CONNECTED'
  }

  test('the caller goes away at every moment of an acceptance', async () => {
    const hub = network.hub(HUB)
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const node = network.node()
    const outcomes = new Set<boolean>()
    // On a slow disk the acceptance takes longer than 80 moments.
    for (let moment = 0; moment < 80 || !outcomes.has(true); moment++) {
      const call = localCall()
      const joining = node.call('authenticateByRequest', { hubServerAddress: HUB }, call).then(
        () => true,
        () => false,
      )
      const { requestId } = await sink.next()
      const answering = (async () => await receiver.message({ requestId: BigInt(requestId), accept: true }))().then(
        () => true,
        () => false,
      )
      // Moments of the wire and of promises, and, every fourth time, of the disk.
      for (let i = 0; i < moment; i++) await (i % 4 === 3 ? settle(1) : Promise.resolve())
      call.abort()
      const [success] = await Promise.all([joining, answering])
      expect(await agreement(hub, node)).toBe(success)
      outcomes.add(success)
      await node.call('disconnect', {})
      await until(async () => idsOf(await listed(hub)).length === 1)
    }
    expect(outcomes).toEqual(new Set([true, false]))
  })

  test('a member that asks anew and goes away at every moment of the second acceptance stays', async () => {
    const hub = network.hub(HUB)
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const node = network.node()
    const accept = async (requestId: bigint) => await receiver.message({ requestId, accept: true })
    for (let moment = 0; moment < 60; moment++) {
      const again = localCall()
      const joins = [
        node.call('authenticateByRequest', { hubServerAddress: HUB }),
        node.call('authenticateByRequest', { hubServerAddress: HUB }, again),
      ] as const
      const ended = joins[1].catch(() => {})
      const requests = [await sink.next(), await sink.next()] as const
      await accept(BigInt(requests[0].requestId))
      await joins[0]
      const answering = accept(BigInt(requests[1].requestId)).catch(() => {})
      for (let i = 0; i < moment; i++) await (i % 4 === 3 ? settle(1) : Promise.resolve())
      again.abort()
      await Promise.all([ended, answering])
      await until(() => node.state === 'CONNECTED')
      expect(await agreement(hub, node)).toBe(true)
      await node.call('disconnect', {})
      await until(async () => idsOf(await listed(hub)).length === 1)
    }
  })

  test('the node goes down while the operator thinks: the call is told, the request withdrawn', async () => {
    const hub = network.hub(HUB)
    const node = network.node()
    const joining = node.call('authenticateByRequest', { hubServerAddress: HUB })
    joining.catch(() => {})
    await until(async () => (await hub.call('getPendingAuthenticationRequests', {})).requests.length === 1)
    await node.part.membership?.close()
    await expect(joining).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await until(async () => (await hub.call('getPendingAuthenticationRequests', {})).requests.length === 0)
    await expect(node.call('authenticateByRequest', { hubServerAddress: HUB })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
  })

  test('the node goes down at every moment of an acceptance', async () => {
    const hub = network.hub(HUB)
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const outcomes = new Set<boolean>()
    for (let moment = 0; moment < 60 || !outcomes.has(true); moment++) {
      const node = network.node()
      const joining = node.call('authenticateByRequest', { hubServerAddress: HUB }).then(
        () => true,
        () => false,
      )
      const { requestId } = await sink.next()
      const answering = (async () => await receiver.message({ requestId: BigInt(requestId), accept: true }))()
      answering.catch(() => {})
      for (let i = 0; i < moment; i++) await (i % 4 === 3 ? settle(1) : Promise.resolve())
      await node.part.membership?.close()
      const success = await joining
      await answering.catch(() => {})
      expect(node.store.signIn.get() !== undefined).toBe(success)
      await until(async () => idsOf(await listed(hub)).includes(node.id) === success)
      outcomes.add(success)
      await node.close()
      if (success) await hub.call('removeNode', { nodeId: node.id })
    }
    expect(outcomes).toEqual(new Set([true, false]))
  })

  test.each([
    ['the answer a moment before the timeout', ['answer', 'time'], true],
    ['the timeout a moment before the answer', ['time', 'answer'], false],
  ] as const)('%s', async (_what, order, isAccepted) => {
    const clock = new SimulatedClock()
    const hub = network.hub(HUB, { clock: clock as Clock, requestTimeout: 5_000 })
    const node = network.node()
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const joining = node.call('authenticateByRequest', { hubServerAddress: HUB })
    joining.catch(() => {})
    const { requestId } = await sink.next()
    let answering: Promise<void> = Promise.resolve()
    for (const step of order) {
      if (step === 'time') clock.increment(5_000)
      else answering = (async () => await receiver.message({ requestId: BigInt(requestId), accept: true }))()
    }
    if (isAccepted) await Promise.all([answering, joining])
    else {
      await expect(answering).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(joining).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    }
    expect(await agreement(hub, node)).toBe(isAccepted)
  })
})

function kinds(messages: readonly StreamNodesResponse[]): string[] {
  return messages.map(({ initialResponse, updateResponse }) =>
    initialResponse !== undefined ? 'initial' : (Object.keys(updateResponse ?? {})[0]?.replace('Node', '') ?? ''),
  )
}
