/** What `penstock simulate` does: pipelines on the virtual clock, joined by their simulated networks, and their metrics when the time is up. */
import { components } from '../dataplane/components/registry.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { layoutOf } from '../dataplane/engine/layout.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { type Simulated, simulateTogether } from '../dataplane/engine/simulate.ts'
import { loadPipeline, note, pipelineIn } from './checked-pipeline.ts'
import { spanText } from './durations.ts'
import { Failure, UsageFailure } from './failure.ts'
import { readInput } from './input.ts'
import { kpisTable } from './kpis-table.ts'
import { type MetricRow, metricsTable } from './metrics-table.ts'
import type { Format } from './options.ts'
import { nameOf } from './problems.ts'
import { kpiObserver } from './simulate-run.ts'
import { planSweep, runOf } from './sweep.ts'
import { valueText } from './sweep-settings.ts'
import { named, print, printJson } from './terminal.ts'

export interface SimulateCommandOptions {
  duration: number
  seed: number
  output: Format | 'csv'
  set?: string[]
  metric?: string[]
  kpi?: string[]
  repeat?: number
  replay?: number
  jobs?: number
  verbose?: boolean
  all?: boolean
}

/** Writes the lines that are to be seen to stderr, with the name of their run where there are several. */
function logger(run: string, verbose: boolean): (line: LogLine) => void {
  return ({ timestamp, level, component, message }) => {
    if (!verbose && level !== 'WARN' && level !== 'ERROR' && level !== 'FATAL') return
    const at = (timestamp / 1000).toFixed(6)
    const told = named(component ? `${component}: ${message}` : message)
    process.stderr.write(`${at} ${level} ${run ? `${run}: ` : ''}${told}\n`)
  }
}

function endingOf({ end }: Simulated): { outcome: string; error: string | undefined } {
  return { outcome: end.outcome === 'STOPPED' ? 'DURATION' : end.outcome, error: end.error }
}

function printTable(config: PipelineConfig, { end, metrics, elapsed, seed }: Simulated, all = false): void {
  const { entries } = layoutOf(config, components).metrics
  const rows: MetricRow[] = entries.flatMap((entry) => {
    const value = metrics[entry.path]?.[entry.name]
    return value === undefined ? [] : [{ ...entry, value }]
  })
  const keys = new Map(Object.entries(config.components).map(([name, { key }]) => [name, key]))
  print(metricsTable(rows, keys, { all }))
  if (end.outcome === 'FAILED') return
  if (!entries.some(({ path, name, unit }) => unit === 'packets' && (metrics[path]?.[name] ?? 0) > 0)) {
    print('\nNothing moved: in a simulation sockets hear each other only; put a traffic source into the pipeline.')
  }
  const how = end.outcome === 'COMPLETED' ? 'completed' : 'time was up'
  print(`\n${how} after ${spanText(elapsed / (NS_PER_MS * 1000))} of virtual time, seed ${seed}`)
}

/** A configuration, the file it is from, and what `--set` has changed of it. */
interface Given {
  readonly file: string
  readonly config: PipelineConfig
  readonly set?: Readonly<Record<string, unknown>>
}

function simulateThese(given: readonly Given[], options: SimulateCommandOptions, seed = options.seed): void {
  const { output, verbose = false } = options
  const several = given.length > 1
  const runs = given.map(({ file, config, set }) => {
    const observer = kpiObserver(config)
    const { onSample } = observer
    const onLog = logger(several ? file : '', verbose)
    return { file, config, set, observer, onLog, ...(several && { name: nameOf(file) }), ...(onSample && { onSample }) }
  })
  const simulated = simulateTogether(runs, { registry: components, duration: options.duration * NS_PER_MS, seed })
  const told = simulated.map((run, i) => ({
    ...endingOf(run),
    elapsedMs: run.elapsed / NS_PER_MS,
    seed: run.seed,
    ...(runs[i].set === undefined ? {} : { set: runs[i].set }),
    ...(runs[i].config.kpis === undefined ? {} : { kpis: runs[i].observer.last }),
    metrics: run.metrics,
  }))
  if (output !== 'json') {
    simulated.forEach((run, i) => {
      const { file, set } = runs[i]
      if (several) print(`${i > 0 ? '\n' : ''}${file}\n`)
      if (set !== undefined) {
        const assignments = Object.entries(set).map(([target, value]) => `${target}=${valueText(value)}`)
        print(`${assignments.join('  ')}\n`)
      }
      const { last } = runs[i].observer
      if (last.length > 0) print(`${kpisTable(last)}\n`)
      printTable(runs[i].config, run, options.all)
    })
  } else if (several) {
    printJson({ runs: told.map((run, i) => ({ file: runs[i].file, ...run })) })
  } else printJson(told[0])
  const failed = simulated.flatMap(({ end }, i) =>
    end.outcome === 'FAILED' ? [`${several ? `${runs[i].file}: ` : ''}${named(`${end.error}`)}`] : [],
  )
  if (failed.length > 0) throw new Failure(`the simulation failed: ${failed.join('; ')}`)
}

/** The configuration, once it is said that its metrics are not shared. */
function noteShared(config: PipelineConfig): PipelineConfig {
  if (config.shmConfig !== undefined) note('the file of shm_config is not written: only a run in real time writes it')
  return config
}

/** Runs what the options ask for: the files as they are, one with values set, or a sweep over values and seeds. */
export async function simulate(files: string[], options: SimulateCommandOptions): Promise<void> {
  const { set = [], metric = [], kpi = [], repeat, replay, output } = options
  const isPlain = set.length + metric.length + kpi.length === 0 && output !== 'csv'
  if (isPlain && repeat === undefined && replay === undefined) {
    const given: Given[] = []
    for (const file of files) given.push({ file, config: noteShared(await loadPipeline(file)) })
    simulateThese(given, options)
    return
  }
  const [file = '', more] = files
  if (more !== undefined) {
    throw new UsageFailure('--set, --metric, --kpi, --repeat, --replay and -o csv are for one file: give one only')
  }
  const source = { file, text: await readInput(file) }
  noteShared(pipelineIn(source))
  const plan = planSweep(source, {
    set,
    wanted: { metrics: metric, kpis: kpi },
    repeat: repeat ?? 1,
    seed: options.seed,
  })
  const isOne = metric.length + kpi.length === 0 && repeat === undefined && plan.combinations.length === 1
  if (replay === undefined && (output === 'csv' || !isOne)) {
    const { runSweep } = await import('./sweep-run.ts')
    await runSweep(plan, { duration: options.duration, jobs: options.jobs, output })
    return
  }
  if (output === 'csv') throw new UsageFailure('--replay shows all of a run: -o table or -o json')
  const seed = replay ?? options.seed
  const { values, config } = runOf(plan, seed)
  const chosen = Object.fromEntries(plan.settings.map(({ target }, i) => [target, values[i]]))
  simulateThese([{ file, config, ...(set.length > 0 && { set: chosen }) }], options, seed)
}
