/** The part of a sample that a follower asks for. */
import type { Metric, TelemetryOptions, TelemetrySample } from '../contract/types.ts'

export type MetricChoice = Pick<TelemetryOptions, 'metrics' | 'roles' | 'portUnits'>

/** The same text for choices of the same metrics, whatever the order of their lists; '' for all. */
export function keyOf({ metrics, roles, portUnits }: MetricChoice): string {
  const lists = [metrics, roles, portUnits].map((list) => [...new Set(list)].sort())
  return lists.every((list) => list.length === 0) ? '' : JSON.stringify(lists)
}

/** Makes the samples of a choice that is not of all; what is left of a sample is shared with it, and so must not change. */
export function chooser(choice: MetricChoice): (sample: TelemetrySample) => TelemetrySample {
  const names = new Set(choice.metrics)
  const roles = new Set<Metric['role']>(choice.roles)
  const units = new Set(choice.portUnits)
  const isChosen = (name: string, { role, port, unit }: Metric): boolean =>
    names.has(name) || (role !== undefined && roles.has(role)) || (port !== undefined && units.has(unit))
  return (sample) => {
    const metricCollections: TelemetrySample['metricCollections'] = []
    for (const { path, metrics } of sample.metricCollections) {
      const chosen = Object.entries(metrics).filter(([name, metric]) => isChosen(name, metric))
      if (chosen.length > 0) metricCollections.push({ path, metrics: Object.fromEntries(chosen) })
    }
    return { ...sample, metricCollections }
  }
}
