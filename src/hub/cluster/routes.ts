/** Where the nodes of the hub are, as this server sees it: by the leases that stand, and the links that it has. */
import type { NodeRoute } from '../registry.ts'
import type { Links } from './links.ts'
import type { OwnLives } from './own-lives.ts'
import type { Picture } from './picture.ts'
import type { Servers } from './servers.ts'

export interface RoutesOptions {
  readonly selfId: string
  readonly picture: Picture
  readonly lives: OwnLives
  readonly servers: Servers
  readonly links: () => Links
}

export class Routes {
  readonly #options: RoutesOptions

  constructor(options: RoutesOptions) {
    this.#options = options
  }

  /** Whether the lease of a life stands. */
  stands(life: string): boolean {
    const { lives, servers } = this.#options
    return lives.has(life) || servers.stands(life)
  }

  /** Whether it is that of another server whose lease stands. */
  isElsewhere(life: string): boolean {
    const { lives, servers, selfId } = this.#options
    // A life of this very server that is not known here was that of an earlier process.
    return !lives.has(life) && servers.stands(life) && servers.serverOf(life) !== selfId
  }

  /** Whether this is the server that does what one of all has to do: its life has the smallest name. */
  get isFirst(): boolean {
    const { lives, servers } = this.#options
    return lives.isHeld && !servers.lives().some((life) => life < lives.name)
  }

  route(nodeId: string): NodeRoute {
    const { selfId, picture, servers, links } = this.#options
    if (nodeId === selfId) return { kind: 'self' }
    if (picture.member(nodeId) === undefined) return { kind: 'unknown' }
    const { entry } = picture.presence(nodeId)
    const link = links().get(nodeId)
    // Its presence may be missing for a moment, after this server was away.
    const isElsewhere = entry !== undefined && entry.session !== link?.id && this.stands(entry.life)
    if (link !== undefined && !isElsewhere) return { kind: 'session', session: link.session }
    if (servers.lifeOf(nodeId) !== undefined) return { kind: 'server', server: nodeId }
    if (entry === undefined || !picture.isOnline(nodeId)) return { kind: 'offline' }
    const server = servers.serverOf(entry.life)
    return server === undefined ? { kind: 'offline' } : { kind: 'server', server }
  }
}
