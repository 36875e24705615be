/** What goes wrong in a storm, and when: drawn from a seed before it begins. */
import type { Random } from '../../src/dataplane/engine/random.ts'
import { FAULTS, type Fault } from '../storm/proxy.ts'

/** One thing that goes wrong at a moment and is well again later; milliseconds since the storm began. */
export type Strike = { readonly from: number; readonly to: number } & (
  | { readonly kind: 'kill' | 'stop'; readonly party: string }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly between: readonly [from: string, to: string] }
  /** Nothing goes between these and those. */
  | { readonly kind: 'partition'; readonly side: readonly string[]; readonly others: readonly string[] }
)

export interface WeatherOptions {
  readonly random: Random
  readonly milliseconds: number
  /** The servers of the hub, and those of NATS. */
  readonly hubs: readonly string[]
  readonly nats: readonly string[]
  /** Nodes that have links with the servers of the hub; default: none. */
  readonly nodes?: readonly string[]
}

/** How long NATS servers that were killed or stopped have, before the next one is; milliseconds. */
const RECOVERY_MS = 2_000
const MAX_PAUSE_MS = 1_200
const ROUTE_FAULTS: readonly Fault[] = ['delay', 'drop', 'truncate', 'refuse', 'halfClose']

export function weatherOf({ random, milliseconds, hubs, nats, nodes = [] }: WeatherOptions): Strike[] {
  const pick = <T>(from: readonly T[]): T => from[random.below(from.length)] as T
  const strikes: Strike[] = []
  /** Presence is in the memory of the NATS servers: a majority of them is never gone. */
  let natsWell = 0
  for (let from = random.below(500); from < milliseconds; from += random.between(100, MAX_PAUSE_MS)) {
    const span = (least: number, most: number) => ({
      from,
      to: Math.min(milliseconds, from + random.between(least, most)),
    })
    const roll = random.below(10)
    if (roll < 2) strikes.push({ kind: pick(['kill', 'stop']), party: pick([...hubs, ...nodes]), ...span(300, 5_000) })
    else if (roll < 4 && from >= natsWell) {
      const strike: Strike = { kind: pick(['kill', 'stop']), party: pick(nats), ...span(300, 4_000) }
      natsWell = strike.to + RECOVERY_MS
      strikes.push(strike)
    } else if (roll < 6) {
      // Most of the time one that lets the servers reach what they share.
      const all = nodes.length > 0 && random.chance(0.7) ? [...hubs, ...nodes] : [...hubs, ...nats, ...nodes]
      const side = all.filter(() => random.chance(0.5))
      const others = all.filter((name) => !side.includes(name))
      if (side.length > 0 && others.length > 0) strikes.push({ kind: 'partition', side, others, ...span(500, 4_000) })
    } else if (nodes.length > 0 && random.chance(0.5)) {
      const to = pick(hubs)
      const dialler = pick([...hubs, ...nodes].filter((name) => name !== to))
      strikes.push({ kind: 'fault', fault: pick(FAULTS), between: [dialler, to], ...span(300, 4_000) })
    } else {
      const isRoute = nats.length > 1 && random.chance(0.3)
      const to = pick(nats)
      const between = [isRoute ? pick(nats.filter((name) => name !== to)) : pick(hubs), to] as const
      strikes.push({ kind: 'fault', fault: pick(isRoute ? ROUTE_FAULTS : FAULTS), between, ...span(300, 4_000) })
    }
  }
  return strikes
}

/** A plan as text, a line a strike. */
export function weatherText(strikes: readonly Strike[]): string {
  return strikes
    .map((strike) => {
      const { from, to, kind } = strike
      const time = `${String(from).padStart(6)} to ${String(to).padStart(6)}: `
      if (kind === 'partition') return `${time}{${strike.side.join(' ')}} apart from {${strike.others.join(' ')}}`
      if (kind === 'fault') return `${time}${strike.between.join(' to ')}: ${strike.fault}`
      return `${time}${strike.party} ${kind === 'kill' ? 'killed' : 'stopped'}`
    })
    .join('\n')
}
