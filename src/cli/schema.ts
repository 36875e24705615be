/** `penstock schema`: the JSON Schema of pipeline configurations, for editors. */
import type { Command } from 'commander'
import { withOutput } from './options.ts'
import { printJson } from './terminal.ts'

export function addSchema(program: Command): void {
  withOutput(program.command('schema'), ['json', 'yaml'])
    .summary('the JSON Schema of pipeline configurations')
    .description(
      'Prints the JSON Schema (2020-12) of pipeline configurations. An editor that reads "$schema": "./pipeline-config.schema.json" in a ' +
        'configuration completes its fields from the file that this was written to. A node serves the same at /v1/schema/pipeline-config.json.',
    )
    .action(async () => {
      const { pipelineConfigSchema } = await import('../node/config-schema.ts')
      printJson(pipelineConfigSchema())
    })
}
