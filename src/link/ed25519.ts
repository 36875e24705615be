/**
 * Signatures with Ed25519 (RFC 8032) by libsodium: it takes half the time of Node's OpenSSL, whose signatures were a
 * third of what a hub does for a node that comes back (docs/hub.md). Loaded at the first signature: most commands make none.
 */
import type { KeyObject } from 'node:crypto'
import { ServiceError } from '../contract/errors.ts'
import { requirePackage } from '../require-package.ts'
import { messageOf } from '../text/error-message.ts'

const SIGNATURE_BYTES = 64
const PUBLIC_KEY_BYTES = 32
/** Seed and public key. */
const SECRET_KEY_BYTES = 64
/** Where the seed, which is the rest, begins in PKCS #8 (RFC 8410, section 7). */
const SEED_OFFSET = 16

type Sodium = typeof import('sodium-native')

let loaded: Sodium | undefined

function sodium(): Sodium {
  try {
    loaded ??= requirePackage('sodium-native') as Sodium
    return loaded
  } catch (error) {
    throw new ServiceError(
      'FAILED_PRECONDITION',
      `sodium-native, whose signatures hubs and their nodes need, cannot be loaded (${messageOf(error).split('\n')[0]}): npm install again in the ` +
        'folder where penstock is installed, on a platform for which the package has a binary',
    )
  }
}

/** Loads libsodium now. Throws ServiceError (FAILED_PRECONDITION) where that does not work; so do the others. */
export function loadSignatures(): void {
  sodium()
}

/** Private keys as libsodium takes them. */
const secretKeys = new WeakMap<KeyObject, Buffer>()

function secretKeyOf(privateKey: KeyObject): Buffer {
  let secretKey = secretKeys.get(privateKey)
  if (secretKey === undefined) {
    const { asymmetricKeyType: type } = privateKey
    // One for X25519 is encoded alike.
    if (type !== 'ed25519') throw new TypeError(`a private key of type ${type} makes no Ed25519 signature`)
    const encoded = privateKey.export({ type: 'pkcs8', format: 'der' })
    secretKey = Buffer.alloc(SECRET_KEY_BYTES)
    sodium().crypto_sign_seed_keypair(Buffer.alloc(PUBLIC_KEY_BYTES), secretKey, encoded.subarray(SEED_OFFSET))
    sodium().sodium_memzero(encoded)
    secretKeys.set(privateKey, secretKey)
  }
  return secretKey
}

/** The signature of an Ed25519 key, 64 bytes. Throws TypeError for a key of another type. */
export function sign(message: Buffer, privateKey: KeyObject): Uint8Array {
  const signature = Buffer.allocUnsafeSlow(SIGNATURE_BYTES)
  sodium().crypto_sign_detached(signature, message, secretKeyOf(privateKey))
  return signature
}

/** Whether the raw public key `key` has made the signature; false for what is no key or no signature. */
export function verify(message: Buffer, key: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false
  return sodium().crypto_sign_verify_detached(signature as Buffer, message, key as Buffer)
}
