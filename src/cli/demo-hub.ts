/** `penstock demo-hub`: a hub and three nodes as processes of their own; joining, managing each other, losing one and having it back. */
import { PenstockError, type TelemetrySample } from '@penstock/client'
import type { Command } from 'commander'
import { clientOf } from './client.ts'
import { Changes, demonstrate, join, metric, receiver, sender, step, until } from './demo-nodes.ts'
import { Failure } from './failure.ts'
import { NodeProcess } from './node-process.ts'
import { RequestSocket } from './request-socket.ts'
import { number, paint } from './terminal.ts'

/** The whole demonstration gives up after this long, ms. */
const PATIENCE_MS = 60_000
/** So many datagrams must have gone from node to node before traffic counts as flowing. */
const DATAGRAMS = 500

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
  await demonstrate(PATIENCE_MS, async ({ keep }) => {
    const named = async (name: string, ...flags: string[]): Promise<NodeProcess> => {
      const node = keep(await NodeProcess.start(['--node-name', name, ...flags]))
      step(name, `is up as a process of its own, at ${node.http}, node ${node.id}`)
      return node
    }
    const hub = await named('hub', '--hub')
    const north = await named('north')
    const south = await named('south')
    const west = await named('west')
    await play({ hub, north, south, west }, keep)
  })
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
