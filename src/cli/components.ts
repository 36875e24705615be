/** `penstock components`: the catalogue of components. */
import type { Command } from 'commander'
import type { ComponentsOptions } from './components-action.ts'
import { withOutput } from './options.ts'

export function addComponents(program: Command): void {
  withOutput(program.command('components'))
    .summary('the catalogue of components')
    .description(
      'Lists the components, or the fields, units, defaults and metrics of one; or prints with --example a configuration around one that ' +
        'run and simulate take as it is.',
    )
    .argument('[key]', 'a component key')
    .option('--example', 'print a configuration with the component, as JSON or with -o yaml as YAML')
    .action(async (key: string | undefined, options: ComponentsOptions) => {
      const { showComponents } = await import('./components-action.ts')
      showComponents(key, options)
    })
}
