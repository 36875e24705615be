/** One configuration on the virtual clock, its KPIs evaluated: what `simulate` does in its own thread, and a sweep in many. */
import type { Kpi } from '../contract/types.ts'
import { components } from '../dataplane/components/registry.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { type Simulated, type SimulatedRun, simulateTogether } from '../dataplane/engine/simulate.ts'
import { ProcessMeter } from '../telemetry/process-meter.ts'
import { Sampler } from '../telemetry/sampler.ts'

/** Plain data: it crosses threads. */
export interface SimulationTask {
  readonly config: PipelineConfig
  /** Virtual time to run, nanoseconds. */
  readonly duration: number
  readonly seed: number
}

/** How it ended, its metrics, and its KPIs as they were last. */
export interface SimulationResult extends Omit<Simulated, 'seed'> {
  readonly kpis: Kpi[]
}

/** Evaluates the KPIs of a configuration once a second; `last` are those of the last time. */
export function kpiObserver({ kpis }: PipelineConfig): { last: Kpi[]; onSample?: SimulatedRun['onSample'] } {
  if (kpis === undefined) return { last: [] }
  let sampler: Sampler | undefined
  const observer = {
    last: [] as Kpi[],
    onSample: (region: SharedArrayBuffer, now: number) => {
      sampler ??= new Sampler(region, { kpis, process: new ProcessMeter() })
      observer.last = sampler.read(now / NS_PER_MS).kpis
    },
  }
  return observer
}

/** Runs it to its end, without its log. Throws what keeps it from starting. */
export function simulateOne({ config, duration, seed }: SimulationTask): SimulationResult {
  const observer = kpiObserver(config)
  const { onSample } = observer
  const [simulated] = simulateTogether([{ config, ...(onSample && { onSample }) }], {
    registry: components,
    duration,
    seed,
  }) as [Simulated]
  return { ...simulated, kpis: observer.last }
}
