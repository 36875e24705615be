/** The messages of one gRPC call, out of the bytes that its client sends (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
import type * as grpc from '@grpc/grpc-js'
import { longer, NO_BYTES } from './one-piece.ts'

/** What stands before a message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5

/** Takes what comes; gives the messages that are whole now, each with its prefix. Throws when one is too long. */
interface Decoder {
  write(bytes: Buffer): Buffer[]
}

/** That of grpc-js keeps a buffer for each DATA frame of a message; this one has the message in one piece. */
export class MessageDecoder implements Decoder {
  readonly #most: number
  #prefix = Buffer.alloc(PREFIX_BYTES)
  /** The message under way with its prefix, as far as there is room for it, what has come of it, and its length. */
  #bytes = NO_BYTES
  #count = 0
  #length = PREFIX_BYTES

  /** `most`: bytes of a message without its prefix. */
  constructor(most: number) {
    this.#most = most
  }

  write(bytes: Buffer): Buffer[] {
    const whole: Buffer[] = []
    for (let at = 0; at < bytes.length; ) {
      at += this.#count < PREFIX_BYTES ? this.#takePrefix(bytes, at) : this.#takeMessage(bytes, at)
      if (this.#count < PREFIX_BYTES || this.#count < this.#length) continue
      whole.push(this.#count === PREFIX_BYTES ? Buffer.from(this.#prefix) : this.#bytes)
      this.#bytes = NO_BYTES
      this.#count = 0
    }
    return whole
  }

  #takePrefix(bytes: Buffer, at: number): number {
    const taken = bytes.copy(this.#prefix, this.#count, at, at + PREFIX_BYTES - this.#count)
    this.#count += taken
    if (this.#count < PREFIX_BYTES) return taken
    this.#length = PREFIX_BYTES + this.#prefix.readUInt32BE(1)
    this.#refuseLong()
    return taken
  }

  #takeMessage(bytes: Buffer, at: number): number {
    this.#refuseLong()
    const end = Math.min(this.#length, this.#count + bytes.length - at)
    if (end > this.#bytes.length) {
      // Not for its whole length, of which it may send nothing.
      const before = this.#count === PREFIX_BYTES ? this.#prefix : this.#bytes
      this.#bytes = longer(before, this.#count, Math.min(this.#length, 2 * end))
    }
    const taken = bytes.copy(this.#bytes, this.#count, at, at + end - this.#count)
    this.#count = end
    return taken
  }

  /** Again for all that comes of one that was refused. */
  #refuseLong(): void {
    const length = this.#length - PREFIX_BYTES
    if (length > this.#most) throw new Error(`Received message larger than max (${length} vs ${this.#most})`)
  }
}

/** Has the messages of a call, as grpc-js gives it to an interceptor, decoded here. Throws when it has no decoder where one is looked for. */
export function decodeInOnePiece(call: grpc.ServerInterceptingCallInterface, most: number): void {
  const inside = call as unknown as { decoder?: Partial<Decoder> }
  if (typeof inside.decoder?.write !== 'function') {
    throw new Error('@grpc/grpc-js has no decoder where it is looked for: install the version of package-lock.json')
  }
  inside.decoder = new MessageDecoder(most)
}
