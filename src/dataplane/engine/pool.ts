/** Runs in worker threads, so many at once and so many starting at once. */
import { messageOf } from '../../text/error-message.ts'
import { native } from '../native/native.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { HostNames } from './host-names.ts'
import { NetworkRegistry } from './network-registry.ts'
import { PooledRun } from './pooled-run.ts'
import { cpuProblem, type LogLine, type RunOptions, type RunPool } from './run.ts'
import { type ThreadSource, Threads } from './threads.ts'

export interface RunPoolOptions {
  /** Threads kept ready for the next runs, beside those that have one (default 2). */
  warm?: number
  /** What a thread runs once before it counts as ready, so that what every run does is compiled; ends by itself. Absent: none is kept ready. */
  rehearsal?: PipelineConfig
  /** Most runs at once (default 256). */
  maximum?: number
  /** Told when a thread dies that no run is hurt by: a spare one, most often while it starts. */
  onError?: (error: Error) => void
  /** The components of the runs. */
  registry: Registry
  /** Looks up the host names in the configurations of the runs; absent: the system does. */
  hostNames?: HostNames
  /** JavaScript module that each thread loads: its default export is `threadTask` of the same components. */
  thread: string
}

/** Opens the pool. The threads kept ready are started at once, so that the first runs find them. */
export function createRunPool({
  warm = 2,
  rehearsal,
  maximum = 256,
  registry,
  hostNames = new HostNames(),
  thread,
  onError = (error) => process.emitWarning(error),
}: RunPoolOptions): RunPool {
  const cpus = native.affinity()
  const networks = new NetworkRegistry()
  const runs = new Set<PooledRun>()
  const begin = (
    source: ThreadSource,
    turn: () => Promise<void>,
    options: RunOptions,
    onLog: (lines: LogLine[]) => void,
  ) => {
    const pins = options.cpu === undefined ? [] : [options.cpu]
    const run = new PooledRun(source, turn, options, pins, { registry, hostNames, networks }, onLog)
    runs.add(run)
    run.ended.then(() => runs.delete(run))
    return run
  }
  const rehearse = async (source: ThreadSource): Promise<boolean> => {
    const options = {
      runId: 'rehearsal',
      config: rehearsal as PipelineConfig,
      performanceMode: false,
      level: 'FATAL' as const,
    }
    try {
      const { outcome, error } = await begin(
        source,
        async () => {},
        options,
        () => {},
      ).ended
      if (outcome !== 'FAILED') return true
      throw new Error(error)
    } catch (error) {
      onError(new Error(`no thread could be made ready for the next run: ${messageOf(error)}`, { cause: error }))
      return false
    }
  }
  const threads = new Threads({ thread, ready: rehearsal === undefined ? 0 : warm, maximum, rehearse, onError })
  // Threads that load at the same time take as much longer each: a crowd of starts goes a few at a time.
  const launches = Math.max(2, cpus.length)
  const waiting: (() => void)[] = []
  let launching = 0
  const launch = () => {
    while (launching < launches && waiting.length > 0) {
      launching++
      waiting.shift()?.()
    }
  }
  return {
    cpus,
    start(options, onLog) {
      if (options.cpu !== undefined && !cpus.includes(options.cpu)) {
        throw new RangeError(cpuProblem(options.cpu, cpus))
      }
      const turn = () =>
        new Promise<void>((resolve) => {
          run.running.then(launched, launched)
          waiting.push(resolve)
          launch()
        })
      const launched = () => {
        launching--
        launch()
      }
      const run = begin(threads, turn, options, onLog)
      return run
    },
    async close() {
      threads.stopPreparing()
      const ends = [...runs].map((run) => run.ended)
      for (const run of runs) run.stop()
      await Promise.all(ends)
      await threads.close()
    },
  }
}
