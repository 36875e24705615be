/** The links that this server has: claimed before they stand, noted again for each of its lives, cut when their node is elsewhere or no member. */
import { ServiceError } from '../../contract/errors.ts'
import type { LinkSession, NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Claim } from '../registry.ts'
import type { MemberEntry, PresenceEntry, Revision } from './entries.ts'
import { inTurns } from './in-turns.ts'
import type { Picture } from './picture.ts'
import { PresenceWriter } from './presence-writer.ts'

/** A link whose session stands. */
export interface Link {
  readonly session: LinkSession
  /** PresenceEntry.session. */
  readonly id: string
  /** The membership that it was let in for. */
  readonly joined: Revision
  /** The revision at which it was noted last. */
  noted: Revision
  record: NodeRecord
}

interface ClusterClaim extends Claim, Pick<Link, 'id' | 'joined' | 'noted'> {}

export interface LinksOptions {
  readonly picture: Pick<Picture, 'presence' | 'versioned'>
  readonly writer: PresenceWriter
  /** The name of this server's life. */
  readonly life: () => string
  /** Whether that life or one before it is named, whose links have yet to be noted again. */
  readonly isOwn: (life: string) => boolean
  /** Whether the lease of a life stands. */
  readonly stands: (life: string) => boolean
  /** Takes the node off the hub, by its own wish. */
  readonly leave: (nodeId: string) => Promise<unknown>
  /** Writes what a node says of itself now; `record` is asked at every attempt, and says undefined once that is for others to write. */
  readonly noteRecord: (nodeId: string, record: () => NodeRecord | undefined) => Promise<void>
  readonly onError: (message: string, error: unknown) => void
}

export class Links {
  readonly #options: LinksOptions
  readonly #links = new Map<string, Link>()
  /** Nodes whose removal cuts their link later, or not at all. */
  readonly #leaving = new Set<string>()
  /** Nodes whose links could not be noted when something about them changed, or whose presence is lost. */
  readonly #behind = new Set<string>()
  #isCatchingUp = false

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
    const { joined } = member
    const entry = { life: life(), session: id, joined }
    let noted: Revision
    try {
      noted = (await writer.put(nodeId, entry, picture.presence(nodeId))) as Revision
    } catch (error) {
      // It may have been written all the same.
      this.#takeAway(nodeId, id, 0)
      throw error
    }
    if (life() !== entry.life) {
      throw new ServiceError('UNAVAILABLE', 'this server lost its lease while the node came: it has to come again')
    }
    return { claim: { id, joined, noted, release: () => this.#goOffline(nodeId, id, noted) }, revision: noted }
  }

  /** The link of a claim stands. */
  add(session: LinkSession, record: NodeRecord, claim: Claim): void {
    const { peerId: nodeId } = session
    const { picture, life, leave } = this.#options
    const before = this.#links.get(nodeId)
    const { id, joined, noted } = claim as ClusterClaim
    const link: Link = { session, id, joined, noted, record }
    this.#links.set(nodeId, link)
    before?.session.close('REPLACED', 'the node has opened a newer connection')
    session.onLeave(() => this.keep(nodeId, async () => void (await leave(nodeId))))
    void session.closed.then(() => {
      if (this.#links.get(nodeId) !== link) return
      this.#links.delete(nodeId)
      this.#goOffline(nodeId, id, link.noted)
    })
    if (picture.presence(nodeId).entry?.life !== life()) this.#noteInBackground(nodeId, link)
    this.settle(nodeId)
  }

  /** What the node at the other end says of itself now. */
  change(session: LinkSession, record: NodeRecord): void {
    const { peerId: nodeId } = session
    const link = this.#links.get(nodeId)
    if (link?.session !== session) return
    link.record = record
    this.#noteInBackground(nodeId, link)
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

  /** Cuts the link of a node that is no member, or not the one that it was, or that has a newer link; where it is is noted again if that is lost. */
  settle(nodeId: string): void {
    const { picture, stands } = this.#options
    const link = this.#links.get(nodeId)
    if (link === undefined || this.#leaving.has(nodeId)) return
    const { entry } = picture.presence(nodeId)
    const { member } = picture.versioned(nodeId).entry
    if (member === undefined) {
      link.session.close('REMOVED', 'the node was removed from the hub')
    } else if (entry !== undefined && entry.session !== link.id && stands(entry.life)) {
      link.session.close('REPLACED', 'the node has opened a newer connection')
    } else if (member.joined !== link.joined) {
      // What was between may never be told.
      link.session.close('SHUTDOWN', 'the node was removed and let in anew: it has to connect again')
    } else if (entry === undefined || !stands(entry.life)) this.#behind.add(nodeId)
  }

  /** Another server has taken a node off the hub, which this one may not see yet. */
  removed(nodeId: string, revision: Revision): void {
    const link = this.#links.get(nodeId)
    if (link === undefined || link.joined > revision || this.#leaving.has(nodeId)) return
    link.session.close('REMOVED', 'the node was removed from the hub')
  }

  settleAll(): void {
    for (const nodeId of [...this.#links.keys()]) this.settle(nodeId)
  }

  /** Notes every link for this server's life as it is now. */
  async noteAll(): Promise<void> {
    await inTurns([...this.#links], ([nodeId, link]) => this.#note(nodeId, link))
  }

  /** Notes what could not be noted when it happened. */
  async catchUp(): Promise<void> {
    if (this.#isCatchingUp || this.#behind.size === 0) return
    this.#isCatchingUp = true
    // What fails is told of once, and tried again with the next renewal.
    await inTurns([...this.#behind], async (nodeId) => {
      const link = this.#links.get(nodeId)
      if (link !== undefined) await this.#note(nodeId, link)
      if (this.#links.get(nodeId) === link) this.#behind.delete(nodeId)
    }).catch(() => undefined)
    this.#isCatchingUp = false
  }

  async #note(nodeId: string, link: Link): Promise<void> {
    const { picture, writer, life, isOwn, stands, noteRecord } = this.#options
    const { id } = link
    const { member } = picture.versioned(nodeId).entry
    const seen = picture.presence(nodeId)
    const isFree = (found: PresenceEntry | undefined) =>
      found === undefined || isOwn(found.life) || found.session === id || !stands(found.life)
    if (member?.joined !== link.joined || !isFree(seen.entry)) return
    // It may take several attempts, and the node may have gone to another server meanwhile and said something newer there.
    const isHere = () => this.#links.get(nodeId) === link && isFree(picture.presence(nodeId).entry)
    if (!sameFacts(member.record, link.record)) await noteRecord(nodeId, () => (isHere() ? link.record : undefined))
    if (seen.entry?.life === life()) return
    const noted = await writer.put(nodeId, { life: life(), session: id, joined: member.joined }, seen, isFree)
    if (noted === undefined) return
    link.noted = noted
    // It may have closed meanwhile.
    if (this.#links.get(nodeId) !== link) this.#goOffline(nodeId, id, noted)
  }

  #noteInBackground(nodeId: string, link: Link): void {
    this.#note(nodeId, link).catch((error: unknown) => {
      this.#behind.add(nodeId)
      this.#options.onError(`what node ${nodeId} is and where could not be noted; it is tried again`, error)
    })
  }

  /** A link is over that was noted at that revision, which this server may have yet to see. */
  #goOffline(nodeId: string, session: string, noted: Revision): void {
    const { entry, revision } = this.#options.picture.presence(nodeId)
    if (revision >= noted && entry?.session !== session) return
    this.#takeAway(nodeId, session, Math.max(revision, noted))
  }

  /** `revision`: at which it is expected; 0: it is looked up. */
  #takeAway(nodeId: string, session: string, revision: Revision): void {
    const { writer, onError } = this.#options
    writer
      .delete(nodeId, revision, (found) => found.session === session)
      .catch((error: unknown) => {
        // Without a lease it is the others who take the presence away.
        if (error instanceof ServiceError && error.cause === undefined) return
        onError(`that node ${nodeId} went offline could not be noted`, error)
      })
  }
}
