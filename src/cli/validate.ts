/** `penstock validate`: every problem of a pipeline configuration, and what is doubtful in it, with its JSON pointer. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { connect } from '../dataplane/engine/ports.ts'
import { SilentFailure } from './failure.ts'
import { type Format, problemLines, readInput, withOutput } from './options.ts'
import { paint, print, printJson } from './terminal.ts'

export function addValidate(program: Command): void {
  withOutput(program.command('validate'))
    .summary('check a pipeline configuration')
    .description(
      'Checks a pipeline configuration and lists every problem with its JSON pointer: exit code 1 if there is any. Warnings are ' +
        'about what is allowed but hardly meant, and change no exit code.',
    )
    .argument('<config.json>', 'the configuration, - for standard input')
    .action(async (file: string, { output }: { output: Format }) => {
      const { config, problems, warnings } = checkPipelineConfig(await readInput(file))
      if (output === 'json') printJson({ valid: config !== null, problems, warnings })
      else if (config) {
        const { connections } = connect(config.components, components)
        const count = Object.keys(config.components).length
        print(`${paint('valid', 'green')}: ${file}, ${count} components, ${connections.length} connections`)
        if (warnings.length > 0) {
          const some = warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`
          process.stderr.write(`${paint(some, 'yellow', process.stderr)}:\n${problemLines(warnings)}\n`)
        }
      } else {
        const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
        process.stderr.write(
          `${paint('invalid', 'red', process.stderr)}: ${file}, ${count}\n${problemLines(problems)}\n`,
        )
      }
      if (!config) throw new SilentFailure()
    })
}
