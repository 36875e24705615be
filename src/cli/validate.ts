/** `penstock validate`: every problem of a pipeline configuration, and what is doubtful in it, with its place in the file and its JSON pointer. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { connect } from '../dataplane/engine/ports.ts'
import { checkGivenConfig } from '../dataplane/engine/shm-size.ts'
import { type Format, readInput, withOutput } from './options.ts'
import { printVerdict } from './verdict.ts'

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
      const { config, problems, warnings } = checkGivenConfig(text, components)
      const found = config === null ? '' : foundIn(config)
      printVerdict({ problems, warnings }, { file, text }, { output, found })
    })
}

function foundIn({ components: parts }: PipelineConfig): string {
  const { connections } = connect(parts, components)
  return `, ${counted(Object.keys(parts).length, 'component')}, ${counted(connections.length, 'connection')}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
