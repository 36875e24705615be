/** The telemetry of runs: samples as they come, and what they come to per second. */
import { openTelemetryStream, type TelemetrySample } from '@penstock/client'
import { onQuarterSecond } from './frame.ts'
import { LiveStore, LiveStores, type Reader } from './live.ts'
import { node } from './session.ts'
import { SharedStreams } from './shared-stream.ts'
import { Spacing } from './spacing.ts'
import { NO_TRAFFIC, TRAFFIC_OPTIONS, type Traffic, trafficAfter } from './traffic.ts'

const streams = new SharedStreams<TelemetrySample>((key, options) => {
  const [nodeId = '', runId = ''] = key.split('/')
  return openTelemetryStream(node, { nodeId, runId }, options)
})

const traffic = new LiveStores<Traffic>((key, onIdle) => {
  const [nodeId = '', runId = ''] = key.split('/')
  const request = { nodeId, runId, options: TRAFFIC_OPTIONS }
  const spacing = new Spacing()
  return new LiveStore(
    NO_TRAFFIC,
    async ({ signal, set, get, opened, lost }) => {
      for await (const sample of openTelemetryStream(node, request, { signal, onOpen: opened, onBreak: lost })) {
        set(trafficAfter(get(), sample, spacing.next(sample)))
      }
    },
    onIdle,
    onQuarterSecond,
  )
})

/** Tells every sample of a run, on the stream that all who ask for it share, until it ends or the feed's signal aborts. */
export function followTelemetry(
  nodeId: string,
  runId: string,
  feed: Reader,
  onSample: (sample: TelemetrySample) => void,
): Promise<void> {
  return streams.follow(`${nodeId}/${runId}`, feed, onSample)
}

/** What a run carries and loses, over the last minute. */
export function trafficOf(nodeId: string, runId: string): LiveStore<Traffic> {
  return traffic.get(`${nodeId}/${runId}`)
}
