/** A server's connection to NATS JetStream: opened, checked, and opened anew whenever it breaks; nothing is kept for a connection that comes later. */
import { connect, credsAuthenticator, errors, type NatsConnection, type TlsOptions } from '@nats-io/transport-node'
import type { Timers } from '../../contract/clock.ts'
import { tlsFault } from '../../link/tls-error.ts'
import { messageOf } from '../../text/error-message.ts'
import { answering, placeOf } from './answering.ts'
import {
  type BucketOptions,
  type Buckets,
  EngineUnfit,
  openBuckets,
  REQUEST_MS,
  saferVersion,
  unfitnessOf,
} from './buckets.ts'
import type { HubKey } from './entries.ts'

/** Between attempts to connect, milliseconds; a connection that stands for the latter lasts. */
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 2_000
/** A NATS server that answers no ping is given up after two of these, milliseconds. */
const PING_MS = 2_000
/** How long the answer to one may take, when no renewal was answered; milliseconds. */
const MAX_PONG_MS = 500
/** How long a server that starts waits for an engine that is there but has no leader yet, milliseconds. */
export const START_MS = 30_000

/** What this server and the NATS servers show each other. */
export interface EngineAccess {
  /** What is in the credentials file. */
  readonly credentials?: Uint8Array
  readonly login?: { readonly user: string; readonly password: string }
  readonly tls?: TlsOptions
  /** What of these is out of its time, and since when: NATS servers say no more than that they do not accept it. */
  readonly outOfTime?: string | undefined
}

export interface EngineOptions extends BucketOptions {
  /** `host:port`, or `nats://` and `tls://` addresses. */
  readonly servers: readonly string[]
  /** As it is now, asked for each connection: it may have been renewed since the last one. Throws an Error where it cannot be had; absent: none is needed. */
  readonly access?: () => EngineAccess
  /** What this server is called in the NATS servers' lists of connections. */
  readonly connectionName: string
  readonly timers: Timers
  readonly onFact?: (fact: EngineFact) => void
  /** Ends a wait for the engine. */
  readonly signal?: AbortSignal
}

export type EngineFact =
  | { readonly kind: 'connected'; readonly server: string }
  /** A change may be lost there: two at the same revision may both be acknowledged before version `safer`. */
  | { readonly kind: 'outdated'; readonly server: string; readonly version: string; readonly safer: string }
  | { readonly kind: 'lost'; readonly server: string; readonly error: unknown }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** A NATS server does not accept this one, is not accepted by it, or is unfit; there is a connection to another. */
  | { readonly kind: 'unusable'; readonly error: EngineUnfit }

/** One connection, for as long as it lasts. */
export interface EngineSession extends Buckets {
  readonly closed: Promise<unknown>
}

export class Engine {
  readonly #options: EngineOptions
  readonly #listeners: ((session: EngineSession | undefined) => void)[] = []
  #connection: NatsConnection | undefined
  #session: EngineSession | undefined
  /** The buckets as they were opened last. */
  #known: Buckets | undefined
  #retry: unknown
  /** Before the next attempt to connect; grows while none makes a connection that lasts. */
  #retryMs = MIN_RETRY_MS
  /** Takes the connection for one that lasts. */
  #lasting: unknown
  /** Why there is no connection, where that is known. */
  #failure: unknown
  /** Why this server ends the connection that there is. */
  #givenUpFor: Error | undefined
  /** The connection that waits for the answer to a ping. */
  #tried: NatsConnection | undefined
  #isClosed = false

  private constructor(options: EngineOptions) {
    this.#options = options
  }

  /**
   * Connects, checks and makes the buckets. Throws EngineUnfit when the engine is reached and is not what it should be, nothing having been
   * written, or when it is not reached within START_MS; the reason of the signal when that ends the wait.
   */
  static async open(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options)
    const { timers, onFact, signal } = options
    let isLate = false
    const timer = timers.setTimeout(() => {
      isLate = true
    }, START_MS)
    try {
      for (;;) {
        try {
          await engine.#connect()
          return engine
        } catch (error) {
          if (error instanceof EngineUnfit) throw error
          signal?.throwIfAborted()
          onFact?.({ kind: 'failed', error })
          if (isLate) throw notInTime(options.servers, error)
        }
        await new Promise<void>((resolve) => timers.setTimeout(resolve, MIN_RETRY_MS))
      }
    } finally {
      timers.clearTimeout(timer)
    }
  }

  /** The connection there is. */
  get session(): EngineSession | undefined {
    return this.#session
  }

  /** Why there is no connection, where that is known. */
  get failure(): unknown {
    return this.#failure
  }

  /** Whose buckets they are; there is one once it is open. */
  get hub(): HubKey {
    return (this.#known as Buckets).hub
  }

  /** Hears of every connection that stands from now on, and of its end. */
  follow(listener: (session: EngineSession | undefined) => void): void {
    this.#listeners.push(listener)
  }

  /** Gives the connection up for another; `reason` is told with its loss. */
  reconnect(reason?: Error): void {
    this.#givenUpFor ??= reason
    void this.#connection?.close()
  }

  /** As `reconnect`, if the NATS server at the other end answers no ping. */
  reconnectIfDead(): void {
    const connection = this.#connection
    if (connection === undefined || connection === this.#tried) return
    this.#tried = connection
    const { timers } = this.#options
    const timer = timers.setTimeout(() => this.reconnect(new Error('it answers no ping')), MAX_PONG_MS)
    connection
      .flush()
      .catch(() => connection.close())
      .finally(() => {
        timers.clearTimeout(timer)
        this.#tried = undefined
      })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.timers.clearTimeout(this.#retry)
    this.#options.timers.clearTimeout(this.#lasting)
    await this.#connection?.close()
  }

  async #connect(): Promise<void> {
    const { connection, unusable } = await this.#dial()
    let buckets: Buckets
    try {
      buckets = await openBuckets(connection, this.#options, this.#known)
    } catch (error) {
      await connection.close()
      throw error
    }
    if (this.#isClosed || connection.isClosed()) {
      await connection.close()
      throw new Error('the connection was closed while it was being set up')
    }
    const closed = connection.closed().then((error) => {
      this.#lost(connection, error ?? undefined)
      return error ?? undefined
    })
    this.#failure = undefined
    this.#givenUpFor = undefined
    this.#lasting = this.#options.timers.setTimeout(() => {
      this.#retryMs = MIN_RETRY_MS
    }, MAX_RETRY_MS)
    this.#connection = connection
    this.#known = buckets
    this.#session = { ...buckets, closed }
    const server = connection.getServer()
    this.#options.onFact?.({ kind: 'connected', server })
    for (const error of unusable) this.#options.onFact?.({ kind: 'unusable', error })
    const safer = saferVersion(connection, this.#options.replicas)
    const version = connection.info?.version ?? ''
    if (safer !== undefined) this.#options.onFact?.({ kind: 'outdated', server, version, safer })
    for (const listener of this.#listeners) listener(this.#session)
  }

  /**
   * Tries those that answer one by one, whichever first, then those that are slower to: the library gives all up where one does not accept the login.
   * Throws EngineUnfit only where each server refuses this one, or is refused by it, or is unfit.
   */
  async #dial(): Promise<{ connection: NatsConnection; unusable: EngineUnfit[] }> {
    const { servers, access } = this.#options
    const shown = access?.() ?? {}
    const failures = new Map<string, unknown>()
    for (let left = servers; left.length > 0; left = servers.filter((server) => !failures.has(server))) {
      const there = await answering(left, REQUEST_MS).catch((error: unknown) => {
        failures.set(left[0] as string, error)
        return []
      })
      if (there.length === 0) break
      const first = Math.floor(Math.random() * there.length)
      for (const server of [...there.slice(first), ...there.slice(0, first)]) {
        try {
          const connection = await this.#dialOne(server, shown)
          const unfitness = unfitnessOf(connection)
          if (unfitness !== undefined) {
            await connection.close()
            throw unfitness
          }
          return { connection, unusable: [...failures.values()].filter((error) => error instanceof EngineUnfit) }
        } catch (error) {
          failures.set(server, error)
        }
      }
    }
    // In the order of the list, so that the same failures have the same words.
    const known = servers.flatMap((server) => (failures.has(server) ? [failures.get(server)] : []))
    const Failure = known.every((error) => error instanceof EngineUnfit) ? EngineUnfit : Error
    throw new Failure([...new Set(known.map(messageOf))].join('; '), { cause: known[0] })
  }

  async #dialOne(server: string, access: EngineAccess): Promise<NatsConnection> {
    const { connectionName } = this.#options
    const { credentials, login, tls } = access
    // Whose certificate is wanted: where the host is an address, the library would have that of localhost.
    const toHost = tls && { ...tls, host: placeOf(server).host }
    try {
      return await connect({
        servers: server,
        name: connectionName,
        // What is sent while there is no connection would be sent on the next one: a late write.
        reconnect: false,
        timeout: REQUEST_MS,
        pingInterval: PING_MS,
        maxPingOut: 2,
        // Two errors made for each request, in case it fails.
        noAsyncTraces: true,
        ...(credentials === undefined ? {} : { authenticator: credsAuthenticator(credentials) }),
        ...(login === undefined ? {} : { user: login.user, pass: login.password }),
        ...(toHost === undefined ? {} : { tls: toHost }),
      })
    } catch (error) {
      const ended = access.outOfTime === undefined ? '' : `; ${access.outOfTime}`
      if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError) {
        throw new EngineUnfit(
          `the NATS server at ${server} does not accept this server's credentials (${messageOf(error)}): see ${shownSettings(access)}${ended}`,
          { cause: error },
        )
      }
      if (isOfTls(error)) {
        throw new EngineUnfit(`${tlsRefusal(server, error as NodeJS.ErrnoException)}${ended}`, { cause: error })
      }
      throw error
    }
  }

  #lost(connection: NatsConnection, error: unknown): void {
    this.#connection = undefined
    this.#session = undefined
    this.#options.timers.clearTimeout(this.#lasting)
    if (this.#isClosed) return
    this.#options.onFact?.({ kind: 'lost', server: connection.getServer(), error: error ?? this.#givenUpFor })
    for (const listener of this.#listeners) listener(undefined)
    this.#tryAgain()
  }

  #tryAgain(): void {
    const wait = this.#retryMs
    this.#retryMs = Math.min(2 * wait, MAX_RETRY_MS)
    this.#retry = this.#options.timers.setTimeout(() => {
      this.#connect().catch((error: unknown) => {
        if (this.#isClosed) return
        this.#failure = error
        this.#options.onFact?.({ kind: 'failed', error })
        this.#tryAgain()
      })
    }, wait)
  }
}

/** A server that starts has waited for these long enough. */
export function notInTime(servers: readonly string[], error: unknown): EngineUnfit {
  return new EngineUnfit(
    `the state of the hub cannot be had from the NATS servers at ${servers.join(', ')} within ${START_MS / 1_000} s: ${messageOf(error)}`,
    { cause: error },
  )
}

/** The settings with what this server logs in with; those with which it could, where it has nothing. */
function shownSettings({ credentials, login, tls }: EngineAccess): string {
  const shown = [
    ...(credentials === undefined ? [] : ['hubServer.cluster.credentialsFile']),
    ...(login === undefined ? [] : ['the user and password in hubServer.cluster.natsServers']),
    ...(tls?.cert === undefined ? [] : ['hubServer.cluster.tls.certificateFile']),
  ]
  if (shown.length > 0) return shown.join(' and ')
  return 'hubServer.cluster.credentialsFile, hubServer.cluster.tls.certificateFile, or a user and password in hubServer.cluster.natsServers: none is set'
}

/** Whether a handshake failed by certificates: Node.js gives such errors the codes of OpenSSL and of X.509 checks, and those of its own. */
function isOfTls(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^(ERR_SSL_|ERR_TLS_)|CERT|^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/.test(code)
}

/** Which side refused the other in such a handshake: an alert comes from the NATS server. */
function tlsRefusal(server: string, error: NodeJS.ErrnoException): string {
  const said = tlsFault(error) ?? messageOf(error)
  if (/_ALERT_(.*CERTIFICATE|UNKNOWN_CA)/.test(error.code as string)) {
    return `the NATS server at ${server} does not accept this server's certificate (${said}): see hubServer.cluster.tls.certificateFile`
  }
  if (/^ERR_SSL_/.test(error.code as string)) return `TLS with the NATS server at ${server}: ${said}`
  return `this server does not accept the certificate of the NATS server at ${server} (${said}): see hubServer.cluster.tls`
}
