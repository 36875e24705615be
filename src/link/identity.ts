/** Who a node is: an Ed25519 key pair made at first start, and the id that follows from the public key. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { keepFromOthers } from '../write-file.ts'
import { placeKey, readKey } from './key-file.ts'
import { newPrivateKey, rawKey } from './keys.ts'

export interface Identity {
  /** First 16 bytes of SHA-256 of the raw public key in lowercase base32 (RFC 4648, no padding): 26 characters. */
  readonly nodeId: string
  readonly publicKey: KeyObject
  /** Never leaves this process; never appears in logs or errors. */
  readonly privateKey: KeyObject
}

/**
 * Reads the identity in `directory`, or makes it there (identity.pem, PKCS #8, mode 0600), on disk before this returns. Throws when the
 * file holds no Ed25519 key; a node must not change its id by itself.
 */
export function loadIdentity(directory: string): Identity {
  const path = identityFile(directory)
  const privateKey = readKey(path, 'restore it, or remove it to let this node become a new one') ?? newKey(path)
  keepFromOthers(path)
  return identityOf(privateKey)
}

/** Where a node whose state is in `directory` keeps its key. */
export function identityFile(directory: string): string {
  return join(directory, 'identity.pem')
}

/** Whoever holds this Ed25519 key. */
export function identityOf(privateKey: KeyObject): Identity {
  const publicKey = createPublicKey(privateKey)
  return { nodeId: nodeIdOf(publicKey), publicKey, privateKey }
}

/** Somebody that has not been before. */
export function newIdentity(): Identity {
  return identityOf(newPrivateKey('ed25519'))
}

/** Of two nodes starting at once one wins. */
function newKey(path: string): KeyObject {
  placeKey(path, newIdentity().privateKey)
  return readKey(path) as KeyObject
}

/** The id of the node with this Ed25519 public key. */
export function nodeIdOf(publicKey: KeyObject): string {
  return nodeIdOfRaw(rawKey(publicKey))
}

/** The id of the node whose Ed25519 public key has these 32 bytes. */
export function nodeIdOfRaw(raw: Uint8Array): string {
  return base32(createHash('sha256').update(raw).digest().subarray(0, 16))
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** Lowercase base32 (RFC 4648) without padding. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let value = 0
  let bits = 0
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET[(value >> bits) & 31]
    }
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31] : text
}
