/** The node's own log: pino, as JSON lines or as text for people, on standard error. */
import { writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino } from 'pino'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type NodeLogLevel = (typeof LOG_LEVELS)[number]
export type NodeLogFormat = 'text' | 'json'

export interface LogOptions {
  level: NodeLogLevel
  format: NodeLogFormat
  /** Where lines go; absent: standard error. */
  destination?: DestinationStream
}

/** Fields that could carry a secret are never printed, wherever somebody logs an object that has them. */
const SECRETS = ['token', 'key', 'privateKey', 'authorization', 'jsonConfig'].flatMap((name) => [name, `*.${name}`])

export function createLog({ level, format, destination = standardError }: LogOptions): Logger {
  const redact = { paths: SECRETS, censor: '[secret]' }
  const base = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact }
  if (format === 'json') {
    return pino({ ...base, formatters: { level: (label) => ({ level: label }) } }, destination)
  }
  return pino(base, { write: (line) => destination.write(textOf(line)) })
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
