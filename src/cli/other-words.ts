/** What users of other programs type, and what that is here: hints for who types it. */
import { type Command, Option } from 'commander'
import { UsageFailure } from './failure.ts'

/** Words in the place of a command, by the group that they are typed in ('': none), and the commands that do it. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '': {
    ...{ serve: 'up', server: 'up', daemon: 'up' },
    ...{ login: 'authenticate-by-request', join: 'authenticate-by-request', register: 'authenticate-by-request' },
    ...{ logout: 'disconnect', leave: 'disconnect', down: 'disconnect' },
    ...{ auth: 'authentication-requests', approve: 'authentication-requests approve' },
    ...{ preauthkeys: 'authentication-requests approve', preauthkey: 'authentication-requests approve' },
    ...{ apikey: 'token', apikeys: 'token', tokens: 'token' },
    ...{ ls: 'pipelines list', ps: 'pipelines list', list: 'pipelines list', create: 'pipelines create' },
    ...{ start: 'pipelines start', stop: 'pipelines stop', logs: 'pipelines logs', delete: 'pipelines delete' },
    ...{ inspect: 'pipelines get', toggle: 'pipelines stop', stats: 'pipelines telemetry' },
    ...{ netem: 'impair', toxic: 'impair', delay: 'impair', loss: 'impair' },
    ...{ show: 'status', configtest: 'config check' },
  },
  nodes: {
    ...{ ls: 'list', show: 'list', rename: 'set', tag: 'set', register: 'authentication-requests approve' },
    ...{ rm: 'remove', delete: 'remove', expire: 'remove', logout: 'remove' },
  },
  pipelines: {
    ...{ ls: 'list', status: 'list', rm: 'delete', remove: 'delete', inspect: 'get', edit: 'update', rename: 'update' },
    ...{ log: 'logs', top: 'telemetry', metrics: 'telemetry', stats: 'telemetry', import: 'apply' },
    ...{ change: 'set', toxic: 'set', toggle: 'stop' },
  },
  token: { ls: 'list', rm: 'revoke', remove: 'revoke', delete: 'revoke', expire: 'revoke', new: 'create' },
  'authentication-requests': { ls: 'list', accept: 'approve', deny: 'reject' },
}

const pathOf = (command: Command): string =>
  command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim()

/** ` Did you mean "penstock pipelines delete"?` where somebody else calls a command of the group so; undefined for all other words. */
export function otherWord(group: Command, given: string): string | undefined {
  const path = pathOf(group)
  const words = Object.hasOwn(COMMANDS, path) ? COMMANDS[path]! : {}
  if (!Object.hasOwn(words, given)) return undefined
  const meant = words[given]!
  const [first] = meant.split(' ')
  const isOfGroup = path !== '' && group.commands.some((each) => each.name() === first)
  return ` Did you mean "penstock ${isOfGroup ? `${path} ` : ''}${meant}"?`
}

/** An option that another program has, which help does not show: whoever gives it is told `what` there is here. */
export function otherOption(flags: string, what: string): Option {
  const option = new Option(flags).hideHelp()
  return option.argParser(() => {
    throw new UsageFailure(`there is no ${option.long}: ${what}`)
  })
}
