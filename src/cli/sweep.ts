/** What a sweep is to run: all combinations of values, checked, each run with a seed of its own. */
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { Problem } from '../text/pointer.ts'
import { pointerOf } from '../text/pointer.ts'
import { checkPipeline } from './checked-pipeline.ts'
import { Failure, UsageFailure } from './failure.ts'
import { nameOf, type Source } from './problems.ts'
import { figuresOf, kpiAt, type Wanted, withKpis } from './sweep-figures.ts'
import type { Sweep } from './sweep-report.ts'
import {
  assignmentsOf,
  type Combination,
  combinationsOf,
  readSettings,
  type Setting,
  withValues,
} from './sweep-settings.ts'
import { MAX_RUNS, MAX_SEED } from './sweep-values.ts'

/** Problems of combinations, and failures of runs, that are told one by one. */
export const MAX_TOLD = 10

export interface SweepOptions {
  /** `component.field=value,value` */
  readonly set: readonly string[]
  readonly wanted: Wanted
  /** Seeds a combination. */
  readonly repeat: number
  /** That of the first run; each after it has one more. */
  readonly seed: number
}

/** A sweep that can be run: each combination has its checked configuration. */
export interface SweepPlan extends Sweep {
  readonly combinations: readonly { readonly values: Combination; readonly config: PipelineConfig }[]
  readonly seed: number
}

/** What is wrong with a combination, told by the `--set` that it is about where it is about one. */
function complaint({ pointer, message }: Problem, settings: readonly Setting[], combination: Combination): string {
  const assignments = assignmentsOf(settings, combination)
  const at = settings.findIndex(({ places }) =>
    places.map(pointerOf).some((place) => pointer === place || pointer.startsWith(`${place}/`)),
  )
  const setting = settings[at]
  if (setting !== undefined) {
    const isNamed = setting.isVariable && setting.places.some((steps) => pointerOf(steps) === pointer)
    return `--set ${assignments[at]}: ${isNamed ? '' : `${setting.subject}: `}${message}`
  }
  return assignments.length === 0
    ? `${pointer || '/'}: ${message}`
    : `with ${assignments.join(' ')}: ${pointer || '/'}: ${message}`
}

/** Reads what is to be run; one failure tells all combinations that are no valid configurations. */
export function planSweep(source: Source, { set, wanted, repeat, seed }: SweepOptions): SweepPlan {
  const own: unknown = JSON.parse(source.text)
  const json = withKpis(own, wanted.kpis)
  const settings = readSettings(set, json)
  const count = settings.reduce((product, { values }) => product * values.length, repeat)
  if (count > MAX_RUNS) throw new UsageFailure(`these are ${count} runs, more than ${MAX_RUNS}: take fewer values`)
  if (seed + count - 1 > MAX_SEED) {
    throw new UsageFailure(`--seed ${seed}: ${count} runs have seeds from there on, and ${MAX_SEED} is the greatest`)
  }
  const complaints = new Set<string>()
  const combinations = combinationsOf(settings).flatMap((values) => {
    const text = JSON.stringify(withValues(json, settings, values))
    const { config, problems } = checkPipeline({ file: source.file, text })
    for (const problem of problems) {
      const kpi = kpiAt(problem.pointer, own, wanted.kpis)
      complaints.add(kpi === undefined ? complaint(problem, settings, values) : `--kpi '${kpi}': ${problem.message}`)
    }
    return config === null ? [] : [{ values, config }]
  })
  if (complaints.size > 0) {
    const told = [...complaints].slice(0, MAX_TOLD)
    const rest = complaints.size - told.length
    const more = rest > 0 ? [`and ${rest} more`] : []
    throw new Failure([`${nameOf(source.file)}: nothing was run`, ...told, ...more].join('\n'))
  }
  const { config } = combinations[0] as SweepPlan['combinations'][number]
  return { settings, combinations, repeat, seed, figures: figuresOf(config, wanted) }
}

/** The combination and configuration of the run that has `seed`. */
export function runOf({ combinations, repeat, seed: first }: SweepPlan, seed: number) {
  const found = combinations[Math.floor((seed - first) / repeat)]
  if (seed < first || found === undefined) {
    const last = first + combinations.length * repeat - 1
    throw new UsageFailure(`--replay ${seed}: the runs of this sweep have the seeds ${first} to ${last}`)
  }
  return found
}
