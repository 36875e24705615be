/** The three ways a slow subscriber is kept bounded. */
import { describe, expect, test } from 'vitest'
import { NarrowSink } from '../../test/harness/narrow-sink.ts'
import { Outbox } from './outbox.ts'

describe('outbox', () => {
  test('passes on at once while there is room', () => {
    const sink = new NarrowSink()
    sink.room = 2
    const outbox = new Outbox(sink, { kind: 'bounded', limit: 1 })
    outbox.push('a')
    outbox.push('b')
    expect(sink.sent).toEqual(['a', 'b'])
    expect(outbox.waiting).toBe(0)
  })

  test('latest keeps only the newest', () => {
    const sink = new NarrowSink()
    const outbox = new Outbox(sink, { kind: 'latest' })
    for (const message of ['a', 'b', 'c']) outbox.push(message)
    expect(outbox.waiting).toBe(1)
    sink.drain(1)
    expect(sink.sent).toEqual(['c'])
    outbox.push('d')
    sink.drain(5)
    outbox.push('e')
    expect(sink.sent).toEqual(['c', 'd', 'e'])
  })

  test('bounded keeps order across drains and ends with an error when it overflows', () => {
    const sink = new NarrowSink()
    const outbox = new Outbox(sink, { kind: 'bounded', limit: 3 })
    for (const message of ['a', 'b', 'c']) outbox.push(message)
    sink.drain(1)
    outbox.push('d')
    expect(sink.sent).toEqual(['a'])
    sink.drain(10)
    expect(sink.sent).toEqual(['a', 'b', 'c', 'd'])
    sink.room = 0
    for (const message of ['e', 'f', 'g', 'h']) outbox.push(message)
    expect(sink.error).toMatchObject({ code: 'RESOURCE_EXHAUSTED' })
    outbox.push('i')
    expect(outbox.waiting).toBe(0)
  })

  test('counted says how many were dropped, in their place', () => {
    const sink = new NarrowSink()
    const outbox = new Outbox<string>(sink, { kind: 'counted', limit: 2, dropped: (count) => `${count} dropped` })
    for (const message of ['a', 'b', 'c', 'd', 'e']) outbox.push(message)
    sink.drain(2)
    outbox.push('f')
    sink.drain(1)
    outbox.push('g')
    sink.drain(9)
    outbox.push('h')
    expect(sink.sent).toEqual(['a', 'b', '4 dropped', 'g', 'h'])
  })

  test('end waits for what is queued', () => {
    const sink = new NarrowSink()
    const outbox = new Outbox<string>(sink, { kind: 'bounded', limit: 2 })
    outbox.push('a')
    outbox.end('over')
    expect(sink.closed).toBe(false)
    sink.drain(2)
    expect(sink.sent).toEqual(['a'])
    expect(sink.error).toBe('over')
  })
})
