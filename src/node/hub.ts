/** The hub's part of a node: hosting a hub or being a member of one, and the calls that other nodes make over links. */

import type { Dispatcher, Forward } from '../api/dispatcher.ts'
import { forwardedOperation, LinkListener } from '../api/link.ts'
import type { Clock } from '../contract/clock.ts'
import type { Handlers } from '../contract/handlers.ts'
import type { NodeMetadataItem } from '../contract/types.ts'
import { EmbeddedRegistry } from '../hub/embedded-registry.ts'
import type { HubFact } from '../hub/facts.ts'
import { Forwarding, notConnected } from '../hub/forwarding.ts'
import { HubClientService } from '../hub/hub-client.ts'
import { HubServerService, notOnHub } from '../hub/hub-server.ts'
import { JoinRequests } from '../hub/join-requests.ts'
import { statusOfError } from '../hub/link-envelope.ts'
import { LocalDetails } from '../hub/local-details.ts'
import { type DialRequest, Membership } from '../hub/membership.ts'
import { hubPolicy } from '../hub/policy.ts'
import type { NodeRegistry } from '../hub/registry.ts'
import type { Dialled, HubPolicy, LinkSession } from '../link/link.ts'
import { relay } from '../link/relay.ts'
import type { Store } from '../store/store.ts'
import { type FactLog, logHub, logMembership } from './facts.ts'

export interface HubPartOptions {
  readonly nodeId: string
  readonly store: Store
  /** What the configuration calls this node; `file`: it comes from there, and nobody may change it otherwise. */
  readonly name: string
  readonly metadata: Record<string, NodeMetadataItem>
  readonly file?: string | undefined
  /** Present: this node hosts a hub. `requestTimeout`, ms: how long a request to join waits; undefined: none is accepted. */
  readonly hubServer: { readonly requestTimeout: number | undefined } | undefined
  /** Opens a link to a hub. */
  dial(request: DialRequest): Promise<Dialled>
  readonly dispatcher: () => Dispatcher
  readonly log: FactLog
  readonly clock: Clock
  readonly random?: () => number
}

/** What the rest of the node needs of it. */
export interface HubPart {
  readonly handlers: Partial<Handlers>
  readonly forward: Forward
  /** On a hub: who is let in. */
  readonly policy: HubPolicy | undefined
  readonly registry: NodeRegistry | undefined
  readonly membership: Membership | undefined
  /** Whether the node with this id serves the hub that this node has joined. */
  isHubServer(nodeId: string): boolean
  /** Begins to connect to the hub this node is signed in to. */
  start(): void
  /** Ends streams and links, brings the nodes' times to disk; the store must still be open. */
  close(): Promise<void>
}

/** Composes it; nothing is connected before `start`. */
export function createHubPart(options: HubPartOptions): HubPart {
  return options.hubServer === undefined ? createMember(options) : createHub(options, options.hubServer)
}

function createMember(options: HubPartOptions): HubPart {
  const { nodeId, store, log, dial, clock, random } = options
  const details = detailsOf(options, ['PIPELINES'])
  const calls = new LinkListener({ dispatcher: options.dispatcher, nodeId, clock })
  const membership = new Membership({
    signIn: store.signIn,
    dial,
    record: () => details.record,
    serve: (session) => session.onOpen((stream, request) => calls.serve(stream, request, session.remoteAddress)),
    onFact: (fact) => logMembership(log, fact),
    clock,
    ...(random === undefined ? {} : { random }),
  })
  const client = new HubClientService({ node: { id: nodeId }, details, membership })
  return {
    handlers: client.handlers,
    forward: forwardBy(new Forwarding({ nodeId, hub: membership, clock })),
    policy: undefined,
    registry: undefined,
    membership,
    isHubServer: (id) => membership.isHubServer(id),
    start: () => membership.start(),
    close: async () => {
      client.close()
      await membership.close()
    },
  }
}

function createHub(options: HubPartOptions, { requestTimeout }: NonNullable<HubPartOptions['hubServer']>): HubPart {
  const { nodeId, store, log, clock } = options
  const details = detailsOf(options, ['HUB_SERVER', 'PIPELINES'])
  const calls = new LinkListener({ dispatcher: options.dispatcher, nodeId, clock })
  const registry = new EmbeddedRegistry({
    selfId: nodeId,
    self: details.record,
    store: store.nodes,
    onError: (error) => log.error({ err: error }, 'a change of the node list could not be stored'),
  })
  details.onChange((record) => registry.setSelf(record))
  const onFact = (fact: HubFact) => logHub(log, fact)
  const requests =
    requestTimeout === undefined
      ? undefined
      : new JoinRequests({
          timeout: requestTimeout,
          nextId: () => store.requestIds.next(),
          admit: (joiner) => registry.admit(joiner),
          expel: (place) => registry.expel(place),
          onError: (message, error) => log.error({ err: error }, message),
          onFact,
          clock,
        })
  const server = new HubServerService({ registry, onFact, ...(requests === undefined ? {} : { requests }) })
  const client = new HubClientService({ node: { id: nodeId }, details })
  return {
    handlers: { ...server.handlers, ...client.handlers },
    forward: forwardBy(new Forwarding({ nodeId, hub: registry, clock })),
    policy: hubPolicy({
      registry,
      ...(requests === undefined ? {} : { requests }),
      serve: (session) => serveOnHub(session, nodeId, registry, calls),
      onFact,
    }),
    registry,
    membership: undefined,
    isHubServer: () => false,
    start: () => {},
    close: async () => {
      server.close()
      client.close()
      await registry.close()
    },
  }
}

/** What a member opens runs here, or goes on, unread, to the member it is meant for. */
function serveOnHub(session: LinkSession, nodeId: string, registry: NodeRegistry, calls: LinkListener): void {
  session.onOpen((stream, request) => {
    if (stream.target === '' || stream.target === nodeId) {
      calls.serve(stream, request, session.remoteAddress)
      return
    }
    const route = registry.route(stream.target)
    if (route.kind === 'session') relay(stream, request, route.session)
    else stream.end(statusOfError(route.kind === 'offline' ? notConnected(stream.target) : notOnHub(stream.target)))
  })
}

function detailsOf(options: HubPartOptions, services: readonly ('HUB_SERVER' | 'PIPELINES')[]): LocalDetails {
  const { name, metadata, file, store } = options
  return new LocalDetails({ name, metadata, file, services, store: store.details })
}

function forwardBy(forwarding: Forwarding): Forward {
  return (operation, request, call) => forwarding.forward(forwardedOperation(operation), request, call)
}
