/** The tokens of callers from other machines on disk: names and SHA-256 hashes, never the secrets themselves. */
import type { Database, RootDatabase } from 'lmdb'
import { durable } from './durable.ts'
import { roomFor } from './room.ts'

export interface TokenRecord {
  name: string
  /** SHA-256 of the secret's text, hexadecimal. */
  hash: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Milliseconds since the epoch. */
  lastUsedAt?: number
}

/** What a record may come to. */
const RECORD_BYTES = 1 << 10

export class TokenCollection {
  readonly #root: RootDatabase
  readonly #records: Database<TokenRecord, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<TokenRecord, string>({ name: 'tokens', encoding: 'msgpack' })
  }

  /** By name. */
  all(): TokenRecord[] {
    return [...this.#records.getRange()].map(({ value }) => value)
  }

  /** Resolves once the record is on disk. */
  async put(record: TokenRecord): Promise<void> {
    roomFor(this.#root, RECORD_BYTES)
    await durable(this.#root, this.#records.put(record.name, record))
  }

  /** Resolves once the removal is on disk. */
  async remove(name: string): Promise<void> {
    await durable(this.#root, this.#records.remove(name))
  }
}
