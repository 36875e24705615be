/** The command line: what each command is called, and what its failures exit with. */
import { Command, CommanderError } from 'commander'
import { messageOf } from '../text/error-message.ts'
import { addAuthenticate } from './authenticate.ts'
import { addAuthenticationRequests } from './authentication-requests.ts'
import { showExamples } from './command-examples.ts'
import { addComplete } from './complete.ts'
import { addCompletion } from './completion.ts'
import { addComponents } from './components.ts'
import { addConfig } from './config.ts'
import { addDemo } from './demo.ts'
import { addDemoHub } from './demo-hub.ts'
import { addDemoOperate } from './demo-operate.ts'
import { addDoctor } from './doctor.ts'
import { Failure } from './failure.ts'
import { addFec } from './fec.ts'
import { addImpair } from './impair.ts'
import { addNodes } from './nodes.ts'
import { isOutputLost, superviseOutput } from './output.ts'
import { addPipelines } from './pipelines.ts'
import { addRun } from './run.ts'
import { addSchema } from './schema.ts'
import { addSimulate } from './simulate.ts'
import { addStatus } from './status.ts'
import { harmless, paint } from './terminal.ts'
import { addToken } from './token.ts'
import { addTop } from './top.ts'
import { addUp } from './up.ts'
import { refuseUnknownCommands } from './usage.ts'
import { addValidate } from './validate.ts'
import { addVersion, packageVersion } from './version.ts'

/** The whole command tree. */
export function createProgram(): Command {
  const program = new Command('penstock')
    .description('A node that moves network traffic through pipelines of components.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .exitOverride()
    .showHelpAfterError('Add --help to see what it takes.')
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false, minWidthToWrap: 20 })
  for (const add of [
    addUp,
    addRun,
    addSimulate,
    addFec,
    addImpair,
    addValidate,
    addComponents,
    addSchema,
    addPipelines,
    addTop,
    addStatus,
    addNodes,
    addAuthenticate,
    addAuthenticationRequests,
    addToken,
    addConfig,
    addDemo,
    addDemoHub,
    addDemoOperate,
    addDoctor,
    addCompletion,
    addComplete,
    addVersion,
  ]) {
    add(program)
  }
  refuseUnknownCommands(program)
  showExamples(program)
  return program
}

/** Runs one command line (without node and script); gives the exit code. */
export async function main(args: string[]): Promise<number> {
  superviseOutput(complain)
  try {
    await createProgram().parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (isOutputLost()) return 1
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof Failure) {
      if (error.message) complain(error.message)
      return error.exitCode
    }
    complain(process.env.PENSTOCK_DEBUG && error instanceof Error ? (error.stack ?? error.message) : messageOf(error))
    return 1
  }
}

function complain(message: string): void {
  process.stderr.write(`${paint('penstock:', 'red', process.stderr)} ${harmless(message)}\n`)
}
