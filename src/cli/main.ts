/** Runs a command line, and says what its failures exit with. */
import { CommanderError } from 'commander'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { isOutputLost, superviseOutput } from './output.ts'
import { createProgram } from './program.ts'
import { harmless, named, paint } from './terminal.ts'
import { helpIfAsked } from './usage.ts'

/** Runs one command line (without node and script); gives the exit code. */
export async function main(args: string[]): Promise<number> {
  superviseOutput(complain)
  try {
    const program = await createProgram(args)
    helpIfAsked(program, args)
    await program.parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (isOutputLost()) return 1
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof Failure) {
      if (error.message) complain(error.message)
      return error.exitCode
    }
    const isWhole = process.env.PENSTOCK_DEBUG && error instanceof Error
    complain(unpainted(isWhole ? (error.stack ?? error.message) : messageOf(error)))
    return 1
  }
}

/** What others may have worded, such as a node its answer: no colours, and further lines stand below the first one. */
function unpainted(message: string): string {
  const lines = message.split('\n').map((line) => named(line.trimStart()))
  return lines.join('\n  ')
}

function complain(message: string): void {
  process.stderr.write(`${paint('penstock:', 'red', process.stderr)} ${harmless(message)}\n`)
}
