/** An acceptance that nobody has confirmed yet, at the hub: who is taken off the list again, and who stays; with both registries. */
import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { NotStored } from '../../src/contract/errors.ts'
import { loadIdentity } from '../../src/link/identity.ts'
import type { Dialled, JoiningNode, LinkSession } from '../../src/link/link.ts'
import { connectPair } from '../../src/link/pair.ts'
import type { Member, Network } from '../harness/hub.ts'
import { HUB, noFilter, REGISTRIES, useNetworks } from '../harness/networks.ts'
import { until } from '../harness/waiting.ts'

const record = { name: 'north', metadata: { items: {} }, services: ['PIPELINES' as const] }
const joiner: JoiningNode = { nodeId: 'north', key: new Uint8Array(32), record, remoteAddress: '' }

describe.each(REGISTRIES)('%s', (registry, begin) => {
  /** Cases of a hub that is one process. */
  const ofOneProcess = registry === 'embedded' ? test : undefined
  let network: Network
  let hub: Member
  useNetworks(begin, async (next) => {
    network = next
    hub = await network.hub(HUB)
  })

  const policyOf = ({ part }: Member) => part.policy as NonNullable<typeof part.policy>
  const listed = async () => (await hub.call('getNodes', noFilter)).nodes.slice(1).map(({ id }) => id)
  const nobodyListed = async () => (await listed()).length === 0

  /** A request of the node `north`, raised and answered with yes. */
  async function accepted(who = joiner) {
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const gone = new AbortController()
    const admission = policyOf(hub).join(who, gone.signal)
    const { requestId } = await sink.next()
    const answer = (async () => await receiver.message({ requestId: BigInt(requestId), accept: true }))()
    answer.catch(() => {})
    return { gone, admission, answer }
  }

  /** Another node is put on the list and taken off: what was begun before, on the same disk, is done then. */
  async function otherwiseBusy(): Promise<void> {
    const other = await accepted({ ...joiner, nodeId: 'other' })
    await other.admission
    other.gone.abort()
    await until(async () => !(await listed()).includes('other'))
  }

  describe('without a session', () => {
    test('a new node whose request is withdrawn after the acceptance is off the list', async () => {
      const request = await accepted()
      await Promise.all([request.answer, request.admission])
      expect(await listed()).toEqual(['north'])
      request.gone.abort()
      await until(nobodyListed)
    })

    test('withdrawn while the acceptance is being written: off the list, and the operator is told', async () => {
      const request = await accepted()
      request.gone.abort()
      await expect(request.answer).rejects.toMatchObject({ code: 'NOT_FOUND' })
      expect(await request.admission).toMatchObject({ admitted: false, reason: 'WITHDRAWN' })
      expect(await listed()).toEqual([])
    })

    // On the disk of the hub's node: what becomes of one that NATS does not take is in test/cluster/requests.test.ts.
    ofOneProcess?.(
      'an acceptance that a fault keeps from being written: the operator and the joiner are told, nobody is listed',
      async () => {
        const fault = new Error('a fault of the hub')
        const { sink, receiver } = await hub.converse('authenticationByRequests')
        const admission = policyOf(hub).join(joiner, new AbortController().signal)
        const { requestId } = await sink.next()
        Object.assign(hub.store.nodes, { put: () => Promise.reject(fault) })
        const answer = (async () => await receiver.message({ requestId: BigInt(requestId), accept: true }))()
        await expect(answer).rejects.toBe(fault)
        await expect(admission).rejects.toBe(fault)
        expect(await listed()).toEqual([])
        expect((await hub.call('getPendingAuthenticationRequests', {})).requests).toEqual([])
      },
    )

    ofOneProcess?.(
      'an acceptance that a full disk does not take: the operator is told, the request waits on and can be accepted once there is room',
      async () => {
        const full = new NotStored('penstock.lmdb', 'no space left')
        const { sink, receiver } = await hub.converse('authenticationByRequests')
        const admission = policyOf(hub).join(joiner, new AbortController().signal)
        const { requestId } = await sink.next()
        const answer = async (accept: boolean) => await receiver.message({ requestId: BigInt(requestId), accept })
        const taken = vi.spyOn(hub.store.nodes, 'put').mockRejectedValueOnce(full)
        await expect(answer(true)).rejects.toBe(full)
        expect(taken).toHaveBeenCalledTimes(1)
        expect(hub.logged.map(({ message }) => message)).toEqual([
          'node asks to join the hub',
          'request to join could not be accepted',
        ])
        expect(await listed()).toEqual([])
        expect((await hub.call('getPendingAuthenticationRequests', {})).requests).toMatchObject([{ requestId }])
        await answer(true)
        expect(await admission).toEqual({ admitted: true })
        expect(await listed()).toEqual(['north'])
        expect((await hub.call('getPendingAuthenticationRequests', {})).requests).toEqual([])
      },
    )

    ofOneProcess?.('a request for whose id the disk has no room: the joiner is told what is wrong', async () => {
      const full = new NotStored('penstock.lmdb', 'no space left')
      Object.assign(hub.store.requestIds, { next: () => Promise.reject(full) })
      expect(await policyOf(hub).join(joiner, new AbortController().signal)).toEqual({
        admitted: false,
        reason: 'UNAVAILABLE',
        message: expect.stringMatching(
          /cannot store .* now \(no space left\): ask again once there is room on its disk$/,
        ),
      })
      expect(hub.reported).toEqual([{ err: full }])
    })

    test('a member that asks anew and withdraws, before the disk and after it, stays', async () => {
      const node = network.node()
      await node.join(HUB)
      const again = { ...joiner, nodeId: node.id }
      const early = await accepted(again)
      early.gone.abort()
      expect(await early.admission).toMatchObject({ reason: 'WITHDRAWN' })
      const late = await accepted(again)
      expect(await late.admission).toEqual({ admitted: true })
      late.gone.abort()
      await otherwiseBusy()
      expect(await listed()).toEqual([node.id])
      // What is claimed before it is welcomed replaces the link that there is, which then comes again.
      await until(() => node.state === 'CONNECTED')
    })

    test('two requests of one node, both accepted: withdrawing the first leaves the place to the second', async () => {
      const first = await accepted()
      await first.admission
      const second = await accepted()
      await second.admission
      first.gone.abort()
      await otherwiseBusy()
      expect(await listed()).toEqual(['north'])
      second.gone.abort()
      await until(nobodyListed)
    })

    test('two requests of one node, accepted at once, the first withdrawn meanwhile: the second holds the place', async () => {
      const first = await accepted()
      const second = await accepted()
      first.gone.abort()
      expect(await second.admission).toEqual({ admitted: true })
      await first.admission
      await otherwiseBusy()
      expect(await listed()).toEqual(['north'])
      second.gone.abort()
      await until(nobodyListed)
    })

    test('removed and let in anew: the withdrawal of the old acceptance touches the new one no more', async () => {
      const old = await accepted()
      await old.admission
      await hub.call('removeNode', { nodeId: 'north' })
      const anew = await accepted()
      await anew.admission
      old.gone.abort()
      await otherwiseBusy()
      expect(await listed()).toEqual(['north'])
    })
  })

  describe('with a session', () => {
    /** Joins as a node does, up to the moment before it writes its sign-in. */
    async function joined(directory = network.directory()): Promise<{ nodeId: string; session: LinkSession }> {
      const identity = loadIdentity(directory)
      const { sink, receiver } = await hub.converse('authenticationByRequests')
      const dialled: Promise<Dialled> = connectPair(
        { identity: hub.identity, policy: policyOf(hub), clock: systemClock, report: () => {} },
        { identity, record, intent: 'JOIN', clock: systemClock, report: () => {} },
      )
      const { requestId } = await sink.next()
      await receiver.message({ requestId: BigInt(requestId), accept: true })
      const { session } = await dialled
      sink.end()
      return { nodeId: identity.nodeId, session }
    }

    test('a node that hangs up before it has said that it holds its sign-in is off the list', async () => {
      const { session } = await joined()
      session.close('SHUTDOWN', 'the node does not join after all')
      await until(nobodyListed)
    })

    test('after its first record it stays', async () => {
      const { nodeId, session } = await joined()
      session.sendRecord({ ...record, name: 'confirmed' })
      await until(async () => (await hub.call('getNodes', noFilter)).nodes[1]?.name === 'confirmed')
      session.close('SHUTDOWN', 'the node goes down')
      await until(async () => (await hub.call('getNodes', noFilter)).nodes[1]?.online === false)
      await otherwiseBusy()
      expect(await listed()).toEqual([nodeId])
    })

    test('a member that joins anew and hangs up at once stays', async () => {
      const directory = network.directory()
      const first = await joined(directory)
      first.session.sendRecord(record)
      const second = await joined(directory)
      second.session.close('SHUTDOWN', 'the node does not join after all')
      await until(async () => (await hub.call('getNodes', noFilter)).nodes[1]?.online === false)
      await otherwiseBusy()
      expect(await listed()).toEqual([first.nodeId])
    })

    test('two links of one node, neither confirmed: the hub drops the first, and the node hangs up the second', async () => {
      const directory = network.directory()
      const first = await joined(directory)
      const second = await joined(directory)
      expect(await first.session.closed).toMatchObject({ reason: 'REPLACED' })
      await otherwiseBusy()
      expect(await listed()).toEqual([first.nodeId])
      second.session.close('SHUTDOWN', 'the node does not join after all')
      await until(nobodyListed)
    })
  })
})
