/** The hub's end of all links on its HTTP listener (uWebSockets.js): who may connect, how many at once before they have proven a key. */
import type { WebSocket } from 'uWebSockets.js'
import { isLoopbackAddress, networkOf } from '../contract/address.ts'
import { LINK_PATH, SUBPROTOCOL } from './dial.ts'
import { loadSignatures } from './ed25519.ts'
import { acceptLink, type HubHandshake, type HubOptions } from './handshake-hub.ts'
import { Inboxes, UwsTransport } from './inbox.ts'
import type { LinkServer, LinkSession, ShownCertificate, SocketHost, Upgrade, UpgradeRequest } from './link.ts'
import { MAX_RECEIVE_BYTES } from './messages.ts'
import { MAX_BACKLOG_BYTES } from './session.ts'

/** What an admitted link may have sent that waits to be handled, bytes. */
const MAX_INBOX_BYTES = 64 * 1024 * 1024
/**
 * Connections that have not proven a key yet: what a hub can hear out in the time that a handshake has, so that nodes that come back together wait
 * for their turn, and are not sent away to try again.
 */
const MAX_UNPROVEN = 4096
/** The same from one address that is not loopback. */
const MAX_UNPROVEN_PER_ADDRESS = 64
/** Messages of a peer that may wait to be handled: it has one to send, then it waits for the answer. */
const MAX_UNPROVEN_MESSAGES = 1
/** While its request to join is pending: pings and pongs, some seconds apart. */
const MAX_UNADMITTED_MESSAGES = 8
/**
 * In a session: beyond what a peer has that keeps to the protocol, which is MAX_FRAMES_IN_FLIGHT, then a Cancel or End of each of its 20,000
 * streams, and an answer to each frame that this side has in flight.
 */
const MAX_MEMBER_MESSAGES = 65_536

export interface LinkServerOptions extends Omit<HubOptions, 'certificate'> {
  /**
   * Connections that have not proven a key yet: in all (default MAX_UNPROVEN), and from one address that is not loopback (default
   * MAX_UNPROVEN_PER_ADDRESS); an IPv6 /64 counts as one address.
   */
  readonly unprovenLimit?: number
  readonly unprovenPerAddress?: number
  /** What a link may have sent that waits to be handled, bytes (default 64 MiB), each message with 256 more. Beyond that it is cut off. */
  readonly inboxLimit?: number
}

interface LinkSocketData {
  readonly remoteAddress: string
  readonly certificate: ShownCertificate | undefined
  transport: UwsTransport | undefined
}

/** Throws ServiceError (FAILED_PRECONDITION) where nothing can be signed. */
export function createLinkServer(options: LinkServerOptions): LinkServer {
  loadSignatures()
  return new UwsLinkServer(options)
}

class UwsLinkServer implements LinkServer {
  readonly #options: LinkServerOptions
  readonly #unproven = new Map<string, number>()
  /** Connections, as handshakes first and then as the sessions that came of them. */
  readonly #links = new Map<UwsTransport, HubHandshake | LinkSession>()
  readonly #inboxes = new Inboxes()
  #unprovenCount = 0
  #isClosed = false

  constructor(options: LinkServerOptions) {
    this.#options = options
  }

  attach(host: SocketHost): void {
    const behavior = {
      maxPayloadLength: MAX_RECEIVE_BYTES,
      // The session stops well before; what is left is a transport that nobody watches.
      maxBackpressure: 4 * MAX_BACKLOG_BYTES,
      closeOnBackpressureLimit: true,
      // Heartbeats of the session do better.
      idleTimeout: 0,
      sendPingsAutomatically: false,
      open: (socket: WebSocket<LinkSocketData>) => this.#open(socket),
      message: (socket: WebSocket<LinkSocketData>, message: ArrayBuffer, isBinary: boolean) =>
        socket.getUserData().transport?.received(message, isBinary),
      ping: (socket: WebSocket<LinkSocketData>) => socket.getUserData().transport?.controlled(),
      pong: (socket: WebSocket<LinkSocketData>) => socket.getUserData().transport?.controlled(),
      drain: (socket: WebSocket<LinkSocketData>) => socket.getUserData().transport?.drained(),
      close: (socket: WebSocket<LinkSocketData>, code: number, message: ArrayBuffer) => {
        const { transport } = socket.getUserData()
        if (transport === undefined) return
        this.#links.delete(transport)
        transport.lost(code, Buffer.from(message).toString())
      },
    }
    host.webSocket<LinkSocketData>(LINK_PATH, behavior, (request) => this.#upgrade(request))
  }

  close(): void {
    this.#isClosed = true
    for (const link of [...this.#links.values()]) link.close('SHUTDOWN', 'the hub is shutting down')
  }

  #upgrade(request: UpgradeRequest): Upgrade<LinkSocketData> {
    const { remoteAddress, certificate } = request
    const status = this.#refusal(request)
    if (status !== undefined) {
      return { status, headers: { 'content-type': 'text/plain' }, body: `${status}\n`, close: true }
    }
    this.#count(remoteAddress, 1)
    return { data: { remoteAddress, certificate, transport: undefined }, protocol: SUBPROTOCOL }
  }

  #refusal({ remoteAddress, header }: UpgradeRequest): string | undefined {
    // Nodes send no Origin, browsers always do.
    if (header('origin') !== '') return '403 Forbidden'
    const offered = header('sec-websocket-protocol').split(',')
    if (!offered.some((name) => name.trim() === SUBPROTOCOL)) return '400 Bad Request'
    if (this.#isClosed) return '503 Service Unavailable'
    const { unprovenLimit = MAX_UNPROVEN, unprovenPerAddress = MAX_UNPROVEN_PER_ADDRESS } = this.#options
    const perAddress = isLoopbackAddress(remoteAddress) ? unprovenLimit : unprovenPerAddress
    if (this.#unprovenCount >= unprovenLimit || (this.#unproven.get(networkOf(remoteAddress)) ?? 0) >= perAddress) {
      return '429 Too Many Requests'
    }
    return undefined
  }

  #count(address: string, change: number): void {
    const network = networkOf(address)
    this.#unprovenCount += change
    const count = (this.#unproven.get(network) ?? 0) + change
    if (count > 0) this.#unproven.set(network, count)
    else this.#unproven.delete(network)
  }

  #open(socket: WebSocket<LinkSocketData>): void {
    const data = socket.getUserData()
    const { inboxLimit = MAX_INBOX_BYTES } = this.#options
    const transport = new UwsTransport(socket, data.remoteAddress, this.#inboxes, inboxLimit, MAX_UNPROVEN_MESSAGES)
    data.transport = transport
    const proven = () => {
      this.#count(data.remoteAddress, -1)
      transport.mayWait = MAX_UNADMITTED_MESSAGES
    }
    const admitted = (session: LinkSession) => {
      // The connection may be over, with the word of that still in the inbox.
      if (this.#links.has(transport)) this.#links.set(transport, session)
      transport.mayWait = MAX_MEMBER_MESSAGES
      transport.isMember = true
    }
    const options = { ...this.#options, certificate: data.certificate }
    this.#links.set(transport, acceptLink(transport, options, { proven, admitted }))
  }
}
