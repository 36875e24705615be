/** The servers of the hub as this one tells of them: which are up, what they let the others know, and whether it is in touch with them. */
import type { PublishedServer, Servers } from './servers.ts'

export interface DirectoryOptions {
  readonly selfId: string
  readonly servers: Servers
  /** Whether this server sees the state of its hub and may change it. */
  readonly isInTouch: () => boolean
}

export class Directory {
  readonly #options: DirectoryOptions
  readonly #onServers: (() => void)[] = []
  readonly #onTouch: (() => void)[] = []
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

  /** Lets the other servers know this of this one, with the next renewal of its lease. */
  publish(details: Uint8Array): void {
    this.#details = details
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
