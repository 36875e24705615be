/** Messages that go to many subscribers and are encoded once per wire format. */

/** What a transport encodes a message into; one cached encoding each. */
export type MessageFormat = 'proto' | 'sse' | 'websocket'

/**
 * Wraps one event for fan-out. A service makes one per event and sends the same instance to every sink; the first transport
 * that needs a format encodes it, the others send the same bytes. The value must not change after it was wrapped.
 */
export class SharedMessage<M> {
  readonly value: M
  #proto: Uint8Array | undefined
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

  constructor(values: readonly M[]) {
    this.each = values.map((value) => new SharedMessage(value))
  }

  /** The events of all of them, each made by `encode`; as `SharedMessage.encoded`. */
  eventStream(encode: (value: M) => Uint8Array): Uint8Array {
    this.#sse ??= Buffer.concat(this.each.map((message) => message.encoded('sse', encode)))
    return this.#sse
  }
}
