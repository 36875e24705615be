/** `penstock pipelines export`: pipelines with their settings, as a file that `apply` takes. */
import { chmodSync, chownSync, renameSync, rmSync, type Stats } from 'node:fs'
import { realpath, stat, writeFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import { messageOf } from '../text/error-message.ts'
import { writeDraft } from '../write-file.ts'
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
  await write(output, text).catch((error: unknown) => {
    const { cause = error } = error as Error
    throw new Failure(`cannot write ${output}: ${messageOf(cause)}`)
  })
}

/**
 * Writes a file that only its owner can read, since configurations hold keys; one that is there keeps its owner and mode, and is what it was until all of
 * the new one is on disk: it may be the only copy. Where nothing can take its place it is written to as it is.
 */
async function write(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const old = await stat(target).catch(() => undefined)
  if (old !== undefined && !old.isFile()) await writeFile(path, text)
  else if (!replace(target, text, old)) await writeFile(path, text, { mode: 0o600 })
}

/** Puts a file with `text` in the place of `old`; false where its folder, its owner or a mount is against that. Throws where the disk does not take it. */
function replace(path: string, text: string, old: Stats | undefined): boolean {
  let draft: string | undefined
  try {
    // Should the machine fail now, either of them is there, whole.
    draft = writeDraft(path, text)
    if (old !== undefined) {
      chownSync(draft, old.uid, old.gid)
      chmodSync(draft, old.mode & 0o7777)
    }
    renameSync(draft, path)
  } catch (error) {
    if (draft !== undefined) rmSync(draft, { force: true })
    // Of the disk it has none.
    if ((error as NodeJS.ErrnoException).code === undefined) throw error
    return false
  }
  return true
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
