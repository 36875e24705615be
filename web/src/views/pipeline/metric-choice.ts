/** Which metrics are drawn over time. */
import type { Metric, TelemetrySample } from '@penstock/client'

export interface ChosenMetric {
  readonly path: string
  readonly name: string
  readonly unit: string
  readonly isCounter: boolean
  readonly description: string
}

/** Names offered at once; who looks for another says more of it. */
export const MAX_OFFERED = 60

/** The metrics of a component (of all, without one) with every word of `text` in their name or component, each once, at most MAX_OFFERED. */
export function offeredMetrics(
  { metricCollections }: TelemetrySample,
  component: string | undefined,
  text: string,
): readonly ChosenMetric[] {
  const words = text.toLowerCase().split(/\s+/)
  const found: ChosenMetric[] = []
  for (const { path, metrics } of metricCollections) {
    if (component !== undefined && path !== component) continue
    for (const [name, metric] of Object.entries(metrics)) {
      const whole = `${path} ${name}`.toLowerCase()
      if (isNumber(metric) && words.every((word) => whole.includes(word))) found.push(chosen(path, name, metric))
      if (found.length === MAX_OFFERED) return found
    }
  }
  return found
}

function isNumber({ stringValue }: Metric): boolean {
  return stringValue === undefined
}

function chosen(path: string, name: string, { unit, kind, description }: Metric): ChosenMetric {
  return { path, name, unit, isCounter: kind === 'COUNTER', description }
}

/** The unit of a metric's change per second. */
export function rateUnit(unit: string): string {
  if (unit === 'bytes') return 'bit/s'
  return unit === '' ? '/s' : `${unit}/s`
}
