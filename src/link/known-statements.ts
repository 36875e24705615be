/** What a hub key has signed and was found to be so: it is shown again with every handshake, and is read once. */
import type { SignedBody } from './signed.ts'

/** Statements that are remembered, of one kind: those of the servers of a hub, at most 32, and as many again. */
const MAX_KNOWN = 64

interface Known<T> {
  readonly key: Uint8Array
  readonly body: Uint8Array
  readonly value: T
}

export class KnownStatements<T> {
  /** By their signatures; the one that was read first is the first to go. */
  readonly #known = new Map<string, Known<T>>()

  /** What `signed` says, which is read if it is not known; what `read` throws is not remembered. */
  read(signed: SignedBody, key: Uint8Array, read: () => T): T {
    const { body } = signed
    const signature = Buffer.from(signed.signature).toString('latin1')
    const known = this.#known.get(signature)
    if (known !== undefined && Buffer.compare(known.body, body) === 0 && Buffer.compare(known.key, key) === 0) {
      return known.value
    }
    const value = read()
    if (this.#known.size >= MAX_KNOWN) this.#known.delete(this.#known.keys().next().value as string)
    // What was read lies in a frame.
    this.#known.set(signature, { key: new Uint8Array(key), body: new Uint8Array(body), value })
    return value
  }
}
