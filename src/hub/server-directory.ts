/** The servers of one hub, as what they share knows them. */

/** A server that is up, with what it has let the others know of itself. */
export interface PublishedServer {
  /** Id of its node. */
  readonly id: string
  /** Bytes that this server's side of the link made (link/signed-messages.ts, ServerDetails); empty when it has published nothing yet. */
  readonly details: Uint8Array
}

/**
 * Which servers there are. A hub that is one process has itself only (`aloneInDirectory`); of several, the registry that they share knows them by
 * their leases.
 */
export interface ServerDirectory {
  /** Id of this server's node. */
  readonly selfId: string
  /** Those that are up, as far as this one knows, itself among them. */
  servers(): readonly PublishedServer[]
  /** Hears that `servers` gives something else now. */
  followServers(listener: () => void): void
  /** Lets the others know this of this server. */
  publish(details: Uint8Array): void
  /** Whether this server can tell the others of its nodes; without, it asks its nodes to have their links elsewhere. */
  readonly isInTouch: boolean
  /** Hears that `isInTouch` is something else now. */
  followTouch(listener: () => void): void
  /** Hears of every member that this server has taken off the hub, and of the revision of that: a server that is cut off would not learn of it. */
  followRemovals(listener: (nodeId: string, revision: number) => void): void
  /** Another server has taken a member off the hub. */
  removed(nodeId: string, revision: number): void
}

/** The directory of a hub that is one process. */
export function aloneInDirectory(selfId: string): ServerDirectory {
  let details: Uint8Array = new Uint8Array(0)
  const listeners: (() => void)[] = []
  return {
    selfId,
    servers: () => [{ id: selfId, details }],
    followServers: (listener) => listeners.push(listener),
    publish: (given) => {
      details = given
      for (const listener of listeners) listener()
    },
    isInTouch: true,
    followTouch: () => {},
    followRemovals: () => {},
    removed: () => {},
  }
}
