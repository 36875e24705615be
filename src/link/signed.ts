/** What a hub signs: bodies as bytes, and what they say once they are read. */

/** Bytes that are signed as they are. */
export interface SignedBody {
  readonly body: Uint8Array
  readonly signature: Uint8Array
}

/** What a hub key says of one of its servers. */
export interface ServerStatement {
  readonly serverKey: Uint8Array
  /** Empty on plain HTTP. */
  readonly certificateKey: Uint8Array
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: bigint
}

/** A server of a hub. */
export interface HubServer {
  readonly id: string
  /** Where nodes reach it, http or https; empty: they are not told. */
  readonly address: string
}

/** What a server lets the other servers of its hub know of itself. */
export interface ServerDetails {
  /** Where nodes reach it; empty: they are not told. */
  readonly address: string
  /** The highest issue of a list that it has signed. */
  readonly issue: bigint
}

/** All servers; of two lists the one with the higher `issue` counts. */
export interface ServerList {
  readonly issue: bigint
  readonly servers: readonly HubServer[]
}
