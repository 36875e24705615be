/** The node's own log: pino, as JSON lines or as text for people, on standard error. */
import { writeSync } from 'node:fs'
import { type DestinationStream, type LogFn, type Logger, pino } from 'pino'
import { NotStored } from '../store/durable.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type NodeLogLevel = (typeof LOG_LEVELS)[number]
export type NodeLogFormat = 'text' | 'json'

export interface LogOptions {
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

export function createLog(options: LogOptions): Logger {
  const { level, format, destination = standardError, now = () => performance.now() } = options
  const redact = { paths: SECRETS, censor: '[secret]' }
  const hooks = { logMethod: diskLines(now) }
  const base = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact, hooks }
  if (format === 'json') {
    return pino({ ...base, formatters: { level: (label) => ({ level: label }) } }, destination)
  }
  return pino(base, { write: (line) => destination.write(textOf(line)) })
}

/** A disk that is full refuses every change: one line a minute says so, whichever part of the node met it, and how often it was met. */
function diskLines(now: () => number) {
  let quietUntil = Number.NEGATIVE_INFINITY
  let untold = 0
  return function (this: Logger, line: Parameters<LogFn>, method: LogFn): void {
    const refused = notStoredOf((line[0] as { err?: unknown } | undefined)?.err)
    if (refused === undefined) {
      method.apply(this, line)
      return
    }
    untold++
    if (now() < quietUntil) return
    const message = `${refused.path} does not take changes (${refused.why}): make room on its disk; who asked for a change is told at once, this line comes once a minute at most`
    method.call(this, { refused: untold }, message)
    quietUntil = now() + DISK_LINE_MS
    untold = 0
  }
}

function notStoredOf(error: unknown): NotStored | undefined {
  if (error instanceof NotStored) return error
  return error instanceof Error && error.cause instanceof NotStored ? error.cause : undefined
}

const standardError: DestinationStream = {
  write: (line) => {
    try {
      writeSync(2, line)
    } catch {
      // Nobody reads standard error any more; the node goes on.
    }
  },
}

/** `2026-01-02T03:04:05.678Z INFO message key=value` */
function textOf(line: string): string {
  const { time, level, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(fields).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const cause =
    err === undefined ? '' : `\n  ${String((err as { stack?: string }).stack ?? err).replaceAll('\n', '\n  ')}`
  return `${time} ${pino.levels.labels[level as number]?.toUpperCase() ?? level} ${msg ?? ''}${rest.join('')}${cause}\n`
}
