/** What the log of a node can be set to. */

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type NodeLogLevel = (typeof LOG_LEVELS)[number]
export type NodeLogFormat = 'text' | 'json'
