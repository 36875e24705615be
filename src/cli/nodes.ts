/** `penstock nodes`: the nodes on the hub, listed, followed, renamed and removed. */
import type { Client, GetNodesRequest, Node } from '@penstock/client'
import { type Command, Option } from 'commander'
import { setOwn } from '../text/json-object.ts'
import { Failure, UsageFailure } from './failure.ts'
import { ID_OR_NAME, meant } from './ids.ts'
import { type MetadataItems, metadataItems, NODE_COLUMNS, nodeRow } from './node-details.ts'
import { collect, type Format, interruption, withOutput } from './options.ts'
import { untilAborted } from './streams.ts'
import { type ClientOptions, clientFor, findNode, reachedBy, withClient } from './target.ts'
import { LiveRegion, named, print, printDataLine, printJson, table } from './terminal.ts'
import { markDefault } from './usage.ts'

type Common = ClientOptions & { output: Format }
type Service = 'hub' | 'pipelines'

function byName(a: Node, b: Node): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1
}

const nodesTable = (nodes: Iterable<Node>): string => table(NODE_COLUMNS, [...nodes].sort(byName).map(nodeRow))

/** What happened to a node, as a line tells it. */
const CHANGES = {
  authenticatedNode: 'joined',
  deauthenticatedNode: 'left',
  connectedNode: 'connected',
  disconnectedNode: 'disconnected',
  updatedNode: 'changed',
} as const

/** From a change to the drawing that shows it and all that come meanwhile, ms: one of hundreds of nodes takes a good part of that. */
const DRAW_MS = 200

async function watch(client: Client, output: Format): Promise<void> {
  const live = new LiveRegion()
  const nodes = new Map<string, Node>()
  let due: NodeJS.Timeout | undefined
  const draw = () => {
    clearTimeout(due)
    due = undefined
    live.draw(nodesTable(nodes.values()))
  }
  const stop = interruption()
  // What was seen last grows older by itself.
  const clock = live.available && output !== 'json' ? setInterval(draw, 1_000) : undefined
  try {
    for await (const message of untilAborted(client.streamNodes({}, { signal: stop }), stop)) {
      for (const node of message.initialResponse?.nodes ?? []) nodes.set(node.id, node)
      const update = message.updateResponse ?? {}
      for (const kind of Object.keys(CHANGES) as (keyof typeof CHANGES)[]) {
        const node = update[kind]
        if (node === undefined) continue
        if (kind === 'deauthenticatedNode') nodes.delete(node.id)
        else nodes.set(node.id, node)
        if (output !== 'json' && !live.available) print(`${CHANGES[kind]} ${named(node.name)} ${node.id}`)
      }
      if (output === 'json') printDataLine(message)
      else if (live.available && message.initialResponse) draw()
      else if (live.available) due ??= setTimeout(draw, DRAW_MS)
      else if (message.initialResponse) print(nodesTable(nodes.values()))
    }
  } finally {
    clearInterval(clock)
    // What is left on the screen is what was told last.
    if (due !== undefined) draw()
    live.keep()
  }
  if (!stop.aborted) throw new Failure('the stream of nodes ended')
}

interface ListOptions extends Common {
  watch?: boolean
  filter?: string[]
  service?: Service[]
}

async function list({ watch: isWatch, filter = [], service = [], ...options }: ListOptions): Promise<void> {
  if (isWatch && filter.length + service.length > 0) {
    throw new UsageFailure('--watch shows every change: leave the filters out')
  }
  const client = await reachedBy(options)
  if (isWatch) {
    await watch(client, options.output)
    return
  }
  const filters: GetNodesRequest = {
    metadataFilters: metadataItems(filter),
    serviceFilters: service.map((each) => (each === 'hub' ? 'HUB_SERVER' : 'PIPELINES')),
  }
  const { nodes } = await client.getNodes(filters)
  if (options.output === 'json') printJson(nodes)
  else print(nodes.length === 0 ? 'no such nodes' : nodesTable(nodes))
}

interface SetOptions extends Common {
  name?: string
  metadata?: string[]
  unset?: string[]
  clear?: boolean
}

async function set(given: string, { name, metadata = [], unset = [], clear, ...options }: SetOptions): Promise<void> {
  if (name === undefined && metadata.length + unset.length === 0 && !clear) {
    throw new UsageFailure('say what to change: --name, --metadata, --unset or --clear')
  }
  const client = clientFor(options)
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  // A node on no hub can be asked about itself.
  const isOwn = given === '.' || (!isAuthenticated && meant([{ id: nodeId }], given, 'nodes') !== undefined)
  const id = isOwn || given === nodeId ? nodeId : (await findNode(client, given)).id
  const before = (await client.getNode({ nodeId: id })).node!
  const items: MetadataItems = clear ? {} : { ...before.metadata?.items }
  for (const key of unset) {
    if (!Object.hasOwn(items, key)) throw new Failure(`the node has no metadata "${key}"`)
    delete items[key]
  }
  for (const [key, item] of Object.entries(metadataItems(metadata))) setOwn(items, key, item)
  const { node } = await client.setNode({ nodeId: id, name: name ?? before.name, metadata: { items } })
  if (options.output === 'json') printJson(node)
  else print(nodesTable([node!]))
}

export function addNodes(program: Command): void {
  const nodes = program.command('nodes').summary('the nodes on the hub').description('Works on the nodes of the hub.')
  const add = (usage: string, summary: string, isDefault = false): Command =>
    withClient(withOutput(nodes.command(usage, { isDefault })))
      .summary(summary)
      .description(`${summary[0].toUpperCase()}${summary.slice(1)}.`)
  const NODE = `the node: ${ID_OR_NAME}; . for the one talked to`

  const listing = add('list', 'list the nodes (the default)', true)
  markDefault(nodes, listing)
  listing
    .option('-w, --watch', 'follow the changes until Ctrl-C')
    .option('--filter <key=value>', 'only nodes with this metadata; key:=4 for other types', collect)
    .addOption(
      new Option('--service <service>', 'only nodes that offer it: hub or pipelines').argParser(
        (value: string, before: Service[] | undefined): Service[] => {
          if (value !== 'hub' && value !== 'pipelines')
            throw new UsageFailure(`there is no service "${value}": there are hub and pipelines`)
          return [...(before ?? []), value]
        },
      ),
    )
    .action(list)

  add('set', 'change the name and metadata of a node; what is not given stays as it is')
    .argument('<node>', NODE)
    .option('--name <name>', 'its new name')
    .option('--metadata <key=value>', 'set metadata: key=text, or key:=value with a number, true or false', collect)
    .option('--unset <key>', 'remove metadata', collect)
    .option('--clear', 'remove all other metadata')
    .action(set)

  add('remove', 'remove a node from the hub; to come back it must ask again')
    .argument('<node>', `the node: ${ID_OR_NAME}`)
    .action(async (given: string, options: Common) => {
      const client = await reachedBy(options)
      const { id, name } = await findNode(client, given)
      await client.removeNode({ nodeId: id })
      if (options.output === 'json') printJson({ id })
      else print(`removed ${named(name)} ${id}`)
    })
}
