/** `penstock status`: the node that answers, its place on a hub, and what it runs. */
import type { Command } from 'commander'
import { ApiFailure } from './client.ts'
import { type Format, withOutput } from './options.ts'
import { type TargetOptions, targetOf, withTarget } from './target.ts'
import { paint, print, printJson, table } from './terminal.ts'

export function addStatus(program: Command): void {
  withTarget(withOutput(program.command('status')))
    .summary('the node that answers and what it runs')
    .description('Shows the node that answers, whether it is on a hub, and its pipelines in numbers.')
    .action(async (options: TargetOptions & { output: Format }) => {
      const { client, node } = await targetOf(options)
      const { nodeId, isAuthenticated } = await client.getLocalNodeId()
      const pipelines = await client.getPipelines(node)
      const running = pipelines.filter(({ currentRun }) => currentRun?.state === 'RUNNING').length
      const nodes = isAuthenticated
        ? await client.getNodes().catch((error: unknown) => {
            if (error instanceof ApiFailure) return null
            throw error
          })
        : null
      const name = nodes?.find(({ id }) => id === node)?.name
      const facts = { url: client.url, nodeId, node, name, isAuthenticated, pipelines: pipelines.length, running }
      if (options.output === 'json') {
        printJson({ ...facts, nodes: nodes?.length, nodesOnline: nodes?.filter(({ online }) => online).length })
        return
      }
      const onHub = isAuthenticated ? paint('signed in', 'green') : 'on no hub'
      const online = nodes ? `, ${nodes.filter((each) => each.online).length} of ${nodes.length} nodes online` : ''
      print(
        table(
          [{ title: '' }, { title: '', wrap: true }],
          [
            ['node', nodeId],
            ...(node === nodeId ? [] : [['asked about', node]]),
            ...(name ? [['name', name]] : []),
            ['api', client.url],
            ['hub', onHub + online],
            ['pipelines', `${pipelines.length}, ${running} running`],
          ],
        ),
      )
    })
}
