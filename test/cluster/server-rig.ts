/** Servers of one hub on NATS JetStream in this process, each behind a proxy of its own; all that a test began is ended after it. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterEach } from 'vitest'
import type { ClusterFact } from '../../src/hub/cluster/cluster-registry.ts'
import type { Identity } from '../../src/link/identity.ts'
import type { LinkSession } from '../../src/link/link.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { type ClusterServerOptions, clusterServer, type HubServerRig } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

export const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

export async function start(nats = Nats.alone()): Promise<Nats> {
  const started = await nats
  closing.push(() => started.close())
  return started
}

/** A server with a proxy of its own before the engine. */
export async function server(nats: Nats, name: string, options: Partial<ClusterServerOptions> = {}) {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const facts: ClusterFact['kind'][] = []
  const errors: string[] = []
  const rig = await clusterServer({
    name,
    servers: [proxy.address],
    onFact: ({ kind }) => facts.push(kind),
    onError: (message) => errors.push(message),
    ...options,
  })
  closing.push(() => rig.close())
  rig.told()
  return Object.assign(rig, { proxy, facts, errors })
}

export const isOnline = (hub: HubServerRig, { nodeId }: Identity) => hub.listed(nodeId)?.online === true
export const routes = (hub: HubServerRig, { nodeId }: Identity) => hub.registry.route(nodeId)
export const hasClosed = (session: LinkSession) => {
  const seen = { reason: '' }
  void session.closed.then(({ reason }) => {
    seen.reason = reason
  })
  return seen
}

export async function client(nats: Nats) {
  const connection = await connect({ servers: nats.addresses })
  closing.push(() => connection.close())
  return connection
}

/** Switches whether a stream takes messages. */
export async function writable(nats: Nats, stream: string) {
  const { streams } = await jetstreamManager(await client(nats))
  return (isWritable: boolean) => streams.update(stream, { max_msg_size: isWritable ? -1 : 1 })
}

/** Two servers, and a node at the first that the second has seen; `end` tells why its link closed. */
export async function pairWithNode() {
  const nats = await start()
  const a = await server(nats, 'a')
  const b = await server(nats, 'b')
  const { node, session } = await a.join()
  const end = hasClosed(session)
  await until(() => isOnline(b, node))
  return { nats, a, b, node, session, end }
}
