/** Configurations that a command itself checks, without a node. */
import { dirname, resolve } from 'node:path'
import { components } from '../dataplane/components/registry.ts'
import { checkGivenConfig } from '../dataplane/engine/check.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { pathFaults, withFilesIn } from '../dataplane/engine/files.ts'
import type { Problem } from '../text/pointer.ts'
import { readInput } from './input.ts'
import { invalid, type Source } from './problems.ts'
import { paint } from './terminal.ts'

/** Checks the text of a configuration that stands in `file`, or in standard input, and whose files are relative to that. */
export function checkPipeline({ file, text }: Source): { config: PipelineConfig | null; problems: readonly Problem[] } {
  const { config, problems } = checkGivenConfig(text, components)
  if (!config) return { config, problems }
  const placed = withFilesIn(config, components, file === '-' ? process.cwd() : dirname(resolve(file)))
  const faults = pathFaults(placed, components)
  return { config: faults.length > 0 ? null : placed, problems: faults }
}

/** The checked configuration of `source`; all problems at once are the failure. */
export function pipelineIn(source: Source): PipelineConfig {
  const { config, problems } = checkPipeline(source)
  if (!config) throw invalid(problems, source)
  if (config.lifecycle !== undefined) {
    note('the commands of lifecycle_handler are not run: only a node runs them')
  }
  return config
}

/** Says what of a configuration is left out. */
export function note(text: string): void {
  process.stderr.write(`${paint('note:', 'yellow', process.stderr)} ${text}\n`)
}

/** Reads and checks a pipeline configuration, whose files are relative to its own; all problems at once are the failure. */
export async function loadPipeline(file: string): Promise<PipelineConfig> {
  return pipelineIn({ file, text: await readInput(file) })
}
