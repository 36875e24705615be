/** The nodes of the hub on disk: whom it let in, with the key that each of them proves at every connection. */
import type { Database, RootDatabase } from 'lmdb'
import type { NodeDetails } from './details.ts'
import { durable } from './durable.ts'
import { roomFor } from './room.ts'

export interface NodeRecord extends NodeDetails {
  id: string
  /** Raw Ed25519 public key, 32 bytes; pinned when the node was let in. */
  key: Uint8Array
  /** NodeService names. */
  services: ('HUB_SERVER' | 'PIPELINES')[]
  /** When the node was let in, milliseconds since the epoch. */
  joinedAt: number
  /** When the hub last heard of the node, milliseconds since the epoch; while the node is connected that is now. */
  lastSeen: number
}

/** What a record may come to. */
const RECORD_BYTES = 16 << 10

export class NodeCollection {
  readonly #root: RootDatabase
  readonly #records: Database<NodeRecord, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<NodeRecord, string>({ name: 'nodes', encoding: 'msgpack' })
  }

  all(): NodeRecord[] {
    return [...this.#records.getRange()].map(({ value }) => value)
  }

  /** Resolves once the record is on disk. */
  async put(record: NodeRecord): Promise<void> {
    roomFor(this.#root, RECORD_BYTES)
    await durable(this.#root, this.#records.put(record.id, record))
  }

  /** Resolves once the removal is on disk. */
  async remove(id: string): Promise<void> {
    await durable(this.#root, this.#records.remove(id))
  }
}
