/** Leases of this server's own node that no life of this process has: left by a process before it, or kept by another one that runs with the same identity. */
import type { Timers } from '../../contract/clock.ts'
import type { EngineTime } from './entries.ts'
import { RENEWED_WITHIN_MS } from './life.ts'

export interface SameIdentityOptions {
  readonly selfId: string
  readonly clock: Timers
  /** Whether a life is or was one of this process. */
  readonly isOwn: (life: string) => boolean
  /** Name of the life that this process has. */
  readonly ownLife: () => string
  /** The engine's clock, as of the last time stamp of it that was seen. */
  readonly engineTime: () => EngineTime
  /** Another process runs with this node's identity; told once for each of its lives. */
  readonly onOther: (life: string) => void
}

export class SameIdentity {
  readonly #options: SameIdentityOptions
  /** By life, those that stand: when the engine took the last renewal that was seen. */
  readonly #seen = new Map<string, EngineTime>()
  /** Those of them that another process has, as is known by their renewal, or by when they began. */
  readonly #inUse = new Set<string>()
  #isStarting = true
  /** Ends the wait at the start, if it is over. */
  #look: (() => void) | undefined

  constructor(options: SameIdentityOptions) {
    this.#options = options
  }

  /** The lease of a server, as the engine took it at that time. */
  take(life: string, server: string, at: EngineTime): void {
    const { selfId, isOwn, onOther } = this.#options
    if (server !== selfId || isOwn(life)) return
    const before = this.#seen.get(life)
    this.#seen.set(life, at)
    const isAlive = before === undefined ? !this.#isStarting : before !== at
    if (!isAlive || this.#inUse.has(life)) return
    this.#inUse.add(life)
    if (this.#isStarting) this.#look?.()
    else onOther(life)
  }

  ended(life: string): void {
    this.#seen.delete(life)
    this.#inUse.delete(life)
    this.#look?.()
  }

  /**
   * To be called at the start, when all leases have been read. A process that was killed leaves a lease that nobody renews: waits until whoever lives would have renewed
   * it, counted from when it was renewed last, and not at all where that is over. Of several that start at the same moment, each of which sees the others, the one whose
   * life has the lowest name goes on: it waits as long again for the others to give up, which one that runs does not. Throws an Error when another process goes on.
   */
  async requireNone(): Promise<void> {
    const { engineTime, selfId, ownLife } = this.#options
    const newest = Math.max(...this.#seen.values())
    await this.#wait(
      () => this.#inUse.size > 0 || this.#seen.size === 0,
      Math.min(newest + RENEWED_WITHIN_MS - engineTime(), RENEWED_WITHIN_MS),
    )
    const isLowest = () => [...this.#inUse].every((life) => ownLife() < life)
    await this.#wait(() => this.#inUse.size === 0 || !isLowest(), RENEWED_WITHIN_MS)
    if (this.#inUse.size > 0) {
      throw new Error(
        `another server of this hub runs with the identity of this node, ${selfId}: is its data directory, or a copy of it, in use by another node? ` +
          'Stop that one, or give this one an empty dataDirectory, which makes it a node of its own',
      )
    }
    this.#isStarting = false
  }

  /** Waits until it `isOver`, at most that long. */
  async #wait(isOver: () => boolean, milliseconds: number): Promise<void> {
    const { clock } = this.#options
    if (milliseconds <= 0 || isOver()) return
    await new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, milliseconds)
      this.#look = () => {
        if (!isOver()) return
        clock.clearTimeout(timer)
        resolve()
      }
    })
    this.#look = undefined
  }
}
