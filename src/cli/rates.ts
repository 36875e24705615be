/** Rates of a run between two readings of its metrics region: per component, and over the whole run by packet role. */
import { type MetricEntry, type PacketRole, RegionReader } from '../dataplane/engine/metrics.ts'
import { timeOf } from '../telemetry/sampler.ts'
import { named, number, scaled, scaledWith, table } from './terminal.ts'

const ROLES: readonly PacketRole[] = ['created', 'consumed', 'drop', 'overflow', 'intended', 'held']

/** What a component did in the last interval, per second; `held` is an amount. */
export interface ComponentRates {
  path: string
  inPackets: number
  inBits: number
  outPackets: number
  outBits: number
  roles: Record<PacketRole, number>
}

interface Rates {
  components: ComponentRates[]
  total: Record<PacketRole, number>
}

type Group = { path: string; sums: Map<string, number[]> }

/** Reads a region again and again. */
export class RatesReader {
  private readonly reader: RegionReader
  private readonly groups: Group[] = []
  private before: Float64Array
  /** What time those are of, ms since the epoch. */
  private beforeTime: number
  private last: Rates | undefined

  /** `now` in milliseconds since the epoch, on the run's clock. */
  constructor(region: SharedArrayBuffer, now: number) {
    this.reader = new RegionReader(region)
    const snapshot = this.reader.snapshot() ?? this.reader.blank
    this.before = snapshot.values
    this.beforeTime = timeOf(snapshot, now)
    const byPath = new Map<string, Group>()
    for (const entry of this.reader.entries) {
      const sums = RatesReader.sumsOf(entry)
      if (sums.length === 0) continue
      let group = byPath.get(entry.path)
      if (!group) {
        group = { path: entry.path, sums: new Map() }
        byPath.set(entry.path, group)
        this.groups.push(group)
      }
      for (const sum of sums) group.sums.set(sum, [...(group.sums.get(sum) ?? []), entry.index])
    }
  }

  private static sumsOf(entry: MetricEntry): string[] {
    if (entry.role) return [entry.role]
    return entry.port === undefined ? [] : [`${entry.port.side}-${entry.unit}`]
  }

  /**
   * Rates since the last call; `now` as for the constructor. When the numbers cannot be read whole, or no time has passed, those of the last call again; the
   * next one makes up for it.
   */
  read(now: number): Rates {
    const snapshot = this.reader.snapshot()
    if (snapshot === undefined && this.last !== undefined) return this.last
    const { before } = this
    const values = snapshot?.values ?? before
    const time = snapshot === undefined ? this.beforeTime : Math.max(this.beforeTime, timeOf(snapshot, now))
    const elapsed = (time - this.beforeTime) / 1000
    if (elapsed === 0 && this.last !== undefined) return this.last
    this.before = values
    this.beforeTime = time
    const total = Object.fromEntries(ROLES.map((role) => [role, 0])) as Record<PacketRole, number>
    const components = this.groups.map(({ path, sums }) => {
      const amount = (name: string): number => (sums.get(name) ?? []).reduce((sum, index) => sum + values[index], 0)
      const rate = (name: string): number => {
        const change = (sums.get(name) ?? []).reduce((sum, index) => sum + values[index] - before[index], 0)
        return change === 0 ? 0 : change / elapsed
      }
      const roles = { ...total }
      for (const role of ROLES) {
        roles[role] = role === 'held' ? amount(role) : rate(role)
        total[role] += roles[role]
      }
      return {
        path,
        inPackets: rate('input-packets'),
        inBits: rate('input-bytes') * 8,
        outPackets: rate('output-packets'),
        outBits: rate('output-bytes') * 8,
        roles,
      }
    })
    this.last = { components, total }
    return this.last
  }

  /** All numbers now; where they cannot be read whole, as they were at the last call of `read`. */
  values(): { entry: MetricEntry; value: number }[] {
    const { values } = this.reader.snapshot() ?? { values: this.before }
    return this.reader.entries.map((entry) => ({ entry, value: values[entry.index] }))
  }
}

/** The live table: a row per component. */
export function ratesTable(components: readonly ComponentRates[], keys: ReadonlyMap<string, string>): string {
  const right = { align: 'right' } as const
  return table(
    [
      { title: 'COMPONENT' },
      { title: 'KIND' },
      { title: 'IN PKT/S', ...right },
      { title: 'IN BIT/S', ...right },
      { title: 'OUT PKT/S', ...right },
      { title: 'OUT BIT/S', ...right },
      { title: 'DROPS/S', ...right },
      { title: 'QUEUE FULL/S', ...right },
      { title: 'EMULATED/S', ...right },
      { title: 'HELD', ...right },
    ],
    components.map(({ path, inPackets, inBits, outPackets, outBits, roles }) => [
      named(path),
      keys.get(path) ?? '',
      ...[inPackets, inBits, outPackets, outBits, roles.drop, roles.overflow, roles.intended].map((value) =>
        value === 0 ? '·' : scaled(value),
      ),
      roles.held === 0 ? '·' : number(roles.held),
    ]),
  )
}

/** The same in one line for logs. */
export function ratesLine(total: Record<PacketRole, number>, components: readonly ComponentRates[]): string {
  const bits = Math.max(0, ...components.map(({ inBits, outBits }) => Math.max(inBits, outBits)))
  return (
    `entered ${scaled(total.created)}/s  finished ${scaled(total.consumed)}/s  dropped ${scaled(total.drop)}/s  ` +
    `queue full ${scaled(total.overflow)}/s  emulated loss ${scaled(total.intended)}/s  held ${number(total.held)}  busiest ${scaledWith(bits, 'bit/s')}`
  )
}
