/** Ed25519 as the link uses it: raw keys, signatures with a role, the transcript of a handshake. */
import { createHash, createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { sign, verify } from './ed25519.ts'

const PROTOCOL = 'penstock-link-v1'

/** Who signs what for: part of every signed string, so that no signature can stand for another. */
export type Role = 'hub' | 'node' | 'verdict' | 'removed' | 'server' | 'servers'

/** A private key as JWK: neither read from text nor written as such, which OpenSSL 3 takes long for. */
const JWK = { format: 'jwk' } as const
interface JwkPair {
  readonly privateKey: JsonWebKey
}

/**
 * A new Ed25519 key, or one for ECDSA with P-256. It is not the object that Node's generation gives: that one shares a lock with the
 * generation, and when this is collected while the key is exported, the thread waits for itself for ever (Node 20).
 */
export function newPrivateKey(kind: 'ed25519' | 'p256'): KeyObject {
  // The declarations of Node 20 know no JWK here; its documentation does.
  const encodings = { publicKeyEncoding: JWK, privateKeyEncoding: JWK } as object
  const pair: unknown =
    kind === 'ed25519'
      ? generateKeyPairSync('ed25519', encodings)
      : generateKeyPairSync('ec', { namedCurve: 'P-256', ...encodings })
  return createPrivateKey({ key: (pair as JwkPair).privateKey, ...JWK })
}

/** Keys that were asked for: whoever shakes hands does so with the same one again. */
const rawKeys = new WeakMap<KeyObject, Uint8Array>()

/** The 32 raw bytes of an Ed25519 public key; not to be written to. */
export function rawKey(publicKey: KeyObject): Uint8Array {
  let raw = rawKeys.get(publicKey)
  if (raw === undefined) {
    // As JWK (RFC 8037, section 2): OpenSSL 3 takes 1 µs for it, and some 90 µs for a SubjectPublicKeyInfo.
    const { x } = publicKey.export({ format: 'jwk' })
    raw = new Uint8Array(Buffer.from(x as string, 'base64url'))
    rawKeys.set(publicKey, raw)
  }
  return raw
}

/** SHA-256 over the protocol's name and each part with its length (32 bits, big-endian) before it. */
export function transcript(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256').update(PROTOCOL)
  const length = Buffer.alloc(4)
  for (const part of parts) {
    length.writeUInt32BE(part.length)
    hash.update(length).update(part)
  }
  return hash.digest()
}

/** The Ed25519 signature (64 bytes) of "penstock-link-v1 ROLE" followed by the transcript. */
export function signAs(role: Role, privateKey: KeyObject, transcript: Uint8Array): Uint8Array {
  return sign(signedBytes(role, transcript), privateKey)
}

/** Whether `signature` is that of the raw public key `key`; a key that is none verifies nothing. */
export function verifyAs(role: Role, key: Uint8Array, transcript: Uint8Array, signature: Uint8Array): boolean {
  return verify(signedBytes(role, transcript), key, signature)
}

function signedBytes(role: Role, transcript: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${PROTOCOL} ${role}`), transcript])
}
