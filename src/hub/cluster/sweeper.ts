/** Takes away what servers that have gone left behind, so that it does not stand in the engine for good. */
import type { Timers } from '../../contract/clock.ts'
import type { Engine } from './engine.ts'
import { inTurns } from './in-turns.ts'
import { leaseKey } from './life.ts'
import type { OwnLives } from './own-lives.ts'
import type { Picture } from './picture.ts'
import type { PresenceWriter } from './presence-writer.ts'

/** The nodes of a server that has gone come to others, and that is work enough: what it left behind is taken away that long after, milliseconds. */
const SWEEP_AFTER_MS = 20_000

export interface SweeperOptions {
  readonly clock: Timers
  readonly engine: Engine
  readonly picture: Pick<Picture, 'presentIn' | 'presence'>
  readonly writer: PresenceWriter
  readonly lives: Pick<OwnLives, 'isHeld'>
  /** Whether the lease of a life stands. */
  readonly stands: (life: string) => boolean
  /** Whether this is the server that does what one of all has to do. */
  readonly isFirst: () => boolean
  readonly onError: (message: string, error: unknown) => void
}

export class Sweeper {
  readonly #options: SweeperOptions
  #timer: unknown

  constructor(options: SweeperOptions) {
    this.#options = options
  }

  /** A life has ended as this server sees it: its server, should it come back, is to know, and its nodes are offline. */
  ended(life: string): void {
    const { engine, lives, onError } = this.#options
    if (lives.isHeld) {
      engine.session?.presence
        .delete(leaseKey(life))
        .catch((error: unknown) => onError('the lease of a server that has gone could not be ended', error))
    }
    this.sweepLater()
  }

  /** Sweeps in a while, once for all that has ended by then. */
  sweepLater(): void {
    this.#timer ??= this.#options.clock.setTimeout(() => {
      this.#timer = undefined
      void this.sweep()
    }, SWEEP_AFTER_MS)
  }

  close(): void {
    this.#options.clock.clearTimeout(this.#timer)
  }

  /** Takes the presence of nodes in lives that have ended away, where this server is the one to do it; resolves when that is done or has failed. */
  async sweep(): Promise<void> {
    const { picture, writer, stands, isFirst, onError } = this.#options
    if (!isFirst()) return
    const left = picture.presentIn((life) => !stands(life))
    // What is left counts for nothing, and somebody sweeps again at the end of the next lease.
    await inTurns(left, async (nodeId) => {
      const seen = picture.presence(nodeId)
      // A server that is back has noted the same session for its next life: that is to stay.
      await writer.delete(nodeId, seen.revision, ({ life }) => life === seen.entry?.life)
    }).catch((error: unknown) => onError('what a server left behind could not be taken away', error))
  }
}
