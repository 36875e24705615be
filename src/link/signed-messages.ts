/** What the hub key signs: what it says of a server, and where all servers are. */
import { encodeBinary } from '../contract/binary-encode.ts'
import { decode, HASH_BYTES, KEY_BYTES, length, MAX_ID_LENGTH, schemaOf, Violation } from './messages.ts'

/** Servers of a hub, at most: their list travels in a frame of the handshake. */
export const MAX_SERVERS = 32
/** Longest address of a server, characters. */
export const MAX_ADDRESS_LENGTH = 256

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

const STATEMENT = schemaOf('ServerStatement')
const LIST = schemaOf('ServerList')
const DETAILS = schemaOf('ServerDetails')

export function encodeServerStatement(statement: ServerStatement): Uint8Array {
  return encodeBinary(STATEMENT, statement)
}

/** Throws Violation. */
export function decodeServerStatement(bytes: Uint8Array): ServerStatement {
  const statement = decode(STATEMENT, bytes, 'ServerStatement') as unknown as ServerStatement
  length('server_key', statement.serverKey, KEY_BYTES)
  if (statement.certificateKey.length > 0) length('certificate_key', statement.certificateKey, HASH_BYTES)
  return statement
}

/** Throws RangeError when there are more than MAX_SERVERS. */
export function encodeServerList(list: ServerList): Uint8Array {
  if (list.servers.length > MAX_SERVERS) {
    throw new RangeError(`the hub has ${list.servers.length} servers, ${MAX_SERVERS} are allowed`)
  }
  return encodeBinary(LIST, list)
}

/** Throws Violation. */
export function decodeServerList(bytes: Uint8Array): ServerList {
  const list = decode(LIST, bytes, 'ServerList') as unknown as ServerList
  const { servers } = list
  if (servers.length > MAX_SERVERS) throw new Violation(`${servers.length} servers, ${MAX_SERVERS} are allowed`)
  for (const { id, address } of servers) {
    if (id.length > MAX_ID_LENGTH) throw new Violation('a server whose id is too long')
    if (address !== '') mustBeAddress(address)
  }
  return list
}

export function encodeServerDetails(details: ServerDetails): Uint8Array {
  return encodeBinary(DETAILS, details)
}

/** Throws Violation. */
export function decodeServerDetails(bytes: Uint8Array): ServerDetails {
  const details = decode(DETAILS, bytes, 'ServerDetails') as unknown as ServerDetails
  if (details.address !== '') mustBeAddress(details.address)
  return details
}

function mustBeAddress(address: string): void {
  if (address.length > MAX_ADDRESS_LENGTH || !/^https?:\/\//.test(address) || !URL.canParse(address)) {
    throw new Violation('a server whose address is none')
  }
}
