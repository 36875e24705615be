/** `penstock simulate`: pipelines on the virtual clock, joined by their simulated networks, and their metrics when the time is up. */
import type { Command } from 'commander'
import type { Kpi } from '../contract/types.ts'
import { components } from '../dataplane/components/registry.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { layoutOf } from '../dataplane/engine/layout.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { type Simulated, type SimulatedRun, simulateTogether } from '../dataplane/engine/simulate.ts'
import { ProcessMeter } from '../telemetry/process-meter.ts'
import { Sampler } from '../telemetry/sampler.ts'
import { spanText } from './durations.ts'
import { Failure } from './failure.ts'
import { kpisTable } from './kpis-table.ts'
import { type MetricRow, metricsTable } from './metrics-table.ts'
import { duration, type Format, loadPipeline, whole, withAllMetrics, withOutput } from './options.ts'
import { print, printJson } from './terminal.ts'

interface SimulateCommandOptions {
  duration: number
  seed: number
  output: Format
  verbose?: boolean
  all?: boolean
}

/** Writes the lines that are to be seen to stderr, with the name of their run where there are several. */
function logger(run: string, verbose: boolean): (line: LogLine) => void {
  return ({ timestamp, level, component, message }) => {
    if (!verbose && level !== 'WARN' && level !== 'ERROR' && level !== 'FATAL') return
    const at = (timestamp / 1000).toFixed(6)
    process.stderr.write(`${at} ${level} ${run ? `${run}: ` : ''}${component ? `${component}: ` : ''}${message}\n`)
  }
}

function endingOf({ end }: Simulated): { outcome: string; error: string | undefined } {
  return { outcome: end.outcome === 'STOPPED' ? 'DURATION' : end.outcome, error: end.error }
}

/** Evaluates the KPIs of a configuration once a second; `last` are those of the last time. */
function kpiObserver({ kpis }: PipelineConfig): { last: Kpi[]; onSample?: SimulatedRun['onSample'] } {
  if (kpis === undefined) return { last: [] }
  let sampler: Sampler | undefined
  const observer = {
    last: [] as Kpi[],
    onSample: (region: SharedArrayBuffer, now: number) => {
      sampler ??= new Sampler(region, { kpis, process: new ProcessMeter() })
      observer.last = sampler.sample(now / NS_PER_MS).kpis
    },
  }
  return observer
}

function printTable(config: PipelineConfig, { end, metrics, elapsed }: Simulated, seed: number, all = false): void {
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

async function simulateFiles(files: string[], options: SimulateCommandOptions): Promise<void> {
  const { seed, output, verbose = false } = options
  const several = files.length > 1
  const runs: (SimulatedRun & { file: string; observer: { last: Kpi[] } })[] = []
  for (const file of files) {
    const config = await loadPipeline(file)
    const observer = kpiObserver(config)
    const { onSample } = observer
    runs.push({ file, config, observer, onLog: logger(several ? file : '', verbose), ...(onSample && { onSample }) })
  }
  const simulated = simulateTogether(runs, { registry: components, duration: options.duration * NS_PER_MS, seed })
  const told = simulated.map((run, i) => ({
    ...endingOf(run),
    elapsedMs: run.elapsed / NS_PER_MS,
    seed: seed + i,
    ...(runs[i].config.kpis === undefined ? {} : { kpis: runs[i].observer.last }),
    metrics: run.metrics,
  }))
  if (output !== 'json') {
    simulated.forEach((run, i) => {
      if (several) print(`${i > 0 ? '\n' : ''}${runs[i].file}\n`)
      const { last } = runs[i].observer
      if (last.length > 0) print(`${kpisTable(last)}\n`)
      printTable(runs[i].config, run, seed + i, options.all)
    })
  } else if (several) {
    printJson({ runs: told.map((run, i) => ({ file: runs[i].file, ...run })) })
  } else printJson(told[0])
  const failed = simulated.flatMap(({ end }, i) =>
    end.outcome === 'FAILED' ? [`${several ? `${runs[i].file}: ` : ''}${end.error}`] : [],
  )
  if (failed.length > 0) throw new Failure(`the simulation failed: ${failed.join('; ')}`)
}

export function addSimulate(program: Command): void {
  withAllMetrics(withOutput(program.command('simulate')))
    .summary('run pipelines on a virtual clock, without sockets')
    .description(
      'Runs a pipeline on a virtual clock, without sockets and with seeded randomness: minutes in milliseconds, ' +
        'and the same seed gives the same result. Several run at the same time, joined by their simulated networks; ' +
        'the seed of each is one more than that of the one before.',
    )
    .argument('<config.json...>', 'the configurations, - for standard input')
    .requiredOption('-d, --duration <time>', 'virtual time to run: 60s, 500ms, 5m', duration)
    .option('-s, --seed <number>', 'seeds every component that has no seed of its own', whole(0, 2 ** 31 - 1), 1)
    .option('-v, --verbose', 'show the whole log of the run on stderr, not only warnings and errors')
    .action(simulateFiles)
}
