/** What chacha20_encrypt and chacha20_decrypt have in common: their configuration, and the context of the addon that it makes. */
import { Type } from '@sinclair/typebox'
import type { Fault } from '../../engine/component.ts'
import { keyBytes } from '../../engine/keys.ts'
import { Input, Int32, Key, Output, Text } from '../../engine/schema.ts'
import { native } from '../../native/native.ts'
import { deriveKey } from './suites.ts'

/** Salt and counter. */
export const CHACHA_HEADER_BYTES = 16
const CHACHA_KEY_BYTES = 32
const CHACHA_ROUNDS = 20
const MIN_ROUNDS = 8
const MAGIC_CONSTANT = 'expand 32-byte k'

export const chachaConfig = Type.Object({
  input: Input(),
  output: Output(),
  magic_constant: Text('What the block begins with, the same at both ends; empty means the default.', {
    format: 'ascii-16',
    unit: '16 ASCII characters',
    default: MAGIC_CONSTANT,
  }),
  key: Key(CHACHA_KEY_BYTES, 'The key that both ends have.'),
  nonce: Text('The nonce that both ends have, in which every packet counts.', {
    format: 'nonce-12',
    unit: '24 hex digits or base64:',
    maxLength: 256,
  }),
  rounds: Int32('Rounds of the block function, an even number from 8 on; 0 means 20.', {
    minimum: 0,
    maximum: CHACHA_ROUNDS,
    default: CHACHA_ROUNDS,
  }),
})

export interface ChachaConfig {
  magic_constant: string
  key: string
  nonce: string
  rounds: number
}

/** Rounds come in pairs. */
export function checkRounds({ rounds }: ChachaConfig): Fault[] {
  if (rounds === 0 || (rounds >= MIN_ROUNDS && rounds % 2 === 0)) return []
  return [{ pointer: '/rounds', message: `${rounds} is no even number from ${MIN_ROUNDS} to ${CHACHA_ROUNDS}` }]
}

/** The addon's context of `owner` for the run that drew `salt`; its key is derived from the configured one (HKDF, RFC 5869). */
export function openChacha(owner: number, config: ChachaConfig, salt: Uint8Array): number {
  const secret = keyBytes(config.key) as Uint8Array
  const key = deriveKey({ name: 'chacha20', bytes: CHACHA_KEY_BYTES, secret }, salt)
  const nonce = keyBytes(config.nonce) as Uint8Array
  const constant = new TextEncoder().encode(config.magic_constant || MAGIC_CONSTANT)
  const chacha = native.chachaOpen(owner, key, nonce, constant, config.rounds || CHACHA_ROUNDS)
  key.fill(0)
  secret.fill(0)
  return chacha
}
