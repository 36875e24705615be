/** `penstock validate`: every problem of a pipeline configuration, and what is doubtful in it, with its place in the file and its JSON pointer. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { connect } from '../dataplane/engine/ports.ts'
import { SilentFailure } from './failure.ts'
import { type Format, readInput, withOutput } from './options.ts'
import { countOf, nameOf, placed, placedLines } from './problems.ts'
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
      const tell = (line: string) => process.stderr.write(harmless(`${line}\n`))
      if (output === 'json') {
        printJson({ valid: config !== null, problems: placed(problems, text), warnings: placed(warnings, text) })
      } else if (config) {
        const { connections } = connect(config.components, components)
        const count = Object.keys(config.components).length
        print(`${paint('valid', 'green')}: ${nameOf(file)}, ${count} components, ${connections.length} connections`)
        if (warnings.length > 0) {
          const some = warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`
          tell(`${paint(some, 'yellow', process.stderr)}:\n${placedLines(warnings, { file, text })}`)
        }
      } else {
        const head = `${paint('invalid', 'red', process.stderr)}: ${nameOf(file)}, ${countOf(problems)}`
        tell(`${head}\n${placedLines(problems, { file, text })}`)
      }
      if (!config) throw new SilentFailure()
    })
}
