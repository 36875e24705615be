/** `penstock config check`: the effective configuration of a node, and where each value came from. */
import type { Command } from 'commander'
import type { Form } from '../node/config-values.ts'
import { settings } from '../node/settings.ts'
import { writeDuration } from '../text/durations.ts'
import { loadNodeConfig, withNodeSettings } from './node-settings.ts'
import { type Format, withOutput } from './options.ts'
import { print, printJson, table } from './terminal.ts'

const forms: ReadonlyMap<string, Form> = new Map(settings.map(({ key, form }) => [key, form]))

/** The value as the configuration file would have it. */
function written(key: string, value: unknown): unknown {
  return forms.get(key) === 'duration' ? writeDuration(value as number) : value
}

export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .summary("a node's configuration")
    .description("Works on a node's configuration.")
  withNodeSettings(withOutput(config.command('check')))
    .summary('show the effective configuration')
    .description('Checks the configuration that "penstock up" would take and shows where each value came from.')
    .action(async (options: Record<string, unknown> & { output: Format }) => {
      const { effective, chosen, file } = await loadNodeConfig(options)
      if (options.output === 'json') {
        printJson(effective.map((entry) => ({ ...entry, value: written(entry.key, entry.value) })))
        return
      }
      const rows = effective.map(({ key, value, origin }) => {
        const shown = written(key, value)
        return [key, typeof shown === 'string' ? shown : JSON.stringify(shown), origin]
      })
      print(table([{ title: 'KEY' }, { title: 'VALUE', wrap: true }, { title: 'FROM' }], rows))
      const given = (['node.name', 'node.metadata'] as const).filter((key) => chosen.has(key))
      if (file !== undefined || given.length === 0) return
      print(
        `\n${given.join(' and ')}: until "penstock nodes set" has changed them; what it sets is kept and goes first`,
      )
    })
}
