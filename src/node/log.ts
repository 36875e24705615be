/** The node's own log: pino, as JSON lines or as text for people, on standard error. */
import { type DestinationStream, type LogFn, type Logger, pino } from 'pino'
import { NotStored } from '../contract/errors.ts'
import { codeOf, lacksDescriptor, messageOf, named } from '../text/error-message.ts'
import { writtenOut } from '../text/written-out.ts'
import type { NodeLogFormat, NodeLogLevel } from './log-levels.ts'
import { LogOutput } from './log-output.ts'

export interface NodeLogOptions {
  level: NodeLogLevel
  format: NodeLogFormat
  /** Where lines go; absent: standard error. */
  destination?: DestinationStream
  /** Milliseconds on a clock that never goes back; default: the system's. */
  now?: () => number
}

/** The least time between two lines that say that the disk takes no changes. */
export const DISK_LINE_MS = 60_000

/** Fields that could carry a secret are never printed, wherever somebody logs an object that has them. */
const SECRETS = ['token', 'key', 'privateKey', 'authorization', 'jsonConfig'].flatMap((name) => [name, `*.${name}`])

export function createLog(options: NodeLogOptions): Logger {
  const { level, format, destination = new LogOutput(), now = () => performance.now() } = options
  const redact = { paths: SECRETS, censor: '[secret]' }
  const hooks = { logMethod: diskLines(now) }
  const serializers = { err: serialized }
  const base = { serializers, level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact, hooks }
  const log =
    format === 'json'
      ? pino({ ...base, formatters: { level: (label) => ({ level: label }) } }, destination)
      : pino(base, { write: (line) => destination.write(textOf(line)) })
  if (destination instanceof LogOutput) {
    // A log without warnings has lost errors.
    const level = log.isLevelEnabled('warn') ? 'warn' : 'error'
    destination.onLost = (lines) => log[level]({ lines }, 'lines of this log are lost: standard error took no more')
  }
  return log
}

/**
 * A disk that is full refuses every change: one line a minute says so, whichever part of the node met it, and how often it was met; another line where
 * something else is to be done about it.
 */
function diskLines(now: () => number) {
  /** By what is to be done: until when no line says so, and how often it was met since the last one. */
  const met = new Map<string, { quietUntil: number; untold: number }>()
  return function (this: Logger, line: Parameters<LogFn>, method: LogFn): void {
    const refused = notStoredOf((line[0] as { err?: unknown } | undefined)?.err)
    if (refused === undefined) {
      method.apply(this, line)
      return
    }
    const { quietUntil, untold } = met.get(refused.cure) ?? { quietUntil: 0, untold: 0 }
    if (now() < quietUntil) {
      met.set(refused.cure, { quietUntil, untold: untold + 1 })
      return
    }
    const message = `${refused.path} does not take changes (${refused.why}): ${refused.cure} (who asked for a change is told at once; this line comes once a minute at most)`
    method.call(this, { refused: untold + 1 }, message)
    met.set(refused.cure, { quietUntil: now() + DISK_LINE_MS, untold: 0 })
  }
}

function notStoredOf(error: unknown): NotStored | undefined {
  if (error instanceof NotStored) return error
  return error instanceof Error && error.cause instanceof NotStored ? error.cause : undefined
}

/** `2026-01-02T03:04:05.678Z INFO message key=value`; a value that is more than one plain word is in quotes. */
function textOf(line: string): string {
  const { time, level, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(fields).map(([key, value]) => ` ${key}=${valueText(value)}`)
  const cause = err === undefined ? '' : causeText(err as SerializedError)
  const label = pino.levels.labels[level as number]?.toUpperCase() ?? level
  return `${time} ${label} ${writtenOut(String(msg ?? ''), '\n').replaceAll('\n', '\\n')}${rest.join('')}${cause}\n`
}

/** An error as pino has it, the system's also by a name where Node.js has none. */
function serialized(error: Error): unknown {
  const made = pino.stdSerializers.err(error)
  if (!(error instanceof Error)) return made
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    made.message = named(at, made.message)
    made.stack = named(at, made.stack)
  }
  if (made.code !== undefined) made.code = codeOf(error)
  if (lacksDescriptor(made.code)) made.message = messageOf(error)
  return made
}

/** What pino makes of an error. */
interface SerializedError {
  readonly name?: string
  readonly code?: string
  readonly message?: string
  readonly stack?: string
}

/** Below its line, with the stack; the failure of an operation and the want of a file descriptor, which are no faults, in a field without. */
function causeText(error: SerializedError): string {
  if (error.name === 'ServiceError' || lacksDescriptor(error.code)) return ` error=${valueText(error.message)}`
  return `\n  ${writtenOut(String(error.stack ?? error), '\n').replaceAll('\n', '\n  ')}`
}

/** Names and messages come from other machines too: none of them makes a line of its own, nor steers the terminal that shows it. */
function valueText(value: unknown): string {
  if (typeof value === 'string' && /^[\x21\x23-\x3c\x3e-\x7e]+$/.test(value)) return value
  return writtenOut(JSON.stringify(value) ?? 'undefined')
}
