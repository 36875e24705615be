/** `penstock pipelines telemetry`: the metrics of a run, as a table that is redrawn or a JSON object a line, summed up once it has ended. */
import {
  type TelemetryOptions as ApiOptions,
  type Client,
  PenstockError,
  type Run,
  SampleSpacing,
  type TelemetrySample,
} from '@penstock/client'
import { uptimeMs } from '../contract/clock.ts'
import type { Kpi } from '../contract/types.ts'
import { suggestion } from '../text/names.ts'
import { spanText } from './durations.ts'
import { Failure } from './failure.ts'
import { printNextRun } from './follow.ts'
import { kpisTable } from './kpis-table.ts'
import { metricsTable } from './metrics-table.ts'
import { collect, type Format, interruption, waitingTime, whole, withAllMetrics } from './options.ts'
import type { AddVerb } from './pipelines-options.ts'
import { ComingRuns, isDeleted, meantPipeline, meantRun, recordOf } from './runs.ts'
import { unlessAborted, untilAborted } from './streams.ts'
import { type TargetOptions, targetOf } from './target.ts'
import { metricsOf, rowsOf, secondsOf } from './telemetry-sample.ts'
import { LiveRegion, named, paint, print, printDataLine } from './terminal.ts'

interface TelemetryOptions {
  output: Format
  /** In tables, places that nobody has too. */
  all?: boolean
  /** End after so many samples. */
  count?: number
  /** Only these; none: all. */
  components: readonly string[]
  /** Only these of them, by name; absent: all. */
  metric?: readonly string[]
  /** Milliseconds from one sample to the next; absent: as often as the node samples. */
  interval?: number
}

/** What the node is to send; undefined: all of every sample. */
function asked({ interval: intervalMs, metric: metrics }: TelemetryOptions): ApiOptions | undefined {
  if (intervalMs === undefined && metrics === undefined) return undefined
  return { ...(intervalMs !== undefined && { intervalMs }), ...(metrics !== undefined && { metrics: [...metrics] }) }
}

/** The chosen components; a node of an older release sends all metrics of them. */
function only(sample: TelemetrySample, { components, metric: names }: TelemetryOptions): TelemetrySample {
  const collections = sample.metricCollections
    .filter(({ path }) => components.length === 0 || components.includes(path))
    .map(({ path, metrics }) => ({
      path,
      metrics: Object.fromEntries(Object.entries(metrics).filter(([name]) => names?.includes(name) ?? true)),
    }))
    .filter(({ metrics }) => names === undefined || Object.keys(metrics).length > 0)
  return { ...sample, metricCollections: collections }
}

/** Fails on what was asked for and no sample of the run will have; `sample` is as the node sent it. */
function refuseAbsent(sample: TelemetrySample, { components, metric: names }: TelemetryOptions): void {
  const collections = sample.metricCollections
  const chosen = components.length === 0 ? collections : collections.filter(({ path }) => components.includes(path))
  // Asked for metrics, the node leaves out components that have none of them.
  const who = components.length === 0 ? 'the run' : components.map((name) => `"${name}"`).join(', ')
  for (const name of names ?? []) {
    if (!chosen.some(({ metrics }) => Object.hasOwn(metrics, name))) throw new Failure(`${who} has no metric "${name}"`)
  }
  const without = names === undefined ? undefined : components.find((name) => !chosen.some(({ path }) => path === name))
  if (without !== undefined)
    throw new Failure(`"${without}" has no metric ${names?.map((name) => `"${name}"`).join(', ')}`)
  if (names !== undefined) return
  const paths = collections.map(({ path }) => path)
  for (const name of components) {
    if (!paths.includes(name)) throw new Failure(named(`the run has no component "${name}".${suggestion(name, paths)}`))
  }
}

/** The table of its KPIs, with what sets it apart from what follows; nothing where it has none. */
function kpisText({ kpis }: TelemetrySample): string {
  // All of their numbers are finite: a KPI without one has an error.
  return kpis.length === 0 ? '' : `${kpisTable(kpis as Kpi[])}\n\n`
}

/** What a run that has ended came to. `sample`: its last one, when there is one. */
function printSummary(run: Run, sample: TelemetrySample | undefined, { output, all }: TelemetryOptions): void {
  const seconds = secondsOf(run)
  const { outcome = 'FAILED', error } = run
  if (output === 'json') {
    const { kpis = [] } = sample ?? {}
    printDataLine({ outcome, error, seconds, kpis, metrics: sample === undefined ? {} : metricsOf(sample) })
    return
  }
  const keys = new Map<string, string>()
  const rows = sample && rowsOf(sample, { seconds })
  const counts = rows === undefined ? 'no counts of this run are kept' : metricsTable(rows, keys, { all })
  print(
    `${sample === undefined ? '' : kpisText(sample)}${counts}\n\n${outcome.toLowerCase()} after ${spanText(seconds)}`,
  )
}

interface Followed {
  /** The record of a run that has ended, which was summed up: its last counts and how it ended. */
  ended?: Run
  /** So many were shown. */
  samples: number
}

/** Shows samples until the run has ended, `count` were seen, or `stop` aborts. */
async function followTelemetry(
  client: Client,
  { node, run }: { node: string; run: string },
  options: TelemetryOptions,
  stop: AbortSignal,
): Promise<Followed> {
  const { count } = options
  const live = new LiveRegion()
  const over = new AbortController()
  const signal = AbortSignal.any([stop, over.signal])
  const before = await unlessAborted(recordOf(client, node, run, { signal }), signal)
  // Of a run that has ended there is one sample, its last.
  const hasEnded = before?.state === 'ENDED'
  const spacing = new SampleSpacing()
  let last: TelemetrySample | undefined
  let seen = 0
  try {
    const samples = client.openTelemetryStream({ nodeId: node, runId: run, options: asked(options) }, { signal })
    for await (const given of untilAborted(samples, signal)) {
      if (seen++ === 0) refuseAbsent(given, options)
      const sample = only(given, options)
      const seconds = spacing.next(sample.timestamp, uptimeMs()) ?? 0
      const since = last && { sample: last, seconds }
      // The last one is not drawn over: it is shown whole, however few rows the terminal has.
      const isLast = seen === count
      if (isLast) live.clear()
      if (!hasEnded) show(sample, since, options, isLast ? undefined : live)
      last = sample
      if (isLast && !hasEnded) over.abort()
    }
  } catch (error) {
    if (!(error instanceof PenstockError && error.code === 'ABORTED')) throw error
    // The stream ends with the run: its record says how.
    const ended = await unlessAborted(recordOf(client, node, run, { signal }), signal)
    if (signal.aborted) return { samples: seen }
    if (ended?.state !== 'ENDED') throw error
    if (live.available) live.clear()
    printSummary(ended, last, options)
    return { ended, samples: seen }
  }
  live.keep()
  if (!signal.aborted) throw new Failure('the stream of telemetry ended')
  return { samples: seen }
}

function show(
  sample: TelemetrySample,
  since: { sample: TelemetrySample; seconds: number } | undefined,
  { output, all }: TelemetryOptions,
  live: LiveRegion | undefined,
): void {
  if (output === 'json') {
    printDataLine({ timestamp: sample.timestamp, kpis: sample.kpis, metrics: metricsOf(sample) })
    return
  }
  const metrics = metricsTable(rowsOf(sample, since), new Map(), { all })
  const text = `${paint(sample.timestamp ?? '', 'bold')}\n${kpisText(sample)}${metrics}`
  if (live?.available) live.draw(text)
  else print(`${text}\n`)
}

interface Options extends TargetOptions, Omit<TelemetryOptions, 'components'> {
  run?: string
  follow?: boolean
}

async function telemetry(given: string | undefined, components: string[], options: Options): Promise<void> {
  const { client, node } = await targetOf(options)
  const shown = { ...options, components }
  if (!options.follow) {
    const run = await meantRun(client, node, given, options.run)
    const { ended } = await followTelemetry(client, { node, run }, shown, interruption())
    if (ended?.outcome === 'FAILED') throw new Failure(`the run failed: ${named(ended.error ?? 'its log says more')}`)
    return
  }
  const { id: pipeline, currentRun } = await meantPipeline(client, node, given, options.run)
  const first = currentRun === undefined ? undefined : await meantRun(client, node, given, options.run)
  const stop = interruption()
  const coming = await ComingRuns.open(client, { node, pipeline, known: first === undefined ? [] : [first] }, stop)
  let { count } = options
  let run = first ?? (await coming.next())?.id
  while (run !== undefined && !stop.aborted) {
    const wanted = { ...shown, ...(count === undefined ? {} : { count }) }
    const followed = await followTelemetry(client, { node, run }, wanted, stop).catch(async (error: unknown) => {
      // With its pipeline the record of a run goes too: there is nothing left to sum up.
      if (await isDeleted(client, node, pipeline)) return undefined
      throw error
    })
    if (followed === undefined) return
    const { samples, ended } = followed
    if (count !== undefined) count -= samples
    if (ended === undefined || (count !== undefined && count <= 0)) return
    const next = await coming.next()
    if (next !== undefined) printNextRun(next, options.output)
    run = next?.id
  }
}

/** Adds the verb to `penstock pipelines`. */
export function addTelemetry(add: AddVerb): void {
  withAllMetrics(add('telemetry', 'show KPIs and metrics of a run, live, and a summary once it has ended'))
    .description(
      'Shows the KPIs and metrics of a run, live, and a summary once it has ended; exit code 1 when it failed. With --follow the next runs of ' +
        'its pipeline too, until Ctrl-C. With -o json a line for each sample, {timestamp, kpis, metrics}, and one for the end, ' +
        '{outcome, error, seconds, kpis, metrics}; {nextRun} between runs.',
    )
    .argument('[pipeline|run]', 'id or name of a pipeline, whose current run is meant, or id of a run')
    .argument('[component...]', 'only these components')
    .option('--run <id>', 'a run, instead of the current one of a pipeline')
    .option('--metric <name>', 'only metrics of this name; may be given several times', collect)
    .option(
      '--interval <duration>',
      'from one sample to the next; the node samples as often as its telemetry.interval says',
      waitingTime,
    )
    .option('-f, --follow', 'go on with the next run, after a restart too')
    .option('-c, --count <number>', 'end after this many samples', whole(1, 1_000_000_000))
    .action(telemetry)
}
