/** What a run does per second, from two samples of its telemetry: packets by what became of them, bits, and drops by reason. */
import { SampleSpacing, type TelemetrySample } from '@penstock/client'
import { uptimeMs } from '../contract/clock.ts'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { layoutOf } from '../dataplane/engine/layout.ts'
import type { PacketRole } from '../dataplane/engine/metrics.ts'
import { ENGINE_PATH } from '../dataplane/engine/own-metrics.ts'
import { numberOf } from './telemetry-sample.ts'

/** Why packets are lost: an error or a limit, a full queue that is emulated, emulated loss. */
export type DropReason = Extract<PacketRole, 'drop' | 'overflow' | 'intended'>

export interface Drop {
  component: string
  metric: string
  reason: DropReason
  /** Packets per second; absent before there are two samples. */
  perSecond?: number
  /** Packets since the run began. */
  total: number
}

export interface Figures {
  /** Share of its CPU that the run's loop takes, 0 to 1. */
  busy?: number
  /** Packets that begin in the run, per second; absent before there are two samples, as the next three. */
  enteredPerSecond?: number
  /** Packets that end as they should. */
  finishedPerSecond?: number
  droppedPerSecond?: number
  /** Bits on the busiest connection. */
  bitsPerSecond?: number
  /** Packets in the run now. */
  held: number
  /** What has lost any, in the order of the configuration. */
  drops: Drop[]
}

interface Counter {
  readonly path: string
  readonly name: string
}

type Counts = (counter: Counter) => number

/** Reads the samples of one run, whose configuration tells what its counters are about. */
export class RunMeter {
  readonly #byRole = new Map<PacketRole, Counter[]>()
  readonly #bytes: Counter[] = []
  readonly #spacing = new SampleSpacing()
  #last: TelemetrySample | undefined

  /** Of a configuration that this version does not take there are no figures but `busy`. */
  constructor(jsonConfig: string) {
    const { config } = checkPipelineConfig(jsonConfig, components)
    if (config === null) return
    for (const { path, name, role, port, unit } of layoutOf(config, components).metrics.entries) {
      if (role !== undefined) this.#byRole.set(role, [...(this.#byRole.get(role) ?? []), { path, name }])
      else if (port !== undefined && unit === 'bytes') this.#bytes.push({ path, name })
    }
  }

  /** Takes the next sample; gives what it and the one before come to. */
  take(sample: TelemetrySample): Figures {
    const counts = countsOf(sample)
    const before = this.#last && countsOf(this.#last)
    const seconds = this.#spacing.next(sample.timestamp, uptimeMs())
    this.#last = sample
    const rate = (counter: Counter): number | undefined =>
      before === undefined || seconds === undefined ? undefined : (counts(counter) - before(counter)) / seconds
    const figures: Figures = {
      held: this.#of('held').reduce((sum, counter) => sum + (counts(counter) || 0), 0),
      drops: (['drop', 'overflow', 'intended'] as const).flatMap((reason) => this.#drops(reason, counts, rate)),
    }
    const busy = counts({ path: ENGINE_PATH, name: 'busy_share' })
    if (Number.isFinite(busy)) figures.busy = busy
    if (before === undefined || seconds === undefined) return figures
    const sum = (role: PacketRole) => this.#of(role).reduce((total, counter) => total + (rate(counter) || 0), 0)
    return {
      ...figures,
      enteredPerSecond: sum('created'),
      finishedPerSecond: sum('consumed'),
      droppedPerSecond: sum('drop') + sum('overflow') + sum('intended'),
      bitsPerSecond: Math.max(0, ...this.#bytes.map((counter) => (rate(counter) || 0) * 8)),
    }
  }

  #of(role: PacketRole): readonly Counter[] {
    return this.#byRole.get(role) ?? []
  }

  #drops(reason: DropReason, counts: Counts, rate: (counter: Counter) => number | undefined): Drop[] {
    return this.#of(reason).flatMap((counter) => {
      const total = counts(counter)
      const perSecond = rate(counter)
      if (!(total > 0)) return []
      const drop = { component: counter.path, metric: counter.name, reason, total }
      return [perSecond === undefined ? drop : { ...drop, perSecond }]
    })
  }
}

/** NaN for what the sample does not have. */
function countsOf({ metricCollections }: TelemetrySample): Counts {
  const collections = new Map(metricCollections.map(({ path, metrics }) => [path, metrics]))
  return ({ path, name }) => {
    const metric = collections.get(path)?.[name]
    return metric === undefined ? Number.NaN : Number(numberOf(metric))
  }
}
