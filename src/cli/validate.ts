/** `penstock validate`: every problem of a pipeline configuration, a RelayConfiguration or a LogConfig, and what is doubtful in it, with its place in the file and its JSON pointer. */
import type { Command } from 'commander'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { connect } from '../dataplane/engine/ports.ts'
import { readInput } from './input.ts'
import { type Format, withOutput } from './options.ts'
import { printVerdict } from './verdict.ts'

export function addValidate(program: Command): void {
  withOutput(program.command('validate'))
    .summary('check a pipeline configuration')
    .description(
      'Checks a pipeline configuration and lists every problem, FILE:LINE:COLUMN: /pointer: what is wrong; exit code 1 if there is ' +
        'any. Warnings are about what is allowed but hardly meant, and change no exit code. A file with the fields of a ' +
        'RelayConfiguration or a LogConfig is checked as such.',
    )
    .argument('<config.json>', 'the configuration, - for standard input')
    .action(async (file: string, { output }: { output: Format }) => {
      const text = await readInput(file)
      const { components } = await import('../dataplane/components/registry.ts')
      const { checkConfigFile } = await import('../dataplane/engine/check-file.ts')
      const checked = checkConfigFile(text, components)
      const { problems } = checked
      if (checked.kind === 'PipelineConfig') {
        const { config, warnings } = checked
        printVerdict(
          { problems, warnings },
          { file, text },
          { output, found: config === null ? '' : foundIn(config, components) },
        )
        return
      }
      const counts = Object.entries(checked.counts).map(([noun, count]) => counted(count, noun))
      const found = `, a ${checked.kind}: ${counts.join(', ')}`
      printVerdict({ problems, warnings: [] }, { file, text }, { output, found })
    })
}

function foundIn({ components: parts }: PipelineConfig, registry: Registry): string {
  const { connections } = connect(parts, registry)
  return `, ${counted(Object.keys(parts).length, 'component')}, ${counted(connections.length, 'connection')}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
