/** The command tree, as a list. */
import type { Command } from 'commander'

/** Every command below `program`, in order, by what is typed to call it: `pipelines start`. */
export function commandsOf(program: Command, path = ''): { path: string; command: Command }[] {
  return program.commands.flatMap((command) => {
    const own = path === '' ? command.name() : `${path} ${command.name()}`
    return [{ path: own, command }, ...commandsOf(command, own)]
  })
}
