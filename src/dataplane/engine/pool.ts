/** Runs in worker threads, so many at once and so many starting at once. */
import { native } from '../native/native.ts'
import type { Registry } from './component.ts'
import { HostNames } from './host-names.ts'
import { NetworkRegistry } from './network-registry.ts'
import { PooledRun } from './pooled-run.ts'
import { cpuProblem, type RunPool } from './run.ts'
import { Threads } from './threads.ts'

export interface RunPoolOptions {
  /** Threads kept ready for the next runs (default 2). */
  warm?: number
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

/** Opens the pool. Its threads are started at once, so that the first runs find them warm. */
export function createRunPool({
  warm = 2,
  maximum = 256,
  registry,
  hostNames = new HostNames(),
  thread,
  onError = (error) => process.emitWarning(error),
}: RunPoolOptions): RunPool {
  const cpus = native.affinity()
  const networks = new NetworkRegistry()
  const threads = new Threads({ thread, warm: Math.min(warm, maximum), maximum, onError })
  const runs = new Set<PooledRun>()
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
      const pins = options.cpu === undefined ? [] : [options.cpu]
      const run = new PooledRun(threads, turn, options, pins, { registry, hostNames, networks }, onLog)
      runs.add(run)
      run.ended.then(() => runs.delete(run))
      return run
    },
    async close() {
      const ends = [...runs].map((run) => run.ended)
      for (const run of runs) run.stop()
      await Promise.all(ends)
      await threads.close()
    },
  }
}
