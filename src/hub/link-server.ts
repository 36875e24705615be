/** The hub's end of all links on its HTTP listener (uWebSockets.js): who may connect, how many at once before they have proven a key. */
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t, WebSocket } from 'uWebSockets.js'
import { LINK_PATH, SUBPROTOCOL } from './dial.ts'
import { acceptLink, type HubHandshake, type HubOptions } from './handshake-hub.ts'
import { FRAME_BYTES } from './messages.ts'
import { BACKLOG_BYTES } from './multiplexer.ts'
import type { LinkServer } from './session.ts'
import { type CloseCode, closeReason, deaf, type Wire, type WireHandlers } from './wire.ts'

/** How long what one link has sent is handled before everything else has its turn, milliseconds. */
const SLICE_MS = 10
/** What may wait to be handled, bytes; each message counts as so many more. */
const INBOX_BYTES = 64 * 1024 * 1024
const ARRIVAL_OVERHEAD = 256

export interface LinkServerOptions extends HubOptions {
  /** Connections that have not proven a key yet: in all (default 1024), and from one address that is not loopback (default 64). */
  readonly unprovenLimit?: number
  readonly unprovenPerAddress?: number
  /** What a link may have sent that waits to be handled, bytes (default 64 MiB), each message with 256 more. Beyond that it is cut off. */
  readonly inboxLimit?: number
}

interface SocketData {
  readonly remoteAddress: string
  wire: UwsWire | undefined
}

export function createLinkServer(options: LinkServerOptions): LinkServer {
  return new UwsLinkServer(options)
}

class UwsLinkServer implements LinkServer {
  readonly #options: LinkServerOptions
  readonly #unproven = new Map<string, number>()
  readonly #links = new Map<UwsWire, HubHandshake>()
  #unprovenCount = 0
  #isClosed = false

  constructor(options: LinkServerOptions) {
    this.#options = options
  }

  attach(app: TemplatedApp): void {
    app.ws<SocketData>(LINK_PATH, {
      maxPayloadLength: FRAME_BYTES,
      // The session stops well before; what is left is a wire that nobody watches.
      maxBackpressure: 4 * BACKLOG_BYTES,
      closeOnBackpressureLimit: true,
      // Heartbeats of the session do better.
      idleTimeout: 0,
      sendPingsAutomatically: false,
      upgrade: (response, request, context) => this.#upgrade(response, request, context),
      open: (socket) => this.#open(socket),
      message: (socket, message, isBinary) => socket.getUserData().wire?.received(message, isBinary),
      drain: (socket) => socket.getUserData().wire?.drained(),
      close: (socket, code, message) => {
        const { wire } = socket.getUserData()
        if (wire === undefined) return
        this.#links.delete(wire)
        wire.lost(code, Buffer.from(message).toString())
      },
    })
  }

  close(): void {
    this.#isClosed = true
    for (const link of [...this.#links.values()]) link.shutdown()
  }

  #upgrade(response: HttpResponse, request: HttpRequest, context: us_socket_context_t): void {
    const remoteAddress = addressText(Buffer.from(response.getRemoteAddressAsText()).toString())
    const refusal = this.#refusal(remoteAddress, request)
    if (refusal !== undefined) {
      response.cork(() => {
        response.writeStatus(refusal).writeHeader('content-type', 'text/plain').end(`${refusal}\n`, true)
      })
      return
    }
    this.#count(remoteAddress, 1)
    response.upgrade<SocketData>(
      { remoteAddress, wire: undefined },
      request.getHeader('sec-websocket-key'),
      SUBPROTOCOL,
      request.getHeader('sec-websocket-extensions'),
      context,
    )
  }

  #refusal(remoteAddress: string, request: HttpRequest): string | undefined {
    // Nodes send no Origin, browsers always do.
    if (request.getHeader('origin') !== '') return '403 Forbidden'
    const offered = request.getHeader('sec-websocket-protocol').split(',')
    if (!offered.some((name) => name.trim() === SUBPROTOCOL)) return '400 Bad Request'
    if (this.#isClosed) return '503 Service Unavailable'
    const { unprovenLimit = 1024, unprovenPerAddress = 64 } = this.#options
    const perAddress = isLoopback(remoteAddress) ? unprovenLimit : unprovenPerAddress
    if (this.#unprovenCount >= unprovenLimit || (this.#unproven.get(remoteAddress) ?? 0) >= perAddress) {
      return '429 Too Many Requests'
    }
    return undefined
  }

  #count(address: string, change: number): void {
    this.#unprovenCount += change
    const count = (this.#unproven.get(address) ?? 0) + change
    if (count > 0) this.#unproven.set(address, count)
    else this.#unproven.delete(address)
  }

  #open(socket: WebSocket<SocketData>): void {
    const data = socket.getUserData()
    const wire = new UwsWire(socket, data.remoteAddress, this.#options.inboxLimit ?? INBOX_BYTES)
    data.wire = wire
    this.#links.set(
      wire,
      acceptLink(wire, this.#options, () => this.#count(data.remoteAddress, -1)),
    )
  }
}

type Arrival = Uint8Array | string | { readonly code: number; readonly reason: string }

/**
 * A wire over a WebSocket of uWebSockets.js. What arrives is handled in the turn after: with TLS, a write to any socket from within a read
 * makes uSockets forget the rest of what it has read (us_internal_ssl_socket_write resets the input), and handling a message writes.
 * It is handled a slice at a time, so that one link's flood neither holds up the others nor has its calls begun all at once.
 */
class UwsWire implements Wire {
  readonly remoteAddress: string
  handlers: WireHandlers = deaf
  readonly #socket: WebSocket<SocketData>
  readonly #inboxLimit: number
  #inbox: (Arrival | undefined)[] = []
  /** Where the inbox goes on. */
  #next = 0
  /** What waits in the inbox, bytes. */
  #waiting = 0
  #isScheduled = false
  /** Too much has arrived: what follows is of no interest. */
  #isFlooded = false
  /** Closed by this side: nothing is handled any more. */
  #isClosed = false
  /** The socket must not be touched any more. */
  #isGone = false

  constructor(socket: WebSocket<SocketData>, remoteAddress: string, inboxLimit: number) {
    this.#socket = socket
    this.remoteAddress = remoteAddress
    this.#inboxLimit = inboxLimit
  }

  get buffered(): number {
    return this.#isGone ? 0 : this.#socket.getBufferedAmount()
  }

  send(bytes: Uint8Array): boolean {
    // 1: sent, 0: kept until the socket drains, 2: beyond maxBackpressure, which closes the socket.
    return this.#isGone || this.#socket.send(bytes, true) === 1
  }

  close(code: CloseCode, reason: string): void {
    this.#isClosed = true
    this.#empty()
    if (this.#isGone) return
    this.#isGone = true
    this.#socket.end(code, closeReason(reason))
  }

  received(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#isClosed || this.#isFlooded) return
    this.#waiting += message.byteLength + ARRIVAL_OVERHEAD
    if (this.#waiting > this.#inboxLimit) {
      this.#isFlooded = true
      this.#empty()
      this.#arrived('frames come faster than they can be handled')
      return
    }
    // Copied: the memory is only lent.
    this.#arrived(isBinary ? Buffer.from(new Uint8Array(message)) : 'a text message')
  }

  drained(): void {
    if (!this.#isGone) this.handlers.drain()
  }

  lost(code: number, reason: string): void {
    this.#isGone = true
    this.#arrived({ code, reason })
  }

  #empty(): void {
    this.#inbox = []
    this.#next = 0
    this.#waiting = 0
  }

  #arrived(arrival: Arrival): void {
    if (this.#isClosed) return
    this.#inbox.push(arrival)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#handle())
  }

  #handle(): void {
    this.#isScheduled = false
    if (this.#isGone) this.#deliver()
    // Answers leave together.
    else this.#socket.cork(() => this.#deliver())
    if (this.#next < this.#inbox.length) this.#schedule()
    else this.#empty()
  }

  #deliver(): void {
    const end = performance.now() + SLICE_MS
    do {
      const arrival = this.#inbox[this.#next]
      if (arrival === undefined) return
      this.#inbox[this.#next++] = undefined
      if (arrival instanceof Uint8Array) {
        this.#waiting -= arrival.length + ARRIVAL_OVERHEAD
        this.handlers.message(arrival)
      } else if (typeof arrival === 'string') this.handlers.foreign(arrival)
      else this.handlers.close(arrival.code, arrival.reason)
    } while (performance.now() < end)
  }
}

/** The shortest text of an address: uWebSockets.js writes IPv6 in full, IPv4 within IPv6. */
function addressText(text: string): string {
  if (!text.includes(':')) return text
  const short = new URL(`http://[${text}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(short)
  if (mapped === null) return short
  const words = mapped.slice(1).map((word) => Number.parseInt(word, 16))
  return words.flatMap((word) => [word >> 8, word & 255]).join('.')
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}
