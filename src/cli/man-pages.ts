/** The man pages, made from the commands themselves as docs/commands.md is: penstock(1), and one for each command, its subcommands in it. */
import type { Command } from 'commander'
import { COMMAND_EXAMPLES } from './command-examples.ts'
import { bold, indented, literal, manPage, paragraphs, section, subsection, tagged } from './roff.ts'
import { defaultCommandOf } from './usage.ts'

const EXIT_STATUS: readonly (readonly [string, string])[] = [
  ['0', 'All was done; so for what follows something until Ctrl-C, and where nobody reads the output any more.'],
  ['1', 'Something failed: a line on standard error says what.'],
  ['2', 'Wrong usage, or only a part was done.'],
  ['130', 'Ctrl-C withdrew it.'],
  ['129, 143', 'SIGHUP or SIGTERM withdrew it.'],
]

const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ['PENSTOCK_URL', 'The node to talk to, as --url says.'],
  ['PENSTOCK_TOKEN, PENSTOCK_TOKEN_FILE', 'The token to send, or a file that holds it.'],
  ['PENSTOCK_CA, PENSTOCK_FINGERPRINT', 'How the certificate of the node is trusted, as --ca and --fingerprint say.'],
  ['PENSTOCK_DATA_DIRECTORY', 'Where the node keeps its state, as --data-dir says.'],
  ['NO_COLOR', 'No colours, whatever it holds.'],
]

const FILES: readonly (readonly [string, string])[] = [
  ['/var/lib/penstock', 'The state of a node that root runs, unless it is told another directory.'],
  ['~/.local/state/penstock', 'That of a node that others run.'],
  ['/etc/penstock/penstock.yaml', 'The settings of the node that the package for Debian runs as a service.'],
]

/** What people can type, in the order of the help. */
const commandsBelow = (command: Command): Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help')

const summaryOf = (command: Command): string => command.summary() || command.description()

/** Arguments and options of a command, and of the one that runs where no subcommand is named. */
function options(command: Command): string[] {
  const help = command.createHelp()
  const own = [command, ...(defaultCommandOf(command) ? [defaultCommandOf(command) as Command] : [])]
  const seen = new Map<string, string>()
  for (const each of own) {
    for (const argument of help.visibleArguments(each)) seen.set(argument.name(), help.argumentDescription(argument))
    for (const option of help.visibleOptions(each)) seen.set(help.optionTerm(option), help.optionDescription(option))
  }
  return [...seen].flatMap(([term, description]) => tagged(term, description))
}

function example(path: string): string[] {
  const text = COMMAND_EXAMPLES[path]
  return text === undefined ? [] : indented(text)
}

/** A command below one that has a page. */
function below(command: Command, path: string): string[] {
  const own = commandsBelow(command)
  if (own.length > 0) return own.flatMap((each) => below(each, `${path} ${each.name()}`))
  return [
    ...subsection(`penstock ${path} ${command.usage()}`.trim()),
    ...paragraphs(command.description()),
    ...options(command),
    ...example(path),
  ]
}

function commandPage(command: Command, name: string): string[] {
  const subcommands = commandsBelow(command)
  const usual = defaultCommandOf(command)
  const examples = example(command.name())
  return [
    ...section('NAME'),
    `${literal(name)} \\- ${literal(summaryOf(command).replace(/\.$/, ''))}`,
    ...section('SYNOPSIS'),
    `${bold(`penstock ${command.name()}`)} ${literal(command.usage())}`,
    ...section('DESCRIPTION'),
    ...paragraphs(command.description()),
    ...(usual === undefined ? [] : paragraphs(`Without a command it is ${usual.name()}.`)),
    ...section('OPTIONS'),
    ...options(command),
    ...(subcommands.length === 0
      ? []
      : [...section('COMMANDS'), ...subcommands.flatMap((each) => below(each, `${command.name()} ${each.name()}`))]),
    ...(examples.length === 0 ? [] : [...section('EXAMPLES'), ...examples]),
    ...section('EXIT STATUS'),
    ...EXIT_STATUS.flatMap(([code, meaning]) => tagged(code, meaning)),
    ...section('SEE ALSO'),
    `${bold('penstock')}(1)`,
  ]
}

function programPage(program: Command): string[] {
  const commands = commandsBelow(program)
  return [
    ...section('NAME'),
    `penstock \\- ${literal(program.description().replace(/\.$/, ''))}`,
    ...section('SYNOPSIS'),
    `${bold('penstock')} ${literal('[options] command')}`,
    ...section('DESCRIPTION'),
    ...paragraphs(
      'penstock is a node: one process that moves network traffic through pipelines of components such as UDP, TCP and Unix sockets, TUN and TAP interfaces, error correction, encryption, and emulated loss, delay and bandwidth. It serves an API over REST, server-sent events and gRPC, and can join other nodes on a hub.',
    ),
    ...section('COMMANDS'),
    ...commands.flatMap((each) => ['.TP', `${bold(`penstock-${each.name()}`)}(1)`, literal(summaryOf(each))]),
    ...section('OPTIONS'),
    ...options(program),
    ...section('ENVIRONMENT'),
    ...paragraphs('Flags go before variables. Every setting of a node has one of its own, which penstock-up(1) names.'),
    ...ENVIRONMENT.flatMap(([name, meaning]) => tagged(name, meaning)),
    ...section('FILES'),
    ...FILES.flatMap(([name, meaning]) => tagged(name, meaning)),
    ...section('EXIT STATUS'),
    ...EXIT_STATUS.flatMap(([code, meaning]) => tagged(code, meaning)),
    ...section('SEE ALSO'),
    commands.map((each) => `${bold(`penstock-${each.name()}`)}(1)`).join(',\n'),
  ]
}

/** File name to text; `date` stands at the foot of each. */
export function manPages(program: Command, date: Date): Map<string, string> {
  const version = `penstock ${program.version()}`
  const page = (name: string, lines: string[]): [string, string] => [`${name}.1`, manPage(name, date, version, lines)]
  return new Map([
    page('penstock', programPage(program)),
    ...commandsBelow(program).map((command) => {
      const name = `penstock-${command.name()}`
      return page(name, commandPage(command, name))
    }),
  ])
}
