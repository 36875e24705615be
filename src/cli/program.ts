/** The command tree: every command by what is typed first, whose file is loaded when it is called. */
import { Command } from 'commander'
import { showExamples } from './command-examples.ts'
import { refuseUnknownCommands } from './usage.ts'
import { packageVersion } from './version.ts'

type AddCommand = (program: Command) => void

/** In the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  up: async () => (await import('./up.ts')).addUp,
  run: async () => (await import('./run.ts')).addRun,
  simulate: async () => (await import('./simulate.ts')).addSimulate,
  fec: async () => (await import('./fec.ts')).addFec,
  impair: async () => (await import('./impair.ts')).addImpair,
  validate: async () => (await import('./validate.ts')).addValidate,
  components: async () => (await import('./components.ts')).addComponents,
  schema: async () => (await import('./schema.ts')).addSchema,
  pipelines: async () => (await import('./pipelines.ts')).addPipelines,
  top: async () => (await import('./top.ts')).addTop,
  status: async () => (await import('./status.ts')).addStatus,
  nodes: async () => (await import('./nodes.ts')).addNodes,
  'authenticate-by-request': async () => (await import('./authenticate.ts')).addAuthenticate,
  disconnect: async () => (await import('./authenticate.ts')).addAuthenticate,
  'authentication-requests': async () => (await import('./authentication-requests.ts')).addAuthenticationRequests,
  token: async () => (await import('./token.ts')).addToken,
  hub: async () => (await import('./hub.ts')).addHub,
  config: async () => (await import('./config.ts')).addConfig,
  demo: async () => (await import('./demo.ts')).addDemo,
  'demo-cluster': async () => (await import('./demo-cluster.ts')).addDemoCluster,
  'demo-hub': async () => (await import('./demo-hub.ts')).addDemoHub,
  'demo-operate': async () => (await import('./demo-operate.ts')).addDemoOperate,
  doctor: async () => (await import('./doctor.ts')).addDoctor,
  completion: async () => (await import('./completion.ts')).addCompletion,
  complete: async () => (await import('./complete.ts')).addComplete,
  version: async () => (await import('./version.ts')).addVersion,
}

const VERSION_FLAGS = ['-V', '--version']

/**
 * The command tree; only of the command that `args`, a command line, calls, when they call one, and none of it when they ask for the version: loading all of
 * them takes half as long again. None imports at its top what is heavy and for its action only.
 */
export async function createProgram(args: readonly string[] = []): Promise<Command> {
  const program = new Command('penstock')
    .description('A node that moves network traffic through pipelines of components.')
    .version(packageVersion(), VERSION_FLAGS.join(', '), 'print the version')
    .helpCommand('help [command...]')
    .exitOverride()
    .showHelpAfterError('Add --help to see what it takes.')
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false, minWidthToWrap: 20 })
  const called = calledBy(args).flatMap((name) => (Object.hasOwn(COMMANDS, name) ? COMMANDS[name]! : []))
  const isEnough = called.length > 0 || VERSION_FLAGS.includes(args[0] ?? '')
  const loads = isEnough ? called : Object.values(COMMANDS)
  // A file may stand for two commands.
  for (const add of new Set(await Promise.all(loads.map((load) => load())))) add(program)
  refuseUnknownCommands(program)
  showExamples(program)
  return program
}

/** The names of commands that `args` is about; none: all. */
function calledBy(args: readonly string[]): readonly string[] {
  if (args[0] === 'completion') return []
  // `penstock help pipelines start`
  if (args[0] === 'help') return args.slice(1, 2)
  // `penstock complete -- pipelines start`: the words that are to be completed.
  if (args[0] === 'complete') return ['complete', args[1] === '--' ? (args[2] ?? '') : (args[1] ?? '')]
  return args.slice(0, 1)
}
