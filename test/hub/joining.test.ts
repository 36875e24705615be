/** Requests to join a hub, and their answers, with both registries: every row of the specification's tables that needs no socket. */
import { describe, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../src/contract/clock.ts'
import { localCall, type Network } from '../harness/hub.ts'
import { HUB, idsOf, listed, REGISTRIES, useNetworks } from '../harness/networks.ts'
import { until } from '../harness/waiting.ts'

describe.each(REGISTRIES)('%s', (_registry, begin) => {
  let network: Network
  useNetworks(begin, (next) => {
    network = next
  })

  describe('joining', () => {
    test('accepted: the call returns, the node is on the hub and stays so after a restart of both', async () => {
      const hub = await network.hub(HUB)
      let node = network.node({ name: 'edge' })
      await node.join(HUB)
      expect(await node.call('getLocalNodeId', {})).toEqual({ nodeId: node.id, isAuthenticated: true })
      expect((await listed(hub))[1]).toMatchObject({ id: node.id, name: 'edge', online: true })
      const { directory } = node
      await node.close()
      await hub.close()
      const again = await network.hub(HUB, { directory: hub.directory })
      expect((await listed(again))[1]).toMatchObject({ id: node.id, name: 'edge', online: false })
      node = network.node({ directory, name: 'ignored: the hub knows the record at the next connection' })
      await until(() => node.state === 'CONNECTED')
      expect((await listed(again))[1]).toMatchObject({ id: node.id, online: true })
    })

    test('authenticateByRequest: node already authenticated', async () => {
      await network.hub(HUB)
      const node = network.node()
      await node.join(HUB)
      await expect(node.call('authenticateByRequest', { hubServerAddress: HUB })).rejects.toMatchObject({
        code: 'ALREADY_EXISTS',
      })
    })

    test('authenticateByRequest: request rejected', async () => {
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB, { clock: clock as Clock, requestTimeout: 8_000 })
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
      await network.hub(HUB, { requestTimeout: undefined })
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
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB)
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
      let hub = await network.hub(HUB)
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
        hub = await network.hub(HUB, { directory: hub.directory })
      }
    })
  })
})
