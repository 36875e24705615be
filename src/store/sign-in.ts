/** The node's sign-in on disk: the hub it is on and the keys by which it knows that hub again. */
import type { RootDatabase } from 'lmdb'
import { SingleRecord } from './collection.ts'

export interface SignInRecord {
  /** Address of the hub server, `http://` or `https://`. */
  hubAddress: string
  hubId: string
  /** Raw Ed25519 public key of the hub, 32 bytes. */
  hubKey: Uint8Array
  /** SHA-256 of the hub's TLS certificate, lowercase hex, when it was trusted at first use: no other is accepted from then on. */
  certificate?: string
  /** SHA-256 of that certificate's public key, lowercase hex: a renewed certificate with the same key is accepted and takes its place. */
  certificateKey?: string
  /** Where all servers of the hub are, as the hub key has signed it last; a hub with a key of its own tells that. */
  servers?: { issue: bigint; servers: readonly { id: string; address: string }[] }
  /** Servers that earlier lists have named and the newest does not, those named last first. */
  former?: readonly { id: string; address: string }[]
  /** Address of the server that the last link was with, when it is not `hubAddress`. */
  lastAddress?: string
}

/** Whether the node with this id serves the hub: its only server, or one of those that it has told of. */
export function isServerOf({ hubId, servers }: SignInRecord, nodeId: string): boolean {
  return nodeId === hubId || servers?.servers.some(({ id }) => id === nodeId) === true
}

/** Absent when the node is on no hub. */
export class SignIn extends SingleRecord<SignInRecord> {
  constructor(root: RootDatabase) {
    super(root, { name: 'sign-in', key: 'hub' })
  }
}
