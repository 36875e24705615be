/** The part of a sample that a follower asks for. */
import type { Metric, TelemetryOptions } from '../contract/types.ts'

export type MetricChoice = Pick<TelemetryOptions, 'metrics' | 'roles' | 'portUnits'>

/** The same text for choices of the same metrics, whatever the order of their lists; '' for all. */
export function keyOf({ metrics, roles, portUnits }: MetricChoice): string {
  const lists = [metrics, roles, portUnits].map((list) => [...new Set(list)].sort())
  return lists.every((list) => list.length === 0) ? '' : JSON.stringify(lists)
}

/** Whether a metric is of a choice that is not of all. */
export function chooser(
  choice: MetricChoice,
): (name: string, metric: Pick<Metric, 'role' | 'port' | 'unit'>) => boolean {
  const names = new Set(choice.metrics)
  const roles = new Set<Metric['role']>(choice.roles)
  const units = new Set(choice.portUnits)
  return (name, { role, port, unit }) =>
    names.has(name) || (role !== undefined && roles.has(role)) || (port !== undefined && units.has(unit))
}
