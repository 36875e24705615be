/** Both ends of the links between nodes and hub, and between servers of a hub, with the keys and the log of this node. */
import type { Logger } from 'pino'
import { isLoopbackHost, networkOf } from '../contract/address.ts'
import type { Clock } from '../contract/clock.ts'
import { ToldLately } from '../contract/told-lately.ts'
import { dialHub } from '../link/dial.ts'
import type { HubSigner } from '../link/hub-key.ts'
import type { Identity } from '../link/identity.ts'
import type { LinkEvent, LinkServer } from '../link/link.ts'
import { createLinkServer } from '../link/link-server.ts'
import type { HubPart, HubPartOptions } from './hub-part.ts'

interface LinkNeeds {
  readonly identity: Identity
  readonly signer: HubSigner | undefined
  readonly log: Logger
  readonly clock: Clock
}

interface DialNeeds extends LinkNeeds {
  /** SHA-256 of the public key of this node's own TLS certificate, 32 bytes; undefined: it has none. */
  readonly certificateKey: () => Uint8Array | undefined
}

/** What opens links to a hub, or to another server of this one. */
export function dialWith({ identity, signer, log, clock, certificateKey: ownKey }: DialNeeds): HubPartOptions['dial'] {
  return ({ hubKey, certificate, certificateKey, ...request }) => {
    const { address, intent } = request
    if (intent === 'JOIN' && address.protocol === 'http:' && !isLoopbackHost(address.hostname)) {
      log.warn(
        `${address.href} is to be joined without TLS: for trusted networks only; https keeps what is said from others`,
      )
    }
    return dialHub({
      ...request,
      identity,
      ...(intent === 'SERVER' ? { statement: signer?.statement(ownKey()) } : {}),
      clock,
      pinnedHubKey: hubKey,
      pinnedCertificate: certificate,
      pinnedCertificateKey: certificateKey,
      report: (event) => reportLink(log, event),
    })
  }
}

/** The hub's end of the links to its nodes. */
export function linkServer({ policy, servers }: HubPart, needs: LinkNeeds): LinkServer | undefined {
  const { identity, signer, log, clock } = needs
  if (policy === undefined) return undefined
  return createLinkServer({
    identity,
    signer,
    servers,
    policy,
    clock,
    report: reportStrangers(log),
  })
}

function reportLink(log: Logger, { kind, message, remoteAddress, peerId, reason, error }: LinkEvent, times = 1): void {
  const fields = {
    ...{ address: remoteAddress, node: peerId },
    ...(error === undefined ? {} : { err: error }),
    ...(times === 1 ? {} : { times }),
  }
  if (kind === 'failed') log.error(fields, `link: ${message}`)
  else if (kind === 'violation') log.warn(fields, `link: ${message}`)
  else if (isToldElsewhere(kind, reason)) log.debug(fields, `link: ${message}`)
  else log.info(fields, `link: ${message}`)
}

/** The end of the session, or of the request to join, tells the same. */
function isToldElsewhere(kind: LinkEvent['kind'], reason: LinkEvent['reason']): boolean {
  return kind === 'dead' || reason === 'REJECTED' || reason === 'TIMED_OUT'
}

/** As reportLink, of what anybody who reaches the hub can bring about: the same of one only now and then. */
function reportStrangers(log: Logger): (event: LinkEvent) => void {
  const told = new ToldLately()
  return (event) => {
    const { kind, message, remoteAddress, peerId = '', reason } = event
    const isRare = kind === 'failed' || isToldElsewhere(kind, reason)
    const times = isRare ? 1 : told.happened(`${networkOf(remoteAddress)} ${peerId} ${message}`)
    if (times !== undefined) reportLink(log, event, times)
  }
}
