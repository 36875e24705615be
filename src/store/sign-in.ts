/** The node's sign-in on disk: the hub it is on and the keys by which it knows that hub again. */
import type { Database, RootDatabase } from 'lmdb'
import { durable } from './durable.ts'

export interface SignInRecord {
  /** Address of the hub server, `http://` or `https://`. */
  hubAddress: string
  hubId: string
  /** Raw Ed25519 public key of the hub, 32 bytes. */
  hubKey: Uint8Array
  /** SHA-256 of the hub's TLS certificate, lowercase hex, when it was trusted at first use: no other is accepted from then on. */
  certificate?: string
  /** SHA-256 of that certificate's public key, lowercase hex: a renewed certificate with the same key is accepted and takes its place. */
  certificateKey?: string
}

export class SignIn {
  readonly #root: RootDatabase
  readonly #records: Database<SignInRecord, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<SignInRecord, string>({ name: 'sign-in', encoding: 'msgpack' })
  }

  /** Undefined when the node is on no hub. */
  get(): SignInRecord | undefined {
    return this.#records.get('hub')
  }

  /** Resolves once the sign-in is on disk. */
  async put(record: SignInRecord): Promise<void> {
    await durable(this.#root, this.#records.put('hub', record))
  }

  /** Resolves once the removal is on disk. */
  async remove(): Promise<void> {
    await durable(this.#root, this.#records.remove('hub'))
  }
}
