/** The TLS certificate of a hub: a self-signed one made on request, and fingerprints. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { domainToASCII } from 'node:url'
import { makeDirectory } from '../make-directory.ts'
import { ipv6Bytes } from '../text/ipv6-bytes.ts'
import { keepFromOthers, replaceFile } from '../write-file.ts'
import { bits, context, integer, octets, oid, pem, plain, sequence, set, time, utf8, yes } from './der.ts'
import { newPrivateKey } from './keys.ts'
import { readIfThere } from './read-if-there.ts'

const YEARS = 10
/** A certificate with less than this left is replaced, milliseconds. */
const RENEWAL_MS = 30 * 24 * 3600 * 1000
/** When this was written, since the Unix epoch: a clock that shows less has not been set yet. */
const EARLIEST_MS = Date.UTC(2026, 0, 1)

export interface CertificateOptions {
  /** Where tls.crt and tls.key are kept; made when it is not there. */
  readonly directory: string
  /** Names and IP addresses that the certificate is for. Loopback ones are always in it. */
  readonly hostnames: readonly string[]
  /** The machine's own addresses are among `hostnames`, and they come and go: one that is gone is no reason for a new certificate. */
  readonly isAnyAddress?: boolean
  /** Milliseconds since the Unix epoch; default: now. */
  readonly now?: number
}

export interface Certificate {
  readonly certFile: string
  readonly keyFile: string
  /** SHA-256 of the certificate (DER), lowercase hex. */
  readonly fingerprint: string
  /** Why one that was there was replaced, when it was. */
  readonly renewed?: string
}

/**
 * The self-signed certificate in `directory`, made (ECDSA P-256, 10 years) when there is none. It is renewed when it
 * is about to expire, is not valid yet or is not for `hostnames` any more; the key stays, by which nodes that have joined know it again. Both files have
 * mode 0600. Throws when they are damaged or do not belong together.
 */
export function autoCertificate(options: CertificateOptions): Certificate {
  const { directory } = options
  // A machine without a battery begins each time in 1970: a certificate of then would have expired once the clock is set, and never be renewed.
  const now = Math.max(options.now ?? Date.now(), EARLIEST_MS)
  const certFile = join(directory, 'tls.crt')
  const keyFile = join(directory, 'tls.key')
  const there = readIfThere(certFile)
  let renewed: string | undefined
  if (there !== undefined) {
    const certificate = parse(there, certFile)
    checkKey(certificate, keyFile)
    renewed = whyRenew(certificate, options, now)
    if (renewed === undefined) {
      for (const file of [certFile, keyFile]) keepFromOthers(file)
      return { certFile, keyFile, fingerprint: fingerprintOf(certificate.raw) }
    }
  }
  const { certificate, key } = makeCertificate(options.hostnames, now, ownKey(keyFile))
  makeDirectory(directory)
  // The key first: a certificate without its key would be an error at the next start, a key without certificate is replaced.
  replaceFile(keyFile, key)
  replaceFile(certFile, certificate)
  const fingerprint = fingerprintOf(parse(certificate, certFile).raw)
  return { certFile, keyFile, fingerprint, ...(renewed === undefined ? {} : { renewed }) }
}

/** What is wrong with a certificate that is there, for people; undefined: it is as it should be. */
function whyRenew(
  certificate: X509Certificate,
  { hostnames, isAnyAddress = false }: CertificateOptions,
  now: number,
): string | undefined {
  if (Date.parse(certificate.validTo) - now <= RENEWAL_MS) return `the last one is valid until ${certificate.validTo}`
  if (Date.parse(certificate.validFrom) > now) return `the last one is not valid before ${certificate.validFrom}`
  const wanted = namesFor(hostnames)
  const missing = wanted.filter((name) =>
    isIP(name) === 0
      ? certificate.checkHost(name, { subject: 'never', wildcards: false }) === undefined
      : certificate.checkIP(name) === undefined,
  )
  if (missing.length > 0) return `the last one is not for ${missing.join(', ')}`
  const held = (certificate.subjectAltName ?? '').split(', ')
  const isSurplus = (isAddress: boolean) =>
    held.filter((name) => name.startsWith('IP Address:') === isAddress).length >
    wanted.filter((name) => (isIP(name) !== 0) === isAddress).length
  if (isSurplus(false) || (isSurplus(true) && !isAnyAddress)) {
    return `the last one is for more than the names and addresses in use (${held.join(', ')})`
  }
  return undefined
}

/** Everything that a certificate for `hostnames` is for, each once, as it is in the certificate. */
function namesFor(hostnames: readonly string[]): string[] {
  const names = new Map<string, string>()
  for (const name of ['localhost', '127.0.0.1', '::1', ...hostnames]) {
    const ascii = isIP(name) === 0 ? domainToASCII(name) || name : name
    names.set(isIP(name) === 6 ? Buffer.from(ipv6Bytes(name)).toString('hex') : ascii.toLowerCase(), ascii)
  }
  return [...names.values()]
}

/** The key of the last certificate, when it can sign another. */
function ownKey(keyFile: string): KeyObject | undefined {
  const there = readIfThere(keyFile)
  if (there === undefined) return undefined
  try {
    const key = createPrivateKey(there)
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

/**
 * A new self-signed certificate (RFC 5280) and its key, as PEM. `now`: milliseconds since the Unix epoch. `key`: a P-256 key to make it
 * with; default: a new one. `from`: since when it is valid; default: 1970, since clocks differ: this one may be ahead, and others have not been set.
 */
export function makeCertificate(
  hostnames: readonly string[],
  now: number,
  key?: KeyObject,
  from = 0,
): { certificate: string; key: string } {
  const privateKey = key ?? newPrivateKey('p256')
  const publicKey = createPublicKey(privateKey)
  const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
  const commonName = sequence(set(sequence(oid('2.5.4.3'), utf8('penstock'))))
  const notAfter = new Date(now)
  notAfter.setUTCFullYear(notAfter.getUTCFullYear() + YEARS)
  const names = namesFor(hostnames)
  const extensions = sequence(
    // Not an authority: whoever trusts it trusts this hub and nothing else.
    extension('2.5.29.19', true, sequence()),
    // digitalSignature
    extension('2.5.29.15', true, bits(Buffer.from([0x80]), 7)),
    // serverAuth
    extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, sequence(...names.map(generalName))),
  )
  const content = sequence(
    // Version 3
    context(0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    ecdsaWithSha256,
    commonName,
    sequence(time(new Date(from)), time(notAfter)),
    commonName,
    publicKey.export({ type: 'spki', format: 'der' }),
    context(3, extensions),
  )
  const certificate = sequence(content, ecdsaWithSha256, bits(sign('sha256', content, privateKey)))
  return {
    certificate: pem('CERTIFICATE', certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

function extension(id: string, isCritical: boolean, value: Uint8Array): Buffer {
  return isCritical ? sequence(oid(id), yes, octets(value)) : sequence(oid(id), octets(value))
}

function generalName(name: string): Buffer {
  if (isIP(name) === 0) return plain(2, Buffer.from(domainToASCII(name) || name))
  return plain(7, isIP(name) === 4 ? Buffer.from(name.split('.').map(Number)) : Buffer.from(ipv6Bytes(name)))
}

/** SHA-256 of a certificate in DER, lowercase hex. */
export function fingerprintOf(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex')
}

/** A fingerprint in the form in which people compare it, as OpenSSL and Node.js show it: `AA:BB:…`. */
export function fingerprintText(fingerprint: string): string {
  return fingerprint.toUpperCase().replace(/..(?=.)/g, '$&:')
}

/** SHA-256 of a certificate's public key (SubjectPublicKeyInfo in DER), lowercase hex; `der`: the certificate. */
export function keyFingerprintOf(der: Uint8Array): string {
  return fingerprintOf(new X509Certificate(der).publicKey.export({ type: 'spki', format: 'der' }))
}

function parse(pem: string, file: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new Error(
      `${file} holds no certificate: restore it, or remove it to have a new one made with the same key, which joined nodes go by`,
    )
  }
}

function checkKey(certificate: X509Certificate, keyFile: string): void {
  let key: KeyObject
  try {
    key = createPublicKey(readFileSync(keyFile, 'utf8'))
  } catch {
    throw new Error(
      `${keyFile} holds no private key: restore it, or remove it and the certificate to have new ones made`,
    )
  }
  if (!certificate.publicKey.equals(key)) {
    throw new Error(
      `${keyFile} is not the key of the certificate next to it: restore the right one, or remove the certificate to have one made with this key`,
    )
  }
}
