/** The operations of a hub server where several callers ask for the same. */
import { afterEach, expect, test } from 'vitest'
import { embeddedState } from '../../test/harness/registries.ts'
import { Call } from '../api/call.ts'
import type { HubFact } from './facts.ts'
import { HubServerService } from './hub-server.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('of two who remove a node at once, the one whose call succeeds is said to have done so', async () => {
  const state = await embeddedState()
  closing.push(() => state.close())
  const hub = await state.server()
  closing.push(() => hub.close())
  const { node } = await hub.join()
  const facts: HubFact[] = []
  const { handlers } = new HubServerService({ registry: hub.registry, onFact: (fact) => facts.push(fact) })
  const removeAs = async (identity: string) => {
    const call = new Call({ remoteAddress: '127.0.0.1', isLoopback: true, identity }, 'rest')
    await handlers.removeNode({ nodeId: node.nodeId }, call)
  }
  const outcomes = await Promise.allSettled([removeAs('first'), removeAs('second')])
  expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'NOT_FOUND' } }])
  expect(facts).toMatchObject([{ kind: 'removed', nodeId: node.nodeId, caller: { by: 'token first' } }])
})
