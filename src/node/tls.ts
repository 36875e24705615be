/** The certificate and key that the node's listeners show, read and checked before anything shows them. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { fingerprintOf, keyFingerprintOf } from '../link/certificate.ts'
import type { ShownCertificate } from '../link/link.ts'
import { messageOf } from '../text/error-message.ts'
import { readSettingFile } from './setting-file.ts'

export interface Tls extends Pem {
  readonly certFile: string
  readonly keyFile: string
  readonly certificate: ShownCertificate
  /** SHA-256 of the certificate, as `AA:BB:…`. */
  readonly fingerprint: string
  /** The certificate is valid between these, milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

export interface TlsFiles {
  readonly certificate: string
  readonly key: string
}

/**
 * Reads a certificate (PEM, the node's own first, then those between it and its authority) and its key (PEM, not encrypted). Throws an
 * Error that names setting and file and says what is wrong with it; the key's bytes never appear in one.
 */
export function readTls(files: TlsFiles, setting = 'http.tls'): Tls {
  return tlsOf(files, readPem(files, setting), setting)
}

/** What such files hold. */
export interface Pem {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Throws as readTls. */
export function readPem(files: TlsFiles, setting = 'http.tls'): Pem {
  return { cert: read(setting, 'certificate', files.certificate), key: read(setting, 'key', files.key) }
}

/** `pem` was read from `files`. Throws as readTls. */
export function tlsOf(files: TlsFiles, { cert, key }: Pem, setting = 'http.tls'): Tls {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(cert)
  } catch {
    throw new Error(`${setting}: ${files.certificate} holds no certificate in PEM form`)
  }
  if (!certificate.checkPrivateKey(privateKey(setting, files.key, key))) {
    throw new Error(`${setting}: the key in ${files.key} does not belong to the certificate in ${files.certificate}`)
  }
  checkChain(setting, files.certificate, cert, key)
  const [from, until] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (Number.isNaN(from) || Number.isNaN(until)) {
    throw new Error(`${setting}: the certificate in ${files.certificate} does not say when it is valid`)
  }
  return {
    certFile: files.certificate,
    keyFile: files.key,
    cert,
    key,
    certificate: {
      fingerprint: Buffer.from(fingerprintOf(certificate.raw), 'hex'),
      key: Buffer.from(keyFingerprintOf(cert), 'hex'),
    },
    fingerprint: certificate.fingerprint256,
    from,
    until,
  }
}

/** What lies behind the first certificate is only read here, and what OpenSSL does not let anybody use is told. */
function checkChain(setting: string, file: string, cert: Buffer, key: Buffer): void {
  try {
    createSecureContext({ ca: [], cert, key })
  } catch (error) {
    throw new Error(`${setting}: what ${file} holds cannot be used: ${messageOf(error)}`)
  }
}

function read(setting: string, what: string, file: string): Buffer {
  try {
    return readSettingFile(file)
  } catch (error) {
    throw new Error(`${setting}: cannot read the ${what} ${file}: ${messageOf(error)}`)
  }
}

function privateKey(setting: string, file: string, pem: Buffer): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    const isEncrypted =
      /ENCRYPTED/.test(pem.toString('latin1')) || (error as NodeJS.ErrnoException).code === 'ERR_MISSING_PASSPHRASE'
    throw new Error(
      isEncrypted
        ? `${setting}: the key in ${file} is encrypted; store it unencrypted, readable by the node's user only`
        : `${setting}: ${file} holds no private key in PEM form`,
    )
  }
}
