/** `penstock demo-cluster`: one hub on three servers, its state on three NATS servers, six nodes; a server of either kind dies, and all goes on. */
import { rm } from 'node:fs/promises'
import { join as joinPath } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, PenstockError, type TelemetrySample } from '@penstock/client'
import type { Command } from 'commander'
import { newIdentity } from '../link/identity.ts'
import { clientOf } from './client.ts'
import { Changes, demonstrate, join, metric, receiver, sender, step, until } from './demo-nodes.ts'
import { Failure } from './failure.ts'
import { freeAddress } from './free-address.ts'
import { NatsCluster } from './nats-cluster.ts'
import { NodeProcess } from './node-process.ts'
import { RequestSocket } from './request-socket.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { number, paint } from './terminal.ts'

/** The whole demonstration gives up after this long, ms. */
const PATIENCE_MS = 180_000
/** So many datagrams must have gone from node to node before traffic counts as flowing. */
const DATAGRAMS = 500
/** Between two tries of what is UNAVAILABLE, ms. */
const RETRY_MS = 100

const url = (node: NodeProcess): string => `http://${node.http}`
const received = (sample: TelemetrySample) => metric(sample, 'socket', 'received_packets')

/** A stopwatch: the seconds since it was made, as the lines show them. */
function stopwatch(): () => string {
  const began = performance.now()
  return () => paint(`after ${((performance.now() - began) / 1000).toFixed(1)} s`, 'green')
}

/** UDP from a node to another, both managed by a third. */
class Flow {
  private readonly client: Client
  private readonly from: NodeProcess
  private readonly to: NodeProcess
  private readonly names: string
  private run = ''

  constructor(by: NodeProcess, from: NodeProcess, to: NodeProcess, names: string) {
    this.client = clientOf(url(by))
    this.from = from
    this.to = to
    this.names = names
  }

  async start(): Promise<void> {
    this.run = await this.startOn(this.to, 'receiver', receiver)
    const portOf = (sample: TelemetrySample) => metric(sample, 'socket', 'local_port')
    const port = portOf(await until(this.client, this.to.id, this.run, (sample) => portOf(sample) > 0))
    await this.startOn(this.from, 'sender', sender(port))
    const came = await this.more(0)
    step('nodes', `${number(came)} datagrams went ${this.names}`)
  }

  /** Waits, over a new stream of the receiver's telemetry, until more have come; how many there are. */
  async more(than: number): Promise<number> {
    return received(await until(this.client, this.to.id, this.run, (sample) => received(sample) >= than + DATAGRAMS))
  }

  async now(): Promise<number> {
    return received(await until(this.client, this.to.id, this.run, () => true))
  }

  /** Whether the sender's node answers, and its run is the one that runs. */
  async isRunning(): Promise<boolean> {
    const { pipelines } = await this.client.getPipelines({ nodeId: this.from.id })
    return pipelines.some(({ currentRun }) => currentRun?.state === 'RUNNING')
  }

  private async startOn({ id: nodeId }: NodeProcess, name: string, jsonConfig: string): Promise<string> {
    const { pipeline } = await this.client.createPipeline({ nodeId, name, jsonConfig })
    return (await this.client.startPipeline({ nodeId, id: pipeline!.id })).runId
  }
}

interface Cluster {
  readonly nats: NatsCluster
  readonly servers: [NodeProcess, NodeProcess, NodeProcess]
  readonly nodes: NodeProcess[]
  /** Sees to the end of a process. */
  readonly keep: (node: NodeProcess) => NodeProcess
}

/** Calls a node through another again and again, as long as `during` takes; how many answers there were. Throws when one fails. */
async function calling(by: NodeProcess, { id: nodeId }: NodeProcess, during: Promise<unknown>): Promise<number> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  during.then(over, over)
  let answers = 0
  for (; !isOver; answers++) await clientOf(url(by)).getNode({ nodeId })
  return answers
}

/** A hub server dies; its nodes are at others, calls and traffic go on, and it comes back. */
async function loseHubServer({ servers, nodes, keep }: Cluster, flows: Flow[], signal: AbortSignal): Promise<void> {
  const [a, , c] = servers
  const changes = await Changes.open(clientOf(url(c)), signal)
  const before = await Promise.all(flows.map((flow) => flow.now()))
  step('demo', paint('kill -9 of hub server a, which has n1 and n4', 'yellow'))
  const since = stopwatch()
  const back = a.kill().then(async () => {
    for (const i of [0, 3]) {
      await changes.next('connected', nodes[i].id)
      step('streamNodes', `n${i + 1} is at another server ${since()}`)
    }
    await changes.next('disconnected', a.id)
    step('streamNodes', `a is counted as gone ${since()}`)
  })
  const answers = await calling(nodes[1], nodes[2], back)
  await back
  step('n2', `${number(answers)} calls of n3, over the two other servers, were all answered meanwhile`)
  for (const [i, flow] of flows.entries()) {
    if (!(await flow.isRunning())) throw new Failure('a run has not gone on')
    const came = await flow.more(before[i])
    step(
      'nodes',
      `run ${i + 1} goes on, ${number(came - before[i])} more datagrams came; its telemetry is read again ${since()}`,
    )
  }
  const again = stopwatch()
  servers[0] = keep(await a.restart())
  await changes.next('connected', a.id)
  step('hub', `a is one of the servers again ${again()}`)
}

/**
 * What a call answers. While the NATS servers have no leader the hub changes nothing, and a node may be between two servers: UNAVAILABLE is asked
 * again, as any client would.
 */
async function answered<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof PenstockError) || error.code !== 'UNAVAILABLE') throw error
      await pause(RETRY_MS, undefined, { signal })
    }
  }
}

/** A NATS server dies: what is changed then is seen everywhere, and traffic goes on. */
async function loseNats({ nats, servers, nodes }: Cluster, flows: Flow[], signal: AbortSignal): Promise<void> {
  const streams = await Promise.all(servers.map((server) => Changes.open(clientOf(url(server)), signal)))
  const before = await Promise.all(flows.map((flow) => flow.now()))
  step('demo', paint('kill -9 of NATS server n1', 'yellow'))
  const since = stopwatch()
  await nats.kill(0)
  const [node] = nodes
  const client = clientOf(url(servers[2]))
  await answered(() => client.setNode({ nodeId: node.id, name: 'n1 renamed', metadata: { items: {} } }), signal)
  await Promise.all(streams.map((changes) => changes.next('changed', node.id)))
  step('streamNodes', `a change of n1 was written and seen on all three hub servers ${since()}`)
  for (const [i, flow] of flows.entries()) {
    const came = await answered(() => flow.more(before[i]), signal)
    step('nodes', `run ${i + 1} goes on, ${number(came - before[i])} more datagrams came`)
  }
  for (const server of servers) {
    while ((await online(server, signal)) < nodes.length + servers.length) {
      await pause(RETRY_MS, undefined, { signal })
    }
  }
  step('hub', `all three hub servers have all nine nodes online ${since()}`)
  const again = stopwatch()
  await nats.startServer(0)
  step('nats', `n1 is up again ${again()}`)
}

async function online(server: NodeProcess, signal: AbortSignal): Promise<number> {
  const { nodes } = await answered(() => clientOf(url(server)).getNodes(), signal)
  return nodes.filter((each) => each.online).length
}

async function play(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const { servers, nodes } = cluster
  for (const [i, server] of servers.entries()) {
    const socket = await RequestSocket.open(clientOf(url(server)))
    try {
      for (const n of [i, i + 3]) await join(`n${n + 1}`, nodes[n], server, socket)
    } finally {
      socket.close()
    }
  }
  const [n1, n2, n3, n4, n5, n6] = nodes
  const flows = [
    new Flow(n3, n1, n2, 'from n1 to n2, which n3 manages'),
    new Flow(n4, n5, n6, 'from n5 to n6, which n4 manages'),
  ]
  for (const flow of flows) await flow.start()
  await loseHubServer(cluster, flows, signal)
  await loseNats(cluster, flows, signal)
}

async function demo(): Promise<void> {
  await demonstrate(PATIENCE_MS, async ({ keep, atEnd, signal }) => {
    const directory = await temporaryDirectory('penstock-hub-')
    atEnd(() => rm(directory, { recursive: true, force: true }))
    const keyFile = joinPath(directory, 'hub.key')
    const { writeHubKey } = await import('../link/hub-key.ts')
    writeHubKey(keyFile, newIdentity())
    const nats = await NatsCluster.start()
    atEnd(() => nats.stop())
    step('nats', `three servers are up, at ${nats.addresses.join(', ')}`)
    const servers: NodeProcess[] = []
    for (const name of ['a', 'b', 'c']) servers.push(keep(await startServer(name, keyFile, nats)))
    step('hub', `three servers are up: ${servers.map(({ http }, i) => `${'abc'[i]} at ${http}`).join(', ')}`)
    const nodes: NodeProcess[] = []
    for (let n = 1; n <= 6; n++) nodes.push(keep(await NodeProcess.start(['--node-name', `n${n}`])))
    await play({ nats, servers: servers as Cluster['servers'], nodes, keep }, signal)
  })
}

async function startServer(name: string, keyFile: string, { addresses }: NatsCluster): Promise<NodeProcess> {
  const http = await freeAddress()
  const servers = addresses.map((address) => `nats://${address}`).join()
  const hub = ['--hub', '--hub-key-file', keyFile, '--hub-address', `http://${http}`]
  const cluster = ['--hub-cluster-name', 'demo', '--hub-cluster-nats-servers', servers]
  return await NodeProcess.start(['--node-name', name, '--http', http, ...hub, ...cluster])
}

export function addDemoCluster(program: Command): void {
  program
    .command('demo-cluster')
    .summary('one hub on three servers, of which one dies, and a NATS server too')
    .description(
      'Starts three NATS servers (nats-server must be installed), three hub servers that are one hub, and six nodes, all as processes of their own; lets nodes at ' +
        'different servers run pipelines on each other so that UDP flows, kills a hub server and then a NATS server with SIGKILL, and tells how long ' +
        'each took to come back. Exits 0 only if all of it was seen.',
    )
    .action(demo)
}
