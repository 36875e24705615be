/** What this node is called, on disk once an operator has changed it. */
import type { Database, RootDatabase } from 'lmdb'
import { durable } from './durable.ts'

/** One value; exactly one member is set. */
interface MetadataItem {
  stringValue?: string | undefined
  bytesValue?: Uint8Array | undefined
  intValue?: bigint | undefined
  doubleValue?: number | undefined
  boolValue?: boolean | undefined
}

export interface NodeDetails {
  name: string
  metadata: Record<string, MetadataItem>
}

export class DetailsRecord {
  readonly #root: RootDatabase
  readonly #records: Database<NodeDetails, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<NodeDetails, string>({ name: 'details', encoding: 'msgpack' })
  }

  /** Undefined as long as nobody has changed them. */
  get(): NodeDetails | undefined {
    return this.#records.get('local')
  }

  /** Resolves once the details are on disk. */
  async put(details: NodeDetails): Promise<void> {
    await durable(this.#root, this.#records.put('local', details))
  }
}
