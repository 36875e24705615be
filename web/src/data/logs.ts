/** The log lines of runs. */
import { openLogStream } from '@penstock/client'
import { LiveStore, LiveStores } from './live.ts'
import { type Log, logAfter } from './log.ts'
import { node } from './session.ts'

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

/** The lines of a run, beginning with at most `past` of those that were there before. */
export function logOf(nodeId: string, runId: string, past: number): LiveStore<Log> {
  return stores.get(`${nodeId}/${runId}/${past}`)
}
