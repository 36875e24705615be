/** The reference of the commands, docs/commands.md, and the JSON Schemas of their output, docs/output. */
import type { Command } from 'commander'
import { defaultDataDirectory } from '../node/settings.ts'
import { COMMAND_EXAMPLES } from './command-examples.ts'
import { documentOf, OUTPUT_SCHEMAS, type OutputSchema } from './output-schemas.ts'
import { defaultCommandOf } from './usage.ts'

/** That of root, whoever writes the page. */
const ROOT_DATA_DIRECTORY = '/var/lib/penstock'

/** Where they are, from the package's root. */
export const COMMANDS_PAGE = 'docs/commands.md'
export const OUTPUT_DIRECTORY = 'docs/output'

/** Options that are told of once, for all commands that have them; `--data-dir` only where it is part of what lets a caller in. */
const SHARED = [
  '--output',
  '--json',
  '--help',
  '--url',
  '--ca',
  '--fingerprint',
  '--token-file',
  '--data-dir',
  '--node',
]

const INTRODUCTION = `<!-- Written by "npm run docs" from the commands themselves; do not edit. -->

# Commands

Every command takes \`--help\`. Those that print data take \`-o json\`, or \`--json\` for short, and \`-o yaml\`: what they print then is said by a
JSON Schema in \`docs/output/\`, and changes only by additions. Where a command prints a line for each of several values, YAML has a document for each.

Those that talk to a node take \`--url\` (or \`PENSTOCK_URL\`; default: this machine), what it takes to be let in (\`--token-file\`, \`--data-dir\`, \`--ca\`,
\`--fingerprint\`), and many take \`--node\` for another node of its hub, \`pipelines apply\` several times.

Failures are told on stderr. The exit code is 0 when all was done, 1 when something failed, 2 for wrong usage and where only a part
was done, 130 for what Ctrl-C withdrew, 129 and 143 for what SIGHUP and SIGTERM did; what follows something until Ctrl-C ends with 0 then, and so does
what nobody reads any more.`

const fileOf = (path: string): string => `${path.replaceAll(' ', '-')}.json`

/** File name to text. */
export function outputFiles(): Map<string, string> {
  return new Map(
    Object.keys(OUTPUT_SCHEMAS).map((path) => [fileOf(path), `${JSON.stringify(documentOf(path), null, 2)}\n`]),
  )
}

/** Text of a help as Markdown, where `<id>` would be a tag. */
const prose = (text: string): string => text.replaceAll('<', '&lt;')
const cell = (text: string): string =>
  prose(text)
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .replaceAll(defaultDataDirectory() ?? ROOT_DATA_DIRECTORY, ROOT_DATA_DIRECTORY)

function optionsTable(command: Command): string[] {
  const help = command.createHelp()
  const callsNode = command.options.some(({ long }) => long === '--url')
  const isTold = (long: string) => SHARED.includes(long) && (long !== '--data-dir' || callsNode)
  const rows = [
    ...help.visibleArguments(command).map((argument) => [argument.name(), help.argumentDescription(argument)]),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => !isTold(long ?? ''))
      .map((option) => [help.optionTerm(option), help.optionDescription(option)]),
  ]
  if (rows.length === 0) return []
  const lines = rows.map(
    ([term = '', description = '']) => `| \`${term.replaceAll('|', '\\|')}\` | ${cell(description)} |`,
  )
  return [['| option | what |', '| --- | --- |', ...lines].join('\n')]
}

function sections(command: Command, path: string): string[] {
  const own = path === '' ? [] : sectionOf(command, path)
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help')
  return [...own, ...below.flatMap((each) => sections(each, path === '' ? each.name() : `${path} ${each.name()}`))]
}

function sectionOf(command: Command, path: string): string[] {
  if (command.commands.length > 0) {
    const usual = defaultCommandOf(command)
    const more = usual === undefined ? '' : ` Without one it is \`${usual.name()}\`.`
    return [`## ${path}`, `${prose(command.description())}${more}`]
  }
  const example = COMMAND_EXAMPLES[path]
  const output = OUTPUT_SCHEMAS[path]
  const usage = `penstock ${path} ${command.usage()}`.trim()
  return [
    `${path.includes(' ') ? '###' : '##'} ${path}`,
    prose(command.description()),
    `\`${usage}\``,
    ...optionsTable(command),
    ...(example === undefined ? [] : [`\`\`\`sh\n${example}\n\`\`\``]),
    ...(output === undefined ? [] : [outputLine(path, output)]),
  ]
}

function outputLine(path: string, { form, otherwise }: OutputSchema): string {
  const each = form === 'lines' ? ', a line each' : ''
  return `JSON: [${fileOf(path)}](output/${fileOf(path)})${each}${otherwise === undefined ? '' : `; ${otherwise}`}.`
}

/** The page. */
export function commandsPage(program: Command): string {
  return `${[INTRODUCTION, ...sections(program, '')].join('\n\n')}\n`
}
