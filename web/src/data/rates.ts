/** What passes each port and each component of a run per second, from one sample of its telemetry to the next. */
import type { Metric, TelemetrySample } from '@penstock/client'
import { numberOf } from './history.ts'

export interface PortRate {
  /** Per second. */
  readonly packets: number
  /** Per second. */
  readonly bits: number
}

export interface ComponentRates {
  /** Sums over its ports. */
  readonly in: PortRate
  readonly out: PortRate
  /** Packets lost since the start of the run, by an error, a limit or a full queue. */
  readonly dropped: number
  /** The same per second. */
  readonly dropping: number
  /** Packets per second that are lost on purpose. */
  readonly losing: number
  /** Changes per second of its other counters, by their names. */
  readonly counters: ReadonlyMap<string, number>
  /** By name, as metrics have it. */
  readonly ports: ReadonlyMap<string, PortRate>
}

export type RunRates = ReadonlyMap<string, ComponentRates>

interface MutableRate {
  packets: number
  bits: number
}

/**
 * The rates by component; `seconds`: from the sample before. Without that, where it is not known how long ago it was, and where a number fell, nothing has passed;
 * drops are counted all the same.
 */
export function ratesBetween(
  before: TelemetrySample | undefined,
  now: TelemetrySample,
  seconds: number | undefined,
): RunRates {
  const earlier = new Map(before?.metricCollections.map(({ path, metrics }) => [path, metrics]))
  return new Map(
    now.metricCollections.map(({ path, metrics }) => [path, componentRates(earlier.get(path), metrics, seconds)]),
  )
}

function componentRates(
  before: Readonly<Record<string, Metric>> | undefined,
  metrics: Readonly<Record<string, Metric>>,
  seconds: number | undefined,
): ComponentRates {
  const sums = { INPUT: { packets: 0, bits: 0 }, OUTPUT: { packets: 0, bits: 0 } }
  const ports = new Map<string, MutableRate>()
  const counters = new Map<string, number>()
  let [dropped, dropping, losing] = [0, 0, 0]
  for (const [name, metric] of Object.entries(metrics)) {
    const { port, role, kind, unit } = metric
    const then = before?.[name]
    const change = then === undefined ? 0 : numberOf(metric) - numberOf(then)
    const rate = seconds !== undefined && change > 0 ? change / seconds : 0
    if (port !== undefined) {
      const of = ports.get(port.name) ?? { packets: 0, bits: 0 }
      ports.set(port.name, of)
      for (const sum of [of, sums[port.side]]) {
        if (unit === 'bytes') sum.bits += rate * 8
        else sum.packets += rate
      }
      continue
    }
    if (kind === 'COUNTER') counters.set(name, rate)
    if (role === 'INTENDED') losing += rate
    if (role !== 'DROP' && role !== 'OVERFLOW') continue
    dropped += numberOf(metric)
    dropping += rate
  }
  return { in: sums.INPUT, out: sums.OUTPUT, dropped, dropping, losing, counters, ports }
}
