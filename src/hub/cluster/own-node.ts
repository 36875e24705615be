/** The node of this server: a member of its hub, with what it says of itself. */
import type { NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Members } from './members.ts'
import type { Picture } from './picture.ts'
import { ToldOnce } from './told-once.ts'

export interface OwnNodeOptions {
  readonly id: string
  /** Ed25519, 32 bytes. */
  readonly key: Uint8Array
  readonly record: NodeRecord
  readonly members: Members
  readonly picture: Picture
  /** It was taken off the hub, and becomes a member again. */
  readonly onRemoved: () => void
  /** It could not be stored, which is tried again; whether that was to be told. */
  readonly onLater: (error: unknown) => boolean
}

export class OwnNode {
  readonly #options: OwnNodeOptions
  readonly #failure: ToldOnce
  #record: NodeRecord
  /** It could not be noted, and nothing has been tried since. */
  #isBehind = false
  /** It has been made a member, and nothing is known of its removal. */
  #isMember = false

  constructor(options: OwnNodeOptions) {
    this.#options = options
    this.#failure = new ToldOnce(options.onLater)
    this.#record = options.record
  }

  set(record: NodeRecord): void {
    if (sameFacts(this.#record, record)) return
    this.#record = record
    this.#noteInBackground()
  }

  /** Makes it a member, if it is none. Throws UNAVAILABLE and UNKNOWN. */
  async note(): Promise<void> {
    const { id, key, members } = this.#options
    await members.noteServer(id, key, () => this.#record)
    this.#isMember = true
    this.#failure.worked()
  }

  /** To be called when everything has been read, after the first `note`. */
  noteAgain(): void {
    this.look()
    if (this.#isMember) this.#noteInBackground()
  }

  /**
   * To be called when its entry may have changed: whoever removes a server that is cut off or stopped takes it for one that is gone. It goes on as one of the hub,
   * as it would after a start, and is on the list again.
   */
  look(): void {
    const { id, picture, onRemoved } = this.#options
    if (!this.#isMember || picture.member(id) !== undefined) return
    this.#isMember = false
    onRemoved()
    this.#noteInBackground()
  }

  /** Notes what could not be noted before. */
  catchUp(): void {
    if (this.#isBehind) this.#noteInBackground()
  }

  #noteInBackground(): void {
    this.#isBehind = false
    this.note().catch((error: unknown) => {
      this.#isBehind = true
      this.#failure.failed(error)
    })
  }
}
