/** The certificate and key that the node's listeners show, read and checked before anything listens. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { keyFingerprintOf } from '../link/certificate.ts'
import { messageOf } from '../text/error-message.ts'
import { readSettingFile } from './setting-file.ts'

export interface Tls {
  readonly certFile: string
  readonly keyFile: string
  /** What the files hold, PEM. */
  readonly cert: Buffer
  readonly key: Buffer
  /** SHA-256 of the certificate, as `AA:BB:…`. */
  readonly fingerprint: string
  /** Set when the certificate is of no use today: expired, or not valid yet. */
  readonly warning?: string
}

/**
 * Reads a certificate (PEM, the node's own first, then those between it and its authority) and its key (PEM, not encrypted). Throws an
 * Error that names setting and file and says what is wrong with it; the key's bytes never appear in one. `now`: milliseconds since the epoch.
 */
export function readTls(files: { certificate: string; key: string }, now = Date.now(), setting = 'http.tls'): Tls {
  const cert = read(setting, 'certificate', files.certificate)
  const key = read(setting, 'key', files.key)
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(cert)
  } catch {
    throw new Error(`${setting}: ${files.certificate} holds no certificate in PEM form`)
  }
  if (!certificate.checkPrivateKey(privateKey(setting, files.key, key))) {
    throw new Error(`${setting}: the key in ${files.key} does not belong to the certificate in ${files.certificate}`)
  }
  const until = Date.parse(certificate.validTo)
  const from = Date.parse(certificate.validFrom)
  const warning =
    now > until
      ? `the certificate in ${files.certificate} expired on ${new Date(until).toISOString()}`
      : now < from
        ? `the certificate in ${files.certificate} is not valid before ${new Date(from).toISOString()}`
        : undefined
  return {
    certFile: files.certificate,
    keyFile: files.key,
    cert,
    key,
    fingerprint: certificate.fingerprint256,
    ...(warning === undefined ? {} : { warning }),
  }
}

/** SHA-256 of the public key of the node's own certificate, 32 bytes. */
export function certificateKeyOf({ cert }: Tls): Uint8Array {
  return Buffer.from(keyFingerprintOf(cert), 'hex')
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
