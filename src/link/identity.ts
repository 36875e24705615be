/** Who a node is: an Ed25519 key pair made at first start, and the id that follows from the public key. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { rawKey } from './keys.ts'
import { readIfThere } from './read-if-there.ts'

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
  const path = join(directory, 'identity.pem')
  const pem = readIfThere(path) ?? create(path)
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(pem)
  } catch {
    throw new Error(`${path} holds no private key: restore it, or remove it to let this node become a new one`)
  }
  if (privateKey.asymmetricKeyType !== 'ed25519') {
    throw new Error(`${path} holds a key of type ${privateKey.asymmetricKeyType}, not ed25519`)
  }
  chmodSync(path, 0o600)
  const publicKey = createPublicKey(privateKey)
  return { nodeId: nodeIdOf(publicKey), publicKey, privateKey }
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

/** The file appears whole or not at all, and of two nodes starting at once one wins. */
function create(path: string): string {
  const directory = dirname(path)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const draft = `${path}.${process.pid}`
  const file = openSync(draft, 'w', 0o600)
  try {
    writeSync(file, pem)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  const folder = openSync(directory, 'r')
  fsyncSync(folder)
  closeSync(folder)
  return readFileSync(path, 'utf8')
}
