/** What a checked configuration says that is allowed but hardly meant. */
import { pointerOf } from '../../text/pointer.ts'
import type { Registry } from './component.ts'
import type { ComponentConfig, Warning } from './config.ts'
import { inOrder, type Onward } from './ports.ts'
import { longestPackets } from './room.ts'

type Components = Record<string, ComponentConfig>

/** Every warning, in the order of the components. */
export function warningsOf(components: Components, registry: Registry, onward: Onward): Warning[] {
  const warnings: Warning[] = []
  const seeds = new Map<number, string>()
  const count = (sought: string): number => Object.values(components).filter(({ key }) => key === sought).length
  let longest: ReturnType<typeof longestPackets> | undefined
  let back: ReadonlySet<string> | undefined
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
    back ??= returning(components, registry, onward)
    const comesBack = back.has(component)
    for (const { pointer, message } of definition.warn(config, { comesBack, count, longestFrom }))
      warn(pointer, message)
  }
  return warnings
}

/** Candidates of one pass: one for each bit of a number. */
const WORD_BITS = 32

/**
 * The decoupled components to which what leaves them comes back, through nothing that changes a packet or where it goes. All in a few
 * passes over the connections: a walk from each would take the product of the two.
 */
function returning(components: Components, registry: Registry, onward: Onward): ReadonlySet<string> {
  const found = new Set<string>()
  const definitionOf = (name: string) => registry.get(components[name].key)
  const candidates = Object.keys(components).filter((name) => {
    const definition = definitionOf(name)
    return definition?.decoupled && definition.warn
  })
  if (candidates.length === 0) return found
  // Each connection behind all that it leads to.
  const order = inOrder(onward).order.reverse()
  const places = new Map(order.map((connection, i) => [connection, i]))
  const following = order.map((connection) => {
    const isOver = definitionOf(connection.to.component)?.alters
    return isOver ? [] : (onward.get(connection) ?? []).map((next) => places.get(next) as number)
  })
  for (let first = 0; first < candidates.length; first += WORD_BITS) {
    const bits = new Map(candidates.slice(first, first + WORD_BITS).map((name, i) => [name, 1 << i]))
    /** Which of them each connection reaches. */
    const reached = new Int32Array(order.length)
    order.forEach(({ from, to }, i) => {
      for (const next of following[i]) reached[i] |= reached[next]
      reached[i] |= bits.get(to.component) ?? 0
      if ((reached[i] & (bits.get(from.component) ?? 0)) !== 0) found.add(from.component)
    })
  }
  return found
}
