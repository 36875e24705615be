/** How a configuration has each of its KPIs, to be compared. */
import { fieldOf, isFields } from './configuration.ts'

/** By id; the variables, which any expression may use, are part of each. */
export function kpiDefinitions(jsonConfig: string): ReadonlyMap<string, string> {
  const kpis = fieldOf(JSON.parse(jsonConfig), 'kpis')
  const metrics = fieldOf(kpis, 'metrics')
  const variables = fieldOf(kpis, 'variables')
  return new Map(
    (Array.isArray(metrics) ? metrics : []).flatMap((kpi) => {
      const id = isFields(kpi) ? kpi.id : undefined
      return typeof id === 'string' ? [[id, JSON.stringify([kpi, variables])] as const] : []
    }),
  )
}
