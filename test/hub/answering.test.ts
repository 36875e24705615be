/** Answers to requests to join a hub, and how many may wait for one, with both registries. */
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/contract/errors.ts'
import { EmbeddedRequests } from '../../src/hub/embedded-requests.ts'
import { JoinRequests } from '../../src/hub/join-requests.ts'
import { hubPolicy } from '../../src/hub/policy.ts'
import type { NodeRegistry } from '../../src/hub/registry.ts'
import type { Network } from '../harness/hub.ts'
import { HUB, idsOf, listed, REGISTRIES, useNetworks } from '../harness/networks.ts'
import { CollectingSink } from '../harness/sink.ts'
import { settle, until } from '../harness/waiting.ts'

describe.each(REGISTRIES)('%s', (_registry, begin) => {
  let network: Network
  useNetworks(begin, (next) => {
    network = next
  })

  describe('answering', () => {
    test('nothing when the stream opens; every call at every open stream; the first answer wins', async () => {
      const hub = await network.hub(HUB)
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
      const hub = await network.hub(HUB)
      const member = network.node()
      await member.join(HUB)
      for (const at of [hub, member]) {
        const { receiver, sink } = await at.converse('authenticationByRequests')
        await expect((async () => await receiver.message({ requestId, accept: true }))()).rejects.toMatchObject({
          code,
        })
        expect(sink.closed).toBe(false)
      }
    })

    test('1,000 pending requests, 20 from one address; beyond: RESOURCE_EXHAUSTED; all can be answered', async () => {
      const hub = await network.hub(HUB)
      const policy = hub.part.policy
      if (policy === undefined) throw new Error('a hub has a policy')
      const never = new AbortController().signal
      const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
      const join = (i: number, remoteAddress: string) =>
        policy.join({ nodeId: `node${i}`, key: new Uint8Array(32), record, remoteAddress }, never)
      const { sink, receiver } = await hub.converse('authenticationByRequests')
      const stuck = new CollectingSink<never>({ stuck: true })
      const joins: ReturnType<typeof join>[] = []
      // Not all at once, which would hold a loaded machine up for longer than a lease lasts.
      while (joins.length < 1_000) {
        joins.push(join(joins.length, `10.0.0.${Math.floor(joins.length / 20)}`))
        if (joins.length % 50 === 0) await until(() => sink.messages.length === joins.length)
      }
      const reject = async (requestId: bigint): Promise<void> => {
        const isAnswered = async () => {
          await receiver.message({ requestId, accept: false })
          return true
        }
        await until(() =>
          isAnswered().catch((error) =>
            error instanceof ServiceError && error.code === 'UNAVAILABLE' ? false : Promise.reject(error),
          ),
        )
      }
      expect(stuck.messages).toEqual([])
      expect(await join(1_000, '10.0.1.1')).toMatchObject({ admitted: false, reason: 'TOO_MANY' })
      const ids = sink.messages.map(({ requestId }) => BigInt(requestId))
      expect(new Set(ids).size).toBe(1_000)
      await reject(ids[0] as bigint)
      await joins[0]
      const another = join(1_001, '10.0.0.0')
      expect(await join(1_002, '10.0.0.0')).toMatchObject({ reason: 'TOO_MANY' })
      await until(() => sink.messages.length === 1_001)
      const all = await hub.call('getPendingAuthenticationRequests', {})
      expect(all.requests).toHaveLength(1_000)
      for (const { requestId } of all.requests) await reject(BigInt(requestId))
      for (const admission of await Promise.all([...joins, another])) {
        expect(admission).toMatchObject({ admitted: false, reason: 'REJECTED' })
      }
      const after = await Promise.race([join(1_003, '10.0.0.0'), settle(1).then(() => 'raised')])
      expect(after).toBe('raised')
    })

    test('an IPv6 /64 counts as one address', async () => {
      const hub = await network.hub(HUB)
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

    test('20 requests of one node, whichever addresses they come from', async () => {
      const hub = await network.hub(HUB)
      const policy = hub.part.policy as NonNullable<typeof hub.part.policy>
      const gone = new AbortController()
      const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
      const join = (i: number) =>
        policy.join({ nodeId: 'north', key: new Uint8Array(32), record, remoteAddress: `10.0.1.${i}` }, gone.signal)
      const { sink } = await hub.converse('authenticationByRequests')
      const joins = Array.from({ length: 20 }, (_, i) => join(i))
      await until(() => sink.messages.length === 20)
      expect(await join(20)).toMatchObject({ reason: 'TOO_MANY', message: '20 requests of this node are pending' })
      gone.abort()
      for (const admission of await Promise.all(joins)) expect(admission).toMatchObject({ reason: 'WITHDRAWN' })
    })

    test('accepted, but not to be let in at this moment: it stays on the list, for another server to let it in', async () => {
      const hub = await network.hub(HUB)
      const registry = hub.part.registry as NodeRegistry
      const requests = new JoinRequests({
        timeout: 300_000,
        store: registry.requests,
        expel: (place) => registry.expel(place),
        onError: (message) => expect.fail(message),
      })
      const cutOff = () => Promise.reject(new ServiceError('UNAVAILABLE', 'cut off'))
      const away: NodeRegistry = Object.create(registry, { claim: { value: cutOff } })
      const policy = hubPolicy({ registry: away, requests, serve: () => {} })
      const record = { name: 'n', metadata: { items: {} }, services: ['PIPELINES' as const] }
      const joiner = { nodeId: 'north', key: new Uint8Array(32), record, remoteAddress: '' }
      const gone = new AbortController()
      const { sink } = await hub.converse('authenticationByRequests')
      const admission = policy.join(joiner, gone.signal)
      const caller = { by: 'this machine', transport: 'internal', address: '' } as const
      await requests.answer(BigInt((await sink.next()).requestId), true, caller)
      expect(await admission).toEqual({ admitted: false, reason: 'UNAVAILABLE', message: 'cut off' })
      gone.abort()
      // What was begun before is done when another has joined.
      await network.node().join(HUB)
      expect(idsOf(await listed(hub))).toContain('north')
    })

    test('an accepted node that left before it heard of it, and cannot be taken off the list, is told in the log', async () => {
      const errors: unknown[][] = []
      const removal = new Error('the disk is full')
      const requests = new JoinRequests({
        timeout: 1_000,
        store: new EmbeddedRequests({
          nextId: async () => 1,
          admit: async ({ nodeId }) => ({ nodeId, isNew: true }),
          now: Date.now,
        }),
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
})
