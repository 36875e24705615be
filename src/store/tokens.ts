/** The tokens of callers from other machines on disk: names and SHA-256 hashes, never the secrets themselves. */
import type { RootDatabase } from 'lmdb'
import { RecordCollection } from './collection.ts'

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
const MAX_RECORD_BYTES = 1 << 10

export class TokenCollection extends RecordCollection<TokenRecord> {
  constructor(root: RootDatabase) {
    super(root, { name: 'tokens', keyOf: ({ name }) => name, bytesOf: () => MAX_RECORD_BYTES })
  }
}
