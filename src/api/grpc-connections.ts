/** The TCP connections of the gRPC listener: accepted here, counted, handed to grpc-js, and closed when they are good for nothing. */
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { isLoopbackAddress, networkOf } from '../contract/address.ts'

/** Connections at once, at most; fewer where half of the descriptors the process may open are fewer. */
export const CONNECTIONS_MOST = 16_384
/** Of them from one address that is not loopback; an IPv6 network of 64 bits counts as one address. */
export const CONNECTIONS_MOST_PER_ADDRESS = 4_096
/** How long a connection may last before its first call with access, milliseconds. */
export const SILENT_MS = 60_000
/** Time between two looks at all connections, milliseconds. */
export const SWEEP_MS = 250
/** Refusals are told at most this often, milliseconds. */
const TELL_MS = 60_000

export interface GrpcConnectionLimits {
  readonly most?: number
  readonly mostPerAddress?: number
  readonly silentMs?: number
}

export interface GrpcConnectionsOptions {
  /** Takes a connection over. */
  readonly inject: (socket: Socket) => void
  /** Told, rarely, that connections are refused. */
  readonly warn: (message: string) => void
  readonly limits?: GrpcConnectionLimits
}

interface Connection {
  readonly socket: Socket
  readonly source: string
  readonly since: number
}

/**
 * grpc-js makes its HTTP/2 server inside and lets nobody see the connections, but takes such that were accepted elsewhere
 * (`createConnectionInjector`). So they are accepted here, which makes them ours to count and to close, TLS or not.
 *
 * One thing HTTP/2 in Node.js does not do: when the peer breaks the protocol, nghttp2 sends GOAWAY and wants no more to read, so Node.js
 * stops reading, tells nobody, and never learns that the peer has gone; the descriptor stays until a keep-alive ping fails, 50 s
 * later. Reading is therefore started again here, for every connection, at each look. nghttp2 drops what comes then; the peer's end or
 * reset arrives, and the connection is closed. No public API starts the reading of a socket whose handle HTTP/2 has taken over;
 * the handle's own `readStart` does, and changes nothing where reading goes on.
 */
export class GrpcConnections {
  readonly #options: GrpcConnectionsOptions
  readonly #most: number
  readonly #mostPerAddress: number
  readonly #silentMs: number
  readonly #servers: Server[] = []
  readonly #connections = new Set<Connection>()
  /** Those without a call so far, oldest first, by the peer's address and port as grpc-js writes them. */
  readonly #silent = new Map<string, Connection>()
  readonly #bySource = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #told = Number.NEGATIVE_INFINITY

  constructor(options: GrpcConnectionsOptions) {
    const { most, mostPerAddress = CONNECTIONS_MOST_PER_ADDRESS, silentMs = SILENT_MS } = options.limits ?? {}
    this.#options = options
    this.#most = most ?? Math.min(CONNECTIONS_MOST, Math.floor(descriptorLimit() / 2))
    this.#mostPerAddress = mostPerAddress
    this.#silentMs = silentMs
  }

  /** Listens on every address of `host`; returns the port, the same on all. Rejects with the system's error. */
  async listen(host: string, port: number): Promise<number> {
    let bound = port
    for (const { address } of await lookup(host, { all: true })) {
      const server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host: address, port: bound, exclusive: true }, () => {
          server.off('error', reject)
          resolve()
        })
      })
      // No descriptor for a newcomer: it is closed by the system, and those that are here go on.
      server.on('error', (error) => this.#tell(`a gRPC connection could not be accepted: ${error.message}`))
      this.#servers.push(server)
      bound = (server.address() as { port: number }).port
    }
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS)
    this.#timer.unref()
    return bound
  }

  /** A call of the peer (its address and port as grpc-js writes them) was given access. */
  admitted(peer: string): void {
    this.#silent.delete(peer)
  }

  /** Accepts no more. */
  stopListening(): void {
    for (const server of this.#servers.splice(0)) server.close()
  }

  /** Accepts no more and cuts what there is. */
  close(): void {
    this.stopListening()
    clearInterval(this.#timer)
    for (const { socket } of this.#connections) socket.destroy()
  }

  #accept(socket: Socket): void {
    const { remoteAddress, remotePort } = socket
    // The peer has gone already.
    if (remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const source = networkOf(remoteAddress)
    const ofSource = this.#bySource.get(source) ?? 0
    if (ofSource >= this.#mostPerAddress && !isLoopbackAddress(remoteAddress)) {
      socket.destroy()
      this.#tell(`gRPC connections from ${source} are refused: it has ${ofSource}, the most from one address`)
      return
    }
    if (this.#connections.size >= this.#most && !this.#makeRoom()) {
      socket.destroy()
      this.#tell(`gRPC connections are refused: all ${this.#most} places are taken`)
      return
    }
    const peer = `${remoteAddress}:${remotePort}`
    const connection = { socket, source, since: performance.now() }
    this.#connections.add(connection)
    this.#silent.set(peer, connection)
    this.#bySource.set(source, ofSource + 1)
    // Whoever takes it over hears of errors as well; before and after that nobody would.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#forget(peer, connection))
    this.#options.inject(socket)
  }

  #forget(peer: string, connection: Connection): void {
    const { source } = connection
    this.#connections.delete(connection)
    if (this.#silent.get(peer) === connection) this.#silent.delete(peer)
    const left = (this.#bySource.get(source) as number) - 1
    if (left === 0) this.#bySource.delete(source)
    else this.#bySource.set(source, left)
  }

  /** Closes the connection that has been silent for longest; false when none is silent. */
  #makeRoom(): boolean {
    for (const [peer, connection] of this.#silent) {
      this.#silent.delete(peer)
      connection.socket.destroy()
      return true
    }
    return false
  }

  #sweep(): void {
    const due = performance.now() - this.#silentMs
    for (const [peer, { since, socket }] of this.#silent) {
      if (since > due) break
      this.#silent.delete(peer)
      socket.destroy()
    }
    for (const { socket } of this.#connections) handleOf(socket)?.readStart()
  }

  #tell(message: string): void {
    const now = performance.now()
    if (now - this.#told < TELL_MS) return
    this.#told = now
    this.#options.warn(message)
  }
}

/** The part of a socket's handle that is used here; Node.js does not declare it. */
function handleOf(socket: Socket): { readStart(): number } | null | undefined {
  return (socket as unknown as { _handle?: { readStart(): number } | null })._handle
}

/** Descriptors this process may have open (proc(5)). */
function descriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    if (limit !== undefined) return Number(limit)
  } catch {}
  return 2 * CONNECTIONS_MOST
}
