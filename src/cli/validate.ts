/** `penstock validate`: every problem of a pipeline configuration, and what is doubtful in it, with its place in the file and its JSON pointer. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { connect } from '../dataplane/engine/ports.ts'
import type { Problem } from '../text/pointer.ts'
import { SilentFailure } from './failure.ts'
import { type Format, readInput, withOutput } from './options.ts'
import { countOf, nameOf, placed, placedLines, type Source } from './problems.ts'
import { harmless, paint, print, printJson } from './terminal.ts'

export function addValidate(program: Command): void {
  withOutput(program.command('validate'))
    .summary('check a pipeline configuration')
    .description(
      'Checks a pipeline configuration and lists every problem, FILE:LINE:COLUMN: /pointer: what is wrong; exit code 1 if there is ' +
        'any. Warnings are about what is allowed but hardly meant, and change no exit code.',
    )
    .argument('<config.json>', 'the configuration, - for standard input')
    .action(async (file: string, { output }: { output: Format }) => {
      const text = await readInput(file)
      const { config, problems, warnings } = checkPipelineConfig(text, components)
      const found = config === null ? '' : foundIn(config)
      printVerdict({ problems, warnings }, { file, text }, { output, found })
    })
}

function foundIn({ components: parts }: PipelineConfig): string {
  const { connections } = connect(parts, components)
  return `, ${Object.keys(parts).length} components, ${connections.length} connections`
}

/** Prints what was found about a configuration; throws SilentFailure when it cannot be used. `found` follows the name of one that can. */
export function printVerdict(
  { problems, warnings }: { problems: readonly Problem[]; warnings: readonly Problem[] },
  source: Source,
  { output, found = '' }: { output: Format; found?: string },
): void {
  const valid = problems.length === 0
  const { file, text } = source
  const tell = (line: string) => process.stderr.write(harmless(`${line}\n`))
  if (output === 'json') {
    printJson({ valid, problems: placed(problems, text), warnings: placed(warnings, text) })
  } else if (valid) {
    print(`${paint('valid', 'green')}: ${nameOf(file)}${found}`)
    if (warnings.length > 0) {
      const some = warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`
      tell(`${paint(some, 'yellow', process.stderr)}:\n${placedLines(warnings, source)}`)
    }
  } else {
    const head = `${paint('invalid', 'red', process.stderr)}: ${nameOf(file)}, ${countOf(problems)}`
    tell(`${head}\n${placedLines(problems, source)}`)
  }
  if (!valid) throw new SilentFailure()
}
