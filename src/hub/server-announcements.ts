/** What a server of a hub tells its nodes of the hub's servers: where they are, signed, and whether to have their links elsewhere. */

import type { Clock } from '../contract/clock.ts'
import type { HubSigner } from '../link/hub-key.ts'
import type { LinkSession } from '../link/link.ts'
import { Violation } from '../link/messages.ts'
import type { HubServer, SignedBody } from '../link/signed.ts'
import { decodeServerDetails, encodeServerDetails, MAX_SERVERS } from '../link/signed-messages.ts'
import type { PublishedServer, ServerDirectory } from './server-directory.ts'

/** How long nodes are still told of a server that is gone: it may be about to come back, milliseconds. */
export const KEPT_MS = 600_000
/** How long this server may be out of touch before its nodes are told to look elsewhere, milliseconds: NATS servers change places, and links with them. */
export const GRACE_MS = 2_000
/**
 * How far the number of another server's list may be ahead of this server's and of its clock, milliseconds: clocks differ by less, and a number beyond it
 * would leave too few above it.
 */
export const MAX_AHEAD_MS = 100 * 365 * 86_400_000

export interface ServerAnnouncementsOptions {
  readonly directory: ServerDirectory
  readonly signer: HubSigner
  /** Where nodes reach this server; empty: they are not told. */
  readonly address: string
  readonly clock: Clock
  /** What another server has published, or the list of all, cannot be used. */
  onError(message: string, error: unknown): void
}

interface Known {
  readonly address: string
  /** Set while the server is gone. */
  timer?: unknown
}

/**
 * Lists carry rising issue numbers, by which nodes tell the newer of two servers' lists: each server makes its next list with a number above all that it
 * has seen, its clock's milliseconds at least (Lamport 1978), and takes a higher one over for the list that it has.
 */
export class ServerAnnouncements {
  readonly #options: ServerAnnouncementsOptions
  readonly #sessions = new Set<LinkSession>()
  /** By id. */
  readonly #known = new Map<string, Known>()
  #issue = 0n
  #content: string | undefined
  #signed: SignedBody | undefined
  /** Set while this server is out of touch, and its nodes have not been told yet. */
  #grace: unknown
  #wish: 'STAY' | 'LOOK_ELSEWHERE' = 'STAY'
  #isClosed = false

  constructor(options: ServerAnnouncementsOptions) {
    this.#options = options
    const { directory } = options
    directory.followServers(() => this.#read())
    directory.followTouch(() => this.#touched())
    this.#read()
  }

  /** Where all servers are now, for a welcome. */
  get signed(): SignedBody {
    return this.#signed as SignedBody
  }

  /** The node at the other end hears of changes from now on; what it was told by its welcome is that of this moment. */
  serve(session: LinkSession): void {
    this.#sessions.add(session)
    void session.closed.then(() => this.#sessions.delete(session))
    if (this.#wish === 'LOOK_ELSEWHERE') session.sendWish(this.#wish)
  }

  close(): void {
    this.#isClosed = true
    const { clock } = this.#options
    clock.clearTimeout(this.#grace)
    for (const { timer } of this.#known.values()) clock.clearTimeout(timer)
  }

  #touched(): void {
    const { clock, directory } = this.#options
    if (this.#isClosed) return
    clock.clearTimeout(this.#grace)
    if (directory.isInTouch) this.#tellWish('STAY')
    else this.#grace = clock.setTimeout(() => this.#tellWish('LOOK_ELSEWHERE'), GRACE_MS)
  }

  #tellWish(wish: 'STAY' | 'LOOK_ELSEWHERE'): void {
    if (wish === this.#wish) return
    this.#wish = wish
    for (const session of this.#sessions) session.sendWish(wish)
  }

  #read(): void {
    if (this.#isClosed) return
    const { directory, address: own } = this.#options
    const published = directory.servers().filter(({ id, details }) => id !== directory.selfId && details.length > 0)
    let now = this.#clockIssue()
    if (this.#issue > now) now = this.#issue
    const credible = now + BigInt(MAX_AHEAD_MS)
    let highest = this.#issue
    const here = new Set([directory.selfId])
    this.#found(directory.selfId, own)
    for (const server of published) {
      const details = this.#detailsOf(server, credible)
      if (details === undefined) continue
      here.add(server.id)
      this.#found(server.id, details.address)
      if (details.issue > highest) highest = details.issue
    }
    for (const [id, known] of this.#known) if (!here.has(id)) this.#missed(id, known)
    this.#sign(highest)
  }

  /** `credible`: the highest issue that is. */
  #detailsOf({ id, details }: PublishedServer, credible: bigint) {
    try {
      const known = decodeServerDetails(details)
      if (known.issue > credible) throw new Violation(`a list numbered ${known.issue}, where ${credible} is the most`)
      return known
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#options.onError(`what server ${id} lets the others know of itself cannot be read`, error)
      return undefined
    }
  }

  #clockIssue(): bigint {
    return BigInt(Math.floor(this.#options.signer.now()))
  }

  #found(id: string, address: string): void {
    const known = this.#known.get(id)
    if (known?.timer !== undefined) this.#options.clock.clearTimeout(known.timer)
    this.#known.set(id, { address })
  }

  #missed(id: string, known: Known): void {
    known.timer ??= this.#options.clock.setTimeout(() => {
      this.#known.delete(id)
      this.#sign(this.#issue)
    }, KEPT_MS)
  }

  /** `highest`: the highest issue that any server has signed. */
  #sign(highest: bigint): void {
    const { signer, directory, address } = this.#options
    const servers: HubServer[] = [...this.#known]
      .map(([id, known]) => ({ id, address: known.address }))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    const content = JSON.stringify(servers)
    const isChanged = content !== this.#content
    if (!isChanged && highest === this.#issue) return
    const now = this.#clockIssue()
    this.#issue = !isChanged ? highest : now > highest ? now : highest + 1n
    this.#content = content
    if (servers.length > MAX_SERVERS) {
      const most = `nodes are told of the first ${MAX_SERVERS} of ${servers.length} servers`
      this.#options.onError(most, new RangeError(`a hub has ${MAX_SERVERS} servers at most`))
    }
    const list = { issue: this.#issue, servers: servers.slice(0, MAX_SERVERS) }
    this.#signed = signer.list(list)
    directory.publish(encodeServerDetails({ address, issue: this.#issue }))
    if (!isChanged) return
    for (const session of this.#sessions) session.sendServers(this.#signed)
  }
}
