/** What the hub's part of a node is given, and what the rest of the node has of it. */

import type { Dispatcher, Forward } from '../api/dispatcher.ts'
import { forwardedOperation } from '../api/link.ts'
import type { Clock } from '../contract/clock.ts'
import type { Handlers } from '../contract/handlers.ts'
import type { NodeMetadataItem, NodeService } from '../contract/types.ts'
import type { DialRequest } from '../hub/dial-request.ts'
import type { Forwarding } from '../hub/forwarding.ts'
import { LocalDetails } from '../hub/local-details.ts'
import type { Membership } from '../hub/membership.ts'
import type { NodeRegistry } from '../hub/registry.ts'
import type { ServerDirectory } from '../hub/server-directory.ts'
import type { HubSigner } from '../link/hub-key.ts'
import type { Dialled, HubPolicy } from '../link/link.ts'
import type { SignedBody } from '../link/signed.ts'
import type { Store } from '../store/store.ts'
import type { FactLog } from './facts.ts'

export interface HubPartOptions {
  readonly nodeId: string
  readonly store: Store
  /** What this node says of itself (`detailsOf`). */
  readonly details: LocalDetails
  /** Present: this node hosts a hub. */
  readonly hubServer: HubServerSettings | undefined
  /** Opens a link to a hub. */
  dial(request: DialRequest): Promise<Dialled>
  readonly dispatcher: () => Dispatcher
  readonly log: FactLog
  readonly clock: Clock
  readonly random?: () => number
}

export interface HubServerSettings {
  /** How long a request to join waits, milliseconds; undefined: none is accepted. */
  readonly requestTimeout: number | undefined
  /** Of a hub with a hub key. */
  readonly signer?: HubSigner | undefined
  /** Where nodes and other servers reach this one; empty: they are not told. */
  readonly address?: string
  /** What the servers of a hub share; absent: it has one server. */
  readonly shared?: SharedHub | undefined
}

/** The state of a hub that has several servers, as one of them has it. */
export interface SharedHub {
  /** Closed with the part of the hub. */
  readonly registry: NodeRegistry
  readonly directory: ServerDirectory
}

/** What the rest of the node needs of it. */
export interface HubPart {
  readonly handlers: Partial<Handlers>
  readonly forward: Forward
  /** On a hub: who is let in. */
  readonly policy: HubPolicy | undefined
  /** On a hub with a hub key: where its servers are, for those who come. */
  servers(): SignedBody | undefined
  readonly registry: NodeRegistry | undefined
  readonly membership: Membership | undefined
  /** Begins to connect to the hub this node is signed in to. */
  start(): void
  /** Ends streams and links, brings the nodes' times to disk; the store must still be open. */
  close(): Promise<void>
}

export interface DetailsSettings {
  readonly store: Store
  /** What the configuration calls this node; `file`: it comes from there, and nobody may change it otherwise. */
  readonly name: string
  readonly metadata: Record<string, NodeMetadataItem>
  readonly file?: string | undefined
  readonly isHubServer: boolean
}

/** Throws INVALID_ARGUMENT when name and metadata are too long. */
export function detailsOf({ name, metadata, file, store, isHubServer }: DetailsSettings): LocalDetails {
  const services: NodeService[] = isHubServer ? ['HUB_SERVER', 'PIPELINES'] : ['PIPELINES']
  return new LocalDetails({ name, metadata, file, services, store: store.details })
}

export function forwardBy(forwarding: Forwarding): Forward {
  return (operation, request, call) => forwarding.forward(forwardedOperation(operation), request, call)
}
