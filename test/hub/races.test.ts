/** Answer, timeout and withdrawal of one request at once, at every moment of each, with both registries. */
import { describe, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../src/contract/clock.ts'
import { localCall, type Member, type Network } from '../harness/hub.ts'
import { HUB, idsOf, listed, REGISTRIES, useNetworks } from '../harness/networks.ts'
import { settle, until } from '../harness/waiting.ts'

describe.each(REGISTRIES)('%s', (_registry, begin) => {
  let network: Network
  useNetworks(begin, (next) => {
    network = next
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
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB)
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
        // A link that the second acceptance has replaced at this very moment could not say that it leaves.
        await hub.call('removeNode', { nodeId: node.id }).catch(() => {})
        await until(async () => idsOf(await listed(hub)).length === 1)
      }
    })

    test('the node goes down while the operator thinks: the call is told, the request withdrawn', async () => {
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB, { clock: clock as Clock, requestTimeout: 5_000 })
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
})
