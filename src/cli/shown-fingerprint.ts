/** Which certificate is shown at an address, for people to compare. */
import { connect } from 'node:tls'
import { withoutBrackets } from '../contract/address.ts'

/** How long is waited for it, ms. */
const PATIENCE_MS = 5_000

/** SHA-256 of the certificate that is shown at an HTTPS address, as `AA:BB:…`; undefined when there is none to see within 5 s. */
export function shownFingerprint(address: string): Promise<string | undefined> {
  const { hostname, port, protocol } = new URL(address)
  if (protocol !== 'https:') return Promise.resolve(undefined)
  const host = withoutBrackets(hostname)
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false, timeout: PATIENCE_MS })
    const done = (fingerprint?: string) => {
      socket.destroy()
      resolve(fingerprint)
    }
    socket.once('secureConnect', () => done(socket.getPeerCertificate().fingerprint256))
    socket.once('error', () => done())
    socket.once('timeout', () => done())
  })
}
