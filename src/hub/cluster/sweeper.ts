/** Takes away what servers that have gone left behind, so that it does not stand in the engine for good. */
import type { Engine } from './engine.ts'
import { inTurns } from './in-turns.ts'
import { leaseKey } from './life.ts'
import type { OwnLives } from './own-lives.ts'
import type { Picture } from './picture.ts'
import type { PresenceWriter } from './presence-writer.ts'
import type { Servers } from './servers.ts'

export interface SweeperOptions {
  readonly engine: Engine
  readonly picture: Picture
  readonly writer: PresenceWriter
  readonly servers: Servers
  readonly lives: OwnLives
  readonly isInTouch: () => boolean
  readonly onError: (message: string, error: unknown) => void
}

export class Sweeper {
  readonly #options: SweeperOptions

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
    this.sweep()
  }

  /** Takes the presence of nodes in lives that have ended away, where this server is the one to do it. */
  sweep(): void {
    const { picture, writer, servers, lives, isInTouch, onError } = this.#options
    const own = lives.name
    if (!isInTouch() || servers.lives().some((life) => life < own)) return
    const left = picture.presentIn((life) => !lives.has(life) && !servers.stands(life))
    // What is left counts for nothing, and somebody sweeps again at the end of the next lease.
    inTurns(left, async (nodeId) => {
      const seen = picture.presence(nodeId)
      await writer.delete(nodeId, seen.entry?.session ?? '', seen)
    }).catch((error: unknown) => onError('what a server left behind could not be taken away', error))
  }
}
