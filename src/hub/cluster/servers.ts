/** The other servers of the hub, by their leases. */
import { type ActorRefFrom, createActor } from 'xstate'
import { seenLease } from '../../actors/seen-lease.ts'
import { decodeLease, type EngineTime, type LeaseEntry } from './entries.ts'
import type { WatchedKey } from './watch.ts'

const LEASE_PREFIX = 'server.'

/** A server whose lease stands, with what it has let the others know of itself. */
export interface PublishedServer {
  /** Id of its node. */
  readonly id: string
  readonly details: Uint8Array
}

interface Seen {
  readonly actor: ActorRefFrom<typeof seenLease>
  entry: LeaseEntry
}

export interface ServersOptions {
  /** Monotonic, milliseconds. */
  readonly now: () => number
  /** A lease stands that did not before. */
  readonly onStanding: (life: string, server: string) => void
  readonly onEnded: (life: string, server: string) => void
  /** A lease was told, as the engine took it at that time. */
  readonly onSeen: (life: string, server: string, at: EngineTime) => void
  /** What a server lets the others know is something else now. */
  readonly onChanged: () => void
}

export class Servers {
  readonly #options: ServersOptions
  readonly #seen = new Map<string, Seen>()

  constructor(options: ServersOptions) {
    this.#options = options
  }

  /** The life that a key of the bucket of presence is the lease of; undefined for other keys. */
  static lifeOfKey(key: string): string | undefined {
    return key.startsWith(LEASE_PREFIX) ? key.slice(LEASE_PREFIX.length) : undefined
  }

  stands(life: string): boolean {
    return this.#seen.has(life)
  }

  /** Names of the lives whose leases stand. */
  lives(): string[] {
    return [...this.#seen.keys()]
  }

  serverOf(life: string): string | undefined {
    return this.#seen.get(life)?.entry.server
  }

  lifeOf(server: string): string | undefined {
    for (const [life, { entry }] of this.#seen) if (entry.server === server) return life
    return undefined
  }

  list(): PublishedServer[] {
    return Array.from(this.#seen.values(), ({ entry: { server, details } }) => ({ id: server, details }))
  }

  take(life: string, { value, at: stamp }: WatchedKey): void {
    const seen = this.#seen.get(life)
    if (value === undefined) {
      seen?.actor.send({ type: 'DELETED' })
      return
    }
    const entry = decodeLease(value)
    this.#options.onSeen(life, entry.server, stamp)
    const at = this.#options.now()
    if (seen !== undefined) {
      const isSame = Buffer.compare(seen.entry.details, entry.details) === 0
      seen.entry = entry
      seen.actor.send({ type: 'RENEWED', at })
      if (!isSame) this.#options.onChanged()
      return
    }
    const actor = createActor(seenLease, { input: { at } })
    actor.on('ended', () => {
      this.#seen.delete(life)
      this.#options.onEnded(life, entry.server)
    })
    actor.start()
    this.#seen.set(life, { actor, entry })
    this.#options.onStanding(life, entry.server)
  }

  /** All that the engine took before that moment has been seen. */
  current(asOf: number): void {
    for (const { actor } of [...this.#seen.values()]) actor.send({ type: 'CURRENT', asOf })
  }

  /**
   * This server has read everything anew: `read` has the lives whose leases it has come upon, and whether they stand. One that it has not come upon may
   * have been renewed behind what was read: it stands, unless its server has another, or it `isLost`, since what was there before counts for nothing.
   */
  resumed(read: ReadonlyMap<string, boolean>, isLost: boolean): void {
    const at = this.#options.now()
    const followed = new Set([...read].flatMap(([life, stands]) => (stands ? [this.serverOf(life)] : [])))
    for (const [life, { actor, entry }] of [...this.#seen]) {
      const stands = read.get(life) ?? !(isLost || followed.has(entry.server))
      actor.send(stands ? { type: 'RESUMED', at } : { type: 'DELETED' })
    }
  }
}
