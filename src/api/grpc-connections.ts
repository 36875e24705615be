/** The TCP connections of the gRPC listener: accepted here, counted, handed to grpc-js, and closed when they flood or are good for nothing. */
import { lookup } from 'node:dns/promises'
import {
  constants,
  type Http2Server,
  type Http2Session,
  type Http2Stream,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { isLoopbackAddress, networkOf } from '../contract/address.ts'
import { ServiceError } from '../contract/errors.ts'
import { TELL_MS, ToldLately } from '../contract/told-lately.ts'
import { IdTable } from '../id-table.ts'
import { MIN_CONNECTIONS, openDescriptors } from '../open-descriptors.ts'
import { messageOf } from '../text/error-message.ts'
import { MAX_ALL_UNREAD_BYTES, UnreadAnswers } from './unread-answers.ts'

/** Connections at once, at most; fewer where half of the descriptors the process may open are fewer. */
const MAX_CONNECTIONS = 16_384
/** Of them from one address that is not loopback; an IPv6 network of 64 bits counts as one address. */
const MAX_CONNECTIONS_PER_ADDRESS = 4_096
/** How long a connection may last before its first call with access, milliseconds. */
const SILENT_MS = 60_000
/** Time between two looks at all connections, milliseconds. */
const SWEEP_MS = 250
/** Calls open at once on one connection, at most: a client holds back what goes beyond (RFC 9113, section 5.1.2). */
export const MAX_OPEN_CALLS = 250
/** Refused calls of one connection, at once, */
export const REFUSED_BURST = 100
/** and per second in the long run. */
const REFUSED_RATE = 10
/** Calls that the client of one connection cancels as soon as it has made them, at once, */
const CANCELLED_BURST = 250
/** and per second in the long run. */
const CANCELLED_RATE = 50
/** How old a call is at most, milliseconds, to be cancelled as soon as it was made. */
const CANCELLED_SOON_MS = 1000
/** Frames against the rules of HTTP/2 and calls beyond MAX_OPEN_CALLS, each, until a connection is ended. */
export const MAX_INVALID_FRAMES = 100
/** Calls beyond MAX_OPEN_CALLS until a connection is ended, where Node.js takes some for such that are not. */
const MAX_MISTAKEN_CALLS = 10_000
/** Frames of one call that wait here until what came before them is dealt with: each takes a hundred bytes and more, of whatever length it is. */
export const MAX_UNREAD_FRAMES = 2048
/** Answers that wait for the client of one connection to read them, bytes, beyond which its calls are refused. */
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024

export interface GrpcConnectionLimits {
  readonly most?: number
  readonly mostPerAddress?: number
  readonly silentMs?: number
}

export interface GrpcConnectionsOptions {
  /** Takes a connection over. */
  readonly inject: (socket: Socket) => void
  /** Told, rarely, that connections are refused or were ended. */
  readonly warn: Warn
  readonly limits?: GrpcConnectionLimits
}

/** Takes a line for the log, with what programs read of it. */
export type Warn = (message: string, fields?: Readonly<Record<string, string | number>>) => void

/** Why connections are ended, as the log says it. */
const FLOODS = {
  REFUSED_CALLS: `too many of its calls were refused (${REFUSED_BURST} at once, then ${REFUSED_RATE} a second)`,
  CANCELLED_CALLS: `it cancelled too many calls as soon as it had made them (${CANCELLED_BURST} at once, then ${CANCELLED_RATE} a second)`,
  INVALID_FRAMES: `it sent more than ${MAX_INVALID_FRAMES} frames or calls that HTTP/2 did not let it send`,
  UNREAD_FRAMES: `more than ${MAX_UNREAD_FRAMES} small frames of one of its calls waited to be read`,
} as const
type Flood = keyof typeof FLOODS

export interface GrpcConnection {
  readonly socket: Socket
  /** The peer's IP address, IPv4 in IPv6 as IPv4. */
  readonly address: string
  /** Both its ends, as `keyOf` writes them. */
  readonly ends: string
  readonly source: string
  readonly since: number
  readonly refused: Allowance
  readonly cancelled: Allowance
  /** No call of it was given access so far. */
  isSilent: boolean
  /** Bytes of answers that wait for the peer to read them. */
  unread: number
  /** It was told to go, and is cut at the next look. */
  ended: boolean
}

/** What a connection is told from others by, as sockets and grpc-js have it; the port here is the same for all. */
interface Ends {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  readonly localAddress?: string | undefined
}

/** A peer may have the same port for connections to several addresses of this machine. */
const keyOf = ({ remoteAddress, remotePort, localAddress }: Ends): string =>
  `${remoteAddress}:${remotePort} ${localAddress}`

/** So many at once, and so many per second in the long run (a token bucket). */
class Allowance {
  readonly #burst: number
  readonly #perMs: number
  #left: number
  #at = performance.now()

  constructor(burst: number, perSecond: number) {
    this.#burst = burst
    this.#perMs = perSecond / 1000
    this.#left = burst
  }

  /** Takes one; false when there is none. */
  take(): boolean {
    const now = performance.now()
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
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
  readonly #connections = new Set<GrpcConnection>()
  /** Those without a call so far, oldest first, by their ends. */
  readonly #silent = new Map<string, GrpcConnection>()
  readonly #bySource = new Map<string, number>()
  readonly #byEnds = new Map<string, GrpcConnection>()
  readonly #bySession = new WeakMap<ServerHttp2Session, GrpcConnection>()
  /** When a flood from an address was told last, and how many connections were ended since. */
  readonly #floods = new ToldLately()
  /** Those of all connections. */
  readonly answers = new UnreadAnswers()
  #timer: NodeJS.Timeout | undefined
  readonly #told = { refused: Number.NEGATIVE_INFINITY, closed: Number.NEGATIVE_INFINITY }
  /** No descriptor was left at the last look. */
  #areClosed = false

  constructor(options: GrpcConnectionsOptions) {
    const { most, mostPerAddress = MAX_CONNECTIONS_PER_ADDRESS, silentMs = SILENT_MS } = options.limits ?? {}
    this.#options = options
    this.#most = most ?? Math.min(MAX_CONNECTIONS, Math.floor(openDescriptors.limit / 2))
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
      server.on('error', (error) => this.#tell(() => `a gRPC connection could not be accepted: ${messageOf(error)}`))
      this.#servers.push(server)
      bound = (server.address() as { port: number }).port
    }
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS)
    this.#timer.unref()
    return bound
  }

  /**
   * Watches the calls of the connections that `server` takes over, and ends those that flood. To be called when the server's owner has
   * its own listener for streams: what that has answered at once, before anything of the request was read, counts as refused. `isBidi`: whether the
   * calls of a path take messages for as long as they last.
   */
  watch(server: Http2Server, isBidi: (path: string) => boolean): void {
    server.on('session', (session: ServerHttp2Session) => {
      const connection = this.from(session.socket)
      if (connection === undefined) return
      this.#bySession.set(session, connection)
      session.once('close', () => this.#bySession.delete(session))
      keepInIdTable(session)
      destroyBetweenReads(session, connection.socket)
    })
    server.on('sessionError', (error: NodeJS.ErrnoException, session: ServerHttp2Session) => {
      if (error.code === 'ERR_HTTP2_TOO_MANY_INVALID_FRAMES') this.#end(session, 'INVALID_FRAMES')
    })
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      const session = stream.session as ServerHttp2Session | undefined
      const connection = session === undefined ? undefined : this.#bySession.get(session)
      if (session === undefined || connection === undefined || session.destroyed) return
      if (stream.headersSent && stream.writableEnded) {
        // Nobody else does: a client that sends all of its request before it reads the answer would wait for room for ever.
        stream.resume()
        if (!connection.refused.take()) this.#end(session, 'REFUSED_CALLS')
        return
      }
      if (isBidi(headers[':path'] ?? '')) limitUnread(stream, () => this.#end(session, 'UNREAD_FRAMES'))
      const begun = performance.now()
      stream.once('aborted', () => {
        // The calls of a connection that ends are aborted too.
        if (session.destroyed || connection.socket.destroyed || performance.now() - begun > CANCELLED_SOON_MS) return
        if (!connection.cancelled.take()) this.#end(session, 'CANCELLED_CALLS')
      })
    })
  }

  /** The connection between these ends, as its socket has them; undefined when it has gone. */
  from(ends: Ends): GrpcConnection | undefined {
    return this.#byEnds.get(keyOf(ends))
  }

  /** `bytes` more wait for the connection's client to read them; negative: fewer. */
  hold(connection: GrpcConnection, bytes: number): void {
    connection.unread += bytes
    this.answers.hold(bytes)
  }

  /** A call of the connection was given access. Throws RESOURCE_EXHAUSTED when more answers than MAX_UNREAD_BYTES wait for its peer to read them. */
  admitted(connection: GrpcConnection): void {
    if (connection.isSilent) {
      connection.isSilent = false
      this.#silent.delete(connection.ends)
    }
    const { unread } = connection
    if (unread <= MAX_UNREAD_BYTES && (unread === 0 || !this.answers.areTooMany)) return
    throw new ServiceError(
      'RESOURCE_EXHAUSTED',
      unread > MAX_UNREAD_BYTES
        ? `answers of more than ${MAX_UNREAD_BYTES / 1024 / 1024} MiB wait on this connection: read them before you call again`
        : `answers of more than ${MAX_ALL_UNREAD_BYTES / 1024 / 1024} MiB wait for those who asked for them, here too: read them before you call again`,
    )
  }

  #end(session: ServerHttp2Session, flood: Flood): void {
    const connection = this.#bySession.get(session)
    if (connection === undefined || connection.ended) return
    connection.ended = true
    session.destroy(new Error(FLOODS[flood]), constants.NGHTTP2_ENHANCE_YOUR_CALM)
    this.#tellFlood(connection.source, flood)
  }

  #tellFlood(source: string, flood: Flood): void {
    const connections = this.#floods.happened(source)
    if (connections === undefined) return
    const message = `a gRPC connection from ${source} was ended: ${FLOODS[flood]}`
    this.#options.warn(message, { address: source, reason: flood, connections })
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
    const { remoteAddress } = socket
    // The peer has gone already.
    if (remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const source = networkOf(remoteAddress)
    const ofSource = this.#bySource.get(source) ?? 0
    if (ofSource >= this.#mostPerAddress && !isLoopbackAddress(remoteAddress)) {
      socket.destroy()
      this.#tell(() => `gRPC connections from ${source} are refused: it has ${ofSource}, the most from one address`)
      return
    }
    const isFull = this.#connections.size >= this.#most
    const isFew = this.#connections.size < MIN_CONNECTIONS && !openDescriptors.areGone
    if ((isFull || (openDescriptors.areShort && !isFew)) && !this.#makeRoom()) {
      socket.destroy()
      const why = () => (isFull ? `all ${this.#most} places are taken` : openDescriptors.text)
      this.#tell(() => `gRPC connections are refused: ${why()}`)
      return
    }
    const ends = keyOf(socket)
    const connection: GrpcConnection = {
      socket,
      address: remoteAddress.replace(/^::ffff:(?=\d+\.)/i, ''),
      ends,
      source,
      since: performance.now(),
      refused: new Allowance(REFUSED_BURST, REFUSED_RATE),
      cancelled: new Allowance(CANCELLED_BURST, CANCELLED_RATE),
      isSilent: true,
      unread: 0,
      ended: false,
    }
    this.#connections.add(connection)
    openDescriptors.changed(1)
    this.#byEnds.set(ends, connection)
    this.#silent.set(ends, connection)
    this.#bySource.set(source, ofSource + 1)
    // Whoever takes it over hears of errors as well; before and after that nobody would.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#forget(connection))
    this.#options.inject(socket)
  }

  #forget(connection: GrpcConnection): void {
    const { source, ends } = connection
    this.#connections.delete(connection)
    openDescriptors.changed(-1)
    if (this.#silent.get(ends) === connection) this.#silent.delete(ends)
    if (this.#byEnds.get(ends) === connection) this.#byEnds.delete(ends)
    const left = (this.#bySource.get(source) as number) - 1
    if (left === 0) this.#bySource.delete(source)
    else this.#bySource.set(source, left)
  }

  /** Closes the connection that has been silent for longest; false when none is silent. */
  #makeRoom(): boolean {
    for (const [ends, connection] of this.#silent) {
      this.#silent.delete(ends)
      connection.socket.destroy()
      return true
    }
    return false
  }

  #sweep(): void {
    const now = performance.now()
    const due = now - this.#silentMs
    for (const [ends, { since, socket }] of this.#silent) {
      if (since > due) break
      this.#silent.delete(ends)
      socket.destroy()
    }
    for (const { socket, ended } of this.#connections) {
      if (ended) socket.destroy()
      else handleOf(socket)?.readStart()
    }
    // Node.js keeps a descriptor to accept newcomers with where there is no other, in order to close them, and tells nobody. One that is left may be
    // what HTTP kept for the same (http-connections.ts): a moment ago there was none.
    const areClosed = openDescriptors.left <= 1 || openDescriptors.areRefused
    if (areClosed && this.#areClosed && this.#told.closed + TELL_MS <= now) {
      this.#told.closed = now
      this.#options.warn(`gRPC connections are closed as they come: ${openDescriptors.text}`)
    }
    this.#areClosed = areClosed
  }

  /** `message` is asked for only when it is told: what it says may have to be found out. */
  #tell(message: () => string): void {
    const now = performance.now()
    if (now - this.#told.refused < TELL_MS) return
    this.#told.refused = now
    this.#options.warn(message())
  }
}

/**
 * Node.js from 22 on counts a cancelled call as open until the whole piece of bytes is dealt with in which its cancellation came. A client
 * that cancels calls and makes as many new ones at once then has those refused (ENHANCE_YOUR_CALM) though it kept to the limit, and no
 * option makes Node.js look again. It may make them again: its connection, with all other calls on it, is not ended for that.
 */
export const COUNTS_CANCELLED_CALLS = !process.versions.node.startsWith('20.')

/** Calls beyond MAX_OPEN_CALLS until a connection is ended, here. */
export const MAX_REJECTED_CALLS = COUNTS_CANCELLED_CALLS ? MAX_MISTAKEN_CALLS : MAX_INVALID_FRAMES

/**
 * Has a session destroyed, by whomever, once what has been read of `socket` is dealt with; nothing more is read. A peer can bring it about amid a
 * piece of bytes: by a flood, or by a GOAWAY with an error. Destroyed there with other calls open, Node.js 20 may never come back and take all
 * memory, and Node.js 22.23 aborts (https://github.com/nodejs/node/issues/64850).
 *
 * One that is over must not lead to its socket. What tells of its close keeps the error that ended it, whose stack keeps the native session, and that
 * keeps the settings that the peer has not acknowledged, and with them the session: neither would ever be collected.
 */
function destroyBetweenReads(session: ServerHttp2Session, socket: Socket): void {
  const destroy = session.destroy.bind(session)
  let isDue = false
  session.destroy = (error, code) => {
    if (isDue) return
    isDue = true
    handleOf(socket)?.readStop()
    setImmediate(() => {
      session.destroy = destroy
      destroy(error, code)
    })
  }
}

/** Tells once more than MAX_UNREAD_FRAMES may wait of a stream that is read at the pace of its handler; what waits of others is read at once. */
function limitUnread(stream: ServerHttp2Stream, tooMany: () => void): void {
  const push = stream.push.bind(stream)
  let unread = 0
  stream.push = (bytes, encoding) => {
    // Each that waits has a byte at least.
    unread = Math.min(unread, stream.readableLength) + 1
    if (unread > MAX_UNREAD_FRAMES) tooMany()
    return push(bytes, encoding)
  }
}

/**
 * Node.js keeps the open streams of a session in a Map, where each call that is over would be copied until it is in the old generation
 * (see IdTable), which takes a quarter of the CPU time of calls. Where Node.js keeps them elsewhere, they stay there.
 */
function keepInIdTable(session: Http2Session): void {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state')
  const state = symbol && (session as unknown as Record<symbol, { streams?: { size?: unknown } } | undefined>)[symbol]
  if (state?.streams?.size === 0) state.streams = new IdTable<Http2Stream>()
}

/** The part of a socket's handle that is used here; Node.js does not declare it. */
interface ReadingHandle {
  readStart(): number
  readStop(): number
}

function handleOf(socket: Socket): ReadingHandle | null | undefined {
  return (socket as unknown as { _handle?: ReadingHandle | null })._handle
}
