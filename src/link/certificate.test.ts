/** The hub's own certificate: made once, kept, good for TLS, replaced before it expires. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { autoCertificate, keyFingerprintOf, makeCertificate } from './certificate.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-certificate-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const DAY = 24 * 3600 * 1000

test('is made once, for the names asked for and loopback, and kept', () => {
  const first = autoCertificate({ directory, hostnames: ['hub.example', '192.0.2.7', '2001:db8::1'] })
  const certificate = new X509Certificate(readFileSync(first.certFile))
  for (const name of ['hub.example', 'localhost']) expect(certificate.checkHost(name)).toBe(name)
  for (const ip of ['192.0.2.7', '2001:db8::1', '127.0.0.1', '::1']) expect(certificate.checkIP(ip)).toBeDefined()
  expect(certificate.checkHost('other.example')).toBeUndefined()
  expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' })
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect(certificate.ca).toBe(false)
  const years = (Date.parse(certificate.validTo) - Date.now()) / (365.25 * DAY)
  expect(years).toBeCloseTo(10, 1)
  expect(first.fingerprint).toBe(certificate.fingerprint256.replaceAll(':', '').toLowerCase())
  expect(autoCertificate({ directory, hostnames: ['192.0.2.7', '2001:db8:0::1', 'HUB.example', 'localhost'] })).toEqual(
    first,
  )
  createSecureContext({ cert: readFileSync(first.certFile), key: readFileSync(first.keyFile) })
})

test('both files are readable by their owner only, also when somebody has opened them up', () => {
  const { certFile, keyFile } = autoCertificate({ directory, hostnames: [] })
  for (const file of [certFile, keyFile]) {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    chmodSync(file, 0o644)
  }
  autoCertificate({ directory, hostnames: [] })
  for (const file of [certFile, keyFile]) expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('the key is not written into what somebody has put where its draft goes', () => {
  const draft = join(directory, `tls.key.${process.pid}`)
  writeFileSync(draft, '')
  chmodSync(draft, 0o666)
  const { keyFile } = autoCertificate({ directory, hostnames: [] })
  expect(statSync(keyFile).mode & 0o777).toBe(0o600)
})

test.each([
  ['a name more', ['a.example', 'b.example'], 'the last one is not for b.example'],
  ['an address more', ['a.example', '192.0.2.7'], 'the last one is not for 192.0.2.7'],
  ['a name less', [], /more than the names and addresses in use \(.*DNS:a\.example/],
])('is renewed for %s, with the same key', (_, hostnames, why) => {
  const first = autoCertificate({ directory, hostnames: ['a.example'] })
  const key = readFileSync(first.keyFile, 'utf8')
  const old = readFileSync(first.certFile)
  const next = autoCertificate({ directory, hostnames })
  expect(next.renewed).toMatch(why)
  expect(next.fingerprint).not.toBe(first.fingerprint)
  expect(readFileSync(first.keyFile, 'utf8')).toBe(key)
  expect(keyFingerprintOf(new X509Certificate(readFileSync(next.certFile)).raw)).toBe(
    keyFingerprintOf(new X509Certificate(old).raw),
  )
  expect(autoCertificate({ directory, hostnames }).renewed).toBeUndefined()
})

test('an address of the machine that is gone is no reason to renew, a new one is', () => {
  const first = autoCertificate({ directory, hostnames: ['a.example', '192.0.2.7'], isAnyAddress: true })
  expect(autoCertificate({ directory, hostnames: ['a.example'], isAnyAddress: true })).toEqual(first)
  expect(
    autoCertificate({ directory, hostnames: ['a.example', '192.0.2.8'], isAnyAddress: true }).renewed,
  ).toBeDefined()
  // One that was named and is not any more is not the machine's.
  expect(autoCertificate({ directory, hostnames: ['a.example'] }).renewed).toMatch(/more than .* in use/)
})

test('is replaced within a month of its end', () => {
  const now = Date.now()
  const old = autoCertificate({ directory, hostnames: [], now })
  const next = autoCertificate({ directory, hostnames: [], now: now + 10 * 365 * DAY })
  expect(next.fingerprint).not.toBe(old.fingerprint)
  expect(autoCertificate({ directory, hostnames: [], now: now + 11 * 365 * DAY })).toMatchObject({
    fingerprint: next.fingerprint,
  })
})

test.each([
  ['begins in 1970', new Date(10_000)],
  ['was ahead', new Date(Date.now() + 60 * 365 * DAY)],
])('made by a clock that %s it is valid then and once that is set, and stays', (_, date) => {
  const made = autoCertificate({ directory, hostnames: [], now: date.getTime() })
  const { validFrom, validTo } = new X509Certificate(readFileSync(made.certFile))
  expect(Date.parse(validFrom)).toBeLessThan(Math.min(Date.now(), date.getTime()))
  expect(Date.parse(validTo)).toBeGreaterThan(Date.now() + 30 * DAY)
  for (const now of [Date.now(), date.getTime()])
    expect(autoCertificate({ directory, hostnames: [], now })).toEqual(made)
})

test.each([
  ['has ended, though the clock does not know', 10_000, '1970-01-01'],
  ['is not valid yet', Date.now() + 50 * 365 * DAY, '2026-12-01'],
])('one of an older version that %s is replaced, once', (_, madeAt, date) => {
  const first = autoCertificate({ directory, hostnames: [] })
  const old = makeCertificate([], madeAt, createPrivateKey(readFileSync(first.keyFile)), madeAt)
  writeFileSync(first.certFile, old.certificate)
  const now = Date.parse(date)
  expect(autoCertificate({ directory, hostnames: [], now }).renewed).toMatch(
    /^the last one is (not valid before|valid until) /,
  )
  expect(autoCertificate({ directory, hostnames: [], now }).renewed).toBeUndefined()
})

test('damaged files and a foreign key are refused, not replaced', () => {
  const { certFile, keyFile } = autoCertificate({ directory, hostnames: [] })
  const [certificate, key] = [readFileSync(certFile), readFileSync(keyFile)]
  const foreign = makeCertificate([], Date.now())
  for (const [file, content, message] of [
    [certFile, 'junk', 'holds no certificate'],
    [keyFile, 'junk', 'holds no private key'],
    [keyFile, foreign.key, 'is not the key of the certificate'],
  ] as const) {
    writeFileSync(file, content)
    expect(() => autoCertificate({ directory, hostnames: [] })).toThrow(message)
    expect(readFileSync(file, 'utf8')).toBe(content)
    writeFileSync(certFile, certificate)
    writeFileSync(keyFile, key)
  }
})

test('a key left without its certificate is kept: joined nodes go by it', () => {
  const first = autoCertificate({ directory, hostnames: [] })
  const key = readFileSync(first.keyFile)
  rmSync(first.certFile)
  expect(autoCertificate({ directory, hostnames: [] }).fingerprint).not.toBe(first.fingerprint)
  expect(readFileSync(first.keyFile)).toEqual(key)
})
