import { PenstockError, type StreamOptions } from '@penstock/client'
import { expect, test } from 'vitest'
import type { Reader } from './live.ts'
import { SharedStreams } from './shared-stream.ts'

/** A stream whose messages are pushed. */
class Stream implements AsyncIterable<string> {
  readonly options: StreamOptions
  readonly #queue: (string | Error)[] = []
  #wake: () => void = () => {}

  constructor(options: StreamOptions) {
    this.options = options
    options.signal?.addEventListener('abort', () => this.push(new Error('left')))
  }

  push(message: string | Error): void {
    this.#queue.push(message)
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const message = this.#queue.shift()
      if (message instanceof Error) throw message
      if (message !== undefined) yield message
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }
}

class Watcher implements Reader {
  readonly leave = new AbortController()
  readonly signal = this.leave.signal
  readonly seen: string[] = []
  readonly opened = (): void => void this.seen.push('opened')
  readonly lost = (error: PenstockError): void => void this.seen.push(error.code)
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

test('one stream for all who follow it, open until the last leaves', async () => {
  const opened: Stream[] = []
  const streams = new SharedStreams<string>((_, options) => {
    const stream = new Stream(options)
    opened.push(stream)
    return stream
  })
  const [a, b] = [new Watcher(), new Watcher()]
  const first = streams.follow('run', a, (message) => a.seen.push(message))
  await settle()
  opened[0]?.options.onOpen?.(0)
  const second = streams.follow('run', b, (message) => b.seen.push(message))
  opened[0]?.push('1')
  await settle()
  a.leave.abort()
  await first
  opened[0]?.options.onBreak?.(new PenstockError('UNAVAILABLE', 'broke'))
  opened[0]?.options.onOpen?.(1)
  opened[0]?.push('2')
  await settle()
  expect(opened.length).toBe(1)
  expect(a.seen).toEqual(['opened', '1'])
  expect(b.seen).toEqual(['opened', '1', 'UNAVAILABLE', 'opened', '2'])
  expect(opened[0]?.options.signal?.aborted).toBe(false)
  b.leave.abort()
  await second
  expect(opened[0]?.options.signal?.aborted).toBe(true)
  void streams.follow('run', new Watcher(), () => {})
  await settle()
  expect(opened.length).toBe(2)
})

test('the end of a stream is told to all, and the next one to come opens another', async () => {
  const opened: Stream[] = []
  const streams = new SharedStreams<string>((_, options) => {
    const stream = new Stream(options)
    opened.push(stream)
    return stream
  })
  const all = [new Watcher(), new Watcher()].map((watcher) => streams.follow('run', watcher, () => {}))
  await settle()
  opened[0]?.push(new PenstockError('ABORTED', 'run ended'))
  for (const each of all) await expect(each).rejects.toMatchObject({ code: 'ABORTED' })
  void streams.follow('run', new Watcher(), () => {})
  await settle()
  expect(opened.length).toBe(2)
})
