/** What help and usage errors say beyond what commander says by itself: unknown commands, and the options of default commands. */
import type { Command } from 'commander'
import { suggestion } from '../text/names.ts'

/** Which subcommand runs when none is named. */
const defaults = new WeakMap<Command, Command>()

/** `child` runs when `parent` is called without a subcommand: the help of `parent` shows its options too. */
export function markDefault(parent: Command, child: Command): void {
  defaults.set(parent, child)
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
  command.on('beforeHelp', () => {
    const named = command.args.filter((argument) => !argument.startsWith('-'))
    const given = named[0] === 'help' ? named[1] : named[0]
    const names = command.commands.map((each) => each.name())
    if (given === undefined || given === 'help' || names.includes(given)) return
    command.error(`error: unknown command '${given}'.${suggestion(given, names)}`, { code: 'commander.unknownCommand' })
  })
  for (const each of command.commands) refuseUnknownCommands(each)
}
