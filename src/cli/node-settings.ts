/** The node's settings as flags, and their effective values with file, environment and flags taken together. */
import type { Command } from 'commander'
import { ConfigError, type LoadedConfig, loadConfig } from '../node/config.ts'
import type { Form } from '../node/config-values.ts'
import { settings } from '../node/settings.ts'
import { writeDuration } from '../text/durations.ts'
import { Failure } from './failure.ts'
import { readInput } from './input.ts'

/** Bytes of a node's configuration, at most; one that says everything has some 3 KiB. */
const MAX_CONFIG_BYTES = 1 << 20

/** What the column of descriptions has room for on a terminal of 80 columns. */
const COLUMN = 34

/** Adds `-c` and the flag of every setting. */
export function withNodeSettings(command: Command): Command {
  command.option('-c, --config <file>', 'configuration file (YAML)')
  const long: string[] = []
  for (const { flag, form, help, variable, fallback } of settings) {
    const value = defaultText(form, fallback())
    const told = value === undefined ? help : `${help} (default: ${value})`
    command.option(
      form === 'switch' ? `--${flag}` : `--${flag} <value>`,
      variable.length > COLUMN ? told : `${told} [${variable}]`,
    )
    if (variable.length > COLUMN) long.push(`\n  --${flag}:\n    ${variable}`)
  }
  command.addHelpText('after', `\nVariables whose names are longer:${long.join('')}`)
  return command
}

/** A default as a person would type it; undefined for none and for switches that are off. */
function defaultText(form: Form, value: unknown): string | undefined {
  if (form === 'duration') return writeDuration(value as number)
  if (value === true) return 'true'
  return typeof value === 'string' && value !== '' ? value : undefined
}

const optionName = (flag: string): string => flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Reads what `withNodeSettings` added; every problem is in the failure. */
export async function loadNodeConfig(options: Record<string, unknown>): Promise<LoadedConfig> {
  const file = options.config as string | undefined
  const flags: Record<string, string | boolean | undefined> = {}
  for (const { flag } of settings) flags[flag] = options[optionName(flag)] as string | boolean | undefined
  try {
    return loadConfig({
      ...(file === undefined ? {} : { file: { name: file, text: await readInput(file, MAX_CONFIG_BYTES) } }),
      environment: process.env,
      flags,
    })
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(`the configuration is wrong:\n  ${error.problems.join('\n  ')}`)
    throw error
  }
}
