/** `penstock pipelines start` and `stop`. */
import { SilentFailure, UsageFailure } from './failure.ts'
import { followLog } from './follow.ts'
import { type AddVerb, type Common, PIPELINE } from './pipelines-options.ts'
import { findPipeline, findRunId, targetOf } from './target.ts'
import { print, printJson } from './terminal.ts'

export function addStartAndStop(add: AddVerb): void {
  add('start', 'start a new run')
    .argument('<pipeline>', PIPELINE)
    .option('-f, --follow', 'then show the log of the run until it ends or Ctrl-C')
    .action(async (name: string, options: Common & { follow?: boolean }) => {
      const { client, node } = await targetOf(options)
      const { id } = await findPipeline(client, node, name)
      const { runId } = await client.startPipeline({ nodeId: node, id })
      if (options.output === 'json') printJson({ runId })
      else print(`started run ${runId}`)
      if (!options.follow) return
      const outcome = await followLog(client, node, runId, { lines: 1000, output: options.output })
      if (outcome === 'FAILED') throw new SilentFailure()
    })

  add('stop', 'ask the current run to stop')
    .argument('[pipeline]', PIPELINE)
    .option('--run <id>', 'the run to stop, instead of a pipeline')
    .action(async (name: string | undefined, options: Common & { run?: string }) => {
      const { client, node } = await targetOf(options)
      if (options.run !== undefined) {
        await client.stopPipeline({ nodeId: node, runId: await findRunId(client, node, options.run) })
      } else if (name === undefined) throw new UsageFailure('name a pipeline, or a run with --run')
      else await client.stopPipeline({ nodeId: node, id: (await findPipeline(client, node, name)).id })
      if (options.output === 'json') printJson({})
      else print('stopping')
    })
}
