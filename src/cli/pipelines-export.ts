/** `penstock pipelines export`: pipelines with their settings, as a file that `apply` takes. */
import { writeFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import { messageOf } from '../text/error-message.ts'
import { Failure, UsageFailure } from './failure.ts'
import { fileName } from './file-name.ts'
import { ID_OR_NAME } from './ids.ts'
import { findPipeline, type TargetOptions, targetOf, withTarget } from './target.ts'
import { harmless } from './terminal.ts'

interface Options extends TargetOptions {
  all?: boolean
  output?: string
  format?: 'yaml' | 'json'
  json?: boolean
}

async function exportPipelines(
  names: string[],
  { all, output = '-', format, json, ...options }: Options,
): Promise<void> {
  if (all === true ? names.length > 0 : names.length === 0) {
    throw new UsageFailure('name pipelines, or all of them with --all')
  }
  // Other commands have their format there.
  if (/^(json|yaml|table)$/.test(output)) {
    throw new UsageFailure(`-o names a file here: give the format with --format, or write -o ./${output}`)
  }
  if (json && format === 'yaml') {
    throw new UsageFailure('--json and --format yaml do not go together: give one of them')
  }
  const { client, node } = await targetOf(options)
  const pipelines = all ? (await client.getPipelines({ nodeId: node })).pipelines : []
  for (const name of names) {
    const found = await findPipeline(client, node, name)
    if (!pipelines.some(({ id }) => id === found.id)) pipelines.push(found)
  }
  // In whatever order the node tells of them, the file is the same.
  if (all) pipelines.sort((a, b) => (a.name < b.name ? -1 : 1))
  const { pipelinesText } = await import('./pipeline-files.ts')
  const text = pipelinesText(pipelines, json ? 'json' : (format ?? (output.endsWith('.json') ? 'json' : 'yaml')))
  if (output === '-') {
    process.stdout.write(process.stdout.isTTY ? harmless(text) : text)
    return
  }
  // Configurations hold keys.
  await writeFile(output, text, { mode: 0o600 }).catch((error: unknown) => {
    throw new Failure(`cannot write ${output}: ${messageOf(error)}`)
  })
}

export function addExport(pipelines: Command): void {
  withTarget(pipelines.command('export'))
    .summary('write pipelines with their settings as a file for apply')
    .description(
      'Writes pipelines with their settings as a file that "penstock pipelines apply" takes. A new file is for its owner alone to read, since configurations hold keys.',
    )
    .argument('[pipeline...]', `the pipelines: of each ${ID_OR_NAME}`)
    .option('--all', 'all pipelines of the node')
    .option('-o, --output <file>', 'where to write; - or nothing is standard output', fileName)
    .addOption(
      new Option('--format <format>', 'of the file (default: json for a FILE.json, else yaml)').choices([
        'yaml',
        'json',
      ]),
    )
    .option('--json', 'the same as --format json')
    .action(exportPipelines)
}
