/** What a node wants of a hub that it dials. */
import type { PendingAt } from '../link/handshake-node.ts'
import type { Intent, NodeRecord } from '../link/link.ts'

/** One attempt to open a link. */
export interface DialRequest {
  readonly address: URL
  readonly intent: Intent
  readonly record: NodeRecord
  /** CONNECT: the hub must prove this key, 32 bytes. */
  readonly hubKey?: Uint8Array
  /** SHA-256 of the one certificate accepted, lowercase hex. */
  readonly certificate?: string
  /** SHA-256 of the public key that another certificate may have, lowercase hex. */
  readonly certificateKey?: string
  readonly signal: AbortSignal
  /** JOIN: the request waits for the hub's operator. */
  readonly onPending?: ((hub: PendingAt) => void) | undefined
}
