/** When offline members were seen last, brought into their entries: what else says so is in the memory of NATS and of the servers. */
import { inTurns } from './in-turns.ts'
import type { Members } from './members.ts'
import type { Picture } from './picture.ts'
import { ToldOnce } from './told-once.ts'

/** Between two looks, milliseconds. */
const LOOK_MS = 60_000
/** A node that is offline for less may be on its way to another server; what the server that does this has left undone after three times that, any other does; milliseconds. */
const OFFLINE_MS = 60_000
/** Entries that one look brings to date. */
const MAX_AT_A_LOOK = 1_000
/** Times that servers have for the end of one connection differ by as much, milliseconds: what the entry says is good enough. */
const SLACK_MS = 1_000

export interface SeenTimesOptions {
  readonly picture: Pick<Picture, 'seenLater'>
  readonly members: Pick<Members, 'sawLast'>
  /** Whether this is the server that does what one of all has to do. */
  readonly isFirst: () => boolean
  /** Milliseconds since the epoch, by the engine's clock: those of the servers may be anything. */
  readonly hubTime: () => number
  /** Something has failed, and is tried again; whether that was to be told. */
  readonly onLater: (error: unknown) => boolean
}

export class SeenTimes {
  readonly #options: SeenTimesOptions
  readonly #failure: ToldOnce
  #lookedAt = 0
  #isUnderWay = false
  /** Where the last look ended: those that fail each time are not to keep the others from their turn. */
  #upTo = ''

  constructor(options: SeenTimesOptions) {
    this.#options = options
    this.#failure = new ToldOnce(options.onLater)
  }

  /** To be called now and then, while this server is in touch. */
  async look(): Promise<void> {
    const { picture, members, isFirst, hubTime } = this.#options
    const time = hubTime()
    if (this.#isUnderWay || Math.abs(time - this.#lookedAt) < LOOK_MS) return
    this.#lookedAt = time
    this.#isUnderWay = true
    // After a loss of all NATS servers the one whose turn it is may have been started since, and know nothing.
    const age = isFirst() ? OFFLINE_MS : 3 * OFFLINE_MS
    const due = this.#next(picture.seenLater(SLACK_MS).filter(({ lastSeen }) => lastSeen + age <= time))
    try {
      await inTurns(due, ({ nodeId, lastSeen }) => members.sawLast(nodeId, new Date(lastSeen), SLACK_MS))
      this.#failure.worked()
    } catch (error) {
      this.#failure.failed(error)
    } finally {
      this.#isUnderWay = false
    }
  }
  /** Those whose turn it is: as many as one look brings to date, in the order of their ids, from where the last one ended. */
  #next<T extends { readonly nodeId: string }>(all: readonly T[]): T[] {
    const inOrder = [...all].sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
    const from = inOrder.findIndex(({ nodeId }) => nodeId > this.#upTo)
    const next = [...inOrder.slice(Math.max(from, 0)), ...inOrder.slice(0, Math.max(from, 0))].slice(0, MAX_AT_A_LOOK)
    this.#upTo = next.at(-1)?.nodeId ?? ''
    return next
  }
}
