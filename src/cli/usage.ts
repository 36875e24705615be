/** What help and usage errors say beyond what commander says by itself: unknown commands, help of a command in a group, and the options of default commands. */
import type { Command } from 'commander'
import { suggestion } from '../text/names.ts'
import { otherWord } from './other-words.ts'

/** Which subcommand runs when none is named. */
const defaults = new WeakMap<Command, Command>()

/** `child` runs when `parent` is called without a subcommand: the help of `parent` shows its options too, and a subcommand that there is none of is refused as such. */
export function markDefault(parent: Command, child: Command): void {
  defaults.set(parent, child)
  const refuse = child.error.bind(child)
  child.error = (message, options) => {
    const names = parent.commands.map((each) => each.name())
    const given = child.args[child.registeredArguments.length]
    const isNamed = names.includes(parent.args[0] ?? '')
    if (options?.code !== 'commander.excessArguments' || isNamed || given === undefined || names.includes(given)) {
      return refuse(message, options)
    }
    return parent.error(unknownCommand(parent, given), { code: 'commander.unknownCommand' })
  }
  parent.addHelpText('after', () => {
    const help = child.createHelp()
    help.prepareContext({ helpWidth: process.stdout.columns ?? 80, outputHasColors: false })
    const width = help.padWidth(child, help)
    const items = help
      .visibleOptions(child)
      .filter(({ long }) => long !== '--help')
      .map((option) => help.formatItem(help.optionTerm(option), width, help.optionDescription(option), help))
    return `\n${help.formatItemList(`Options of ${child.name()}, the default:`, items, help).join('\n').trimEnd()}`
  })
}

/** The subcommand that runs when none is named. */
export function defaultCommandOf(command: Command): Command | undefined {
  return defaults.get(command)
}

/** Asking a command that does not exist for help is wrong usage too. */
export function refuseUnknownCommands(command: Command): void {
  if (command.commands.length === 0) return
  tellOtherWords(command)
  command.on('beforeHelp', () => {
    const named = command.args.filter((argument) => !argument.startsWith('-'))
    const given = named[0] === 'help' ? named[1] : named[0]
    if (given === undefined || given === 'help' || command.commands.some((each) => each.name() === given)) return
    refuse(command, given)
  })
  for (const each of command.commands) refuseUnknownCommands(each)
}

/**
 * Of a word that is a command of another program's, says which one is meant: commander by itself knows those that are written alike. Of an option
 * that commands of the group take, says where it stands.
 */
function tellOtherWords(group: Command): void {
  const refuse = group.error.bind(group)
  group.error = (message, options) => {
    const [given = ''] = group.args
    const isUnknown = options?.code === 'commander.unknownCommand' && otherWord(group, given) !== undefined
    const misplaced = options?.code === 'commander.unknownOption' ? misplacedOption(group) : undefined
    return refuse(isUnknown ? unknownCommand(group, given) : (misplaced ?? message), options)
  }
}

/** What is wrong where an option stands before the command that takes it: the one that is named behind it, or else the first. */
function misplacedOption(group: Command): string | undefined {
  const flag = group.args.find((argument) => argument.startsWith('-'))?.split('=')[0]
  const takes = (command: Command) => command.options.some(({ short, long }) => flag === short || flag === long)
  const within = (command: Command): Command[] => [command, ...command.commands.flatMap(within)]
  let named = group
  for (const word of group.args) {
    named = named.commands.find((each) => each.name() === word || each.aliases().includes(word)) ?? named
  }
  const taker = within(named).find(takes) ?? within(group).find(takes)
  if (flag === undefined || taker === undefined) return undefined
  return `error: unknown option '${flag}': it stands behind the command that takes it, as in ${pathOf(taker)} ${flag}`
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

/**
 * Shows the help that `args`, a command line, ask for in words, as in `help pipelines start` or `pipelines help start`, and ends by throwing as help does
 * (CommanderError); of words that name no command too. Returns where they ask for none. Commander by itself looks at one word behind `help`.
 */
export function helpIfAsked(program: Command, args: readonly string[]): void {
  let command = program
  let isAsked = false
  for (const word of args) {
    // What stands behind the first option may be its value.
    if (word.startsWith('-')) break
    if (word === 'help' && command.commands.length > 0) isAsked = true
    else {
      const next = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
      if (next === undefined && !isAsked) return
      command = next ?? refuse(command, word)
    }
  }
  if (isAsked) command.help()
}

function refuse(command: Command, given: string): never {
  return command.error(unknownCommand(command, given), { code: 'commander.unknownCommand' })
}

function unknownCommand(group: Command, given: string): string {
  const names = group.commands.map((each) => each.name())
  return `error: unknown command '${given}'.${otherWord(group, given) ?? suggestion(given, names)}`
}
