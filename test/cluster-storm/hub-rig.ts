/** A hub of three servers over three NATS servers, and its nodes, each as a process, with a proxy on every path between them. */
import { join } from 'node:path'
import type { Node } from '../../src/contract/types.ts'
import type { Random } from '../../src/dataplane/engine/random.ts'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { Engine } from './engine.ts'
import { Gate } from './gate.ts'
import { NodeParty } from './node-party.ts'
import type { Party, Path } from './strikes.ts'

export interface HubRigOptions {
  readonly random: Random
  readonly replicas: number
  /** How many nodes there are beside the servers. */
  readonly nodes: number
  readonly directory: string
  /** Hears of every line of the logs. */
  readonly log: (line: string) => void
  /** Hears of each kill, before it and after it. */
  readonly killed: (party: NodeParty) => void
}

const SERVERS = ['h1', 'h2', 'h3']
const NATS_SERVERS = 3
const PATIENCE_MS = 4_000

export class HubRig {
  readonly engine: Engine
  readonly servers: readonly NodeParty[]
  readonly nodes: readonly NodeParty[]
  readonly #gates: readonly Gate[]

  private constructor(
    engine: Engine,
    servers: readonly NodeParty[],
    nodes: readonly NodeParty[],
    gates: readonly Gate[],
  ) {
    this.engine = engine
    this.servers = servers
    this.nodes = nodes
    this.#gates = gates
  }

  /** The NATS servers run then, the others do not yet. */
  static async make({ random, replicas, nodes: count, directory, log, killed }: HubRigOptions): Promise<HubRig> {
    const engine = await Engine.start(NATS_SERVERS, SERVERS, random)
    const keyFile = join(directory, 'hub.key')
    writeHubKey(keyFile, newIdentity())
    const make = (name: string, flags: Record<string, string>): Promise<NodeParty> =>
      NodeParty.make({ name, directory, flags, log, killed })
    const serverFlags = (name: string) => ({
      ...{ hub: 'true', 'http-tls': 'auto', 'hub-key-file': keyFile },
      ...{ 'hub-cluster-name': 'storm', 'hub-cluster-replicas': `${replicas}` },
      'hub-cluster-nats-servers': engine
        .addressesFor(name)
        .map((address) => `tls://${address}`)
        .join(),
      'hub-cluster-tls-ca-file': engine.certFile,
    })
    const servers = await Promise.all(SERVERS.map((name) => make(name, serverFlags(name))))
    const nodes = await Promise.all(Array.from({ length: count }, (_, i) => make(`m${i + 1}`, {})))
    const parties = [...servers, ...nodes]
    const from = parties.map(({ name }) => name)
    const pidOf = (name: string) => parties.find((party) => party.name === name)?.pid
    const gates = await Promise.all(
      servers.map(({ name: to, port: target }) => Gate.listen({ to, target, random, from, pidOf })),
    )
    const rig = new HubRig(engine, servers, nodes, gates)
    for (const server of servers) server.configure({ 'hub-address': rig.addressOf(server) })
    return rig
  }

  async start(): Promise<void> {
    await Promise.all(this.#parties.map((party) => party.start()))
  }

  /** Where nodes and other servers dial it. */
  addressOf(server: NodeParty): string {
    return `https://127.0.0.1:${this.#gates[this.servers.indexOf(server)]?.port}`
  }

  get paths(): Path[] {
    return [...this.engine.paths, ...this.#gates.flatMap(({ paths }) => paths)]
  }

  party(name: string): Party {
    return this.#parties.find((party) => party.name === name) ?? this.engine.server(name)
  }

  /** What a node is called that nobody has named. */
  initialName(nodeId: string): string | undefined {
    return this.#parties.find(({ id }) => id === nodeId)?.name
  }

  /** What each server lists, over gRPC and over REST. */
  async lists(): Promise<Node[][]> {
    const request = { metadataFilters: {}, serviceFilters: [] }
    return await Promise.all(
      this.servers
        .flatMap(({ caller, rest }) => [caller, rest])
        .map(async (caller) => {
          return (await caller.unary('getNodes', request, AbortSignal.timeout(PATIENCE_MS))).nodes as Node[]
        }),
    )
  }

  /** What the servers disagree about, and what is not as the nodes themselves say; undefined: nothing. */
  async disagreement(): Promise<string | undefined> {
    const lists = await this.lists().catch((error: Error) => error)
    if (lists instanceof Error) return `a server does not list its nodes: ${lists.message}`
    const lineOf = ({ id, name, online }: Node) => `${id} ${name} ${online}`
    const texts = lists.map((nodes) => nodes.map(lineOf).sort().join('\n'))
    if (new Set(texts).size > 1) return `lists that differ:\n${texts.join('\n\n')}`
    const [nodes] = lists as [Node[]]
    for (const { id, name } of this.servers) {
      if (nodes.find((node) => node.id === id)?.online !== true) return `server ${name} is not online`
    }
    const wrong = await Promise.all(this.nodes.map((party) => misshown(party, nodes)))
    return wrong.find((each) => each !== undefined)
  }

  async close(): Promise<void> {
    await Promise.all(this.#parties.map((party) => party.close()))
    for (const gate of this.#gates) gate.close()
    await this.engine.close()
  }

  get #parties(): readonly NodeParty[] {
    return [...this.servers, ...this.nodes]
  }
}

/** How a node differs from what is listed of it. */
async function misshown({ caller, id, name }: NodeParty, nodes: readonly Node[]): Promise<string | undefined> {
  const shown = nodes.find((node) => node.id === id)
  try {
    const stream = await caller.stream('streamConnectionState')
    const { state } = await stream.next()
    stream.close()
    if ((state === 'CONNECTED') !== (shown?.online === true))
      return `${name} is ${state}, shown online: ${shown?.online}`
    const { node } = await caller.unary('getNode', { nodeId: id })
    return shown?.online && shown.name !== node.name
      ? `${name} is called ${node.name}, shown as ${shown.name}`
      : undefined
  } catch (error) {
    return `${name} does not answer: ${error}`
  }
}
