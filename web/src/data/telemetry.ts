/** The telemetry of runs: the samples of the last minutes. */
import { openTelemetryStream, type TelemetrySample } from '@penstock/client'
import { LiveStore, LiveStores } from './live.ts'
import { node } from './session.ts'

/** Samples kept of a run, five minutes' worth at one a second. */
const MAX_SAMPLES = 300

const stores = new LiveStores<readonly TelemetrySample[]>((key, onIdle) => {
  const [nodeId = '', runId = ''] = key.split('/')
  return new LiveStore<readonly TelemetrySample[]>(
    [],
    async ({ signal, set, get, opened, lost }) => {
      const options = { signal, onOpen: opened, onBreak: lost }
      for await (const sample of openTelemetryStream(node, { nodeId, runId }, options)) {
        set([...get().slice(1 - MAX_SAMPLES), sample])
      }
    },
    onIdle,
  )
})

/** The samples of a run, oldest first; empty until the first has come. It ends as failed, ABORTED, when the run ends. */
export function telemetryOf(nodeId: string, runId: string): LiveStore<readonly TelemetrySample[]> {
  return stores.get(`${nodeId}/${runId}`)
}
