/** The servers of the hub as this one tells of them: which are up, what they let the others know, and whether it is in touch with them. */
import type { Revision } from './entries.ts'
import type { PublishedServer, Servers } from './servers.ts'

export interface DirectoryOptions {
  readonly selfId: string
  readonly servers: Servers
  /** Whether this server sees the state of its hub and may change it. */
  readonly isInTouch: () => boolean
  /** This server lets the others know something else. */
  readonly onPublished: () => void
  /** Another server has taken a member off the hub. */
  readonly onRemoved: (nodeId: string, revision: Revision) => void
}

export class Directory {
  readonly #options: DirectoryOptions
  readonly #onServers: (() => void)[] = []
  readonly #onTouch: (() => void)[] = []
  readonly #onRemovals: ((nodeId: string, revision: Revision) => void)[] = []
  #wasInTouch = false
  #details: Uint8Array = new Uint8Array(0)

  /** Id of this server's node. */
  readonly selfId: string

  constructor(options: DirectoryOptions) {
    this.#options = options
    this.selfId = options.selfId
  }

  /** What this server lets the others know. */
  get details(): Uint8Array {
    return this.#details
  }

  /** Those that are up, as far as this one knows, itself first. */
  servers(): readonly PublishedServer[] {
    const others = this.#options.servers.list().filter(({ id }) => id !== this.selfId)
    return [{ id: this.selfId, details: this.#details }, ...others]
  }

  /** Whether this server sees the state of its hub and may change it. */
  get isInTouch(): boolean {
    return this.#options.isInTouch()
  }

  /** Lets the other servers know this of this one. */
  publish(details: Uint8Array): void {
    const isSame = Buffer.compare(details, this.#details) === 0
    this.#details = details
    if (!isSame) this.#options.onPublished()
    this.serversChanged()
  }

  /** Hears that `servers` gives something else now. */
  followServers(listener: () => void): void {
    this.#onServers.push(listener)
  }

  /** Hears that `isInTouch` is something else now. */
  followTouch(listener: () => void): void {
    this.#onTouch.push(listener)
  }

  /** Hears of every member that this server has taken off the hub. */
  followRemovals(listener: (nodeId: string, revision: Revision) => void): void {
    this.#onRemovals.push(listener)
  }

  /** Another server has taken a member off the hub. */
  removed(nodeId: string, revision: Revision): void {
    this.#options.onRemoved(nodeId, revision)
  }

  /** To be called when this server has. */
  tellRemoval(nodeId: string, revision: Revision): void {
    for (const listener of this.#onRemovals) listener(nodeId, revision)
  }

  /** To be called whenever `servers` may give something else. */
  serversChanged(): void {
    for (const listener of this.#onServers) listener()
  }

  /** To be called whenever `isInTouch` may be something else. */
  touchChanged(): void {
    const { isInTouch } = this
    if (isInTouch === this.#wasInTouch) return
    this.#wasInTouch = isInTouch
    for (const listener of this.#onTouch) listener()
  }
}
