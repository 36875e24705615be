/** The links of a server with the other servers of its hub: of two servers the one with the lower id dials. */
import { type ActorRefFrom, createActor, fromPromise } from 'xstate'
import { type ServerSession, serverLink } from '../actors/server-link.ts'
import type { Timers } from '../contract/clock.ts'
import type { Dialled, LinkSession } from '../link/link.ts'
import { Violation } from '../link/messages.ts'
import { decodeServerDetails } from '../link/signed-messages.ts'
import type { ServerFact } from './facts.ts'
import type { ServerDirectory } from './server-directory.ts'

export interface ServerLinksOptions {
  readonly directory: ServerDirectory
  /** Opens a link to the server at `address`; rejects with LinkRefused or LinkUnreachable. */
  dial(address: URL, signal: AbortSignal): Promise<Dialled>
  /** Sets who serves what the other server opens. */
  serve(session: LinkSession): void
  /** Hears of every link: up, down, not to be had. */
  onFact(fact: ServerFact): void
  readonly clock?: Timers
  /** Uniform in [0, 1). */
  readonly random?: () => number
}

export class ServerLinks {
  readonly #options: ServerLinksOptions
  /** Of the servers that this one dials, by id. */
  readonly #dialled = new Map<string, ActorRefFrom<typeof serverLink>>()
  /** The newest link with each server, by its id. */
  readonly #sessions = new Map<string, LinkSession>()
  #isClosed = false

  /** Dials nobody before `start`. */
  constructor(options: ServerLinksOptions) {
    this.#options = options
  }

  start(): void {
    const { directory } = this.#options
    directory.followServers(() => this.#read())
    directory.followRemovals((nodeId, revision) => {
      for (const session of this.#sessions.values()) session.sendRemoval(nodeId, revision)
    })
    this.#read()
  }

  /** The link with the server, if one stands. */
  with(serverId: string): LinkSession | undefined {
    return this.#sessions.get(serverId)
  }

  /** A link stands with another server of the hub, whichever of both has dialled; one that stood before is closed. */
  take(session: LinkSession): void {
    const { peerId: server } = session
    const { onFact, serve, directory } = this.#options
    if (this.#isClosed) {
      session.close('SHUTDOWN', 'this server is shutting down')
      return
    }
    this.#sessions.get(server)?.close('REPLACED', 'the servers have a newer link')
    this.#sessions.set(server, session)
    serve(session)
    session.onRemoval((nodeId, revision) => directory.removed(nodeId, revision))
    onFact({ kind: 'server link up', server, address: session.remoteAddress })
    void session.closed.then((end) => {
      if (this.#sessions.get(server) === session) this.#sessions.delete(server)
      this.#read()
      onFact({ kind: 'server link down', server, address: session.remoteAddress, end })
    })
  }

  close(): void {
    this.#isClosed = true
    for (const link of this.#dialled.values()) link.send({ type: 'CLOSE' })
    this.#dialled.clear()
    for (const session of this.#sessions.values()) session.close('SHUTDOWN', 'this server is shutting down')
  }

  /** A link that stands outlives the other server's place in the directory: calls go on while what the servers share is away. */
  #read(): void {
    if (this.#isClosed) return
    const { directory } = this.#options
    const here = new Set<string>()
    for (const { id, details } of directory.servers()) {
      const address = id > directory.selfId ? addressIn(details) : undefined
      if (address === undefined) continue
      here.add(id)
      this.#dial(id, address)
    }
    for (const [id, link] of this.#dialled) {
      if (here.has(id) || this.#sessions.has(id)) continue
      link.send({ type: 'CLOSE' })
      this.#dialled.delete(id)
    }
  }

  #dial(id: string, address: string): void {
    const known = this.#dialled.get(id)
    if (known !== undefined) {
      known.send({ type: 'MOVED', address })
      return
    }
    const { clock, random = Math.random } = this.#options
    const machine = serverLink.provide({
      actors: { dial: fromPromise<ServerSession, string>(({ input, signal }) => this.#open(id, input, signal)) },
    })
    const link = createActor(machine, { input: { address, random }, ...(clock === undefined ? {} : { clock }) })
    this.#dialled.set(id, link)
    link.start()
  }

  async #open(id: string, address: string, signal: AbortSignal): Promise<LinkSession> {
    const { dial, onFact } = this.#options
    try {
      const { session } = await dial(new URL(address), signal)
      if (signal.aborted || session.peerId !== id) {
        session.close('SHUTDOWN', signal.aborted ? 'the link is not needed any more' : 'this is another server')
        throw new Error(`another server (${session.peerId}) answers at ${address}`)
      }
      this.take(session)
      return session
    } catch (error) {
      if (!signal.aborted) onFact({ kind: 'server link failed', server: id, address, error })
      throw error
    }
  }
}

/** What is wrong with them is told by who tells the nodes of the servers. */
function addressIn(details: Uint8Array): string | undefined {
  try {
    const { address } = decodeServerDetails(details)
    return URL.canParse(address) ? address : undefined
  } catch (error) {
    if (error instanceof Violation) return undefined
    throw error
  }
}
