/** The three AEAD suites of ssl_encrypt and ssl_decrypt, their configuration, and the key of a run. */
import { hkdfSync } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import type { Fault } from '../../engine/component.ts'
import { keyBytes } from '../../engine/keys.ts'
import { Input, Key, Optional, Output } from '../../engine/schema.ts'

export const SALT_BYTES = 8
/** Salt and counter. */
export const AEAD_HEADER_BYTES = 16
export const TAG_BYTES = 16
/** What a packet grows by when it is sealed or signed. */
export const SEALED_BYTES = AEAD_HEADER_BYTES + TAG_BYTES

interface Suite {
  /** As the addon numbers it. */
  code: 0 | 1 | 2
  keyBytes: 16 | 32
}

const SUITES = {
  aes_128_gcm_sha_256: { code: 0, keyBytes: 16 },
  aes_256_gcm_sha_384: { code: 1, keyBytes: 32 },
  chacha20_poly1305_sha_256: { code: 2, keyBytes: 32 },
} as const satisfies Record<string, Suite>

export type SuiteName = keyof typeof SUITES

const named = (name: SuiteName, description: string) =>
  Optional(
    Type.Object(
      { key: Key(SUITES[name].keyBytes, 'The key that both ends have.') },
      { description, proto: camel(name) },
    ),
  )

function camel(name: string): string {
  return name.replace(/(^|_)([a-z0-9])/g, (_match, _mark, letter: string) => letter.toUpperCase())
}

/** Configuration of both components. */
export const aeadConfig = Type.Object(
  {
    input: Input(),
    output: Output(),
    aes_128_gcm_sha_256: named('aes_128_gcm_sha_256', 'AES-128 in Galois/counter mode.'),
    aes_256_gcm_sha_384: named('aes_256_gcm_sha_384', 'AES-256 in Galois/counter mode.'),
    chacha20_poly1305_sha_256: named(
      'chacha20_poly1305_sha_256',
      'ChaCha20-Poly1305 (RFC 8439), for CPUs without AES.',
    ),
  },
  { exactlyOne: Object.keys(SUITES) },
)

type AeadConfig = { [K in SuiteName]?: { key: string } }

const chosen = (config: AeadConfig) => (Object.keys(SUITES) as SuiteName[]).filter((name) => config[name] !== undefined)

/** Exactly one suite is set. */
export function checkSuite(config: AeadConfig): Fault[] {
  const names = chosen(config)
  if (names.length === 1) return []
  const found = names.length === 0 ? 'none' : names.join(' and ')
  return [{ pointer: '', message: `exactly one of ${Object.keys(SUITES).join(', ')} must be set, found ${found}` }]
}

export interface SuiteKey {
  /** What stands behind `penstock ` in the info of the derivation. */
  name: string
  /** As the addon numbers it. */
  code: 0 | 1 | 2 | 3
  /** What a sender does to packets, for the log. */
  verb: 'seals' | 'signs'
  /** Bytes of a derived key. */
  bytes: number
  /** The configured key, from which each run's is derived. */
  secret: Uint8Array
}

/** The suite of a checked configuration. */
export function suiteOf(config: AeadConfig): SuiteKey {
  const [name] = chosen(config)
  const { code, keyBytes: bytes } = SUITES[name]
  return { name, code, verb: 'seals', bytes, secret: keyBytes((config[name] as { key: string }).key) as Uint8Array }
}

/** Configuration of ssl_poly1305_signer and ssl_poly1305_checker. */
export const signingConfig = Type.Object({
  input: Input(),
  output: Output(),
  shared_secret: Key(32, 'The secret that both ends have.'),
})

/** ChaCha20-Poly1305 of nothing but associated data. */
export function signingSuite({ shared_secret }: { shared_secret: string }): SuiteKey {
  const secret = keyBytes(shared_secret) as Uint8Array
  return { name: 'ssl_poly1305', code: 3, verb: 'signs', bytes: 32, secret }
}

/** The key of the run that drew `salt`: HKDF with SHA-256 (RFC 5869), the suite's name as info. */
export function deriveKey(
  { name, bytes, secret }: Pick<SuiteKey, 'name' | 'bytes' | 'secret'>,
  salt: Uint8Array,
): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, `penstock ${name}`, bytes))
}
