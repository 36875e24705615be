/** The nodes of the hub on disk: whom it let in, with the key that each of them proves at every connection. */
import type { RootDatabase } from 'lmdb'
import type { NodeService } from '../contract/types.ts'
import { RecordCollection } from './collection.ts'
import type { NodeDetails } from './details.ts'

export interface StoredNode extends NodeDetails {
  id: string
  /** Raw Ed25519 public key, 32 bytes; pinned when the node was let in. */
  key: Uint8Array
  services: NodeService[]
  /** When the node was let in, milliseconds since the epoch. */
  joinedAt: number
  /** When the hub last heard of the node, milliseconds since the epoch; while the node is connected that is now. */
  lastSeen: number
}

/** What a record may come to. */
const MAX_RECORD_BYTES = 16 << 10

export class NodeCollection extends RecordCollection<StoredNode> {
  constructor(root: RootDatabase) {
    super(root, { name: 'nodes', keyOf: ({ id }) => id, bytesOf: () => MAX_RECORD_BYTES })
  }
}
