/** What the log of each server is told of nodes that go off the hub: who removed one is known where that was asked for. */
import { expect, test } from 'vitest'
import { Call } from '../../src/api/call.ts'
import type { HubFact } from '../../src/hub/facts.ts'
import { HubServerService } from '../../src/hub/hub-server.ts'
import type { HubServerRig } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import { server, start } from './server-rig.ts'

/** The operations of a server, and what it has told of nodes that are off the hub. */
function operations({ registry }: HubServerRig) {
  const told: HubFact[] = []
  const onFact = (fact: HubFact) => {
    if (fact.kind !== 'joined') told.push(fact)
  }
  return { told, handlers: new HubServerService({ registry, onFact }).handlers }
}

test('a node that was removed at another server, or left there, is not said to have left by itself', async () => {
  const nats = await start()
  const [a, b] = [await server(nats, 'a'), await server(nats, 'b')]
  const [atA, atB] = [operations(a), operations(b)]
  const removed = await a.join()
  await until(() => b.listed(removed.node.nodeId) !== undefined)
  const operator = new Call({ remoteAddress: '127.0.0.1', isLoopback: true, identity: 'ops' }, 'rest')
  await atA.handlers.removeNode({ nodeId: removed.node.nodeId }, operator)
  await until(() => atB.told.length === 1)
  const left = await a.join()
  await until(() => b.listed(left.node.nodeId) !== undefined)
  left.session.close('LEFT', '')
  await until(() => atA.told.length === 2 && atB.told.length === 2)
  expect(atA.told).toMatchObject([
    { kind: 'removed', nodeId: removed.node.nodeId, caller: { by: 'token ops' } },
    { kind: 'left', nodeId: left.node.nodeId },
  ])
  expect(atB.told).toMatchObject([
    { kind: 'gone elsewhere', nodeId: removed.node.nodeId },
    { kind: 'gone elsewhere', nodeId: left.node.nodeId },
  ])
})
