/** Servers of one hub that take requests to join, each behind a proxy of its own before NATS JetStream; all that a test began is ended after it. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import { systemClock } from '../../src/contract/clock.ts'
import { JoinRequests } from '../../src/hub/join-requests.ts'
import { hubPolicy } from '../../src/hub/policy.ts'
import type { Identity } from '../../src/link/identity.ts'
import { connectPair } from '../../src/link/pair.ts'
import { Nats, NatsProxy } from '../harness/nats.ts'
import { type ClusterServerOptions, clusterServer, HUB_ID, recordOf } from '../harness/registries.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

let nats: Nats
beforeAll(async () => {
  nats = await Nats.alone()
})
afterAll(() => nats.close())

const closing: (() => unknown)[] = []
let buckets = 0
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  buckets++
})

/** Where a test's hub has its state. */
export const engine = () => ({ servers: nats.addresses, name: `requests${buckets}`, hubId: HUB_ID, replicas: 1 })

const caller = { by: 'this machine', transport: 'internal', address: '' } as const
export const MINUTES_5 = 300_000

interface Options extends Partial<ClusterServerOptions> {
  readonly timeout?: number
}

/** A server that takes requests, with a proxy of its own before the engine. */
export async function server(name: string, { timeout = MINUTES_5, ...options }: Options = {}) {
  const proxy = await NatsProxy.before(nats.addresses[0] as string)
  closing.push(() => proxy.close())
  const facts: string[] = []
  const rig = await clusterServer({
    name,
    bucket: engine().name,
    servers: [proxy.address],
    onFact: ({ kind }) => facts.push(kind),
    onError: () => {},
    ...options,
  })
  closing.push(() => rig.close())
  const { registry } = rig
  const shown: bigint[] = []
  const requests = new JoinRequests({
    timeout,
    store: registry.requests,
    expel: (place) => registry.expel(place),
    onError: () => {},
    clock: systemClock,
  })
  requests.onRequest(({ requestId }) => shown.push(BigInt(requestId)))
  const policy = hubPolicy({ registry, requests, serve: () => {} })
  /** What becomes of a node that asks here, over a real handshake. */
  const join = (node: Identity, record = recordOf('north')) => {
    const gone = new AbortController()
    const report = () => {}
    const dialled = connectPair(
      { identity: rig.identity, policy, clock: systemClock, report },
      { identity: node, record, intent: 'JOIN', clock: systemClock, report, signal: gone.signal },
      '10.0.0.1',
    )
    dialled.catch(() => {})
    return { dialled, gone }
  }
  const pending = () => requests.pending().map(({ requestId }) => BigInt(requestId))
  const answer = (id: bigint, accept: boolean) => requests.answer(id, accept, caller)
  return Object.assign(rig, { proxy, facts, shown, requests, policy, join, pending, answer })
}
type Server = Awaited<ReturnType<typeof server>>

/** The id of the one request that a server shows. */
export async function onlyRequest(at: Server): Promise<bigint> {
  await until(() => at.pending().length === 1)
  return at.pending()[0] as bigint
}
