/** Calls that come over a link and are carried out here: what their requests make this node hold. */
import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { encodeBinary } from '../contract/binary-encode.ts'
import { systemClock } from '../contract/clock.ts'
import type { Handlers } from '../contract/handlers.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import { MAX_HELD_BYTES } from '../link/accounting.ts'
import { Recorder, sessionPair } from '../link/testing.ts'
import { Dispatcher } from './dispatcher.ts'
import { LinkListener } from './link.ts'

const MIB = 1024 * 1024
const operation = loadOperations().find(({ name }) => name === 'getPipelineByRunId') as Operation

test('requests that are being carried out are held for their caller until that is over, and refused beyond its limit', async () => {
  const { hub, node } = sessionPair()
  let underWay = 0
  const finish: (() => void)[] = []
  const handlers: Partial<Handlers> = {
    // As the real one waits for a run to appear.
    getPipelineByRunId: async () => {
      underWay++
      await new Promise<void>((resolve) => finish.push(resolve))
      return {} as never
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const request = encodeBinary(operation.request, { nodeId: 'hub', id: 'x'.repeat(4 * MIB) })
  const calls: Recorder[] = []
  for (let i = 0; i < 24; i++) {
    const stream = node.open(operation.name, '', request)
    calls.push(new Recorder(stream))
    while (underWay + calls.filter(({ status }) => status !== undefined).length <= i) await settle()
    // Nobody waits for the first any more; its request is still there.
    if (i === 0) stream.cancel()
  }
  const refused = calls.filter(({ status }) => status?.code === 'RESOURCE_EXHAUSTED')
  expect(underWay).toBeGreaterThan(10)
  expect(underWay * request.length).toBeLessThan(MAX_HELD_BYTES)
  expect(refused).toHaveLength(24 - underWay)
  expect(hub.held).toBeGreaterThan(underWay * request.length)
  expect(hub.held).toBeLessThanOrEqual(MAX_HELD_BYTES)
  for (const resolve of finish) resolve()
  await settle()
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('a call that was cancelled before it could begin is not carried out', async () => {
  const { hub, node } = sessionPair()
  const begun: string[] = []
  const handlers: Partial<Handlers> = {
    getPipelineByRunId: async ({ id }) => {
      begun.push(id)
      return {} as never
    },
  }
  const dispatcher = new Dispatcher({ handlers, report: () => {} })
  const listener = new LinkListener({ dispatcher: () => dispatcher, nodeId: 'hub', clock: systemClock })
  hub.onOpen((stream, request) => listener.serve(stream, request, ''))
  const requestOf = (id: string) => encodeBinary(operation.request, { nodeId: 'hub', id })
  const first = node.open(operation.name, '', requestOf('cancelled'))
  const second = new Recorder(node.open(operation.name, '', requestOf('awaited')))
  first.cancel()
  while (second.status === undefined) await settle()
  expect(second.status.code).toBe('OK')
  expect(begun).toEqual(['awaited'])
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})
