/** Writes where nodes are, each on the condition that nobody else has written it since. */
import { randomBytes } from 'node:crypto'
import type { KV } from '@nats-io/kv'
import type { Clock } from '../../contract/clock.ts'
import { classify, NotConnected, unavailable, write } from './changes.ts'
import type { Engine } from './engine.ts'
import { decodePresence, encodePresence, type PresenceEntry, type Revision } from './entries.ts'
import { nodeKey, type VersionedPresence } from './picture.ts'

/** How long presence is tried to be written, milliseconds. */
const PRESENCE_MS = 5_000
const PAUSE_MS = 100

export interface PresenceWriterOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** Throws UNAVAILABLE when this server may not write now. */
  readonly mayWrite: () => void
}

interface ConditionalWrite {
  /** The revision seen last; 0: none. */
  readonly seen: Revision
  /** Whether it is also written where there is nothing. */
  readonly creates: boolean
  readonly write: (presence: KV, revision: Revision) => Promise<Revision>
  /** Asked about what is found when the condition did not hold. */
  readonly isWanted: (found: PresenceEntry | undefined) => boolean
}

export class PresenceWriter {
  readonly #options: PresenceWriterOptions

  constructor(options: PresenceWriterOptions) {
    this.#options = options
  }

  /** What tells one link of a node from its others. */
  static newSession(): string {
    return randomBytes(8).toString('hex')
  }

  /**
   * Writes where a node is, over what was `seen`; `isWanted` is asked about what is found when somebody else was faster. What is found may be the same:
   * it is written again, since it was not seen here, where the watch may have lost it. Resolves to the revision, or undefined when it was not wanted any
   * more. Throws UNAVAILABLE.
   */
  async put(
    nodeId: string,
    entry: PresenceEntry,
    seen: VersionedPresence,
    isWanted: (found: PresenceEntry | undefined) => boolean = () => true,
  ): Promise<Revision | undefined> {
    const value = encodePresence(entry)
    return await this.#write(nodeId, {
      seen: seen.revision,
      creates: true,
      write: (presence, revision) => write(presence, nodeKey(nodeId), value, revision),
      isWanted,
    })
  }

  /**
   * Takes away what is at the revision `seen`; `isMeant` is asked about what is found when somebody else was faster, or that is 0. Throws
   * UNAVAILABLE.
   */
  async delete(nodeId: string, seen: Revision, isMeant: (found: PresenceEntry) => boolean): Promise<void> {
    await this.#write(nodeId, {
      seen,
      creates: false,
      write: async (presence, revision) => {
        await presence.delete(nodeKey(nodeId), { previousSeq: revision })
        return revision
      },
      isWanted: (found) => found !== undefined && isMeant(found),
    })
  }

  /** Whether that link is the one that its node has, as the leader of the stream has it. Throws UNAVAILABLE. */
  async holds(nodeId: string, session: string): Promise<boolean> {
    const { clock } = this.#options
    const until = clock.now() + PRESENCE_MS
    for (;;) {
      try {
        const found = await this.#presence().get(nodeKey(nodeId))
        return found?.operation === 'PUT' && decodePresence(found.value).session === session
      } catch (error) {
        if (clock.now() >= until) throw unavailable(error)
      }
      await this.#pause()
    }
  }

  async #write(nodeId: string, { seen, creates, write, isWanted }: ConditionalWrite): Promise<Revision | undefined> {
    const { clock, mayWrite } = this.#options
    const until = clock.now() + PRESENCE_MS
    let revision = seen
    for (;;) {
      let isChanged = false
      try {
        mayWrite()
        const presence = this.#presence()
        // Without a revision there would be no condition.
        if (revision > 0 || creates) return await write(presence, revision)
        isChanged = true
      } catch (error) {
        const failure = classify(error)
        if (failure === 'final' || clock.now() >= until) throw unavailable(error)
        isChanged = failure === 'changed'
      }
      try {
        if (isChanged) {
          const found = await this.#presence().get(nodeKey(nodeId))
          if (!isWanted(found?.operation === 'PUT' ? decodePresence(found.value) : undefined)) return undefined
          revision = found?.revision ?? 0
          continue
        }
      } catch (error) {
        if (clock.now() >= until) throw unavailable(error)
      }
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimeout(resolve, PAUSE_MS)
    })
  }

  #presence(): KV {
    const { session } = this.#options.engine
    if (session === undefined) throw new NotConnected()
    return session.presence
  }
}
