/** Runs in worker threads, so many at once and so many starting at once. */
import { native } from '../native/native.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { HostNames } from './host-names.ts'
import { NetworkRegistry } from './network-registry.ts'
import { PooledRun } from './pooled-run.ts'
import { cpuProblem, type LogLine, type RunOptions, type RunPool } from './run.ts'
import { StartLine } from './start-line.ts'
import { type ThreadSource, Threads } from './threads.ts'

/** Most runs at once: each has a thread. */
const MAX_RUNS = 256

export interface RunPoolOptions {
  /** Threads kept ready for the next runs, beside those that have one (default 2). */
  warm?: number
  /** What a thread runs once before it counts as ready, so that what every run does is compiled; stopped as soon as it runs. Absent: none is kept ready. */
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
  maximum = MAX_RUNS,
  registry,
  hostNames = new HostNames(),
  thread,
  onError = (error) => process.emitWarning(error),
}: RunPoolOptions): RunPool {
  const cpus = native.affinity()
  const networks = new NetworkRegistry()
  const runs = new Set<PooledRun>()
  const rehearsals = new Set<PooledRun>()
  /** The keys of the last run's components: the next is likely to have the same. */
  let recent: readonly string[] = []
  const begin = (
    source: ThreadSource,
    wait: () => Promise<void>,
    options: RunOptions,
    onLog: (lines: LogLine[]) => void,
  ) => {
    const pins = options.cpu === undefined ? [] : [options.cpu]
    const run = new PooledRun(source, wait, options, pins, { registry, hostNames, networks }, onLog)
    runs.add(run)
    run.ended.then(() => runs.delete(run))
    return run
  }
  const rehearse = (source: ThreadSource) => {
    const options = {
      runId: 'rehearsal',
      config: rehearsal as PipelineConfig,
      performanceMode: false,
      level: 'FATAL' as const,
      preload: recent,
    }
    const nothing = () => {}
    const run = begin(source, async () => {}, options, nothing)
    rehearsals.add(run)
    run.ended.then(() => rehearsals.delete(run))
    run.running.then(() => run.stop(), nothing)
    return run
  }
  const threads = new Threads({ thread, ready: rehearsal === undefined ? 0 : warm, maximum, rehearse, onError })
  // One more than CPUs: each waits for the main thread by turns.
  const line = new StartLine(cpus.length + 1)
  /** Ids of runs whose places are for those that follow them. */
  const kept = new Set<string>()
  const full = () => {
    const left = new Set(kept)
    let staying = 0
    for (const run of runs) {
      if (run.isLeaving || rehearsals.has(run)) continue
      left.delete(run.id)
      staying++
    }
    return staying + left.size < maximum
      ? undefined
      : `all ${maximum} threads of this process have runs: stop others first`
  }
  return {
    cpus,
    usableCpus: () => native.usableCpus(),
    full,
    keep(runId) {
      kept.add(runId)
      return () => kept.delete(runId)
    },
    start(options, onLog) {
      if (options.follows !== undefined) kept.delete(options.follows)
      const problem = full()
      if (problem !== undefined) throw new RangeError(problem)
      if (options.cpu !== undefined && !cpus.includes(options.cpu)) {
        throw new RangeError(cpuProblem(options.cpu, cpus))
      }
      recent = [...new Set(Object.values(options.config.components).map(({ key }) => key))]
      // One that waits for its commands needs no CPU.
      const wait = () => line.join(Promise.race([run.built, run.running]), options.isAwaited ?? true)
      const run = begin(threads, wait, options, onLog)
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
