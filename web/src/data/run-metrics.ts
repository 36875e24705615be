/** The numbers of a run for those who look at it closely: the newest sample, what passes per second, and the last ten minutes. */
import type { TelemetrySample } from '@penstock/client'
import { History } from './history.ts'
import { LiveStore, LiveStores } from './live.ts'
import { type RunRates, ratesBetween } from './rates.ts'
import { Spacing } from './spacing.ts'
import { followTelemetry } from './telemetry.ts'

export interface RunMetrics {
  /** Undefined until the first has come. */
  readonly sample?: TelemetrySample
  /** By component. */
  readonly rates: RunRates
  /** The same object at every sample: it grows. */
  readonly history: History
}

const NONE: RunMetrics = { rates: new Map(), history: new History() }

/** Runs whose last ten minutes are kept while nobody looks. */
const MAX_HISTORIES = 4
const histories = new Map<string, History>()

/** The history of a run, which is then the one that was asked for last. */
function historyOf(key: string): History {
  const history = histories.get(key) ?? new History()
  histories.delete(key)
  histories.set(key, history)
  const [oldest] = histories.keys()
  if (histories.size > MAX_HISTORIES && oldest !== undefined) histories.delete(oldest)
  return history
}

const stores = new LiveStores<RunMetrics>((key, onIdle) => {
  const [nodeId = '', runId = ''] = key.split('/')
  const spacing = new Spacing()
  return new LiveStore<RunMetrics>(
    NONE,
    async (feed) => {
      const history = historyOf(key)
      await followTelemetry(nodeId, runId, feed, (sample) => {
        const seconds = spacing.next(sample)
        history.add(sample, seconds)
        feed.set({ sample, rates: ratesBetween(feed.get().sample, sample, seconds), history })
      })
    },
    onIdle,
  )
})

/** Tells how the configuration has the KPIs of a run now. */
export function defineKpis(nodeId: string, runId: string, definitions: ReadonlyMap<string, string>): void {
  historyOf(`${nodeId}/${runId}`).define(definitions)
}

/** What is known of a run. It ends as failed, ABORTED, when the run ends. */
export function runMetricsOf(nodeId: string, runId: string): LiveStore<RunMetrics> {
  return stores.get(`${nodeId}/${runId}`)
}
