/** What hub and node check of each other beside the proofs. */

import { type HubSigner, readStatement } from './hub-key.ts'
import { LinkRefused, type ShownCertificate } from './link.ts'
import { Violation } from './messages.ts'
import type { SignedBody } from './signed.ts'

/** Throws Violation unless the hub key says that the node with this key, which it has proven, is a server of the hub. */
export function mustBeServer(nodeKey: Uint8Array, statement: SignedBody | undefined, signer: HubSigner): void {
  if (statement === undefined) throw new Violation('a server without a statement of the hub key')
  try {
    const { serverKey } = readStatement(statement, { hubKey: signer.key, now: signer.now() })
    if (Buffer.compare(serverKey, nodeKey) !== 0) throw new Violation('a statement about another server')
  } catch (error) {
    throw error instanceof LinkRefused ? new Violation(error.message) : error
  }
}

/** What to do where the node sees another certificate than the hub's. */
export const OTHER_CERTIFICATE_CURE =
  "if that is a proxy before this hub, give the hub the proxy's certificate (http.tls), reload the hub whenever the proxy gets another one, " +
  'or join at an address of the hub itself'

/** Whether the certificate that the node sees is the one that its connection was made with here; without one it must see none. */
export function isSameCertificate(fingerprint: Uint8Array, shown: ShownCertificate | undefined): boolean {
  return Buffer.compare(shown?.fingerprint ?? new Uint8Array(0), fingerprint) === 0
}
