/** Threads whose module load-thread.cts loads: which file Piscina starts them with, and the wait for those that are in the midst of it. */
import { join } from 'node:path'
import { packageRoot } from '../../package-root.ts'

/** What Piscina starts each thread with. Threads run built code, also when the main thread runs the sources (tests). */
export const LOADER = join(packageRoot(), 'dist/src/dataplane/engine/load-thread.cjs')

/** How long the end of threads waits for one that is loading; whoever was ended in the midst of it is never done. */
const MAX_LOAD_MS = 5_000

/** How many threads of a pool have begun to load their module, and how many are done. */
export class ThreadLoads {
  /** Both, in memory that the threads share: a part of their `workerData`. */
  readonly loads = new Int32Array(new SharedArrayBuffer(8))

  /** Waits until no thread is loading its module, `MAX_LOAD_MS` at most: only then may one be ended. */
  async settled(): Promise<void> {
    const until = performance.now() + MAX_LOAD_MS
    while (Atomics.load(this.loads, 0) !== Atomics.load(this.loads, 1) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}
