/** What a run carries and loses per second, from one sample of its telemetry to the next. */
import type { Metric, MetricRole, TelemetryOptions, TelemetrySample } from '@penstock/client'

/** Milliseconds between samples. */
const INTERVAL = 2_000
/** Points kept, a minute's worth. */
export const MAX_POINTS = 60_000 / INTERVAL

interface Rates {
  /** Bits per second on the busiest connection. */
  readonly bits: number
  /** Packets per second that end as they should. */
  readonly packets: number
  /** Of the packets that ended, the share that was lost, 0 to 1. */
  readonly loss: number
}

export interface Traffic {
  /** Oldest first, at most MAX_POINTS. */
  readonly points: readonly Rates[]
  readonly counts: Counts | undefined
}

/** Sums over the run so far. */
interface Counts {
  readonly consumed: number
  readonly lost: number
  /** Of each connection point. */
  readonly bytes: ReadonlyMap<string, number>
}

export const NO_TRAFFIC: Traffic = { points: [], counts: undefined }

const LOSSES: readonly MetricRole[] = ['DROP', 'INTENDED', 'OVERFLOW']
const LOST: ReadonlySet<MetricRole | undefined> = new Set(LOSSES)

/** What of telemetry says it. */
export const TRAFFIC_OPTIONS: TelemetryOptions = {
  intervalMs: INTERVAL,
  roles: ['CONSUMED', ...LOSSES],
  portUnits: ['bytes'],
}

/** What is known after the next sample, so many seconds after the one before; undefined: that is not known, and there is no point of it. */
export function trafficAfter(
  { points, counts: before }: Traffic,
  sample: TelemetrySample,
  seconds: number | undefined,
): Traffic {
  const counts = countsOf(sample)
  if (before === undefined || seconds === undefined) return { points, counts }
  const packets = Math.max(0, counts.consumed - before.consumed)
  const lost = Math.max(0, counts.lost - before.lost)
  let bytes = 0
  for (const [key, now] of counts.bytes) bytes = Math.max(bytes, now - (before.bytes.get(key) ?? now))
  const point = {
    bits: (bytes * 8) / seconds,
    packets: packets / seconds,
    loss: packets + lost === 0 ? 0 : lost / (packets + lost),
  }
  return { points: [...points.slice(1 - MAX_POINTS), point], counts }
}

function countsOf({ metricCollections }: TelemetrySample): Counts {
  let consumed = 0
  let lost = 0
  const bytes = new Map<string, number>()
  for (const { path, metrics } of metricCollections) {
    for (const name in metrics) {
      const metric = metrics[name] as Metric
      if (metric.port !== undefined) {
        if (metric.unit === 'bytes') bytes.set(`${path} ${name}`, numberOf(metric))
      } else if (metric.role === 'CONSUMED') consumed += numberOf(metric)
      else if (LOST.has(metric.role)) lost += numberOf(metric)
    }
  }
  return { consumed, lost, bytes }
}

function numberOf({ uint64Value, int64Value, doubleValue }: Metric): number {
  return Number(uint64Value ?? int64Value ?? doubleValue ?? 0)
}
