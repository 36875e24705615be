/** A side that is silent is asked after 10 s and dead after 30 s. */
import { expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import type { LinkEvent } from './link.ts'
import { decodeFrame } from './messages.ts'
import { MemoryTransport } from './pair.ts'
import { Session } from './session.ts'
import { Recorder, sessionPair } from './testing.ts'

/** Seconds pass, everything that is sent meanwhile arrives. */
async function pass(clock: { increment(ms: number): void }, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.increment(1000)
    await settle()
  }
}

test('two sides that have nothing to say stay together', async () => {
  const { hub, node, clock, events } = sessionPair()
  let isClosed = false
  void hub.closed.then(() => (isClosed = true))
  void node.closed.then(() => (isClosed = true))
  await pass(clock, 120)
  expect(isClosed).toBe(false)
  expect(events).toEqual([])
})

test('who is silent is asked at 10 and 20 s and dead at 30 s, its calls UNAVAILABLE', async () => {
  const clock = new SimulatedClock()
  const events: LinkEvent[] = []
  const [transport, silent] = MemoryTransport.pair()
  const hub = new Session({
    side: 'hub',
    localId: 'hub',
    peerId: 'node',
    transport,
    clock,
    heartbeat: 0,
    signRemoval: () => new Uint8Array(0),
    verifyRemoval: () => false,
    report: (event) => events.push(event),
  })
  const asked: number[] = []
  silent.handlers = {
    ...silent.handlers,
    message: (bytes) => {
      if (decodeFrame(bytes).kind === 'ping') asked.push(clock.now())
    },
  }
  const call = new Recorder(hub.open('x', '', undefined))
  await pass(clock, 29)
  expect(asked).toEqual([10_000, 20_000])
  expect(call.log).toEqual([])
  expect(hub.silence).toBe(29_000)
  await pass(clock, 1)
  expect(await hub.closed).toEqual({ reason: 'DEAD', message: 'nothing was heard for 30 s', byPeer: false })
  expect(call.status?.code).toBe('UNAVAILABLE')
  expect(events).toEqual([{ kind: 'dead', message: 'nothing was heard for 30 s', remoteAddress: '', peerId: 'node' }])
  // No timer is left behind.
  await pass(clock, 60)
  expect(hub.silence).toBe(90_000)
  expect(asked).toHaveLength(2)
})

test('whatever arrives counts as a sign of life', async () => {
  const { hub, node, nodeTransport, clock } = sessionPair()
  const asked: number[] = []
  const { message } = nodeTransport.handlers
  nodeTransport.handlers = {
    ...nodeTransport.handlers,
    message: (bytes) => {
      if (decodeFrame(bytes).kind === 'ping') asked.push(clock.now())
      message.call(nodeTransport.handlers, bytes)
    },
  }
  hub.onOpen((stream) => stream.end({ code: 'OK', message: '' }))
  for (let i = 0; i < 10; i++) {
    await pass(clock, 7)
    const call = new Recorder(node.open('x', '', new Uint8Array(0)))
    await call.over
  }
  expect(asked).toEqual([])
})

test('a side that was stopped for long gives the session up when it goes on', async () => {
  const { hub, node, clock } = sessionPair()
  clock.increment(40_000)
  expect((await hub.closed).reason).toBe('DEAD')
  expect((await node.closed).reason).toBe('DEAD')
})

test('nobody is asked, and nobody called dead, once the session has ended', async () => {
  const { hub, node, nodeTransport, hubTransport, clock, events } = sessionPair()
  hub.close('SHUTDOWN', 'the hub is shutting down')
  expect((await node.closed).byPeer).toBe(true)
  let sent = 0
  for (const transport of [nodeTransport, hubTransport]) transport.send = () => ++sent > 0
  await pass(clock, 60)
  expect([sent, events]).toEqual([0, []])
})
