/** A message that goes to many subscribers and is encoded once per wire format. */

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
