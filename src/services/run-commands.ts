/** The commands of one run's lifecycle handler, as children of the node: each in a process group of its own, its output in the run's log. */
import { type ChildProcess, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { RunHooks } from '../actors/run-thread.ts'
import type { Hook, LifecycleCommand, LifecycleHandler } from '../dataplane/engine/lifecycle.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { native } from '../dataplane/native/native.ts'
import { makeDirectoryAsync } from '../make-directory.ts'
import { requireDescriptors } from '../open-descriptors.ts'
import { cutAt } from '../text/characters.ts'
import { messageOf, wordsOf } from '../text/error-message.ts'
import { LineAllowance, readLines } from './output-lines.ts'
import { MAX_TIMEOUT_MS } from './pipelines-settings.ts'
import { endProcesses, RUN_VARIABLE } from './processes.ts'

/** What a command may take that names no time, or 0. */
const DEFAULT_TIMEOUT_MS = 10_000
/** How long the output of a command that is over, and of a run that is, is waited for: what is left running may hold the pipe. */
const OUTPUT_WAIT_MS = 100
/** Characters of a command by which it is told of. */
const MAX_TOLD_LENGTH = 80

/** Descriptors that the beginning of a child takes: a pair for each of its outputs, and one by which it says that it has begun. */
const SPAWN_DESCRIPTORS = 6

/** A command whose failure ends the run. */
class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

export interface RunCommandsOptions {
  readonly handler: LifecycleHandler
  readonly runId: string
  readonly pipelineId: string
  /** Where commands run that name no directory, and what relative ones are relative to. */
  readonly directory: string
  readonly log: (line: LogLine) => void
}

/** How a command went: undefined when it went well, else in words that follow its name. */
type Fault = string | undefined

export class RunCommands implements RunHooks {
  readonly #options: RunCommandsOptions
  readonly #output: LineAllowance
  readonly #background = new Set<ChildProcess>()
  /** Outputs of commands that somebody may still write to. */
  readonly #outputs = new Set<Readable>()
  #isEnding = false

  constructor(options: RunCommandsOptions) {
    this.#options = options
    this.#output = new LineAllowance(Date.now, (count) =>
      this.#log('WARN', `${count} lines that commands printed were dropped: too many in one second`, {
        dropped: count,
      }),
    )
  }

  has(hook: Hook): boolean {
    return this.#options.handler[hook].length > 0
  }

  /**
   * Runs the commands of a hook one after the other. Rejects with what failed when the policy of a command is STOP_ON_ERROR; those
   * after it are not run then. Once `signal` is aborted the one that runs is killed, and none follows.
   */
  async run(hook: Hook, signal: AbortSignal): Promise<void> {
    // Where it cannot be made, the commands that name no other say so.
    await makeDirectoryAsync(this.#options.directory).catch(() => {})
    for (const [index, command] of this.#options.handler[hook].entries()) {
      if (signal.aborted) return
      const name = `${hook} command ${index + 1} (${told(command.cmd)})`
      const fields = { hook, command: index + 1 }
      if (command.policy === 'RUN_IN_BACKGROUND') {
        this.#leaveRunning(hook, command, name, fields)
        continue
      }
      const fault = await this.#carryOut(command, fields, signal)
      if (fault === undefined) continue
      if (signal.aborted) {
        this.#log('WARN', `${name} was killed: the run ended before it was over`, fields)
        return
      }
      const stops = command.policy === 'STOP_ON_ERROR'
      this.#log(stops ? 'ERROR' : 'WARN', `${name} ${fault}`, fields)
      if (stops) throw new CommandFailed(`${name} ${fault}`)
    }
  }

  /** Ends every process that a command of the run has left; resolves once they are gone, and what they have printed is told. */
  async end(): Promise<void> {
    this.#isEnding = true
    for (const child of this.#background) signalGroup(child, 'SIGTERM')
    await endProcesses(new Set([this.#options.runId])).catch((error: unknown) =>
      this.#log(
        'WARN',
        `processes that commands have left may run on: they could not be looked for: ${messageOf(error)}`,
        {},
      ),
    )
    for (const child of this.#background) signalGroup(child, 'SIGKILL')
    await this.#closeOutputs()
    this.#output.tell()
  }

  /** Reads what is left of the outputs, and closes those that a process which was not found, or could not be ended, holds open: the log ends with the run. */
  async #closeOutputs(): Promise<void> {
    const outputs = this.#outputs
    if (outputs.size === 0) return
    await new Promise<void>((done) => {
      // Where this thread stood still meanwhile, what has come is read first.
      const timer = setTimeout(() => setImmediate(done), OUTPUT_WAIT_MS)
      const closed = () => {
        if (outputs.size > 0) return
        clearTimeout(timer)
        done()
      }
      for (const output of outputs) output.on('close', closed)
    })
    if ([...outputs].every(({ readableEnded }) => readableEnded)) return
    this.#log('WARN', 'commands have left processes that still run: what these print from now on is not read', {})
    for (const output of outputs) output.destroy()
  }

  #carryOut(command: LifecycleCommand, fields: LogLine['fields'], signal: AbortSignal): Promise<Fault> {
    return new Promise((done) => {
      const child = this.#spawn(command, fields)
      if (typeof child === 'string') {
        done(child)
        return
      }
      const milliseconds = Math.min(command.timeout || DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS)
      let late = false
      const kill = () => signalGroup(child, 'SIGKILL')
      // Where this thread stood still meanwhile, one that was over by itself is told of only now: it and what it has left in the background are let be.
      let due: NodeJS.Immediate | undefined
      const timer = setTimeout(() => {
        due = setImmediate(() => {
          late = true
          kill()
        })
      }, milliseconds)
      signal.addEventListener('abort', kill)
      const over = (fault: Fault) => {
        clearTimeout(timer)
        clearImmediate(due)
        clearTimeout(drain)
        signal.removeEventListener('abort', kill)
        done(fault)
      }
      const end = (code: number | null, by: NodeJS.Signals | null): Fault =>
        late && by === 'SIGKILL' ? `was not over within ${milliseconds} ms (timeout) and was killed` : faultOf(code, by)
      let drain: NodeJS.Timeout | undefined
      child.on('error', (error) => over(this.#whyNotStarted(command, error)))
      child.on('exit', (code, by) => {
        clearTimeout(timer)
        drain = setTimeout(() => over(end(code, by)), OUTPUT_WAIT_MS)
      })
      child.on('close', (code, by) => over(end(code, by)))
    })
  }

  #leaveRunning(hook: Hook, command: LifecycleCommand, name: string, fields: LogLine['fields']): void {
    const child = this.#spawn(command, fields)
    if (typeof child === 'string') {
      this.#log('WARN', `${name} ${child}`, fields)
      return
    }
    this.#background.add(child)
    child.on('error', (error) => {
      this.#background.delete(child)
      this.#log('WARN', `${name} ${this.#whyNotStarted(command, error)}`, fields)
    })
    child.on('exit', (code, by) => {
      this.#background.delete(child)
      this.#log(code === 0 || this.#isEnding ? 'INFO' : 'WARN', `${name} ${faultOf(code, by) ?? 'ended'}`, fields)
    })
    // As the specification has it.
    if (hook === 'post_stop') signalGroup(child, 'SIGKILL')
  }

  /** The child, or why there can be none. Some of what the system says against it the child says itself, as `error`, a moment later. */
  #spawn(command: LifecycleCommand, fields: LogLine['fields']): ChildProcess | string {
    const { handler, runId, pipelineId, directory } = this.#options
    const { cmd, cwd = '', env } = command
    // The store, sockets of clients and packets are nothing to a command.
    native.closeOnExec()
    try {
      requireSpawnDescriptors()
      // A shell that stays until the command is over: by its environment the session is found, whatever the command makes of its own.
      const child = spawn('/bin/sh', ['-c', '/bin/sh -c "$1"; exit $?', '/bin/sh', cmd], {
        cwd: resolve(directory, cwd),
        env: {
          ...process.env,
          ...handler.env?.vars,
          ...env?.vars,
          [RUN_VARIABLE]: runId,
          PENSTOCK_PIPELINE_ID: pipelineId,
        },
        // A session and a process group of its own, which all that it starts belongs to.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      for (const stream of ['stdout', 'stderr'] as const) {
        // There is none, whatever its type says, where the process has no descriptor left for it (EMFILE, ENFILE).
        const output: Readable | undefined = child[stream]
        if (output !== undefined) {
          this.#outputs.add(output)
          output.on('close', () => this.#outputs.delete(output))
          readLines(output, this.#output, (text) => this.#log('INFO', text, { ...fields, stream }))
        }
      }
      return child
    } catch (error) {
      return this.#whyNotStarted(command, error as NodeJS.ErrnoException)
    }
  }

  #whyNotStarted({ cwd = '' }: LifecycleCommand, error: NodeJS.ErrnoException): string {
    const { code } = error
    if (code === 'EAGAIN') return `could not be started: ${wordsOf(error)}; ${MORE_PROCESSES}`
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EACCES') return `could not be started: ${wordsOf(error)}`
    // Of a directory that a child cannot change to the system says what it says of a command.
    const directory = resolve(this.#options.directory, cwd)
    switch (obstacleTo(directory)) {
      case 'ENOENT':
      case 'ENOTDIR':
        return `could not be started: there is no directory ${directory}; make it, or set cwd`
      case 'EACCES':
        return `could not be started: the node's user may not enter the directory ${directory}; let it (chmod, chown), or set cwd`
    }
    return `could not be started: ${code === 'ENOENT' ? NO_SHELL : wordsOf(error)}`
  }

  #log(level: LogLine['level'], message: string, fields: LogLine['fields']): void {
    this.#options.log({ timestamp: Date.now(), level, component: '', message, fields })
  }
}

/** What to do where the system starts no further process. */
const MORE_PROCESSES =
  'raise the limit of processes (ulimit -u, TasksMax= of a systemd unit, --pids-limit of a container)'

/** Also where something is missing that the shell loads. */
const NO_SHELL =
  'there is no /bin/sh that runs here; install one (an image of a container may have none), or take lifecycle_handler out'

/** What the system says where this process cannot change to a directory. */
function obstacleTo(directory: string): string | undefined {
  try {
    statSync(`${directory}/.`)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

/**
 * Throws where there is no /dev/null, which is the input of a child, and, as `spawn` would, where fewer descriptors are left than it takes: of a child that
 * lacks the last of them Node.js leaves those of its outputs open for good (lib/internal/child_process.js).
 */
function requireSpawnDescriptors(): void {
  try {
    requireDescriptors(SPAWN_DESCRIPTORS, '/dev/null')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EMFILE' || code === 'ENFILE') throw Object.assign(new Error(`spawn /bin/sh ${code}`), { code })
    // Of it too the system would say what it says of a command.
    throw new Error(`${wordsOf(error)}: commands read from it; give the node a /dev that has it`)
  }
}

function told(cmd: string): string {
  const [line = ''] = cmd.split('\n')
  return line.length === cmd.length && line.length <= MAX_TOLD_LENGTH
    ? line
    : `${line.slice(0, cutAt(line, MAX_TOLD_LENGTH))}…`
}

function faultOf(code: number | null, signal: NodeJS.Signals | null): Fault {
  if (signal !== null) return `was ended by ${signal}`
  return code === 0 ? undefined : `ended with exit code ${code}`
}

/** Signals the process group of a child that has not been waited for: nobody else can have its number. */
function signalGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, signal)
  } catch {
    // It ended in this moment.
  }
}
