/** What this node is called and offers: from the configuration, or as an operator has set it since. */
import type { DetailsRecord } from '../store/details.ts'
import { ServiceError } from './errors.ts'
import { checkDetails, type NodeFacts } from './node-records.ts'
import type { NodeMetadata, NodeService } from './types.ts'

export interface LocalDetailsOptions {
  /** What the configuration says. */
  name: string
  metadata: NodeMetadata['items']
  /** A configuration file sets name or metadata: they cannot be set otherwise. */
  isFromFile: boolean
  services: readonly NodeService[]
  store: DetailsRecord
}

export class LocalDetails {
  readonly #options: LocalDetailsOptions
  readonly #listeners: ((record: NodeFacts) => void)[] = []
  #record: NodeFacts

  /** Throws INVALID_ARGUMENT when the configuration's name and metadata are too long. */
  constructor(options: LocalDetailsOptions) {
    this.#options = options
    const stored = options.isFromFile ? undefined : options.store.get()
    const { name, metadata } = stored ?? options
    if (stored === undefined) checkDetails(name, { items: metadata })
    this.#record = { name, metadata: { items: metadata }, services: options.services }
  }

  /** A new object after every change. */
  get record(): NodeFacts {
    return this.#record
  }

  onChange(listener: (record: NodeFacts) => void): void {
    this.#listeners.push(listener)
  }

  /** Replaces name and metadata; resolves once they are on disk. */
  async set(name: string, metadata: NodeMetadata): Promise<void> {
    if (this.#options.isFromFile) {
      throw new ServiceError(
        'PERMISSION_DENIED',
        'name and metadata of this node come from its configuration file: change them there',
      )
    }
    checkDetails(name, metadata)
    await this.#options.store.put({ name, metadata: metadata.items })
    this.#record = { name, metadata, services: this.#options.services }
    for (const listener of this.#listeners) listener(this.#record)
  }
}
