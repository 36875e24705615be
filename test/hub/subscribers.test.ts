/** Streams of a hub whose subscribers never read. They end before a registry has to do with it: the one of a single server stands for all. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { StreamNodesResponse } from '../../src/contract/types.ts'
import { MAX_EVENT_BACKLOG } from '../../src/hub/hub-server.ts'
import { WINDOW_BYTES } from '../../src/link/messages.ts'
import { localCall, Network, operations } from '../harness/hub.ts'
import { CollectingSink } from '../harness/sink.ts'
import { settle, until } from '../harness/waiting.ts'

const HUB = 'http://hub'

const noFilter = { metadataFilters: {}, serviceFilters: [] }

let network: Network
beforeEach(() => {
  network = new Network()
})
afterEach(() => network.close())

describe('subscribers that never read', () => {
  test('their streams end, on the hub and across a link; nothing grows and others are served', async () => {
    const hub = await network.hub(HUB)
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
    const hub = await network.hub(HUB)
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
