/** What a checked configuration says that is allowed but hardly meant. */
import { pointerOf } from '../../text/pointer.ts'
import type { Registry } from './component.ts'
import type { ComponentConfig, Warning } from './config.ts'
import type { Connection, Onward } from './ports.ts'
import { longestPackets } from './room.ts'

type Components = Record<string, ComponentConfig>

/** Every warning, in the order of the components. */
export function warningsOf(components: Components, registry: Registry, onward: Onward): Warning[] {
  const warnings: Warning[] = []
  const seeds = new Map<number, string>()
  const count = (sought: string): number => Object.values(components).filter(({ key }) => key === sought).length
  let longest: ReturnType<typeof longestPackets> | undefined
  const longestFrom = (output: string): number => {
    longest ??= longestPackets(components, registry, onward)
    return longest.get(output) ?? Number.POSITIVE_INFINITY
  }
  for (const [component, { key, config }] of Object.entries(components)) {
    const warn = (pointer: string, message: string): void => {
      const at = pointerOf(['engine_config', 'pipeline', component, key])
      warnings.push({ component, pointer: at + pointer, message })
    }
    const { seed } = config
    if (typeof seed === 'number') {
      const other = seeds.get(seed)
      if (other === undefined) seeds.set(seed, component)
      else {
        const who = `"${other}" (${components[other].key})`
        warn(
          '/seed',
          `${seed} is the seed of ${who} too: both draw the same random numbers; give each a seed of its own`,
        )
      }
    }
    const definition = registry.get(key)
    if (!definition?.warn) continue
    const comesBack = returnsTo(component, components, registry, onward)
    for (const { pointer, message } of definition.warn(config, { comesBack, count, longestFrom }))
      warn(pointer, message)
  }
  return warnings
}

/** Whether what leaves `component` comes back to it, through nothing that changes a packet or where it goes. */
function returnsTo(component: string, components: Components, registry: Registry, onward: Onward): boolean {
  const seen = new Set<Connection>()
  const left = [...onward.keys()].filter(({ from }) => from.component === component)
  for (let connection = left.pop(); connection; connection = left.pop()) {
    if (seen.has(connection)) continue
    seen.add(connection)
    const next = connection.to.component
    if (next === component) return true
    if (registry.get(components[next].key)?.alters) continue
    left.push(...(onward.get(connection) ?? []))
  }
  return false
}
