/** Several events published at once: who gets them as one, who one by one, and that nobody gets them in another order. */
import { expect, test } from 'vitest'
import { NarrowSink, RefusingSink, TogetherSink } from '../../test/harness/narrow-sink.ts'
import { Fanout } from './fanout.ts'
import { Outbox } from './outbox.ts'
import { SharedMessages } from './shared-message.ts'

const EVER = Number.POSITIVE_INFINITY

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index}`)

test('whoever can take several gets them in one call, the others one by one; both in order', () => {
  const fanout = new Fanout<string>({ kind: 'bounded', limit: 10 })
  const single = new NarrowSink(EVER)
  const together = new TogetherSink(EVER)
  fanout.add(single)
  fanout.add(together)
  fanout.publishTogether(['a', 'b', 'c'])
  fanout.publishTogether([])
  fanout.publishTogether(['d'])
  expect([single.sent, single.calls]).toEqual([
    ['a', 'b', 'c', 'd'],
    [1, 1, 1, 1],
  ])
  expect([together.sent, together.calls]).toEqual([
    ['a', 'b', 'c', 'd'],
    [3, 1],
  ])
})

test('a subscriber that is behind keeps what it missed, bounded, and has all of it in order once it reads', () => {
  const fanout = new Fanout<string>({ kind: 'bounded', limit: 4 })
  const slow = new TogetherSink(1)
  const slower = new TogetherSink(0)
  fanout.add(slow)
  fanout.add(slower)
  fanout.publish('a')
  fanout.publishTogether(['b', 'c'])
  fanout.publishTogether(['d', 'e'])
  expect(slow.sent).toEqual(['a'])
  expect(slower.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
  slow.drain(10)
  fanout.publishTogether(['f', 'g'])
  expect(slow.sent).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
})

test('a crowd of events goes out in parts, so that a subscriber found slow has the rest bounded', () => {
  const fanout = new Fanout<string>({ kind: 'bounded', limit: 1000 })
  const quick = new TogetherSink(EVER)
  const slow = new TogetherSink(10)
  fanout.add(quick)
  fanout.add(slow)
  fanout.publishTogether(numbers(600))
  expect([quick.sent, quick.calls]).toEqual([numbers(600), [256, 256, 88]])
  expect(slow.calls).toEqual([256])
  slow.drain(1000)
  expect(slow.sent).toEqual(numbers(600))
})

test('the text of several events is that of each, made once', () => {
  let made = 0
  const encode = (value: string) => {
    made++
    return Buffer.from(`data: ${value}\n\n`)
  }
  const messages = new SharedMessages(['a', 'b'])
  expect(`${messages.eventStream(encode)}`).toBe('data: a\n\ndata: b\n\n')
  expect(messages.eventStream(encode)).toBe(messages.eventStream(encode))
  expect(made).toBe(2)
})

test('several events too long to be one text are none, and whoever cannot have them at once gets them one by one', () => {
  const long = new SharedMessages(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  let made = 0
  const encode = () => {
    made++
    return Buffer.alloc(256 * 1024)
  }
  expect([long.eventStream(encode), long.eventStream(encode)]).toEqual([undefined, undefined])
  expect(made).toBe(5)
  expect(new SharedMessages(['a', 'b', 'c', 'd']).eventStream(encode)).toHaveLength(1024 * 1024)
  const outbox = new Outbox(new RefusingSink(2), { kind: 'bounded', limit: 3 })
  outbox.pushTogether(new SharedMessages(['a', 'b', 'c', 'd', 'e']))
  expect(outbox.waiting).toBe(3)
})

test('who comes once all streams have ended gets what is there first, then the end', () => {
  const fanout = new Fanout<string>({ kind: 'bounded', limit: 4 })
  const error = new Error('over')
  fanout.end(error)
  const late = new NarrowSink(0)
  fanout.add(late, 'first')
  expect([late.sent, late.closed]).toEqual([[], false])
  late.drain(2)
  fanout.publish('more')
  expect([late.sent, late.error]).toEqual([['first'], error])
})
