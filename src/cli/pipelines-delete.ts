/** `penstock pipelines delete`: asks before it stops a run. */
import type { Pipeline } from '@penstock/client'
import { Failure } from './failure.ts'
import { type AddVerb, type Common, PIPELINE } from './pipelines-options.ts'
import { findPipeline, targetOf } from './target.ts'
import { ask, named, print, printJson } from './terminal.ts'

/** Asks whether a started pipeline is to go; throws unless the answer is yes. */
async function confirmDeletion({ name, id }: Pipeline): Promise<void> {
  const what = `pipeline "${named(name)}" (${id}) is started`
  const answer = await ask(`${what}: stop its run and delete it?`)
  if (answer === undefined) throw new Failure(`${what}: --force stops its run and deletes it`)
  if (!answer) throw new Failure('not deleted')
}

export function addDelete(add: AddVerb): void {
  add('delete', 'delete a pipeline; of one that is started the run is stopped first')
    .argument('<pipeline>', PIPELINE)
    .option('--force', 'do not ask before a run is stopped')
    .action(async (name: string, options: Common & { force?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      if (pipeline.started && !options.force) await confirmDeletion(pipeline)
      const { id } = pipeline
      await client.deletePipeline({ nodeId: node, id })
      if (options.output === 'json') printJson({ id })
      else print(`deleted ${id}`)
    })
}
