/** The key of a hub with several servers: what it says of each server, by which nodes know them all as one hub. */

import { statSync } from 'node:fs'
import { type Identity, identityOf } from './identity.ts'
import { placeKey, readKey } from './key-file.ts'
import { rawKey, signAs, transcript, verifyAs } from './keys.ts'
import { KnownStatements } from './known-statements.ts'
import { LinkRefused } from './link.ts'
import { Violation } from './messages.ts'
import type { ServerList, ServerStatement, SignedBody } from './signed.ts'
import { decodeServerList, decodeServerStatement, encodeServerList, encodeServerStatement } from './signed-messages.ts'

/** How long a statement about a server counts, and how old the one that is shown may be: between them is what clocks may differ by. Milliseconds. */
export const STATEMENT_MS = 48 * 3600 * 1000
const RENEWAL_MS = 3600 * 1000
const NO_CERTIFICATE: Uint8Array = new Uint8Array(0)

/** The hub key in a file, as `penstock hub key` makes it. `nodeId` is the hub's id. Throws an Error that names the file. */
export function readHubKey(path: string): Identity {
  const key = readKey(path)
  if (key === undefined) throw new Error(`there is no hub key in ${path}: make one with penstock hub key create`)
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Error(`others than the owner of ${path} may read the hub key in it: take that from them (chmod 600)`)
  }
  return identityOf(key)
}

/** Puts a hub key into a new file. Throws an Error when there is one. */
export function writeHubKey(path: string, { privateKey }: Identity): void {
  if (!placeKey(path, privateKey)) throw new Error(`${path} is there already: a key is never written over`)
}

export interface HubSignerOptions {
  readonly hub: Identity
  /** Raw public key of the server's own node, 32 bytes. */
  readonly serverKey: Uint8Array
  /** Milliseconds since the Unix epoch; default: the system's clock. */
  readonly now?: () => number
}

/** What a server signs with the hub key. */
export class HubSigner {
  readonly hubId: string
  /** Raw public key of the hub, 32 bytes. */
  readonly key: Uint8Array
  readonly #options: HubSignerOptions
  #statement: SignedBody | undefined
  #stated: Uint8Array = NO_CERTIFICATE
  #statedAt = Number.NEGATIVE_INFINITY

  constructor(options: HubSignerOptions) {
    this.#options = options
    this.hubId = options.hub.nodeId
    this.key = rawKey(options.hub.publicKey)
  }

  /** Milliseconds since the Unix epoch. */
  now(): number {
    return (this.#options.now ?? Date.now)()
  }

  /**
   * That this server is one of the hub's; counts for STATEMENT_MS, less an hour at most. `certificateKey`: SHA-256 of the public key of the TLS
   * certificate that the peer has seen of this server, 32 bytes; undefined: it has seen none.
   */
  statement(certificateKey = NO_CERTIFICATE): SignedBody {
    const now = this.now()
    const isOfCertificate = Buffer.compare(this.#stated, certificateKey) === 0
    if (this.#statement === undefined || !isOfCertificate || Math.abs(now - this.#statedAt) >= RENEWAL_MS) {
      const { serverKey, hub } = this.#options
      this.#statement = stateServer(hub, { serverKey, certificateKey, expiresAt: BigInt(now + STATEMENT_MS) })
      this.#stated = certificateKey
      this.#statedAt = now
    }
    return this.#statement
  }

  /** Where the hub's servers are, signed. Throws RangeError when there are more than MAX_SERVERS. */
  list(list: ServerList): SignedBody {
    const body = encodeServerList(list)
    return { body, signature: signAs('servers', this.#options.hub.privateKey, transcript(body)) }
  }
}

const lists = new KnownStatements<ServerList>()
const statements = new KnownStatements<ServerStatement>()

/** The list that the hub key has signed. Throws Violation. */
export function readServerList(list: SignedBody, hubKey: Uint8Array): ServerList {
  return lists.read(list, hubKey, () => {
    const { body, signature } = list
    if (!verifyAs('servers', hubKey, transcript(body), signature)) {
      throw new Violation('a list of servers that the hub key has not signed')
    }
    return decodeServerList(body)
  })
}

/** A statement of the hub key about one of its servers. */
export function stateServer({ privateKey }: Identity, statement: ServerStatement): SignedBody {
  const body = encodeServerStatement(statement)
  return { body, signature: signAs('server', privateKey, transcript(body)) }
}

export interface StatementCheck {
  /** Raw public key of the hub. */
  readonly hubKey: Uint8Array
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/**
 * The server that a statement is about: its raw public key, and the SHA-256 of its certificate's public key (empty on plain HTTP). Whoever shows the
 * statement has yet to prove that key. Throws Violation when the hub key has not signed it, LinkRefused when it does not count any more.
 */
export function readStatement(
  statement: SignedBody,
  { hubKey, now }: StatementCheck,
): Omit<ServerStatement, 'expiresAt'> {
  const { serverKey, certificateKey, expiresAt } = statements.read(statement, hubKey, () => {
    const { body, signature } = statement
    if (!verifyAs('server', hubKey, transcript(body), signature)) {
      throw new Violation('a statement about a server that the hub key has not signed')
    }
    const read = decodeServerStatement(body)
    // The bytes read are views of a frame.
    return {
      ...read,
      serverKey: new Uint8Array(read.serverKey),
      certificateKey: new Uint8Array(read.certificateKey),
    }
  })
  if (BigInt(Math.floor(now)) >= expiresAt) {
    const until = new Date(Number(expiresAt)).toISOString()
    const message = `the hub key's statement about this server counted until ${until}: look at the clocks of both machines`
    throw new LinkRefused('WRONG_HUB', message)
  }
  return { serverKey, certificateKey }
}
