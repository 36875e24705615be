/** Server-sent events as they come in, against every way their bytes can be cut. */
import { expect, test } from 'vitest'
import { eventsOf } from '../../clients/typescript/src/events.ts'

const bytes = new TextEncoder().encode(
  ': ready\r\n\r\ndata: {"a":1}\n\n: keep-alive\n\nevent: error\rdata: 1\rdata:2é\r\rdata: cut off',
)
const expected = [
  { event: 'message', data: '{"a":1}' },
  { event: 'error', data: '1\n2é' },
]

async function* pieces(size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(body: Parameters<typeof eventsOf>[0]): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of eventsOf(body)) events.push(event)
  return events
}

test('the events are the same wherever the bytes are cut, from what Node.js gives and from what browsers give', async () => {
  for (let size = 1; size <= bytes.length; size++) {
    expect(await read(pieces(size)), `pieces of ${size}`).toEqual(expected)
    // As in browsers that do not iterate over it.
    const stream = ReadableStream.from(pieces(size))
    Object.defineProperty(stream, Symbol.asyncIterator, { value: undefined })
    expect(await read(stream), `a stream of pieces of ${size}`).toEqual(expected)
  }
})

test('whatever comes in was heard, of an answer without a body nothing', async () => {
  let heard = 0
  for await (const _ of eventsOf(pieces(10), () => heard++));
  expect(heard).toBe(Math.ceil(bytes.length / 10))
  expect(await read(null)).toEqual([])
})
