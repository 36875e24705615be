/** Runs a command line, and says what its failures exit with. */
import { CommanderError } from 'commander'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { isOutputLost, superviseOutput } from './output.ts'
import { createProgram } from './program.ts'
import { harmless, paint } from './terminal.ts'

/** Runs one command line (without node and script); gives the exit code. */
export async function main(args: string[]): Promise<number> {
  superviseOutput(complain)
  try {
    const program = await createProgram(args)
    await program.parseAsync(args, { from: 'user' })
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
