/** Where every number of a run has its place: the counters of connections, what components declare, what the loop itself counts. */

import type { AnyComponent, Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { entryDeclarations } from './entry-metrics.ts'
import { MetricLayout } from './metrics.ts'
import { ENGINE_PATH, engineMetrics, PROCESS_PATH, processMetrics } from './own-metrics.ts'
import { connect, type Port, portName, type Wiring } from './ports.ts'

export interface Layout {
  metrics: MetricLayout
  wiring: Omit<Wiring, 'problems'>
  /** Index of each connection's packet counter, its bytes following. */
  counters: Map<string, number>
  /** Component name to metric name to index. */
  declared: Map<string, Map<string, number>>
}

/** The metric layout of a configuration: pure, so every thread that knows the configuration gets the same. */
export function layoutOf(config: Pick<PipelineConfig, 'components'>, available: Registry): Layout {
  const { problems, ...wiring } = connect(config.components, available)
  if (problems.length > 0) throw new Error(`unchecked configuration: ${problems[0].message}`)
  return { ...placesOf(config, available, wiring.ports), wiring }
}

function placesOf(
  config: Pick<PipelineConfig, 'components'>,
  available: Registry,
  ports: Wiring['ports'],
): Omit<Layout, 'wiring'> {
  const metrics = new MetricLayout()
  const counters = new Map<string, number>()
  const declared = new Map<string, Map<string, number>>()
  for (const [path, component] of Object.entries(config.components)) {
    const definition = available.get(component.key) as AnyComponent
    for (const port of ports.get(path) as readonly Port[]) {
      const shared = counters.get(port.name)
      const side = port.kind
      const verb = side === 'input' ? 'came in' : 'left'
      const name = portName(port)
      const common = { path, kind: 'counter', integer: true, port: { name, side } } as const
      const packets = metrics.number(
        {
          ...common,
          name: `${name}_packets`,
          unit: 'packets',
          description: `Packets that ${verb} at ${side} ${name}.`,
        },
        shared,
      )
      metrics.number(
        { ...common, name: `${name}_bytes`, unit: 'bytes', description: `Bytes that ${verb} at ${side} ${name}.` },
        shared === undefined ? undefined : shared + 1,
      )
      counters.set(port.name, packets)
    }
    const own = { ...definition.metrics, ...entryDeclarations(definition, component.config) }
    declared.set(path, metrics.declare(path, own))
  }
  declared.set(ENGINE_PATH, metrics.declare(ENGINE_PATH, engineMetrics))
  return { metrics, counters, declared }
}

/** The names of all metrics that a run of components has, by path, those of the process too; whether they are well connected does not matter. */
export function metricNamesOf(
  config: Pick<PipelineConfig, 'components'>,
  available: Registry,
): Map<string, Set<string>> {
  const names = new Map([[PROCESS_PATH, new Set(Object.keys(processMetrics))]])
  for (const { path, name } of placesOf(config, available, connect(config.components, available).ports).metrics
    .entries) {
    const known = names.get(path)
    if (known === undefined) names.set(path, new Set([name]))
    else known.add(name)
  }
  return names
}
