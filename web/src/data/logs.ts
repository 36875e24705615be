/** The log lines of runs. */
import { type LogMessage, openLogStream } from '@penstock/client'
import { LiveStore, LiveStores } from './live.ts'
import { node } from './session.ts'

/** Lines kept of a run, and how many of the past are asked for. */
const MAX_LINES = 2_000
const PAST_LINES = '500'

const stores = new LiveStores<readonly LogMessage[]>((key, onIdle) => {
  const [nodeId = '', runId = ''] = key.split('/')
  return new LiveStore<readonly LogMessage[]>(
    [],
    async ({ signal, set, get, opened, lost }) => {
      const onOpen = (): void => {
        // The stream begins with the past lines again.
        set([])
        opened()
      }
      const request = { nodeId, runId, options: { lines: PAST_LINES } }
      for await (const { messages } of openLogStream(node, request, { signal, onOpen, onBreak: lost })) {
        set([...get(), ...messages].slice(-MAX_LINES))
      }
    },
    onIdle,
  )
})

/** The lines of a run, oldest first. */
export function logOf(nodeId: string, runId: string): LiveStore<readonly LogMessage[]> {
  return stores.get(`${nodeId}/${runId}`)
}
