/** The log lines of runs. */
import { type LogMessage, openLogStream } from '@penstock/client'
import { LiveStore, LiveStores } from './live.ts'
import { node } from './session.ts'

/** Lines kept of a run: as many as a node has in memory of one that is on. */
export const MAX_LINES = 2_000

export interface Log {
  /** Oldest first, at most MAX_LINES. */
  readonly lines: readonly LogMessage[]
  /** The number of the first of them, counted from the first that came. */
  readonly first: number
}

const NONE: Log = { lines: [], first: 0 }

const stores = new LiveStores<Log>((key, onIdle) => {
  const [nodeId = '', runId = '', past = ''] = key.split('/')
  return new LiveStore<Log>(
    NONE,
    async ({ signal, set, get, opened, lost }) => {
      const onOpen = (): void => {
        // The stream begins with the past lines again.
        set(NONE)
        opened()
      }
      const request = { nodeId, runId, options: { lines: past } }
      for await (const { messages } of openLogStream(node, request, { signal, onOpen, onBreak: lost })) {
        set(logAfter(get(), messages))
      }
    },
    onIdle,
  )
})

/** The log with further lines; the oldest give way. */
export function logAfter({ lines, first }: Log, messages: readonly LogMessage[]): Log {
  const all = [...lines, ...messages]
  const gone = Math.max(0, all.length - MAX_LINES)
  return { lines: gone === 0 ? all : all.slice(gone), first: first + gone }
}

/** The lines of a run, beginning with at most `past` of those that were there before. */
export function logOf(nodeId: string, runId: string, past: number): LiveStore<Log> {
  return stores.get(`${nodeId}/${runId}/${past}`)
}
