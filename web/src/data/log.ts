/** The lines of a log that are kept. */
import type { LogMessage } from '@penstock/client'

/** Lines kept of a run: as many as a node has in memory of one that is on. */
export const MAX_LINES = 2_000

export interface Log {
  /** Oldest first, at most MAX_LINES. */
  readonly lines: readonly LogMessage[]
  /** The number of the first of them, counted from the first that came. */
  readonly first: number
}

/** The log with further lines; the oldest give way. */
export function logAfter({ lines, first }: Log, messages: readonly LogMessage[]): Log {
  const all = [...lines, ...messages]
  const gone = Math.max(0, all.length - MAX_LINES)
  return { lines: gone === 0 ? all : all.slice(gone), first: first + gone }
}
