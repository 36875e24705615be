/** Server-sent events (html.spec.whatwg.org, section 9.2) from the bytes of an answer. */
import { createParser } from 'eventsource-parser'
import type { Answer } from './fetch.ts'

export interface Event {
  /** `message` where the stream names none. */
  readonly event: string
  readonly data: string
}

/** The events that are whole; comments are skipped. `heard` is called with each piece that comes in, of whatever. Ends with the body. */
export async function* eventsOf(body: Answer['body'], heard: () => void = () => {}): AsyncGenerator<Event, void> {
  const decoder = new TextDecoder()
  const whole: Event[] = []
  const parser = createParser({ onEvent: ({ event = 'message', data }) => whole.push({ event, data }) })
  let held = ''
  for await (const bytes of piecesOf(body)) {
    heard()
    // The parser keeps an event that ends with a lone CR at the end of a piece until the next line ends: it is given LF only.
    const text = held + decoder.decode(bytes, { stream: true })
    held = text.endsWith('\r') ? '\r' : ''
    parser.feed(text.slice(0, text.length - held.length).replace(/\r\n?/g, '\n'))
    yield* whole.splice(0)
  }
}

/** Not every browser iterates over a ReadableStream by itself. */
async function* piecesOf(body: Answer['body']): AsyncGenerator<Uint8Array, void> {
  if (body === null) return
  if (!('getReader' in body)) {
    yield* body
    return
  }
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}
