/** Who is on the hub, changed: each change is one write, and seen here before its caller hears of it. */
import type { NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { Changed, Changes, Next } from './changes.ts'
import { admitted, type MemberEntry, type NodeEntry, type Revision } from './entries.ts'
import { nodeKey, type Picture } from './picture.ts'

export interface MembersOptions {
  readonly changes: Changes
  readonly picture: Picture
  /** Resolves when the change has been told here, or cannot be for now. */
  readonly passed: (revision: Revision) => Promise<void>
  /** Resolves when everything that was answered anywhere has been seen here. Throws UNAVAILABLE. */
  readonly current: () => Promise<void>
  /** A member was taken off the hub by that change. */
  readonly onForgotten: (nodeId: string, revision: Revision) => void
  /** Milliseconds since the epoch, by the engine's clock: those of the servers may be anything. */
  readonly hubTime: () => number
}

export class Members {
  readonly #options: MembersOptions
  /** Nodes that are being taken off the hub by this server, with how often. */
  readonly #forgetting = new Map<string, number>()

  constructor(options: MembersOptions) {
    this.#options = options
  }

  /** Lets a node in; `admission` is the revision of that. Throws UNAVAILABLE and UNKNOWN, as all of these. */
  async admit(nodeId: string, key: Uint8Array, record: NodeRecord): Promise<{ isNew: boolean; admission: Revision }> {
    const { revision, before } = await this.change(nodeId, ({ member }) => ({
      member: { ...admitted(member), key, record, lastSeen: this.#date() },
    }))
    return { isNew: before.entry.member === undefined, admission: revision as Revision }
  }

  /** Whether this server takes the node off the hub right now. */
  isForgetting(nodeId: string): boolean {
    return this.#forgetting.has(nodeId)
  }

  /** Takes a node off the hub, if that `isMeant`; resolves to whether it was taken off. */
  async forget(
    nodeId: string,
    isMeant: (member: MemberEntry, entry: NodeEntry) => boolean = () => true,
  ): Promise<boolean> {
    this.#forgetting.set(nodeId, (this.#forgetting.get(nodeId) ?? 0) + 1)
    try {
      return await this.#forget(nodeId, isMeant)
    } finally {
      const others = (this.#forgetting.get(nodeId) ?? 0) - 1
      if (others > 0) this.#forgetting.set(nodeId, others)
      else this.#forgetting.delete(nodeId)
    }
  }

  async #forget(nodeId: string, isMeant: (member: MemberEntry, entry: NodeEntry) => boolean): Promise<boolean> {
    const { picture, current, onForgotten } = this.#options
    const { entry: seen } = picture.versioned(nodeId)
    // Not on the list, or not the one that is meant, as this server sees it: that may have changed.
    if (seen.member === undefined || !isMeant(seen.member, seen)) await current()
    const { revision } = await this.change(nodeId, (entry) => {
      const { member } = entry
      if (member === undefined || !isMeant(member, entry)) return undefined
      // An acceptance that its node has yet to hear lets nobody in any more.
      return { member: undefined, requests: entry.requests.filter(({ decision }) => decision?.verdict !== 'accepted') }
    })
    if (revision !== undefined) onForgotten(nodeId, revision)
    return revision !== undefined
  }

  /**
   * What a member says of itself now; `record` is asked at every attempt. So is `holds`, after the entry was read that is written over: whether
   * it is (still) for this server to say that. Resolves to what it said last.
   */
  async note(nodeId: string, record: () => NodeRecord, holds: () => Promise<boolean>): Promise<boolean> {
    let isHeld = true
    await this.change(nodeId, async ({ member }) => {
      if (member === undefined || sameFacts(member.record, record())) return undefined
      isHeld = await holds()
      return isHeld ? { member: { ...member, record: record(), lastSeen: this.#date() } } : undefined
    })
    return isHeld
  }

  /** A member was seen last at that time; an entry that says so up to `slack` milliseconds is left as it is. */
  async sawLast(nodeId: string, lastSeen: Date, slack: number): Promise<void> {
    await this.change(nodeId, ({ member }) =>
      member === undefined || member.lastSeen.getTime() + slack >= lastSeen.getTime()
        ? undefined
        : { member: { ...member, lastSeen } },
    )
  }

  /** As `note`, for a node that is a member from now on, if it was none: a server of the hub. */
  async noteServer(nodeId: string, key: Uint8Array, record: () => NodeRecord): Promise<void> {
    await this.change(nodeId, ({ member }) =>
      member !== undefined && sameFacts(member.record, record())
        ? undefined
        : { member: { ...(member ?? admitted(undefined)), key, record: record(), lastSeen: this.#date() } },
    )
  }

  /** Any change of the entry of a node; `next` is asked again whenever somebody else was faster. Throws UNAVAILABLE and UNKNOWN. */
  async change(nodeId: string, next: (entry: NodeEntry) => Next | Promise<Next>): Promise<Changed> {
    const { changes, picture, passed } = this.#options
    const changed = await changes.change(nodeKey(nodeId), picture.versioned(nodeId), next)
    await passed(changed.revision ?? changed.before.revision)
    return changed
  }

  #date(): Date {
    return new Date(this.#options.hubTime())
  }
}
