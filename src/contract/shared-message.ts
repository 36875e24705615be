/** Messages that go to many subscribers and are encoded once per wire format. */

/** Bytes of several events that are one text, at most: what a stream that turns out to be full has taken beyond one message. */
const MAX_TOGETHER_BYTES = 1_048_576

/** What a transport encodes a message into; one cached encoding each. */
export type MessageFormat = 'proto' | 'link' | 'sse' | 'websocket'

/**
 * Wraps one event for fan-out. A service makes one per event and sends the same instance to every sink; the first transport
 * that needs a format encodes it, the others send the same bytes. The value must not change after it was wrapped.
 */
export class SharedMessage<M> {
  readonly value: M
  #proto: Uint8Array | undefined
  #link: Uint8Array | undefined
  #sse: Uint8Array | undefined
  #websocket: Uint8Array | undefined

  constructor(value: M) {
    this.value = value
  }

  /** The bytes of `format`, made by `encode` at the first call and owned by this message: nobody writes into them. */
  encoded(format: MessageFormat, encode: (value: M) => Uint8Array): Uint8Array {
    switch (format) {
      case 'proto':
        this.#proto ??= encode(this.value)
        return this.#proto
      case 'link':
        this.#link ??= encode(this.value)
        return this.#link
      case 'sse':
        this.#sse ??= encode(this.value)
        return this.#sse
      case 'websocket':
        this.#websocket ??= encode(this.value)
        return this.#websocket
    }
  }
}

/** Several events that go to every subscriber one after the other; of formats that are a stream of text they are one text. */
export class SharedMessages<M> {
  readonly each: readonly SharedMessage<M>[]
  #sse: Uint8Array | undefined
  #isLong = false

  constructor(values: readonly M[]) {
    this.each = values.map((value) => new SharedMessage(value))
  }

  /** The events of all of them, each made by `encode`; as `SharedMessage.encoded`. Undefined: they are too long to be one text. */
  eventStream(encode: (value: M) => Uint8Array): Uint8Array | undefined {
    if (this.#sse === undefined && !this.#isLong) {
      const events: Uint8Array[] = []
      let length = 0
      for (const message of this.each) {
        const event = message.encoded('sse', encode)
        events.push(event)
        length += event.length
        if (length <= MAX_TOGETHER_BYTES) continue
        // What follows is encoded once somebody is sent it: each message keeps what it was encoded into for as long as it waits.
        this.#isLong = true
        return undefined
      }
      this.#sse = Buffer.concat(events, length)
    }
    return this.#sse
  }
}
