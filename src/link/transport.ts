/** The connection below a link: whole binary messages, in order, with backpressure. */

/** Close codes of the WebSocket (RFC 6455, section 7.4: 4000 and up are the application's). */
export const closeCodes = {
  LEFT: 4000,
  REMOVED: 4001,
  REPLACED: 4002,
  REFUSED: 4003,
  SHUTDOWN: 1001,
  DEAD: 4408,
  PROTOCOL: 4400,
} as const

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]

/** What a transport tells its owner. */
export interface TransportHandlers {
  /** One message; the bytes are the receiver's. */
  message(bytes: Uint8Array): void
  /** Something came that is no binary message. */
  foreign(what: string): void
  /** The connection is over; not called after the own `close`. */
  close(code: number, reason: string): void
  /** There is room again after `send` returned false. */
  drain(): void
}

export interface LinkTransport {
  /** The peer's IP address as text; empty in-process. */
  readonly remoteAddress: string
  /** Bytes taken that have not left yet. */
  readonly buffered: number
  /** Changes hands between handshake and session. */
  handlers: TransportHandlers
  /** Takes one message. False: it was taken, but further ones should wait for `drain`. Does nothing once closed. */
  send(bytes: Uint8Array): boolean
  /** Ends the connection after what was sent; `reason` is cut to 123 bytes. Does nothing once closed. */
  close(code: CloseCode, reason: string): void
}

/** Handlers of a transport that nobody listens to any more. */
export const deaf: TransportHandlers = { message() {}, foreign() {}, close() {}, drain() {} }

/** Cut to what a close frame can hold (RFC 6455, section 5.5), at a character's boundary. */
export function closeReason(text: string): string {
  if (Buffer.byteLength(text) <= 123) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, 120)).replace(/\ufffd+$/, '')
}
