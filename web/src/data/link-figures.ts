/** What a link carries and loses, over the last ten minutes. */
import type { TelemetrySample } from '@penstock/client'
import type { Link, LinkPort } from './emulation.ts'
import { type History, metricKey, type Series } from './history.ts'

interface LinkFigures {
  /** Seconds since 1970. */
  readonly times: readonly number[]
  /** Bits per second that leave the link. */
  readonly bits: Series
  /** Of the packets that came in, the share that is lost, on purpose and by full queues, 0 to 1. */
  readonly loss: Series
}

const LOST: ReadonlySet<string | undefined> = new Set(['DROP', 'INTENDED', 'OVERFLOW'])

/** The figures of a link; `sample` says which metrics there are. */
export function figuresOf(
  { emulations, inputs, outputs }: Link,
  sample: TelemetrySample,
  history: History,
): LinkFigures {
  const metrics = new Map(sample.metricCollections.map((collection) => [collection.path, collection.metrics]))
  const portKeys = (ends: readonly LinkPort[], unit: string): string[] =>
    ends.flatMap(({ component, port }) =>
      Object.entries(metrics.get(component) ?? {})
        .filter(([, metric]) => metric.port?.name === port && metric.unit === unit)
        .map(([name]) => metricKey(component, name)),
    )
  const lostKeys = emulations.flatMap(({ component: { name: path } }) =>
    Object.entries(metrics.get(path) ?? {})
      .filter(([, { role }]) => LOST.has(role))
      .map(([name]) => metricKey(path, name)),
  )
  const sum = (keys: readonly string[]): Series => summed(keys.map((key) => history.rates(key)))
  const came = sum(portKeys(inputs, 'packets'))
  const lost = sum(lostKeys)
  const bytes = sum(portKeys(outputs, 'bytes'))
  return {
    times: history.times(),
    bits: bytes.map((rate) => (rate === undefined ? undefined : rate * 8)),
    loss: came.map((rate, i) => (rate === undefined ? undefined : rate > 0 ? Math.min(1, (lost[i] ?? 0) / rate) : 0)),
  }
}

/** The sums at each time; unknown where one is. */
function summed(all: readonly Series[]): Series {
  return (all[0] ?? []).map((_, i) =>
    all.reduce<number | undefined>((sum, series) => {
      const value = series[i]
      return sum === undefined || value === undefined ? undefined : sum + value
    }, 0),
  )
}
