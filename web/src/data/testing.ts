/** Messages of a node as tests make them. */
import type { Metric, TelemetrySample } from '@penstock/client'

export function counter(value: number, more: Partial<Metric> = {}): Metric {
  return { kind: 'COUNTER', unit: 'packets', description: '', uint64Value: String(value), ...more }
}

/** A sample `seconds` after some moment. */
export function sampleAt(
  seconds: number,
  metrics: Readonly<Record<string, Record<string, Metric>>>,
  more: Partial<TelemetrySample> = {},
): TelemetrySample {
  const metricCollections = Object.entries(metrics).map(([path, of]) => ({ path, metrics: of }))
  return { metricCollections, kpis: [], timestamp: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), ...more }
}
