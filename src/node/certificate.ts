/** The certificate that the node's listeners show, from files or of its own making, and what is dangerous about doing without. */
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { isLoopbackHost } from '../contract/address.ts'
import type { Clock } from '../contract/clock.ts'
import { autoCertificate } from '../link/certificate.ts'
import { ipv6Bytes } from '../text/ipv6-bytes.ts'
import { hostAndPort } from './config-values.ts'
import { CurrentCertificate } from './current-certificate.ts'
import type { NodeConfig } from './settings.ts'
import type { TlsFiles } from './tls.ts'

/** The certificate for all listeners; undefined: none. Says what is dangerous about the addresses chosen. */
export function certificateOf(config: NodeConfig, log: Logger, clock: Clock): CurrentCertificate | undefined {
  const setting = config['http.tls']
  if (setting !== 'none') {
    return new CurrentCertificate({ files: certificateFiles(config, log), isOwn: setting === 'auto', log, clock })
  }
  for (const key of ['http.address', 'grpc.address'] as const) {
    if (config[key] === 'none' || isLoopbackHost(hostAndPort(config[key]).address)) continue
    log.warn(`${key} ${config[key]} is served without TLS: for trusted networks only; see http.tls`)
  }
  return undefined
}

/** The files of `http.tls`; `auto` makes them, for every name that callers are told to use and every address listened on. */
function certificateFiles(config: NodeConfig, log: Logger): TlsFiles {
  const setting = config['http.tls']
  if (typeof setting === 'object') return setting
  const listening = [config['http.address'], config['grpc.address']]
    .filter((address) => address !== 'none')
    .map((address) => hostAndPort(address).address)
  const hostnames = [hostname(), ...config['http.hostnames'], ...listening.flatMap(addressesOf)]
  const { certFile, keyFile, renewed } = autoCertificate({
    directory: config.dataDirectory,
    hostnames: [...new Set(hostnames)],
    isAnyAddress: listening.some(isEveryAddress),
  })
  if (renewed !== undefined) {
    log.warn(
      `http.tls: auto has renewed the certificate, for ${renewed}. Its key is the same: nodes that have joined stay. Commands that were given the last one with --ca or --fingerprint take the new one, ${certFile}`,
    )
  }
  return { certificate: certFile, key: keyFile }
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || (isIP(host) === 6 && !ipv6Bytes(host).some((byte) => byte !== 0))
}

/** What a listener on `host` can be reached by: of a wildcard, the machine's addresses as they are now. */
function addressesOf(host: string): string[] {
  if (!isEveryAddress(host)) return [host]
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, scopeid = 0 }) => scopeid === 0 && (family === 'IPv4' || host !== '0.0.0.0'))
    .map(({ address }) => address)
}
