/** What changed between two checked configurations, and what each change asks of a run. */
import { isDeepStrictEqual } from 'node:util'
import { pointerOf } from '../../text/pointer.ts'
import type { AnyComponent, Registry } from './component.ts'
import type { ComponentConfig, PipelineConfig } from './config.ts'
import { type Port, portsOf } from './ports.ts'
import { largestPacket } from './room.ts'

/** Why a run can take a change over: its component does, or nothing in its thread depends on it. */
export type LiveReason = 'LIVE' | 'BESIDE_THE_RUN'

/** Why a change needs another run; `CHANGE_REASONS` says it in words. */
export type RestartReason =
  | 'COMPONENT_ADDED'
  | 'COMPONENT_REMOVED'
  | 'COMPONENT_REPLACED'
  | 'CONNECTIONS'
  | 'PACKET_SIZE'
  | 'FIXED'
  | 'THREAD'
  | 'LIFECYCLE'

/** The reasons in words. */
export const CHANGE_REASONS: Readonly<Record<LiveReason | RestartReason, string>> = {
  LIVE: 'the component takes it over while it runs',
  BESIDE_THE_RUN: 'nothing in the run depends on it',
  COMPONENT_ADDED: 'a component cannot be added to a graph that runs',
  COMPONENT_REMOVED: 'a component cannot be taken out of a graph that runs',
  COMPONENT_REPLACED: 'a component cannot become another one while it runs',
  CONNECTIONS: 'the connections of a graph that runs stay as they are',
  PACKET_SIZE: 'the run has no room for packets that large',
  FIXED: 'it is read once, when the run begins',
  THREAD: 'the thread of a run is set up when the run begins',
  LIFECYCLE: 'a run ends with the commands that it began with',
}

export interface Change<R = LiveReason | RestartReason> {
  /** JSON pointer into the configuration, keys in snake_case. */
  readonly pointer: string
  readonly reason: R
}

/** Both empty: the configurations are the same. */
export interface Changes {
  /** What a run takes over while it runs. */
  live: Change<LiveReason>[]
  /** What needs another run. */
  restart: Change<RestartReason>[]
}

/** What stands around the components; what is not named here needs another run. */
const AROUND: Readonly<Record<string, { pointer: string; reason: LiveReason | RestartReason }>> = {
  meta: { pointer: '/meta', reason: 'BESIDE_THE_RUN' },
  variables: { pointer: '/variables', reason: 'BESIDE_THE_RUN' },
  kpis: { pointer: '/kpis', reason: 'BESIDE_THE_RUN' },
  logFilters: { pointer: '/engine_config/log_filters', reason: 'BESIDE_THE_RUN' },
  shmConfig: { pointer: '/engine_config/shm_config', reason: 'FIXED' },
  lifecycle: { pointer: '/engine_config/lifecycle_handler', reason: 'LIFECYCLE' },
}

function isLive(change: Change): change is Change<LiveReason> {
  return change.reason === 'LIVE' || change.reason === 'BESIDE_THE_RUN'
}

/** The changes from `old` to `next`, sorted by what they ask of a run of `old`. */
export function diffConfig(old: PipelineConfig, next: PipelineConfig, available: Registry): Changes {
  const changes = [...aroundComponents(old, next), ...amongComponents(old, next, available)]
  return {
    live: changes.filter(isLive),
    restart: changes.filter((change): change is Change<RestartReason> => !isLive(change)),
  }
}

/** The keys of either, each once. */
function keysOf(old: object, next: object): Set<string> {
  return new Set([...Object.keys(old), ...Object.keys(next)])
}

function aroundComponents(old: PipelineConfig, next: PipelineConfig): Change[] {
  return [...keysOf(old, next)].flatMap((key): Change[] => {
    const [before, after] = [old, next].map((config) => config[key as keyof PipelineConfig])
    if (key === 'version' || key === 'components' || isDeepStrictEqual(before, after)) return []
    return [AROUND[key] ?? { pointer: `/engine_config/${key}`, reason: 'FIXED' }]
  })
}

/** What is fixed in a live list, of all entries, as text to compare. */
function fixedIn({ fixed = [] }: AnyComponent, field: string, { config }: ComponentConfig): string {
  const members = fixed.filter((path) => path.startsWith(`${field}[].`)).map((path) => path.slice(field.length + 3))
  const entries = members.length > 0 ? (config[field] as Record<string, unknown>[]) : []
  return JSON.stringify(entries.map((entry) => members.map((member) => entry[member])))
}

function amongComponents(old: PipelineConfig, next: PipelineConfig, available: Registry): Change[] {
  const room = largestPacket(old.components, available)
  return [...keysOf(old.components, next.components)].flatMap((name): Change[] => {
    const pointer = pointerOf(['engine_config', 'pipeline', name])
    const before = Object.hasOwn(old.components, name) ? old.components[name] : undefined
    const after = Object.hasOwn(next.components, name) ? next.components[name] : undefined
    if (before === undefined) return [{ pointer, reason: 'COMPONENT_ADDED' }]
    if (after === undefined) return [{ pointer, reason: 'COMPONENT_REMOVED' }]
    if (before.key !== after.key) return [{ pointer, reason: 'COMPONENT_REPLACED' }]
    const definition = available.get(after.key) as AnyComponent
    const portsIn = (field: string, { config }: ComponentConfig): Port[] =>
      portsOf(name, definition.config, config).filter(({ steps }) => steps[0] === field)
    const outgrows = (definition.mtu?.(after.config) ?? 0) > room
    return [...keysOf(before.config, after.config)]
      .filter((field) => !isDeepStrictEqual(before.config[field], after.config[field]))
      .map((field): Change => {
        const at = `${pointer}/${after.key}/${field}`
        if (!isDeepStrictEqual(portsIn(field, before), portsIn(field, after)))
          return { pointer: at, reason: 'CONNECTIONS' }
        if (
          !definition.live?.includes(field) ||
          fixedIn(definition, field, before) !== fixedIn(definition, field, after)
        )
          return { pointer: at, reason: 'FIXED' }
        return { pointer: at, reason: outgrows ? 'PACKET_SIZE' : 'LIVE' }
      })
  })
}
