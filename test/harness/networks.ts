/** Networks whose hubs keep their state in the memory and on the disk of their node, or in NATS JetStream: what a table of cases runs on. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import type { Node } from '../../src/contract/types.ts'
import { ClusterRegistry } from '../../src/hub/cluster/cluster-registry.ts'
import { rawKey } from '../../src/link/keys.ts'
import { type Member, Network, type OpenShared } from './hub.ts'
import { Nats } from './nats.ts'

export const HUB = 'http://hub'
export const noFilter = { metadataFilters: {}, serviceFilters: [] }
export const idsOf = (nodes: readonly Node[]) => nodes.map(({ id }) => id)
export const listed = async (member: Member) => (await member.call('getNodes', noFilter)).nodes

/** Where the hubs of a file of tests keep their state. */
interface Networks {
  /** One for each case, whose hubs know nothing of those of others. */
  next(): Network
  close(): Promise<void>
}

/** By name: to be called before the first case. */
export const REGISTRIES: readonly (readonly [string, () => Promise<Networks>])[] = [
  ['embedded', async () => ({ next: () => new Network(), close: async () => {} })],
  ['on NATS JetStream', onJetStream],
]

/** Gives each case of the describe that this is called in a network of its own. */
export function useNetworks(begin: () => Promise<Networks>, use: (network: Network) => unknown): void {
  let networks: Networks
  let network: Network
  beforeAll(async () => {
    networks = await begin()
  })
  afterAll(() => networks.close())
  beforeEach(async () => {
    network = networks.next()
    await use(network)
  })
  afterEach(() => network.close())
}

async function onJetStream(): Promise<Networks> {
  const nats = await Nats.alone()
  let buckets = 0
  return {
    next: () => new Network(openShared(nats.addresses, `hub${buckets++}`)),
    close: () => nats.close(),
  }
}

function openShared(servers: readonly string[], name: string): OpenShared {
  return async (identity, self) => {
    const registry = await ClusterRegistry.open({
      selfId: identity.nodeId,
      selfKey: rawKey(identity.publicKey),
      self,
      engine: { servers, name, hubId: new Uint8Array(32).fill(1), replicas: 1, connectionName: self.name },
      clock: systemClock,
      onFact: () => {},
      onError: (message, error) => console.error(message, error),
    })
    return { directory: registry.directory, registry }
  }
}
