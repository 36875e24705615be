/** `penstock pipelines create` and `validate`: a new pipeline from a configuration, or only what is wrong with that. */
import { readInput } from './input.ts'
import {
  type AddVerb,
  type Common,
  given,
  refuseTaken,
  type SettingOptions,
  withSettings,
} from './pipelines-options.ts'
import { printPipeline } from './pipelines-shown.ts'
import { inFile, withPlaces } from './problems.ts'
import { targetOf } from './target.ts'
import { printVerdict } from './verdict.ts'

export function addCreate(add: AddVerb): void {
  withSettings(add('create', 'create a pipeline; it is not started'))
    .argument('<name>', 'name of the pipeline')
    .argument('<config.json>', 'its configuration, - for standard input')
    .option('--force', 'also when another pipeline has that name')
    .action(async (name: string, file: string, options: Common & SettingOptions & { force?: boolean }) => {
      const jsonConfig = await readInput(file)
      const { client, node } = await targetOf(options)
      if (!options.force) await refuseTaken(client, node, name)
      const created = client.createPipeline({ nodeId: node, name, jsonConfig, ...given(options) })
      const { pipeline } = await withPlaces(created, { file, text: jsonConfig })
      printPipeline(pipeline!, options.output)
    })
}

export function addValidate(add: AddVerb): void {
  add('validate', 'check a configuration on a node, which knows its CPUs, and whom it trusts; nothing is stored')
    .argument('<config.json>', 'the configuration, - for standard input')
    .action(async (file: string, { output, ...options }: Common) => {
      const text = await readInput(file)
      const { client, node } = await targetOf(options)
      const { problems, warnings } = await client.validatePipeline({ nodeId: node, name: 'any', jsonConfig: text })
      printVerdict({ problems: inFile(problems), warnings: inFile(warnings) }, { file, text }, { output })
    })
}
