/** `penstock status`: the node that answers, its place on a hub, and what it runs. */
import type { Command } from 'commander'
import { type ApiClient, ApiFailure } from './client.ts'
import { shownFingerprint } from './connection.ts'
import { named } from './node-details.ts'
import { type Format, withOutput } from './options.ts'
import { type TargetOptions, targetOf, withTarget } from './target.ts'
import { paint, print, printJson, table } from './terminal.ts'

const STATES = {
  UNAUTHENTICATED: 'on no hub',
  DISCONNECTED: 'signed in, the link is down',
  CONNECTED: 'connected',
} as const

/** What the node knows of its hub; a hub that cannot be asked now leaves the list out. */
async function hubOf(client: ApiClient, isAuthenticated: boolean) {
  const state = await client.connectionState()
  const nodes = isAuthenticated
    ? await client.getNodes().catch((error: unknown) => {
        if (error instanceof ApiFailure) return undefined
        throw error
      })
    : undefined
  const hub = nodes?.find(({ services }) => services.includes('HUB_SERVER'))
  return { state, nodes, hub }
}

export function addStatus(program: Command): void {
  withTarget(withOutput(program.command('status')))
    .summary('the node that answers, its hub, and what it runs')
    .description('Shows the node that answers, how it stands with its hub, and its pipelines in numbers.')
    .action(async (options: TargetOptions & { output: Format }) => {
      const { client, node } = await targetOf(options)
      const { nodeId, isAuthenticated } = await client.getLocalNodeId()
      const { name } = await client.getNode(node)
      const { state, nodes, hub } = await hubOf(client, isAuthenticated)
      const pipelines = await client.getPipelines(node)
      const running = pipelines.filter(({ currentRun }) => currentRun?.state === 'RUNNING').length
      const nodesOnline = nodes?.filter(({ online }) => online).length
      const fingerprint = await shownFingerprint(client.url)
      if (options.output === 'json') {
        const facts = { url: client.url, fingerprint, nodeId, node, name, isAuthenticated, state, hub: hub?.id }
        printJson({ ...facts, nodes: nodes?.length, nodesOnline, pipelines: pipelines.length, running })
        return
      }
      const colour = state === 'CONNECTED' ? 'green' : state === 'DISCONNECTED' ? 'yellow' : 'dim'
      const isHub = hub?.id === nodeId
      const where = hub === undefined ? '' : isHub ? ', which this node hosts' : ` to ${named(hub.name)} ${hub.id}`
      print(
        table(
          [{ title: '' }, { title: '', wrap: true }],
          [
            ['node', node],
            ['name', named(name)],
            ...(node === nodeId ? [] : [['asked through', nodeId]]),
            ['api', client.url],
            ...(fingerprint === undefined ? [] : [['certificate', fingerprint]]),
            ['hub', paint(STATES[state], colour) + where],
            ...(nodes === undefined ? [] : [['nodes', `${nodes.length}, ${nodesOnline} online`]]),
            ['pipelines', `${pipelines.length}, ${running} running`],
          ],
        ),
      )
    })
}
