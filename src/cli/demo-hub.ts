/** `penstock demo-hub`: a hub and three nodes as processes of their own; joining, managing each other, losing one and having it back. */
import { type Client, type Node, PenstockError, type TelemetrySample } from '@penstock/client'
import type { Command } from 'commander'
import { clientOf } from './client.ts'
import { Failure } from './failure.ts'
import { NodeProcess } from './node-process.ts'
import { interruption } from './options.ts'
import { RequestSocket } from './request-socket.ts'
import { number, paint, print } from './terminal.ts'

/** The whole demonstration gives up after this long, ms. */
const PATIENCE_MS = 60_000
/** So many datagrams must have gone from node to node before traffic counts as flowing. */
const DATAGRAMS = 500

const configOf = (pipeline: object): string => JSON.stringify({ version: 1, engine_config: { pipeline } })

/** Measures the probes that arrive on a UDP port, which the system chooses. */
const receiver = configOf({
  socket: { udp_local: { address: '127.0.0.1:0', output: 'received' } },
  sink: { traffic_sink: { input: 'received', latency_budget: 1_000 } },
})

/** Sends 1,000 probes a second to a UDP port. */
const sender = (port: number): string =>
  configOf({
    source: { throughput_traffic_source: { output: 'probes', throughput_mbit: 8, payload_size: 1_000 } },
    socket: { udp: { remote_address: `127.0.0.1:${port}`, input: 'probes' } },
  })

type NodeChange = 'joined' | 'left' | 'connected' | 'disconnected' | 'changed'

/** What streamNodes told so far; waits for what is still to come. */
class Changes {
  readonly #seen: { change: NodeChange; node: Node }[] = []
  #failure: unknown
  #isOpen = false
  #wake: () => void = () => undefined

  private constructor(client: Client, signal: AbortSignal) {
    this.#follow(client, signal).catch((error) => {
      this.#failure = error
      this.#wake()
    })
  }

  /** Fulfilled once the stream has told of the nodes there are: everything later is told as a change. */
  static async open(client: Client, signal: AbortSignal): Promise<Changes> {
    const changes = new Changes(client, signal)
    while (!changes.#isOpen) await changes.#more()
    return changes
  }

  async #more(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  async #follow(client: Client, signal: AbortSignal): Promise<void> {
    for await (const { initialResponse: initial, updateResponse: update } of client.streamNodes({}, { signal })) {
      if (initial !== undefined) {
        step('streamNodes', `at first: ${initial.nodes.map(({ name }) => name).join(', ')}`)
        this.#isOpen = true
      }
      const told = [
        ['joined', update?.authenticatedNode],
        ['left', update?.deauthenticatedNode],
        ['connected', update?.connectedNode],
        ['disconnected', update?.disconnectedNode],
        ['changed', update?.updatedNode],
      ] as const
      for (const [change, node] of told) {
        if (node === undefined) continue
        step('streamNodes', `${node.name} ${change}`)
        this.#seen.push({ change, node })
      }
      this.#wake()
    }
  }

  /** Takes the first such change out of what was seen. */
  async next(change: NodeChange, id: string): Promise<void> {
    for (;;) {
      const at = this.#seen.findIndex((seen) => seen.change === change && seen.node.id === id)
      if (at >= 0) {
        this.#seen.splice(at, 1)
        return
      }
      await this.#more()
    }
  }
}

function step(who: string, text: string): void {
  print(`${paint(who.padStart(12), 'cyan')}  ${text}`)
}

async function join(name: string, node: NodeProcess, hub: NodeProcess, socket: RequestSocket): Promise<void> {
  const asked = clientOf(`http://${node.http}`).authenticateByRequest(
    { hubServerAddress: `http://${hub.http}` },
    { timeout: PATIENCE_MS },
  )
  const frame = await Promise.race([socket.next(), asked.then(() => undefined)])
  if (frame === undefined) throw new Failure(`${name} joined without being approved`)
  if ('failure' in frame) throw frame.failure
  const { requestId, node: who } = frame.request
  if (who?.id !== node.id) throw new Failure(`the hub shows a request of ${who?.id} instead of ${node.id}`)
  step('operator', `approves request ${requestId} of ${who.name} ${who.id} over the WebSocket`)
  socket.answer(requestId, true)
  await asked
  step(name, 'authenticateByRequest has returned: this node is on the hub')
}

function metric(sample: TelemetrySample, path: string, name: string): number {
  const found = sample.metricCollections.find((collection) => collection.path === path)?.metrics[name]
  return Number(found?.uint64Value ?? found?.int64Value ?? found?.doubleValue ?? Number.NaN)
}

/** Follows a run until `enough` says so; gives that sample. */
async function until(
  client: Client,
  node: string,
  run: string,
  enough: (sample: TelemetrySample) => boolean,
): Promise<TelemetrySample> {
  for await (const sample of client.openTelemetryStream({ nodeId: node, runId: run })) if (enough(sample)) return sample
  throw new Failure(`the telemetry of run ${run} ended`)
}

interface Actors {
  hub: NodeProcess
  north: NodeProcess
  south: NodeProcess
  west: NodeProcess
}

/** Everything after the processes are up; `replace` keeps hold of a restarted node. */
async function play({ hub, north, south, west }: Actors, replace: (node: NodeProcess) => void): Promise<void> {
  const operator = clientOf(`http://${hub.http}`)
  const over = new AbortController()
  const changes = await Changes.open(operator, over.signal)
  const socket = await RequestSocket.open(operator)
  try {
    for (const [name, node] of [
      ['north', north],
      ['south', south],
      ['west', west],
    ] as const) {
      await join(name, node, hub, socket)
      await changes.next('joined', node.id)
      await changes.next('connected', node.id)
    }
    const through = clientOf(`http://${west.http}`)
    const { nodes } = await through.getNodes()
    step('west', `getNodes: ${nodes.map(({ name, online }) => `${name}${online ? '' : ' (offline)'}`).join(', ')}`)
    if (nodes.length !== 4 || nodes.some(({ online }) => !online))
      throw new Failure('not all four are there and online')

    step('west', 'creates and starts, through the hub, a pipeline that receives on south')
    const sinkMade = await through.createPipeline({ nodeId: south.id, name: 'receiver', jsonConfig: receiver })
    const sink = { nodeId: south.id, id: sinkMade.pipeline!.id }
    const { runId: sinkRun } = await through.startPipeline(sink)
    const portOf = (sample: TelemetrySample) => metric(sample, 'socket', 'local_port')
    const port = portOf(await until(through, south.id, sinkRun, (sample) => portOf(sample) > 0))
    step('south', `receives UDP on port ${port}, its telemetry says; west reads it through the hub`)
    step('west', 'creates and starts one that sends there on north, to start with its node from now on')
    const sourceMade = await through.createPipeline({
      nodeId: north.id,
      name: 'sender',
      jsonConfig: sender(port),
      startupPolicy: { auto: {} },
    })
    const source = { nodeId: north.id, id: sourceMade.pipeline!.id }
    await through.startPipeline(source)
    const received = (sample: TelemetrySample) => metric(sample, 'socket', 'received_packets')
    const flowing = received(await until(through, south.id, sinkRun, (sample) => received(sample) >= DATAGRAMS))
    step('south', paint(`${number(flowing)} datagrams came from north`, 'green'))

    step('demo', paint(`kill -9 of north`, 'yellow'))
    await north.kill()
    await changes.next('disconnected', north.id)
    const gone = (await through.getNodes()).nodes.find(({ id }) => id === north.id)
    if (gone === undefined || gone.online) throw new Failure('north is not shown as offline')
    step('west', 'getNodes: north is offline, and still on the hub')
    const refused = await through.getPipelines({ nodeId: north.id }).then(
      () => undefined,
      (error: unknown) => error,
    )
    if (!(refused instanceof PenstockError) || refused.code !== 'UNAVAILABLE') {
      throw new Failure(`a call for north should be UNAVAILABLE, not ${refused}`)
    }
    step('west', `a call for north: ${refused.code}, ${refused.message}`)
    const before = received(await until(through, south.id, sinkRun, () => true))

    step('demo', 'starts north again, with what it has on disk')
    const again = await north.restart()
    replace(again)
    if (again.id !== north.id) throw new Failure('north came back under another id')
    await changes.next('connected', north.id)
    const goal = before + DATAGRAMS
    const back = received(await until(through, south.id, sinkRun, (sample) => received(sample) >= goal))
    step('south', paint(`${number(back - before)} more datagrams came: north's pipeline started by itself`, 'green'))
    await through.stopPipeline(source)
    await through.stopPipeline(sink)
    step('west', 'stops both pipelines')
  } finally {
    over.abort()
    socket.close()
  }
}

async function demo(): Promise<void> {
  const stop = interruption()
  const nodes = new Map<string, NodeProcess>()
  const started = performance.now()
  const named = async (name: string, ...flags: string[]): Promise<NodeProcess> => {
    const node = await NodeProcess.start(['--node-name', name, ...flags])
    nodes.set(node.id, node)
    step(name, `is up as a process of its own, at ${node.http}, node ${node.id}`)
    return node
  }
  const patience = AbortSignal.any([stop, AbortSignal.timeout(PATIENCE_MS)])
  const ended = new Promise<never>((_, reject) => {
    const end = () => reject(new Failure(stop.aborted ? 'interrupted' : `not done after ${PATIENCE_MS / 1000} s`))
    if (patience.aborted) end()
    else patience.addEventListener('abort', end)
  })
  ended.catch(() => undefined)
  try {
    const hub = await named('hub', '--hub')
    const north = await named('north')
    const south = await named('south')
    const west = await named('west')
    await Promise.race([play({ hub, north, south, west }, (node) => nodes.set(node.id, node)), ended])
    print(`\nall of it was seen, in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  } finally {
    await Promise.all([...nodes.values()].map((node) => node.stop()))
  }
}

export function addDemoHub(program: Command): void {
  program
    .command('demo-hub')
    .summary('a hub and three nodes, one of which dies and returns')
    .description(
      'Starts a hub and three nodes as processes of their own, joins them by request, lets one start pipelines on the ' +
        'two others so that UDP flows between those, kills one with SIGKILL and starts it again. Exits 0 only if all of it was seen.',
    )
    .action(demo)
}
