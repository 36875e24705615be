/** Which certificate and key files a node takes, and what it says of others. */
import { execFileSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeCertificate } from '../link/certificate.ts'
import { readTls } from './tls.ts'

const directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const at = (name: string) => join(directory, name)

const own = makeCertificate(['localhost'], Date.now())
const other = makeCertificate(['localhost'], Date.now())
const locked = createPrivateKey(other.key).export({
  type: 'pkcs8',
  format: 'pem',
  cipher: 'aes-256-cbc',
  passphrase: 'secret',
})
writeFileSync(at('a.crt'), own.certificate)
writeFileSync(at('a.key'), own.key)
writeFileSync(at('other.key'), other.key)
writeFileSync(at('locked.key'), locked)
writeFileSync(at('junk'), 'neither')
writeFileSync(at('large'), Buffer.alloc((1 << 20) + 1))
execFileSync('mkfifo', [at('pipe')])
symlinkSync('/dev/zero', at('zero'))

test('a pair that belongs together', () => {
  const tls = readTls({ certificate: at('a.crt'), key: at('a.key') })
  expect(tls.fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
  expect(tls.until - tls.from).toBeGreaterThan(10 * 365 * 86_400_000)
})

test.each([
  ['nowhere.crt', 'a.key', /cannot read the certificate .*nowhere\.crt: there is no such file/],
  ['a.crt', 'nowhere.key', /cannot read the key .*nowhere\.key: there is no such file/],
  ['junk', 'a.key', /junk holds no certificate in PEM form/],
  ['a.crt', 'junk', /junk holds no private key in PEM form/],
  ['a.crt', 'other.key', /the key in .*other\.key does not belong to the certificate in .*a\.crt/],
  ['a.crt', 'locked.key', /locked\.key is encrypted/],
  ['.', 'a.key', /cannot read the certificate .*: it is no regular file/],
  ['pipe', 'a.key', /cannot read the certificate .*pipe: it is no regular file/],
  ['a.crt', 'zero', /cannot read the key .*zero: it is no regular file/],
  ['large', 'a.key', /cannot read the certificate .*large: it has more than 1048576 bytes/],
])('%s with %s', (certificate, key, message) => {
  expect(() => readTls({ certificate: at(certificate), key: at(key) })).toThrow(message)
})
