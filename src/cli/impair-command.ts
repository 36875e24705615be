/** The command that `penstock impair … -- COMMAND` runs over its link. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'

/** Signals that are for the command: it says what becomes of them. */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** Those that a terminal sends to all that run in its foreground, the command included. */
const FROM_TERMINAL: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT', 'SIGHUP'])

/** The command could not be started; the exit codes are those of env(1) and the shells. */
class NotStarted extends Failure {
  override readonly exitCode: number

  constructor(program: string, error: NodeJS.ErrnoException) {
    const { code } = error
    const cause: Record<string, string> = {
      ENOENT: 'there is no such command',
      ENOTDIR: 'there is no such command',
      EACCES: 'it is not a program that you may run',
    }
    super(`cannot run ${program}: ${cause[code ?? ''] ?? messageOf(error)}`)
    this.exitCode = code === 'ENOENT' ? 127 : 126
  }
}

/** A command that runs, with standard input, output and error of this process. */
export class RunningCommand {
  /** Its exit code once it has ended; 128 and the number of the signal that ended it, as shells tell it. */
  readonly ended: Promise<number>
  private readonly child: ChildProcess
  private readonly complain: (text: string) => void

  private constructor(child: ChildProcess, complain: (text: string) => void) {
    this.child = child
    this.complain = complain
    // Not by `once` of node:events, which an error ends too: a signal that cannot be sent is one.
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(signal === null ? Number(code) : 128 + constants.signals[signal]))
    })
    for (const name of PASSED_ON) {
      process.on(name, () => {
        if (!(FROM_TERMINAL.has(name) && isInForeground())) this.send(name)
      })
    }
  }

  /**
   * Starts `program` with `variables` beside what is in the environment. Throws a Failure where that cannot be. `complain` is told of each signal
   * that it cannot be sent.
   */
  static async start(
    [program, ...args]: readonly string[],
    variables: Record<string, string>,
    complain: (text: string) => void,
  ) {
    try {
      const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...variables } })
      const command = new RunningCommand(child, complain)
      await once(child, 'spawn')
      return command
    } catch (error) {
      throw new NotStarted(program, error as NodeJS.ErrnoException)
    }
  }

  /** Asks it to end (SIGTERM). */
  stop(): void {
    this.send('SIGTERM')
  }

  /** One that has become another user's, as sudo does, takes no signals of this process: it goes on. */
  private send(name: NodeJS.Signals): void {
    const { child } = this
    const refused = (error: NodeJS.ErrnoException) => {
      const cause = error.code === 'EPERM' ? 'it runs as another user' : messageOf(error)
      this.complain(`cannot send ${name} to the command: ${cause}`)
    }
    child.once('error', refused)
    child.kill(name)
    child.off('error', refused)
  }
}

/** Whether this process is in the foreground of a terminal: its group is the terminal's (proc_pid_stat(5), fields 5 and 8). */
function isInForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return group === foreground
  } catch {
    return process.stdin.isTTY === true
  }
}
