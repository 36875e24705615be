/** What this node is called and offers: from the configuration, or as an operator has set it since. */
import { ServiceError } from '../contract/errors.ts'
import type { NodeMetadata, NodeService } from '../contract/types.ts'
import type { NodeRecord } from '../link/link.ts'
import type { DetailsRecord } from '../store/details.ts'
import { checkDetails, sameFacts } from './node-records.ts'

export interface LocalDetailsOptions {
  /** What the configuration says. */
  name: string
  metadata: NodeMetadata['items']
  /** The configuration file that the node was started with: name and metadata, also those it leaves out, cannot be set otherwise. */
  file?: string | undefined
  services: readonly NodeService[]
  store: DetailsRecord
}

/** A setting that says something else than what an operator has set, which counts. */
interface Unused {
  readonly setting: 'node.name' | 'node.metadata'
  /** What the node says of itself instead; of metadata the keys. */
  readonly kept: string | readonly string[]
  /** How `penstock nodes set` changes it. */
  readonly option: string
}

export class LocalDetails {
  readonly #options: LocalDetailsOptions
  readonly #listeners: ((record: NodeRecord) => void)[] = []
  /** Where configuration and store differed at the start. */
  readonly unused: readonly Unused[]
  #record: NodeRecord

  /** Throws INVALID_ARGUMENT when the configuration's name and metadata are too long. */
  constructor(options: LocalDetailsOptions) {
    this.#options = options
    const stored = options.file === undefined ? options.store.get() : undefined
    const { name, metadata } = stored ?? options
    if (stored === undefined) checkDetails(name, { items: metadata })
    this.#record = { name, metadata: { items: metadata }, services: options.services }
    const unused: Unused[] = []
    if (name !== options.name) unused.push({ setting: 'node.name', kept: name, option: '--name NAME' })
    if (!sameFacts(this.#record, { ...this.#record, metadata: { items: options.metadata } })) {
      unused.push({ setting: 'node.metadata', kept: Object.keys(metadata), option: '--metadata KEY=VALUE' })
    }
    this.unused = unused
  }

  /** A new object after every change. */
  get record(): NodeRecord {
    return this.#record
  }

  onChange(listener: (record: NodeRecord) => void): void {
    this.#listeners.push(listener)
  }

  /** Replaces name and metadata; resolves, once they are on disk, to the record with them, which another may have followed by then. */
  async set(name: string, metadata: NodeMetadata): Promise<NodeRecord> {
    const { file } = this.#options
    if (file !== undefined) {
      throw new ServiceError(
        'PERMISSION_DENIED',
        `this node was started with a configuration file (${file}): change node.name and node.metadata there and start it again`,
      )
    }
    checkDetails(name, metadata)
    await this.#options.store.put({ name, metadata: metadata.items })
    const record = { name, metadata, services: this.#options.services }
    this.#record = record
    for (const listener of this.#listeners) listener(record)
    return record
  }
}
