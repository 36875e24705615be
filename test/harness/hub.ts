/** A hub and any number of nodes in one process: real services, stores and links, with memory instead of sockets between them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Call } from '../../src/api/call.ts'
import { Dispatcher } from '../../src/api/dispatcher.ts'
import { type Clock, systemClock } from '../../src/contract/clock.ts'
import type { Handlers, OperationName, RequestReceiver, Sink } from '../../src/contract/handlers.ts'
import { loadOperations } from '../../src/contract/operations.ts'
import type { BidiOperations, StreamOperations, UnaryOperations } from '../../src/contract/types.ts'
import type { DialRequest } from '../../src/hub/dial-request.ts'
import { type Identity, loadIdentity } from '../../src/link/identity.ts'
import { type LinkEvent, LinkUnreachable, type NodeRecord } from '../../src/link/link.ts'
import { connectPair } from '../../src/link/pair.ts'
import { createHubPart } from '../../src/node/hub.ts'
import { detailsOf, type HubPart, type SharedHub } from '../../src/node/hub-part.ts'
import { Store } from '../../src/store/store.ts'
import { CollectingSink } from './sink.ts'

const operations = new Map(loadOperations().map((operation) => [operation.name, operation]))
const operationOf = (name: OperationName) => {
  const operation = operations.get(name)
  if (operation === undefined) throw new Error(`no operation ${name}`)
  return operation
}

export interface MemberOptions {
  /** Where it keeps its state; default: a new directory. */
  directory?: string
  name?: string
  /** The configuration file it is started with. */
  file?: string
  handlers?: Partial<Handlers>
  clock?: Clock
  /** Milliseconds; undefined on a hub: no authentication by request. Default 5 min. */
  requestTimeout?: number | undefined
  /** Where its links seem to come from. */
  remoteAddress?: string
  random?: () => number
}

/** Opens what the hub on a node keeps its state in, where that is not the node's own store; `self`: what the node says of itself. */
export type OpenShared = (identity: Identity, self: NodeRecord) => Promise<SharedHub>

/** The hubs there are, by address, and the machines on which nodes live. */
export class Network {
  readonly hubs = new Map<string, Member>()
  readonly #openShared: OpenShared | undefined
  readonly #root = mkdtempSync(join(tmpdir(), 'penstock-hub-'))
  readonly #members = new Set<Member>()
  #count = 0

  constructor(openShared?: OpenShared) {
    this.#openShared = openShared
  }

  directory(): string {
    return join(this.#root, `${this.#count++}`)
  }

  /** Starts a hub that is reached at `address`. */
  async hub(address: string, options: MemberOptions = {}): Promise<Member> {
    const { directory = this.directory(), name = 'unnamed' } = options
    const self: NodeRecord = { name, metadata: { items: {} }, services: ['HUB_SERVER', 'PIPELINES'] }
    const shared = await this.#openShared?.(loadIdentity(directory), self)
    const hub = new Member(this, { ...options, directory }, { address, shared })
    this.#members.add(hub)
    return hub
  }

  node(options: MemberOptions = {}): Member {
    const node = new Member(this, { ...options, directory: options.directory ?? this.directory() })
    this.#members.add(node)
    return node
  }

  forget(member: Member): void {
    this.#members.delete(member)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#members].map((member) => member.close()))
    rmSync(this.#root, { recursive: true, force: true })
  }
}

/** One node, hub or not: what startNode composes, without listeners and run pool. */
export class Member {
  readonly id: string
  readonly store: Store
  readonly part: HubPart
  readonly dispatcher: Dispatcher
  readonly identity: Identity
  readonly directory: string
  readonly events: LinkEvent[] = []
  readonly reported: unknown[] = []
  /** Its log of what is no error. */
  readonly logged: { message: string }[] = []
  readonly #network: Network
  readonly #address: string | undefined
  readonly #clock: Clock
  #closed: Promise<void> | undefined

  /** `hub`: it hosts one, which is reached there. */
  constructor(
    network: Network,
    options: MemberOptions & { directory: string },
    hub?: { readonly address: string; readonly shared: SharedHub | undefined },
  ) {
    const { address, shared } = hub ?? {}
    this.#network = network
    this.#address = address
    this.directory = options.directory
    this.store = new Store(options.directory)
    this.identity = loadIdentity(options.directory)
    this.id = this.identity.nodeId
    this.#clock = options.clock ?? systemClock
    const requestTimeout = 'requestTimeout' in options ? options.requestTimeout : 300_000
    this.part = createHubPart({
      nodeId: this.id,
      store: this.store,
      details: detailsOf({
        store: this.store,
        name: options.name ?? 'unnamed',
        metadata: {},
        file: options.file,
        isHubServer: address !== undefined,
      }),
      hubServer: address === undefined ? undefined : { requestTimeout, shared },
      dial: (request) => this.#dial(request, options.remoteAddress ?? ''),
      dispatcher: () => this.dispatcher,
      log: {
        info: (fields, message) => this.logged.push({ ...fields, message }),
        warn: (fields, message) => this.logged.push({ ...fields, message }),
        error: (fields) => this.reported.push(fields),
      },
      clock: this.#clock,
      random: options.random ?? (() => 0),
    })
    this.dispatcher = new Dispatcher({
      handlers: { ...options.handlers, ...this.part.handlers },
      forward: this.part.forward,
      report: (error) => this.reported.push(error),
    })
    if (address !== undefined) network.hubs.set(address, this)
    this.part.start()
  }

  /** Calls an operation as somebody on this machine does. */
  async call<Name extends keyof UnaryOperations>(
    name: Name,
    request: UnaryOperations[Name]['request'],
    call: Call = localCall(),
  ): Promise<UnaryOperations[Name]['response']> {
    return (await this.dispatcher.unary(operationOf(name), request, call)) as UnaryOperations[Name]['response']
  }

  /** Opens a stream; resolves once it stands. */
  async follow<Name extends keyof StreamOperations>(
    name: Name,
    request: StreamOperations[Name]['request'],
    sink: CollectingSink<StreamOperations[Name]['response']> = new CollectingSink(),
  ): Promise<CollectingSink<StreamOperations[Name]['response']>> {
    const call = localCall()
    sink.onClose(() => call.abort())
    await this.dispatcher.stream(operationOf(name), request, call, sink as Sink<unknown>)
    return sink
  }

  async converse<Name extends keyof BidiOperations>(
    name: Name,
  ): Promise<{
    sink: CollectingSink<BidiOperations[Name]['response']>
    receiver: RequestReceiver<BidiOperations[Name]['request']>
  }> {
    const sink = new CollectingSink<BidiOperations[Name]['response']>()
    const receiver = await this.dispatcher.bidi(operationOf(name), localCall(), sink as Sink<unknown>)
    return { sink, receiver: receiver as RequestReceiver<BidiOperations[Name]['request']> }
  }

  /** Joins the hub at `address`, accepted at the hub. */
  async join(address: string): Promise<void> {
    const hub = this.#network.hubs.get(address) as Member
    const { sink, receiver } = await hub.converse('authenticationByRequests')
    const joined = this.call('authenticateByRequest', { hubServerAddress: address })
    joined.catch(() => {})
    for (;;) {
      const request = await sink.next()
      if (request.node?.id !== this.id) continue
      await receiver.message({ requestId: BigInt(request.requestId), accept: true })
      break
    }
    await joined
    sink.end()
  }

  get state(): string | undefined {
    return this.part.membership?.state
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    if (this.#address !== undefined && this.#network.hubs.get(this.#address) === this) {
      this.#network.hubs.delete(this.#address)
    }
    for (const session of this.sessions) session.close('SHUTDOWN', 'closing')
    await this.part.close()
    await this.store.close()
    this.#network.forget(this)
  }

  /** Sessions of a hub's members. */
  get sessions() {
    const { registry } = this.part
    return (registry?.nodes() ?? []).flatMap(({ id }) => {
      const route = registry?.route(id)
      return route?.kind === 'session' ? [route.session] : []
    })
  }

  async #dial(request: DialRequest, remoteAddress: string) {
    const hub = this.#network.hubs.get(request.address.origin)
    if (hub?.part.policy === undefined) throw new LinkUnreachable('nobody listens there')
    const { identity, part, events } = hub
    const policy = part.policy as NonNullable<HubPart['policy']>
    return await connectPair(
      { identity, policy, clock: hub.#clock, report: (event) => events.push(event) },
      {
        identity: this.identity,
        record: request.record,
        intent: request.intent,
        pinnedHubKey: request.hubKey,
        clock: this.#clock,
        signal: request.signal,
        report: (event) => this.events.push(event),
      },
      remoteAddress,
    )
  }
}

export function localCall(): Call {
  return new Call({ remoteAddress: '127.0.0.1', isLoopback: true }, 'internal')
}

export { operations }
