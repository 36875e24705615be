import { LinkListener } from '../api/link.ts'
import { Forwarding } from '../hub/forwarding.ts'
import { HubClientService } from '../hub/hub-client.ts'
import { Membership } from '../hub/membership.ts'
import { logMembership } from './facts.ts'
import { forwardBy, type HubPart, type HubPartOptions } from './hub-part.ts'
import { createHubServer } from './hub-server.ts'

/** Composes it; nothing is connected before `start`. */
export function createHubPart(options: HubPartOptions): HubPart {
  return options.hubServer === undefined ? createMember(options) : createHubServer(options, options.hubServer)
}

function createMember(options: HubPartOptions): HubPart {
  const { nodeId, store, details, log, dial, clock, random } = options
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
    servers: () => undefined,
    registry: undefined,
    membership,
    start: () => membership.start(),
    close: async () => {
      client.close()
      await membership.close()
    },
  }
}
