/** `penstock status`: the node that answers, its place on a hub, and what it runs. */
import {
  type Client,
  type ConnectionState,
  type GetLocalNodeIdResponse,
  type Node,
  PenstockError,
  type Pipeline,
} from '@penstock/client'
import type { Command } from 'commander'
import { type AllNodesOptions, askAll, pipelinesOf, requireAll, withAllNodes } from './all-nodes.ts'
import { Failure } from './failure.ts'
import { type Format, withOutput } from './options.ts'
import { shownFingerprint } from './shown-fingerprint.ts'
import { clientFor, type TargetOptions, targetOf, withTarget } from './target.ts'
import { named, paint, print, printJson, table } from './terminal.ts'

const STATES = {
  UNAUTHENTICATED: 'on no hub',
  DISCONNECTED: 'signed in, the link is down',
  CONNECTED: 'connected',
} as const

/** Of a server of a hub of several. */
const CUT_OFF = 'hosted here, but cut off from the state that its servers share: it lets nobody in and removes nobody'

/** Of a hub of several servers, which there are. */
function serverRows(servers: readonly Node[], node: string): string[][] {
  if (servers.length < 2) return []
  const shown = servers.map(({ id, name, online }) => {
    const about = id === node ? ' (this node)' : online ? '' : paint(' (away)', 'yellow')
    return `${named(name)}${about}`
  })
  return [['servers', `${servers.length}, ${servers.filter(({ online }) => online).length} up: ${shown.join(', ')}`]]
}

/** A pipeline whose last run failed, waiting for its next one included. */
const hasFailed = ({ currentRun }: Pipeline): boolean => currentRun?.outcome === 'FAILED'

/** How the node that answers stands with its hub. */
async function connectionStateOf(client: Client): Promise<ConnectionState> {
  for await (const { state } of client.streamConnectionState()) return state
  throw new Failure('the stream of the connection state ended before it began')
}

/** How `node` stands with its hub, and who else is there; a hub that cannot be asked now leaves the list out. */
async function hubOf(client: Client, node: string, { nodeId, isAuthenticated }: GetLocalNodeIdResponse) {
  const nodes = isAuthenticated
    ? await client.getNodes().then(
        (answer) => answer.nodes,
        (error: unknown) => {
          if (error instanceof PenstockError) return undefined
          throw error
        },
      )
    : undefined
  const servers = nodes?.filter(({ services }) => services.includes('HUB_SERVER')) ?? []
  const hub = servers.find(({ id }) => id === node) ?? servers.find(({ online }) => online) ?? servers[0]
  // Another node is asked over the hub, which knows whether that one is there.
  const isOnline = nodes?.find(({ id }) => id === node)?.online === true
  const state = node === nodeId ? await connectionStateOf(client) : isOnline ? 'CONNECTED' : 'DISCONNECTED'
  return { state, nodes, hub, servers } as const
}

function pipelineRows(pipelines: readonly Pipeline[]): string[][] {
  const running = pipelines.filter(({ currentRun }) => currentRun?.state === 'RUNNING').length
  const failed = pipelines.filter(hasFailed)
  const counts = `${pipelines.length}, ${running} running`
  if (failed.length === 0) return [['pipelines', counts]]
  return [
    ['pipelines', `${counts}, ${paint(`${failed.length} failed`, 'red')}`],
    ...failed.map(({ id, name, started, currentRun }) => [
      paint('failed', 'red'),
      `${named(name)} ${id}: ${named(currentRun?.error ?? 'no cause is known')}${started ? '; its next run is on the way' : ''}`,
    ]),
  ]
}

/** What each node of the hub runs, in numbers; throws once that is printed when a node did not answer. */
async function statusEverywhere(options: Options): Promise<void> {
  const client = clientFor(options)
  const asked = await askAll(client, options.timeout, pipelinesOf(client))
  if (options.output === 'json') {
    printJson(asked.map(({ answer, ...node }) => (answer === undefined ? node : { ...node, ...countsOf(answer) })))
  } else {
    const columns = ['NODE', 'ID', 'PIPELINES', 'RUNNING', 'FAILED'].map((title) => ({ title, whole: title === 'ID' }))
    const rows = asked.map(({ id, name, answer }) => {
      if (answer === undefined) return [named(name), id, paint('no answer', 'red')]
      const { pipelines, running, failed } = countsOf(answer)
      return [named(name), id, `${pipelines}`, `${running}`, failed.length > 0 ? paint(`${failed.length}`, 'red') : '0']
    })
    print(table(columns, rows))
  }
  requireAll(asked)
}

/** How many there are and run, and which have failed. */
function countsOf(pipelines: readonly Pipeline[]) {
  const running = pipelines.filter(({ currentRun }) => currentRun?.state === 'RUNNING').length
  const failed = pipelines
    .filter(hasFailed)
    .map(({ id, name, currentRun }) => ({ id, name, run: currentRun?.id, error: currentRun?.error }))
  return { pipelines: pipelines.length, running, failed }
}

interface Options extends TargetOptions, AllNodesOptions {
  output: Format
}

export function addStatus(program: Command): void {
  withAllNodes(withTarget(withOutput(program.command('status'))))
    .summary('the node that answers, its hub, and what it runs')
    .description('Shows the node that answers, how it stands with its hub, its pipelines in numbers, and which failed.')
    .action(async (options: Options) => {
      if (options.allNodes) {
        await statusEverywhere(options)
        return
      }
      const { client, node } = await targetOf(options)
      const local = await client.getLocalNodeId()
      const { nodeId, isAuthenticated } = local
      const { name } = (await client.getNode({ nodeId: node })).node!
      const { state, nodes, hub, servers } = await hubOf(client, node, local)
      const { pipelines } = await client.getPipelines({ nodeId: node })
      const nodesOnline = nodes?.filter(({ online }) => online).length
      const { url } = client.connection
      const fingerprint = await shownFingerprint(url)
      if (options.output === 'json') {
        const facts = { url, fingerprint, nodeId, node, name, isAuthenticated, state, hub: hub?.id }
        const several =
          servers.length < 2 ? {} : { servers: servers.map(({ id, name, online }) => ({ id, name, online })) }
        printJson({ ...facts, ...several, nodes: nodes?.length, nodesOnline, ...countsOf(pipelines) })
        return
      }
      const colour = state === 'CONNECTED' ? 'green' : state === 'DISCONNECTED' ? 'yellow' : 'dim'
      const isHub = hub?.id === node
      const isCutOff = isHub && state === 'DISCONNECTED'
      const where = hub === undefined ? '' : isHub ? ', which this node hosts' : ` to ${named(hub.name)} ${hub.id}`
      print(
        table(
          [{ title: '' }, { title: '', wrap: true }],
          [
            ['node', node],
            ['name', named(name)],
            ...(node === nodeId ? [] : [['asked through', nodeId]]),
            ['api', url],
            ...(fingerprint === undefined ? [] : [['certificate', fingerprint]]),
            ['hub', isCutOff ? paint(CUT_OFF, colour) : paint(STATES[state], colour) + where],
            ...serverRows(servers, node),
            ...(nodes === undefined ? [] : [['nodes', `${nodes.length}, ${nodesOnline} online`]]),
            ...pipelineRows(pipelines),
          ],
        ),
      )
    })
}
