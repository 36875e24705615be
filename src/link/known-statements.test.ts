/** Statements of a hub key that are read more than once: what was believed once is believed again, and nothing else with it. */

import { describe, expect, test } from 'vitest'
import { HubSigner, readServerList, readStatement, STATEMENT_MS } from './hub-key.ts'
import { newIdentity } from './identity.ts'
import { rawKey } from './keys.ts'
import { KnownStatements } from './known-statements.ts'
import type { SignedBody } from './signed.ts'

const NOW = Date.UTC(2026, 0, 1)
const hub = newIdentity()
const hubKey = rawKey(hub.publicKey)
const serverKey = rawKey(newIdentity().publicKey)
const signer = new HubSigner({ hub, serverKey, now: () => NOW })

const changed = ({ body, signature }: SignedBody, member: keyof SignedBody): SignedBody => {
  const bytes = new Uint8Array(member === 'body' ? body : signature)
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1
  return { body, signature, [member]: bytes }
}

describe.each([
  ['a list of servers', signer.list({ issue: 3n, servers: [{ id: 'a', address: 'http://a:1' }] }), readServerList],
  [
    'a statement about a server',
    signer.statement(new Uint8Array(32).fill(7)),
    (signed: SignedBody, key: Uint8Array) => readStatement(signed, { hubKey: key, now: NOW }),
  ],
] as const)('%s', (_what, signed, read) => {
  test('says the same again, whatever became of the bytes that it was read from', () => {
    const copy = { body: new Uint8Array(signed.body), signature: new Uint8Array(signed.signature) }
    const before = structuredClone(read(copy, hubKey))
    copy.body.fill(0)
    copy.signature.fill(0)
    expect(structuredClone(read(signed, hubKey))).toEqual(before)
  })

  test.each(['body', 'signature'] as const)('is not believed with another %s', (member) => {
    read(signed, hubKey)
    expect(() => read(changed(signed, member), hubKey)).toThrow('that the hub key has not signed')
    // Nor is what was refused remembered.
    expect(() => read(changed(signed, member), hubKey)).toThrow('that the hub key has not signed')
  })

  test('is not believed of another hub', () => {
    read(signed, hubKey)
    expect(() => read(signed, rawKey(newIdentity().publicKey))).toThrow('that the hub key has not signed')
  })
})

test('a statement that was believed counts for no longer', () => {
  const signed = signer.statement()
  readStatement(signed, { hubKey, now: NOW })
  expect(() => readStatement(signed, { hubKey, now: NOW + STATEMENT_MS })).toThrow('counted until')
})

test('so many are remembered, and the first goes first', () => {
  const known = new KnownStatements<number>()
  const key = new Uint8Array(32)
  const signed = (i: number) => ({ body: new Uint8Array(1), signature: new Uint8Array(64).fill(i) })
  let reads = 0
  const read = (i: number) => known.read(signed(i), key, () => ++reads)
  for (let i = 0; i < 64; i++) read(i)
  expect([read(0), reads]).toEqual([1, 64])
  read(64)
  expect([read(1), reads]).toEqual([2, 65])
  expect([read(0), reads]).toEqual([66, 66])
})
