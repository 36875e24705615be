/** Options and arguments that several commands share: output format, durations, whole numbers, log levels. */
import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LogLevel } from '../dataplane/engine/log.ts'
import type { Problem } from '../text/pointer.ts'
import { typedDuration } from './durations.ts'
import { UsageFailure } from './failure.ts'
import { goneTerminals, onOutputLoss, watchReader } from './output.ts'
import { named, paint, writeYaml } from './terminal.ts'

/** For people, or as data, which is then written as JSON or YAML. */
export type Format = 'table' | 'json'

/**
 * Adds `-o, --output` and `--json`; the action is told `json` for all that is data.
 * `formats`: what there is to choose from; the first is what is printed unless another is asked for.
 */
export function withOutput(command: Command, formats: readonly string[] = ['table', 'json', 'yaml']): Command {
  return command
    .addOption(new Option('-o, --output <format>', 'how to print').choices(formats).default(formats[0]))
    .option('--json', 'the same as -o json')
    .hook('preAction', (_, called) => settleFormat(called))
}

function settleFormat(called: Command): void {
  const { json, output } = called.opts<{ json?: boolean; output: string }>()
  if (json && output !== 'json' && called.getOptionValueSource('output') !== 'default') {
    throw new UsageFailure(`--json and --output ${output} do not go together: give one of them`)
  }
  if (output === 'yaml') writeYaml()
  if (json || output === 'yaml') called.setOptionValue('output', 'json')
}

/** Adds `--all`, of commands that print metrics as a table. */
export function withAllMetrics(command: Command): Command {
  return command.option('--all', 'in the table, the metrics of places that nobody has too')
}

const MAX_WAITING_MS = 24 * 24 * 3_600_000

/** Reads `500ms`, `10s`, `5m`, `1h30m`; gives milliseconds. */
export function duration(given: string): number {
  const milliseconds = typedDuration(given)
  if (milliseconds === undefined) throw new InvalidArgumentError('A duration is written 500ms, 10s, 5m or 1h30m.')
  if (milliseconds === 0) throw new InvalidArgumentError('A duration must be more than zero.')
  return milliseconds
}

/** As `duration`, of time that is waited by the clock: a timer of Node.js takes a longer one for 1 ms. */
export function waitingTime(given: string): number {
  const milliseconds = duration(given)
  if (milliseconds > MAX_WAITING_MS) throw new InvalidArgumentError('A time to wait is at most 24 days, 576h.')
  return milliseconds
}

/** A whole number from `minimum` to `maximum`. */
export function whole(minimum: number, maximum: number): (given: string) => number {
  return (given) => {
    const value = Number(given)
    if (!/^-?\d+$/.test(given) || value < minimum || value > maximum) {
      throw new InvalidArgumentError(`Expected a whole number from ${minimum} to ${maximum}.`)
    }
    return value
  }
}

/** From the least on. */
export const LEVELS: readonly LogLevel[] = ['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** Of an option that may be given several times. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value]

/** A log level in any case. */
export function logLevel(given: string): LogLevel {
  const level = LEVELS.find((known) => known === given.toUpperCase())
  if (!level) throw new InvalidArgumentError(`Expected one of ${LEVELS.join(', ')}.`)
  return level
}

/** `/engine_config/…: what is wrong`, one problem a line. */
export function problemLines(problems: readonly Problem[], stream: { isTTY?: boolean } = process.stderr): string {
  const line = ({ pointer, message }: Problem) => `  ${paint(named(pointer) || '/', 'cyan', stream)}: ${named(message)}`
  return problems.map(line).join('\n')
}

/** Node.js takes the first two from the start: once the last one is taken all are. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP (the terminal or session is gone), and when the output is lost; a second one of the first
 * two signals ends the process at once. `reload`: what SIGHUP does instead.
 */
export function interruption(reload?: () => void): AbortSignal {
  const controller = new AbortController()
  onOutputLoss((loss) => controller.abort(loss))
  const onSignal = (name: keyof typeof SIGNALS) => {
    if (!controller.signal.aborted) controller.abort(name)
    // A terminal that goes away says so more than once: the kernel and the shell both do.
    else if (name !== 'SIGHUP') process.exit(128 + SIGNALS[name])
  }
  for (const name of Object.keys(SIGNALS) as (keyof typeof SIGNALS)[]) {
    process.on(name, name === 'SIGHUP' && reload !== undefined ? reload : () => onSignal(name))
  }
  if (reload === undefined) process.prependOnceListener('SIGHUP', terminalMayBeGone)
  watchReader()
  return controller.signal
}

/** Whether the process belongs to a terminal, which says SIGHUP when it goes away. */
export function hasTerminal(): boolean {
  if ([0, 1, 2].some((descriptor) => isatty(descriptor))) return true
  try {
    // It opens for those alone that have one, whatever their input and output are.
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** What is still written to a terminal that has gone is lost, and no reason not to end in order. */
function terminalMayBeGone(): void {
  if (goneTerminals().length === 0) return
  for (const stream of [process.stdout, process.stderr]) {
    stream.removeAllListeners('error')
    stream.on('error', () => {})
  }
}

/** Resolves after `milliseconds`, or earlier when `signal` aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, milliseconds)
    signal.addEventListener('abort', done)
  })
}

/**
 * Resolves when the next number of whole seconds since `started` (of `performance.now()`) is full, or earlier when `signal` aborts. Those that
 * went by while the process stood still are left out.
 */
export async function untilNextSecond(started: number, signal: AbortSignal): Promise<void> {
  const elapsed = performance.now() - started
  // To the nearest: a timer may fire a hair before its time.
  await pause((Math.round(elapsed / 1000) + 1) * 1000 - elapsed, signal)
}
