/** Links inside one process: the same handshake and session as over a socket, on a transport that is memory. */
import { acceptLink, type HubOptions } from './handshake-hub.ts'
import { joinLink, type NodeHandshakeOptions } from './handshake-node.ts'
import type { Dialled } from './link.ts'
import { type CloseCode, closeReason, deaf, type LinkTransport, type TransportHandlers } from './transport.ts'

/** Bytes on their way that make a sender wait. */
const HIGH_WATER = 256 * 1024

type Delivery = { readonly bytes: Uint8Array } | { readonly code: number; readonly reason: string }

/** One end of a connection in memory. What it sends waits until `deliver` hands it to the other end, in order. */
export class MemoryTransport implements LinkTransport {
  readonly remoteAddress: string
  handlers: TransportHandlers = deaf
  buffered = 0
  #peer!: MemoryTransport
  readonly #sent: Delivery[] = []
  readonly #schedule: (transport: MemoryTransport) => void
  #isClosed = false
  #isFull = false

  private constructor(remoteAddress: string, schedule: (transport: MemoryTransport) => void) {
    this.remoteAddress = remoteAddress
    this.#schedule = schedule
  }

  /**
   * Two ends. `schedule` is told of every transport that has one more thing to deliver; it must see to it that `deliver` is called, not
   * before it returns. Default: a microtask each.
   */
  static pair(
    schedule = (transport: MemoryTransport) => queueMicrotask(() => transport.deliver()),
    address = '',
  ): [MemoryTransport, MemoryTransport] {
    const one = new MemoryTransport(address, schedule)
    const other = new MemoryTransport(address, schedule)
    one.#peer = other
    other.#peer = one
    return [one, other]
  }

  send(bytes: Uint8Array): boolean {
    if (this.#isClosed) return true
    // Copied, as a socket would: the receiver owns what it gets.
    this.#sent.push({ bytes: new Uint8Array(bytes) })
    this.buffered += bytes.length
    if (this.buffered > HIGH_WATER) this.#isFull = true
    this.#schedule(this)
    return !this.#isFull
  }

  close(code: CloseCode, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sent.push({ code, reason: closeReason(reason) })
    this.#schedule(this)
  }

  /** Breaks the connection for both ends, what is on its way included. */
  cut(): void {
    for (const end of [this, this.#peer]) {
      end.#sent.length = 0
      end.buffered = 0
      if (end.#isClosed) continue
      end.#isClosed = true
      end.handlers.close(1006, '')
    }
  }

  /** Hands the oldest thing on its way to the other end; returns whether there was one. */
  deliver(): boolean {
    const delivery = this.#sent.shift()
    if (delivery === undefined) return false
    if ('bytes' in delivery) {
      this.buffered -= delivery.bytes.length
      if (!this.#peer.#isClosed) this.#peer.handlers.message(delivery.bytes)
      if (this.#isFull && this.buffered < HIGH_WATER / 2) {
        this.#isFull = false
        if (!this.#isClosed) this.handlers.drain()
      }
    } else if (!this.#peer.#isClosed) {
      this.#peer.#isClosed = true
      this.#peer.handlers.close(delivery.code, delivery.reason)
    }
    return true
  }
}

/** Joins or connects a node to a hub in the same process, as dialHub does over a socket; the hub's policy gets its session. */
export async function connectPair(hub: HubOptions, node: NodeHandshakeOptions, address = ''): Promise<Dialled> {
  const [hubTransport, nodeTransport] = MemoryTransport.pair(undefined, address)
  acceptLink(hubTransport, hub)
  return { ...(await joinLink(nodeTransport, new Uint8Array(0), node)), certificate: undefined }
}
