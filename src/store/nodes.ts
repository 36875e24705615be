/** The nodes of the hub on disk: whom it let in, with the key that each of them proves at every connection. */
import type { RootDatabase } from 'lmdb'
import type { NodeService } from '../contract/types.ts'
import { RecordCollection, SingleRecord } from './collection.ts'
import type { NodeDetails } from './details.ts'

export interface StoredNode extends NodeDetails {
  id: string
  /** Raw Ed25519 public key, 32 bytes; pinned when the node was let in. */
  key: Uint8Array
  services: NodeService[]
  /** When the node was let in, milliseconds since the epoch. */
  joinedAt: number
  /** When the hub last heard of the node, milliseconds since the epoch; of one that was connected when the process was killed, as `noteSeen` was told last. */
  lastSeen: number
}

/** When each node was last heard of, milliseconds since the epoch, by its id. */
export type SeenTimes = readonly (readonly [id: string, lastSeen: number])[]

/** What a record may come to. */
const MAX_RECORD_BYTES = 16 << 10
/** The same of one time in what `noteSeen` writes. */
const SEEN_BYTES = 64

export class NodeCollection extends RecordCollection<StoredNode> {
  /** In one record: that of each of thousands of nodes, written anew each minute, would hold up the process for 50 ms. */
  readonly #seen: SingleRecord<SeenTimes>

  constructor(root: RootDatabase) {
    super(root, { name: 'nodes', keyOf: ({ id }) => id, bytesOf: () => MAX_RECORD_BYTES })
    this.#seen = new SingleRecord(root, { name: 'seen', key: 'nodes', bytesOf: ({ length }) => length * SEEN_BYTES })
  }

  /** Each with the later of the times in its record and in what was noted last. */
  override all(): StoredNode[] {
    const seen = new Map(this.#seen.get())
    return super.all().map((node) => ({ ...node, lastSeen: Math.max(node.lastSeen, seen.get(node.id) ?? 0) }))
  }

  /** Notes all that is known of when nodes were heard of, in place of what was noted before; resolves once it is on disk. Rejects as `put` does. */
  async noteSeen(times: SeenTimes): Promise<void> {
    await this.#seen.put(times)
  }
}
