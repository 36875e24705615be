/** The part of a node that hosts a hub, alone or as one of several servers of it. */

import { LinkListener } from '../api/link.ts'
import { ServiceError } from '../contract/errors.ts'
import { EmbeddedRegistry } from '../hub/embedded-registry.ts'
import type { HubFact, ServerFact } from '../hub/facts.ts'
import { Forwarding, openerTo } from '../hub/forwarding.ts'
import { HubClientService } from '../hub/hub-client.ts'
import { HubServerService } from '../hub/hub-server.ts'
import { JoinRequests } from '../hub/join-requests.ts'
import { statusOfError } from '../hub/link-envelope.ts'
import { hubPolicy } from '../hub/policy.ts'
import type { NodeRegistry } from '../hub/registry.ts'
import { ServerAnnouncements } from '../hub/server-announcements.ts'
import { tellArrivals } from '../hub/server-arrivals.ts'
import { ServerCalls } from '../hub/server-calls.ts'
import { aloneInDirectory } from '../hub/server-directory.ts'
import { ServerLinks } from '../hub/server-links.ts'
import type { LinkSession } from '../link/link.ts'
import { relay } from '../link/relay.ts'
import { logHub, logServer } from './facts.ts'
import { forwardBy, type HubPart, type HubPartOptions, type HubServerSettings } from './hub-part.ts'

/** Composes it; nothing is connected before `start`. */
export function createHubServer(options: HubPartOptions, settings: HubServerSettings): HubPart {
  const { nodeId, store, details, log, clock } = options
  const { requestTimeout, shared } = settings
  const calls = new LinkListener({ dispatcher: options.dispatcher, nodeId, clock })
  const registry =
    shared?.registry ??
    new EmbeddedRegistry({
      selfId: nodeId,
      self: details.record,
      store: store.nodes,
      requestIds: store.requestIds,
      onError: (error) => log.error({ err: error }, 'a change of the node list could not be stored'),
      timers: clock,
    })
  details.onChange((record) => registry.setSelf(record))
  const onFact = (fact: HubFact) => logHub(log, fact)
  const requests =
    requestTimeout === undefined
      ? undefined
      : new JoinRequests({
          timeout: requestTimeout,
          store: registry.requests,
          expel: (place) => registry.expel(place),
          onError: (message, error) => log.error({ err: error }, message),
          onFact,
          clock,
        })
  const server = new HubServerService({ registry, onFact, ...(requests === undefined ? {} : { requests }) })
  const client = new HubClientService({ node: { id: nodeId }, details, ...(shared && { servers: shared.directory }) })
  const hubCalls: HubCalls = { nodeId, registry, calls }
  const others = otherServers(options, settings, hubCalls)
  const hubId = settings.signer?.hubId ?? nodeId
  /** Whoever has a link with this server knows the hub by that key. */
  const noteHubId = () => {
    if (shared !== undefined || store.hubId.get() === hubId) return
    store.hubId.put(hubId).catch((error: unknown) => log.error({ err: error }, 'the id of the hub could not be stored'))
  }
  return {
    handlers: { ...server.handlers, ...client.handlers },
    forward: forwardBy(new Forwarding({ nodeId, hub: registry, servers: others?.calls, clock })),
    policy: {
      ...hubPolicy({
        registry,
        ...(requests === undefined ? {} : { requests }),
        serve: (session) => {
          noteHubId()
          serveMember(session, hubCalls, others?.calls)
          others?.announcements.serve(session)
        },
        onFact,
      }),
      ...(others && { serverEstablished: (session) => others.links.take(session) }),
    },
    servers: () => others?.announcements.signed,
    registry,
    membership: undefined,
    start: () => others?.links.start(),
    close: async () => {
      server.close()
      client.close()
      others?.announcements.close()
      others?.links.close()
      await registry.close()
    },
  }
}

/** What this server has to do with the others of its hub; undefined on a hub without a hub key. */
function otherServers(
  { nodeId, details, log, clock, dial, random }: HubPartOptions,
  { signer, address = '', shared }: HubServerSettings,
  hubCalls: HubCalls,
) {
  if (signer === undefined) return undefined
  const directory = shared?.directory ?? aloneInDirectory(nodeId)
  const onFact = (fact: ServerFact) => logServer(log, fact)
  tellArrivals(directory, onFact)
  const announcements = new ServerAnnouncements({
    directory,
    signer,
    address,
    clock,
    onError: (message, error) => log.error({ err: error }, message),
  })
  const links = new ServerLinks({
    directory,
    dial: (to, signal) => dial({ address: to, intent: 'SERVER', record: details.record, hubKey: signer.key, signal }),
    serve: (session) => serveServer(session, hubCalls),
    onFact,
    clock,
    ...(random === undefined ? {} : { random }),
  })
  return { announcements, links, calls: new ServerCalls({ registry: hubCalls.registry, links, clock }) }
}

/** What serves calls on a hub: they run here, or go on, unread. */
interface HubCalls {
  readonly nodeId: string
  readonly registry: NodeRegistry
  readonly calls: LinkListener
}

/** What a member opens runs here, or goes on to the member it is meant for, over the link of another server if that has it. */
function serveMember(
  session: LinkSession,
  { nodeId, registry, calls }: HubCalls,
  servers: ServerCalls | undefined,
): void {
  session.onOpen((stream, request) => {
    const { target } = stream
    if (target === '' || target === nodeId) {
      calls.serve(stream, request, session.remoteAddress)
      return
    }
    try {
      relay(stream, request, openerTo(target, registry.route(target), servers))
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      stream.end(statusOfError(error))
    }
  })
}

/** What another server opens is for this node, or for one whose link is here: it goes no further. */
function serveServer(session: LinkSession, { nodeId, registry, calls }: HubCalls): void {
  session.onOpen((stream, request) => {
    const { target } = stream
    const route = registry.route(target)
    if (target === nodeId) calls.serve(stream, request, session.remoteAddress)
    else if (route.kind === 'session') relay(stream, request, route.session)
    else stream.end({ code: 'UNAVAILABLE', message: `node ${target} has no link with this server`, notHere: true })
  })
}
