/** What the hub key signs: what it says of a server, and where all servers are. */

import { encodeBinary } from '../contract/binary-encode.ts'
import { MAX_ADDRESS_LENGTH } from './hub-address.ts'
import { decode, HASH_BYTES, KEY_BYTES, length, MAX_ID_LENGTH, schemaOf, Violation } from './messages.ts'
import type { ServerDetails, ServerList, ServerStatement } from './signed.ts'

/** Servers of a hub, at most: their list travels in a frame of the handshake. */
export const MAX_SERVERS = 32

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
