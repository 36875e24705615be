/** The node's key pair and the id made from it. */
import { createPublicKey } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { base32, loadIdentity, nodeIdOf } from './identity.ts'
import { newPrivateKey } from './keys.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-identity-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('is made once and kept', () => {
  const first = loadIdentity(directory)
  expect(first.nodeId).toMatch(/^[a-z2-7]{26}$/)
  expect(loadIdentity(directory).nodeId).toBe(first.nodeId)
  expect(loadIdentity(join(directory, 'other')).nodeId).not.toBe(first.nodeId)
  expect(readdirSync(directory).sort()).toEqual(['identity.pem', 'other'])
})

test('is readable by its owner only, also when somebody has opened it up', () => {
  loadIdentity(directory)
  const path = join(directory, 'identity.pem')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  chmodSync(path, 0o644)
  loadIdentity(directory)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('is not written into what somebody has put where its draft goes', () => {
  const path = join(directory, 'identity.pem')
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, '', { mode: 0o666 })
  chmodSync(draft, 0o666)
  loadIdentity(directory)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  rmSync(path)
  const elsewhere = join(directory, 'elsewhere')
  symlinkSync(elsewhere, draft)
  loadIdentity(directory)
  expect(readdirSync(directory)).toEqual(['identity.pem'])
  expect(lstatSync(path).isFile()).toBe(true)
})

test('a damaged file is refused, not replaced', () => {
  const path = join(directory, 'identity.pem')
  writeFileSync(path, 'junk')
  expect(() => loadIdentity(directory)).toThrow('holds no private key')
  expect(readFileSync(path, 'utf8')).toBe('junk')
  writeFileSync(path, newPrivateKey('p256').export({ type: 'pkcs8', format: 'pem' }))
  expect(() => loadIdentity(directory)).toThrow('identity.pem holds a key of type ec, not ed25519')
})

test('the id follows from the public key alone', () => {
  // RFC 8032, section 7.1, test 1: the public key; the id computed independently (sha256sum, base32).
  const raw = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' })
  expect(nodeIdOf(key)).toBe('eh7ddx5bksrgcytl7bkai36se4')
})

test('base32 as in RFC 4648, section 10', () => {
  const vectors = {
    '': '',
    f: 'my',
    fo: 'mzxq',
    foo: 'mzxw6',
    foob: 'mzxw6yq',
    fooba: 'mzxw6ytb',
    foobar: 'mzxw6ytboi',
  }
  for (const [text, encoded] of Object.entries(vectors)) expect(base32(Buffer.from(text))).toBe(encoded)
})
