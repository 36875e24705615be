/** How much room packets need around them for what the components of a graph write in front of and behind them. */
import { type Problem, pointerOf } from '../../text/pointer.ts'
import type { Registry, Room } from './component.ts'
import type { ComponentConfig } from './config.ts'
import { MIN_PACKET } from './packets.ts'
import { type Connection, inOrder, type Onward } from './ports.ts'

/** Most bytes that can be kept free in front of a packet, and as many behind it. */
const MAX_ROOM = 2048
/** What every packet has, bytes: enough for most graphs, so that their slabs are alike and can be used again. */
const MIN_FRONT = 128
const MIN_BACK = 64

const CACHE_LINE_BYTES = 64

/**
 * The most that is written in front of and behind one packet on its way from where it comes in or is made; `refused` where that
 * is more than can be had. What decoders take off again is not counted on: who knows what they will drop or rebuild. `front` is as much more as
 * makes packets lie well for the first component that computes with them.
 */
export function roomOf(
  components: Record<string, ComponentConfig>,
  registry: Registry,
  onward: Onward,
): Room & { refused: Problem[] } {
  const written = new Map<Connection, Room>()
  const beyond = new Map<string, Problem>()
  const most = { front: MIN_FRONT, back: MIN_BACK }
  let line: number | undefined
  for (const connection of inOrder(onward).order) {
    const { component } = connection.to
    const { key, config } = components[component]
    const definition = registry.get(key)
    const own = definition?.room?.(config) ?? { front: 0, back: 0 }
    const before = written.get(connection) ?? { front: 0, back: 0 }
    if (definition?.computesFrom !== undefined) line ??= definition.computesFrom - before.front
    const after = { front: before.front + own.front, back: before.back + own.back }
    for (const [side, where] of [
      ['front', 'in front of'],
      ['back', 'behind'],
    ] as const) {
      if (after[side] > most[side]) most[side] = after[side]
      if (before[side] > MAX_ROOM || after[side] <= MAX_ROOM || beyond.has(`${component} ${side}`)) continue
      beyond.set(`${component} ${side}`, {
        pointer: pointerOf(['engine_config', 'pipeline', component, key]),
        message: `up to here components write ${after[side]} bytes ${where} a packet, more than the ${MAX_ROOM} that can be kept free there: `,
      })
    }
    for (const next of onward.get(connection) ?? []) {
      const known = written.get(next)
      if (!known) written.set(next, { ...after })
      else {
        known.front = Math.max(known.front, after.front)
        known.back = Math.max(known.back, after.back)
      }
    }
  }
  const refused = [...beyond.values()].map(({ pointer, message }) => ({
    pointer,
    message: `${message}${most.front} in front and ${most.back} behind in the whole chain; split it over several pipelines`,
  }))
  // Without such a component in steps nevertheless, so that slabs are alike more often.
  most.front += modulo(-(most.front + (line ?? 0)), CACHE_LINE_BYTES)
  return { ...most, refused }
}

/** The rest, 0 or more, of dividing `value`, which may be negative. */
function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}

/** Whether packets that leave `component` reach, inside the graph, one that writes in front of or behind them where they lie. */
export function growsFrom(
  component: string,
  components: Record<string, ComponentConfig>,
  registry: Registry,
  onward: Onward,
): boolean {
  const seen = new Set<Connection>()
  const left = [...onward.keys()].filter(({ from }) => from.component === component)
  for (let connection = left.pop(); connection; connection = left.pop()) {
    if (seen.has(connection)) continue
    seen.add(connection)
    const definition = registry.get(components[connection.to.component].key)
    // One that moves them does so unless something behind it writes where they lie, which is then reached from here as well.
    if (definition?.room && !definition.moves) return true
    left.push(...(onward.get(connection) ?? []))
  }
  return false
}

/**
 * For each connection, by name, the longest packet in bytes that can go all the way: that every component it reaches from there can send,
 * with what those in between write in front of it and behind it. Infinity where nothing limits it.
 */
export function longestPackets(
  components: Record<string, ComponentConfig>,
  registry: Registry,
  onward: Onward,
): ReadonlyMap<string, number> {
  const longest = new Map<string, number>()
  for (const connection of inOrder(onward).order.reverse()) {
    const { key, config } = components[connection.to.component]
    const definition = registry.get(key)
    const { front, back } = definition?.room?.(config) ?? { front: 0, back: 0 }
    let most = definition?.sends?.(config) ?? Number.POSITIVE_INFINITY
    for (const next of definition?.cuts ? [] : (onward.get(connection) ?? []))
      most = Math.min(most, (longest.get(next.name) ?? most) - front - back)
    longest.set(connection.name, most)
  }
  return longest
}

/** Largest packet that any of the components brings in, bytes: what a run's slots are made for. */
export function largestPacket(components: Record<string, ComponentConfig>, registry: Registry): number {
  let largest = MIN_PACKET
  for (const { key, config } of Object.values(components)) {
    largest = Math.max(largest, registry.get(key)?.mtu?.(config) ?? 0)
  }
  return largest
}
