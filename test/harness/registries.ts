/** Both registries of a hub behind one rig, with nodes that come over real handshakes in memory. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/contract/clock.ts'
import { ClusterRegistry, type ClusterRegistryOptions } from '../../src/hub/cluster/cluster-registry.ts'
import { EmbeddedRegistry } from '../../src/hub/embedded-registry.ts'
import { hubPolicy } from '../../src/hub/policy.ts'
import type { NodeEvent, NodeRegistry } from '../../src/hub/registry.ts'
import type { MemberPlace } from '../../src/hub/request-store.ts'
import type { Identity } from '../../src/link/identity.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import type { Dialled, LinkSession, NodeRecord } from '../../src/link/link.ts'
import { connectPair } from '../../src/link/pair.ts'
import { Store } from '../../src/store/store.ts'
import { Nats } from './nats.ts'

export const recordOf = (name: string): NodeRecord => ({ name, metadata: { items: {} }, services: ['PIPELINES'] })
const serverRecord = (name: string): NodeRecord => ({
  name,
  metadata: { items: {} },
  services: ['HUB_SERVER', 'PIPELINES'],
})

/** A server of a hub: its registry, and who it lets in. */
export class HubServerRig {
  readonly registry: NodeRegistry
  readonly identity: Identity
  readonly events: NodeEvent[] = []
  readonly #close: () => Promise<void>

  constructor(registry: NodeRegistry, identity: Identity, close: () => Promise<void>) {
    this.registry = registry
    this.identity = identity
    this.#close = close
    registry.follow((event) => this.events.push(event))
  }

  /** Connects a node, as it does after every loss of its link. */
  async dial(node: Identity, record = recordOf('node')): Promise<Dialled> {
    const policy = hubPolicy({ registry: this.registry, serve: () => {} })
    const report = () => {}
    return await connectPair(
      { identity: this.identity, policy, clock: systemClock, report },
      { identity: node, record, intent: 'CONNECT', clock: systemClock, report },
    )
  }

  async admit(node: Identity, record = recordOf('node')): Promise<MemberPlace> {
    const key = rawKey(node.publicKey)
    return await this.registry.admit({ nodeId: node.nodeId, key, record, remoteAddress: '' })
  }

  /** A new node on the hub, connected. */
  async join(record = recordOf('node')): Promise<{ node: Identity; session: LinkSession }> {
    const node = newIdentity()
    await this.admit(node, record)
    return { node, session: (await this.dial(node, record)).session }
  }

  /** What was told since the last look: the kind of change, and of which node. */
  told(names: Readonly<Record<string, string>> = {}): string[] {
    return this.events.splice(0).map(({ type, node }) => `${type} ${names[node.id] ?? node.name}`)
  }

  listed(nodeId: string) {
    return this.registry.nodes().find(({ id }) => id === nodeId)
  }

  close(): Promise<void> {
    return this.#close()
  }
}

/** A place where a hub keeps its state, and the servers on it. */
export interface HubState {
  /** A server of the hub; `again`: the one there was, started anew. */
  server(again?: Identity): Promise<HubServerRig>
  close(): Promise<void>
}

export async function embeddedState(): Promise<HubState> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-registry-'))
  return {
    server: async (identity = newIdentity()) => {
      const store = new Store(directory)
      const registry = new EmbeddedRegistry({
        selfId: identity.nodeId,
        self: serverRecord('hub'),
        store: store.nodes,
        requestIds: store.requestIds,
        onError: (error) => {
          throw error
        },
      })
      return new HubServerRig(registry, identity, async () => {
        await registry.close()
        await store.close()
      })
    },
    close: async () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** That of each hub whose state is in NATS. */
export const HUB_ID = new Uint8Array(32).fill(1)

export interface ClusterServerOptions {
  readonly name?: string
  readonly identity?: Identity
  /** hubServer.cluster.name; default: tests. */
  readonly bucket?: string
  readonly servers: readonly string[]
  readonly replicas?: number
  readonly now?: () => number
  readonly engineTime?: ClusterRegistryOptions['engineTime']
  readonly onFact?: ClusterRegistryOptions['onFact']
  readonly onError?: ClusterRegistryOptions['onError']
}

/** A server on NATS JetStream. */
export async function clusterServer(options: ClusterServerOptions): Promise<HubServerRig> {
  const { identity = newIdentity(), name = 'hub', bucket = 'tests', servers, replicas = 1, onFact, onError } = options
  const { now, engineTime } = options
  const registry = await ClusterRegistry.open({
    selfId: identity.nodeId,
    selfKey: rawKey(identity.publicKey),
    self: serverRecord(name),
    engine: { servers, name: bucket, hubId: HUB_ID, replicas, connectionName: name },
    clock: systemClock,
    onFact: onFact ?? (() => {}),
    onError: onError ?? ((message, error) => console.error(message, error)),
    ...(now === undefined ? {} : { now }),
    ...(engineTime === undefined ? {} : { engineTime }),
  })
  return new HubServerRig(registry, identity, () => registry.close())
}

export async function clusterState(): Promise<HubState> {
  const nats = await Nats.alone()
  return {
    server: (identity) => clusterServer({ servers: nats.addresses, ...(identity === undefined ? {} : { identity }) }),
    close: () => nats.close(),
  }
}
