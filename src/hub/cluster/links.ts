/** The links that this server has: claimed before they stand, noted again for each of its lives, cut when their node is elsewhere or no member. */
import { ServiceError } from '../../contract/errors.ts'
import type { LinkSession, NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Claim } from '../registry.ts'
import type { MemberEntry, PresenceEntry } from './entries.ts'
import { inTurns } from './in-turns.ts'
import type { Picture } from './picture.ts'
import { PresenceWriter } from './presence-writer.ts'

/** A link whose session stands. */
export interface Link {
  readonly session: LinkSession
  /** PresenceEntry.session. */
  readonly id: string
  record: NodeRecord
}

interface ClusterClaim extends Claim {
  readonly id: string
}

export interface LinksOptions {
  readonly picture: Picture
  readonly writer: PresenceWriter
  /** The name of this server's life. */
  readonly life: () => string
  /** Whether that life or one before it is named, whose links have yet to be noted again. */
  readonly isOwn: (life: string) => boolean
  /** Whether the lease of a life stands. */
  readonly stands: (life: string) => boolean
  /** Takes the node off the hub, by its own wish. */
  readonly leave: (nodeId: string) => Promise<unknown>
  /** Writes what a node says of itself now. */
  readonly noteRecord: (nodeId: string, record: () => NodeRecord) => Promise<void>
  readonly onError: (message: string, error: unknown) => void
}

export class Links {
  readonly #options: LinksOptions
  readonly #links = new Map<string, Link>()
  /** Nodes whose removal cuts their link later, or not at all. */
  readonly #leaving = new Set<string>()

  constructor(options: LinksOptions) {
    this.#options = options
  }

  get(nodeId: string): Link | undefined {
    return this.#links.get(nodeId)
  }

  /** Notes that a member is here from now on. Throws UNAVAILABLE. */
  async claim(nodeId: string, member: MemberEntry): Promise<{ claim: ClusterClaim; revision: number }> {
    const { picture, writer, life } = this.#options
    const id = PresenceWriter.newSession()
    const entry = { life: life(), session: id, joined: member.joined }
    const revision = await writer.put(nodeId, entry, picture.presence(nodeId))
    if (life() !== entry.life) {
      throw new ServiceError('UNAVAILABLE', 'this server lost its lease while the node came: it has to come again')
    }
    return { claim: { id, release: () => this.#goOffline(nodeId, id) }, revision: revision ?? 0 }
  }

  /** The link of a claim stands. */
  add(session: LinkSession, record: NodeRecord, claim: Claim): void {
    const { peerId: nodeId } = session
    const { picture, life, leave } = this.#options
    const before = this.#links.get(nodeId)
    const link: Link = { session, id: (claim as ClusterClaim).id, record }
    this.#links.set(nodeId, link)
    before?.session.close('REPLACED', 'the node has opened a newer connection')
    session.onLeave(() => this.keep(nodeId, async () => void (await leave(nodeId))))
    void session.closed.then(() => {
      if (this.#links.get(nodeId) !== link) return
      this.#links.delete(nodeId)
      this.#goOffline(nodeId, link.id)
    })
    if (picture.presence(nodeId).entry?.life !== life()) this.#noteInBackground(nodeId, link)
    this.settle(nodeId)
  }

  /** Does `step`, whose removal of the node does not cut its link. */
  async keep<T>(nodeId: string, step: () => Promise<T>): Promise<T> {
    this.#leaving.add(nodeId)
    try {
      return await step()
    } finally {
      this.#leaving.delete(nodeId)
    }
  }

  /** Cuts the link of a node that is no member, or that has a newer one. */
  settle(nodeId: string): void {
    const { picture, stands } = this.#options
    const link = this.#links.get(nodeId)
    if (link === undefined || this.#leaving.has(nodeId)) return
    const { entry } = picture.presence(nodeId)
    if (picture.versioned(nodeId).entry.member === undefined) {
      link.session.close('REMOVED', 'the node was removed from the hub')
    } else if (entry !== undefined && entry.session !== link.id && stands(entry.life)) {
      link.session.close('REPLACED', 'the node has opened a newer connection')
    }
  }

  settleAll(): void {
    for (const nodeId of [...this.#links.keys()]) this.settle(nodeId)
  }

  /** Notes every link for this server's life as it is now. */
  async noteAll(): Promise<void> {
    await inTurns([...this.#links], ([nodeId, link]) => this.#note(nodeId, link))
  }

  async #note(nodeId: string, link: Link): Promise<void> {
    const { picture, writer, life, isOwn, stands, noteRecord } = this.#options
    const { id } = link
    const { member } = picture.versioned(nodeId).entry
    const seen = picture.presence(nodeId)
    const isFree = (found: PresenceEntry | undefined) =>
      found === undefined || isOwn(found.life) || found.session === id || !stands(found.life)
    if (member === undefined || !isFree(seen.entry)) return
    if (!sameFacts(member.record, link.record)) await noteRecord(nodeId, () => link.record)
    if (seen.entry?.life === life()) return
    await writer.put(nodeId, { life: life(), session: id, joined: member.joined }, seen, isFree)
  }

  #noteInBackground(nodeId: string, link: Link): void {
    this.#note(nodeId, link).catch((error: unknown) =>
      this.#options.onError(`where node ${nodeId} is could not be noted`, error),
    )
  }

  #goOffline(nodeId: string, session: string): void {
    const { picture, writer, onError } = this.#options
    const seen = picture.presence(nodeId)
    if (seen.entry !== undefined && seen.entry.session !== session) return
    writer.delete(nodeId, session, seen).catch((error: unknown) => {
      // Without a lease it is the others who take the presence away.
      if (error instanceof ServiceError && error.cause === undefined) return
      onError(`that node ${nodeId} went offline could not be noted`, error)
    })
  }
}
