/** Answers in many pieces: whole at the end, one long one at a time on a link, and no more memory than that for a peer that means ill. */
import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import type { CallContext } from '../contract/handlers.ts'
import type { LinkStream } from '../link/link.ts'
import { PIECE_BYTES, WINDOW_BYTES } from '../link/messages.ts'
import { sessionPair } from '../link/testing.ts'
import { MAX_ANSWER_BYTES, MAX_SMALL_ANSWER_BYTES } from './link-answers.ts'
import { ANSWER_MS, unaryOver } from './link-calls.ts'

const MIB = 1024 * 1024
const codec = {
  name: 'getPipelines',
  encodeRequest: () => new Uint8Array(0),
  decodeResponse: (bytes: Uint8Array) => bytes,
}
const context = (signal = new AbortController().signal) => ({ signal }) as CallContext
const ok = { code: 'OK', message: '' } as const

/** A hub that calls, and a node whose streams a test answers by hand. */
function setup() {
  const { hub, node, clock } = sessionPair()
  const streams: LinkStream[] = []
  node.onOpen((stream) => streams.push(stream))
  const call = unaryOver({ session: hub, target: '', called: 'node n' }, codec, clock)
  return { hub, clock, streams, call: (signal?: AbortSignal) => call({}, context(signal)) as Promise<Uint8Array> }
}

/** Sends `total` bytes in messages of `each`, as fast as they are taken; counts what was taken. */
function answer(stream: LinkStream, total: number, each = MIB): { taken: number } {
  const state = { taken: 0 }
  const send = () => {
    while (!stream.closed && state.taken < total) {
      const length = Math.min(each, total - state.taken)
      state.taken += length
      if (!stream.send(Buffer.alloc(length, state.taken))) return
    }
    if (!stream.closed) stream.end(ok)
  }
  stream.handlers = { drain: send }
  send()
  return state
}

test.each([
  [0, 1],
  [1, 1],
  [MAX_SMALL_ANSWER_BYTES, 1000],
  [5 * MIB + 7, 333_333],
  [MAX_ANSWER_BYTES, 4 * MIB],
])('an answer of %i bytes in messages of %i is whole', async (total, each) => {
  const { hub, streams, call } = setup()
  const called = call()
  await settle()
  const stream = streams[0] as LinkStream
  if (total === 0) {
    stream.send(new Uint8Array(0))
    stream.end(ok)
  } else answer(stream, total, each)
  const whole = await called
  expect(whole.length).toBe(total)
  for (let at = each, from = 0; from < total; from = at, at = Math.min(at + each, total)) {
    expect(whole[from], `${from}`).toBe(Math.min(at, total) % 256)
    if (at === total) break
  }
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('an answer that does not end is given up at its limit, and its sender hears of it', async () => {
  const { hub, streams, call } = setup()
  const called = call()
  await settle()
  const state = answer(streams[0] as LinkStream, Number.POSITIVE_INFINITY)
  await expect(called).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
  await settle()
  expect(state.taken).toBeLessThan(MAX_ANSWER_BYTES + 2 * MIB)
  expect((streams[0] as LinkStream).closed).toBe(true)
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('of many long answers at once a link brings one, the others wait with their senders', async () => {
  const { hub, streams, call } = setup()
  const calls = Array.from({ length: 20 }, () => call())
  await settle()
  // None of them ends: each says that more is to come.
  for (const stream of streams) {
    let sent = 0
    const send = () => {
      while (++sent < 40 && stream.sendFragment(new Uint8Array(32 * 1024), true));
    }
    stream.handlers = { drain: send }
    send()
  }
  await settle()
  await settle()
  // What waits is at most each stream's credit, in pieces that take some memory of their own, and the link knows of it.
  expect(hub.held).toBeGreaterThan(0)
  expect(hub.held).toBeLessThanOrEqual(19 * (WINDOW_BYTES + 8 * PIECE_BYTES))
  for (const stream of streams) stream.end({ code: 'ABORTED', message: 'enough' })
  for (const each of calls) await expect(each).rejects.toMatchObject({ code: 'ABORTED' })
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('the next has its turn when the one before is whole, refused, given up or late; small ones never wait', async () => {
  const { hub, clock, streams, call } = setup()
  const gone = new AbortController()
  const calls = [call(), call(gone.signal), call(), call()]
  await settle()
  const outcomes: string[] = []
  for (const [i, each] of calls.entries()) {
    each.then(
      (whole) => outcomes.push(`${i}: ${whole.length}`),
      (error) => outcomes.push(`${i}: ${error.code}`),
    )
  }
  const [first, second, third, last] = streams as [LinkStream, LinkStream, LinkStream, LinkStream]
  first.sendFragment(new Uint8Array(100_000), true)
  await settle()
  second.sendFragment(new Uint8Array(100_000), true)
  await settle()
  third.sendFragment(new Uint8Array(100_000), true)
  await settle()
  const end = answer(last, 3 * MIB)
  const small = call()
  await settle()
  answer(streams[4] as LinkStream, 1000)
  expect((await small).length).toBe(1000)
  expect(outcomes).toEqual([])
  first.end({ code: 'ABORTED', message: 'no' })
  await settle()
  gone.abort()
  await settle()
  expect(outcomes).toEqual(['0: ABORTED', '1: CANCELLED'])
  expect(end.taken).toBeLessThan(3 * MIB)
  // The third goes quiet in its turn.
  const before = call()
  await settle()
  clock.increment(ANSWER_MS - 1)
  expect(outcomes).toHaveLength(2)
  await settle()
  third.sendFragment(new Uint8Array(0), false)
  third.end(ok)
  await settle()
  await settle()
  expect(outcomes.slice(2).sort()).toEqual(['2: 100000', `3: ${3 * MIB}`])
  streams[5]?.end(ok)
  await expect(before).rejects.toMatchObject({ code: 'INTERNAL' })
  expect([hub.held, hub.streamCount]).toEqual([0, 0])
})

test('an answer that ends in the middle of a message is no answer', async () => {
  const { streams, call } = setup()
  const called = call()
  await settle()
  streams[0]?.sendFragment(Buffer.from('half'), true)
  streams[0]?.end(ok)
  await expect(called).rejects.toMatchObject({ code: 'INTERNAL' })
})
