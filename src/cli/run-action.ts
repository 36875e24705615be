/** What `penstock run` does: one pipeline in the foreground, no server, live rates and a summary. */
import { randomUUID } from 'node:crypto'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { LogLevel } from '../dataplane/engine/log.ts'
import { byComponent } from '../dataplane/engine/metrics.ts'
import { cpuProblem, isLastLine, type LogLine, type RunEnd, type RunHandle } from '../dataplane/engine/run.ts'
import type { AeadBackendName } from '../dataplane/native/cipher-calls.ts'
import { LineSelection } from '../telemetry/log-filters.ts'
import { MetricsFile } from '../telemetry/metrics-file.ts'
import { ProcessMeter } from '../telemetry/process-meter.ts'
import { Sampler } from '../telemetry/sampler.ts'
import { messageOf } from '../text/error-message.ts'
import { loadPipeline } from './checked-pipeline.ts'
import { spanText } from './durations.ts'
import { Failure, Interrupted } from './failure.ts'
import { kpisLine, kpisTable } from './kpis-table.ts'
import { metricsTable, rateOf } from './metrics-table.ts'
import { type Format, interruption, untilNextSecond } from './options.ts'
import { RatesReader, ratesLine, ratesTable } from './rates.ts'
import { LiveRegion, named, paint, print, printJson } from './terminal.ts'

export interface RunCommandOptions {
  duration?: number
  cpu?: number
  performanceMode?: boolean
  logLevel: LogLevel
  cryptoBackend: AeadBackendName | 'auto'
  output: Format
  all?: boolean
}

const LEVEL_COLOURS = { STATE: 'dim', DEBUG: 'dim', INFO: 'dim', WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const

const now = (): number => performance.timeOrigin + performance.now()

/** Redraws rates, and the KPIs that `sampler` has evaluated, every second until the run has ended, or has said so (`over`). */
async function watch(
  handle: RunHandle,
  over: AbortController,
  sampler: Sampler,
  live: LiveRegion,
  keys: Map<string, string>,
  quiet: boolean,
): Promise<RunEnd> {
  handle.ended.then(() => over.abort())
  const meter = new RatesReader(handle.region, now())
  sampler.read(now())
  const started = performance.now()
  for (;;) {
    await untilNextSecond(started, over.signal)
    if (over.signal.aborted) break
    const at = performance.now()
    const { components, total } = meter.read(now())
    const { kpis } = sampler.read(now())
    const rates = `${paint(spanText(Math.round((at - started) / 1000)), 'bold')}  ${ratesLine(total, components)}`
    if (live.available) {
      const figures = kpis.length > 0 ? `${kpisTable(kpis)}\n\n` : ''
      live.draw(`${rates}\n${figures}${ratesTable(components, keys)}`)
    } else if (!quiet) print(kpis.length > 0 ? `${rates}\n${' '.repeat(4)}${kpisLine(kpis)}` : rates)
  }
  live.clear()
  return await handle.ended
}

/** The file that the configuration has metrics shared in, made anew. */
function metricsFile({ shmConfig }: PipelineConfig): MetricsFile | undefined {
  if (shmConfig === undefined) return undefined
  const { file_path: path } = shmConfig
  const failed = (error: Error) => process.stderr.write(`metrics are not written to ${path}: ${messageOf(error)}\n`)
  try {
    return new MetricsFile(shmConfig, failed)
  } catch (error) {
    throw new Failure(`the metrics cannot be shared in ${path}: ${messageOf(error)}`)
  }
}

export async function run(file: string, options: RunCommandOptions): Promise<void> {
  const config = await loadPipeline(file)
  const json = options.output === 'json'
  const live = new LiveRegion(json ? process.stderr : process.stdout)
  const filtered = new AbortController()
  const over = new AbortController()
  const selection = new LineSelection({
    level: options.logLevel,
    filters: config.logFilters,
    onStop: () => filtered.abort(),
    onLost: (path, lines, { message }) => process.stderr.write(`${lines} log lines for ${path} are lost: ${message}\n`),
  })
  const onLog = (lines: LogLine[]) => {
    live.clear()
    // Its end is known a moment later than told: rates in between would stand below that line.
    if (lines.some(isLastLine)) over.abort()
    for (const { timestamp, level, component, message } of selection.select(lines)) {
      const clock = new Date(timestamp).toISOString().slice(11)
      const label = paint(level.padEnd(5), LEVEL_COLOURS[level], process.stderr)
      process.stderr.write(`${clock} ${label} ${named(component ? `${component}: ${message}` : message)}\n`)
    }
  }
  const [{ openRunPool }, { useAeadBackend }] = await Promise.all([
    import('../dataplane/product.ts'),
    import('../dataplane/native/aead-backends.ts'),
  ])
  try {
    useAeadBackend(options.cryptoBackend, '--crypto-backend')
  } catch (error) {
    throw new Failure(messageOf(error))
  }
  const pool = openRunPool({ warm: 1, maximum: 1 })
  let shared: MetricsFile | undefined
  try {
    if (options.cpu !== undefined && !pool.cpus.includes(options.cpu)) {
      throw new Failure(cpuProblem(options.cpu, pool.cpus))
    }
    shared = metricsFile(config)
    const stop = interruption()
    const handle = pool.start(
      {
        runId: randomUUID(),
        config,
        ...(options.cpu === undefined ? {} : { cpu: options.cpu }),
        performanceMode: options.performanceMode ?? false,
        // A filter may be about lines below the level.
        level: config.logFilters.length > 0 ? 'STATE' : options.logLevel,
      },
      onLog,
    )
    shared?.follow(handle.region)
    for (const signal of [stop, filtered.signal]) {
      signal.addEventListener('abort', () => handle.stop())
      if (signal.aborted) handle.stop()
    }
    try {
      await handle.running
    } catch (error) {
      if (stop.aborted) throw new Interrupted('interrupted: the pipeline did not start', stop.reason)
      throw new Failure(named(`the pipeline did not start: ${messageOf(error)}`))
    }
    const started = performance.now()
    const timer = options.duration === undefined ? null : setTimeout(() => handle.stop(), options.duration)
    const keys = new Map(Object.entries(config.components).map(([name, { key }]) => [name, key]))
    const sampler = new Sampler(handle.region, { kpis: config.kpis, process: new ProcessMeter() })
    const end = await watch(handle, over, sampler, live, keys, json)
    const { kpis } = sampler.readLast(now())
    if (timer) clearTimeout(timer)
    const seconds = (performance.now() - started) / 1000
    const rows = new RatesReader(handle.region, now()).values().map(({ entry, value }) => {
      return { ...entry, value, rate: value > 0 ? rateOf(entry, value, seconds) : undefined }
    })
    if (json) {
      const metrics = byComponent(rows)
      const evaluated = config.kpis === undefined ? {} : { kpis }
      printJson({ outcome: end.outcome, error: end.error, seconds, ...evaluated, metrics })
    } else {
      if (kpis.length > 0) print(`${kpisTable(kpis)}\n`)
      print(`${metricsTable(rows, keys, options)}\n\n${end.outcome.toLowerCase()} after ${spanText(seconds)}`)
    }
    if (end.outcome === 'FAILED') throw new Failure(named(`the run failed: ${end.error}`))
  } finally {
    await Promise.all([selection.written(), shared?.end()])
    await pool.close()
  }
}
