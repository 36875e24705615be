/** Lines of a run's log, as components write them. */

export type LogLevel = 'STATE' | 'DEBUG' | 'INFO' | 'WARN' | 'ERROR' | 'FATAL'

/** A line into the run log; a FATAL one ends the run, FAILED. Not for the packet path. */
export type Log = (level: LogLevel, message: string, fields?: Record<string, string | number | boolean>) => void
