/** What this node is called, on disk once an operator has changed it. */
import type { RootDatabase } from 'lmdb'
import type { NodeMetadataItem } from '../contract/types.ts'
import { SingleRecord } from './collection.ts'

export interface NodeDetails {
  name: string
  metadata: Record<string, NodeMetadataItem>
}

/** Absent as long as nobody has changed them. */
export class DetailsRecord extends SingleRecord<NodeDetails> {
  constructor(root: RootDatabase) {
    super(root, { name: 'details', key: 'local' })
  }
}
