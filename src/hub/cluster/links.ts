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
  /** The admission that the record is newer than: what a later one brought is not for this link to write over. */
  admission: Revision
  /** The revision at which it was noted last. */
  noted: Revision
  record: NodeRecord
}

interface ClusterClaim extends Claim, Pick<Link, 'id' | 'joined' | 'admission' | 'noted'> {}

export interface LinksOptions {
  readonly picture: Pick<Picture, 'presence' | 'versioned' | 'presentIn'>
  readonly writer: PresenceWriter
  /** The name of this server's life. */
  readonly life: () => string
  /** Whether that life or one before it is named, whose links have yet to be noted again. */
  readonly isOwn: (life: string) => boolean
  /** Whether the lease of a life stands. */
  readonly stands: (life: string) => boolean
  /** Takes the node off the hub, by its own wish. */
  readonly leave: (nodeId: string) => Promise<unknown>
  /** Members.note. */
  readonly noteRecord: (nodeId: string, record: () => NodeRecord, holds: () => Promise<boolean>) => Promise<boolean>
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
  /** PresenceEntry.session of nodes that are claimed now, whose links have yet to stand. */
  readonly #claimed = new Set<string>()

  constructor(options: LinksOptions) {
    this.#options = options
  }

  get(nodeId: string): Link | undefined {
    return this.#links.get(nodeId)
  }

  /**
   * Notes that a member is here from now on, and then what it says of itself, as long as it is here: the node may give up and go elsewhere
   * meanwhile. Throws UNAVAILABLE.
   */
  async claim(
    nodeId: string,
    { joined, admission }: MemberEntry,
    record: NodeRecord,
    withdrawn: AbortSignal,
  ): Promise<{ claim: ClusterClaim; revision: number }> {
    const { picture, writer, life, noteRecord } = this.#options
    const id = PresenceWriter.newSession()
    const entry = { life: life(), session: id, joined }
    const isAwaited = () => !withdrawn.aborted
    this.#claimed.add(id)
    try {
      const noted = await writer.put(nodeId, entry, picture.presence(nodeId), isAwaited)
      const isSaid =
        noted !== undefined &&
        (await noteRecord(
          nodeId,
          () => record,
          async () => isAwaited() && (await writer.holds(nodeId, id)),
        ))
      if (!isSaid) throw new ClaimOvertaken()
      if (life() !== entry.life) throw comeAgain('this server lost its lease while the node came')
      const release = () => {
        this.#claimed.delete(id)
        this.#goOffline(nodeId, id, noted)
      }
      return { claim: { id, joined, admission, noted, release }, revision: noted }
    } catch (error) {
      this.#claimed.delete(id)
      // It may have been written all the same.
      this.#takeAway(nodeId, id, 0)
      if (!(error instanceof ServiceError) || error.code !== 'UNKNOWN') throw error
      throw comeAgain('whether the changed details of this node were stored is not known', error)
    }
  }

  /** The link of a claim stands. */
  add(session: LinkSession, record: NodeRecord, claim: Claim): void {
    const { peerId: nodeId } = session
    const { picture, life, leave } = this.#options
    const before = this.#links.get(nodeId)
    const { id, joined, admission, noted } = claim as ClusterClaim
    const link: Link = { session, id, joined, admission, noted, record }
    this.#links.set(nodeId, link)
    this.#claimed.delete(id)
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
    link.admission = this.#options.picture.versioned(nodeId).entry.member?.admission ?? link.admission
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

  /**
   * Cuts the link of a node that is no member, or not the one that it was, or that has a newer link; where it is and what it has said last
   * is noted again if that is lost. Takes away what says that a link is here which is not: the write of a claim that was given up may come late.
   */
  settle(nodeId: string): void {
    const { picture, stands, life } = this.#options
    const link = this.#links.get(nodeId)
    const { entry, revision } = picture.presence(nodeId)
    if (link === undefined) {
      const isLeft = entry?.life === life() && !this.#claimed.has(entry.session)
      if (isLeft) this.#takeAway(nodeId, entry.session, revision)
      return
    }
    if (this.#leaving.has(nodeId)) return
    const { member } = picture.versioned(nodeId).entry
    if (member === undefined) {
      link.session.close('REMOVED', 'the node was removed from the hub')
    } else if (isNewer(link, entry, revision) && stands(entry.life)) {
      link.session.close('REPLACED', 'the node has opened a newer connection')
    } else if (member.joined !== link.joined) {
      // What was between may never be told.
      link.session.close('SHUTDOWN', 'the node was removed and let in anew: it has to connect again')
    } else if (entry === undefined || !stands(entry.life) || isUnsaid(member, link) || isLost(link, entry, revision)) {
      this.#behind.add(nodeId)
    }
  }

  /** Another server has taken a node off the hub, which this one may not see yet. */
  removed(nodeId: string, revision: Revision): void {
    const link = this.#links.get(nodeId)
    if (link === undefined || link.joined > revision || this.#leaving.has(nodeId)) return
    link.session.close('REMOVED', 'the node was removed from the hub')
  }

  /** The presence is lost: revisions of what is noted from now on begin anew. */
  presenceLost(): void {
    for (const link of this.#links.values()) link.noted = 0
  }

  settleAll(): void {
    const { picture, life } = this.#options
    const own = life()
    for (const nodeId of new Set([...this.#links.keys(), ...picture.presentIn((name) => name === own)]))
      this.settle(nodeId)
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
      // What was written and not seen here is written again: the watch may have lost it.
      const isSeen = link === undefined || this.#options.picture.presence(nodeId).entry?.session === link.id
      if (this.#links.get(nodeId) === link && isSeen) this.#behind.delete(nodeId)
    }).catch(() => undefined)
    this.#isCatchingUp = false
  }

  async #note(nodeId: string, link: Link): Promise<void> {
    const { picture, writer, life, isOwn, stands, noteRecord } = this.#options
    const { id } = link
    const { member } = picture.versioned(nodeId).entry
    const seen = picture.presence(nodeId)
    const isFree = (found: PresenceEntry | undefined) =>
      this.#links.get(nodeId) === link &&
      (found === undefined ||
        found.session === id ||
        (isOwn(found.life) && !this.#claimed.has(found.session)) ||
        !stands(found.life))
    if (member?.joined !== link.joined || !isFree(seen.entry)) return
    if (seen.entry?.life !== life() || isLost(link, seen.entry, seen.revision)) {
      const noted = await writer.put(nodeId, { life: life(), session: id, joined: member.joined }, seen, isFree)
      if (noted === undefined) return
      link.noted = noted
      // It may have closed meanwhile.
      if (this.#links.get(nodeId) !== link) return this.#goOffline(nodeId, id, noted)
    }
    // It may take several attempts, and the node may have gone to another server meanwhile and said something newer there.
    const holds = async () => this.#links.get(nodeId) === link && (await writer.holds(nodeId, id))
    if (isUnsaid(member, link)) await noteRecord(nodeId, () => link.record, holds)
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

/** The node has given up or come anew while it was claimed: nothing of what it said was written. */
export class ClaimOvertaken extends ServiceError {
  constructor() {
    super('UNAVAILABLE', 'the node has given up or come anew meanwhile: it has to come again')
  }
}

/** Whether a presence, as of `revision`, is that of a link newer than this one, and not of one that this server has yet to see the end of. */
function isNewer({ id, noted }: Link, entry: PresenceEntry | undefined, revision: Revision): entry is PresenceEntry {
  return entry !== undefined && entry.session !== id && revision >= noted
}

/** Whether a presence is of before this link was noted: this server has yet to see that, or NATS has lost it. */
function isLost({ id, noted }: Link, { session }: PresenceEntry, revision: Revision): boolean {
  return session !== id && revision < noted
}

/** Whether what the node of a link has said last is not what stands of it. */
function isUnsaid({ admission, record }: MemberEntry, link: Link): boolean {
  return admission === link.admission && !sameFacts(record, link.record)
}

/** Whoever is refused so says anew what it is: whether that was stored before does not matter then. */
function comeAgain(why: string, cause?: unknown): ServiceError {
  return new ServiceError('UNAVAILABLE', `${why}: it has to come again`, cause === undefined ? {} : { cause })
}
