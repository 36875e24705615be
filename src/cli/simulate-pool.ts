/** Many simulations on all CPUs: a Piscina pool whose tasks are whole simulations, each of which one thread does. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Piscina as Pool } from 'piscina'
import { withCure } from '../dataplane/engine/scarcity.ts'
import { Piscina, ThreadLoads } from '../dataplane/engine/thread-loading.ts'
import { packageRoot } from '../package-root.ts'
import { lacksDirectory, messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import type { SimulationResult, SimulationTask } from './simulate-run.ts'

const THREAD = join(packageRoot(), 'dist/program/simulate-thread.js')

/** As many as CPUs that this process may use. */
export const defaultJobs = availableParallelism

interface PoolOptions {
  /** Simulations at once. */
  readonly jobs: number
  /** Aborts: those under way are given up, no other begins. */
  readonly signal: AbortSignal
  /** Told of each that is done. */
  readonly onDone?: (done: number) => void
}

/** A simulation that could not be done: what its thread threw. Throws where there is no thread: there would be none for the next either. */
function failed(error: unknown): SimulationResult {
  if (error instanceof Error && (error as NodeJS.ErrnoException).code === 'ERR_WORKER_INIT_FAILED') {
    throw new Failure(
      `a thread for simulations could not be started: ${withCure(error)}; or try fewer of them, --jobs 1`,
    )
  }
  return { end: { outcome: 'FAILED', error: messageOf(error) }, metrics: {}, elapsed: 0, kpis: [] }
}

/** A task that could be withdrawn leaves Piscina's queue where no thread can be begun for it; any other stays in there, and would be done unasked (packaging/bundles.js). */
const neverAborts = (): AbortSignal => new AbortController().signal

/** Threads that simulate; what they make of a task depends on nothing but the task. `close` ends them. */
export class SimulationPool {
  readonly #jobs: number
  readonly #signal: AbortSignal
  readonly #onDone: (done: number) => void
  readonly #loads = new ThreadLoads(THREAD)
  readonly #piscina: Pool<SimulationTask, SimulationResult>
  /** Resolves when the signal comes, rejects when a thread cannot be had: Piscina keeps its task in the queue then. */
  readonly #broken: Promise<void>
  #done = 0

  constructor({ jobs, signal, onDone = () => {} }: PoolOptions) {
    this.#jobs = jobs
    this.#signal = signal
    this.#onDone = onDone
    this.#piscina = new Piscina({
      filename: THREAD,
      workerData: this.#loads.data,
      minThreads: 0,
      maxThreads: jobs,
      idleTimeout: 10_000,
      concurrentTasksPerWorker: 1,
    })
    this.#broken = new Promise((resolve, reject) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
      this.#piscina.on('error', (error: Error) => {
        const cure = lacksDirectory(error) ? '' : '; try fewer of them, --jobs 1'
        reject(new Failure(`a thread for simulations could not go on: ${messageOf(error)}${cure}`))
      })
    })
    this.#broken.catch(() => {})
  }

  /**
   * The results in the order of `tasks`. One that fails has FAILED as its outcome; undefined are those that were not done when the signal
   * came.
   */
  async run(tasks: readonly SimulationTask[]): Promise<(SimulationResult | undefined)[]> {
    const results: (SimulationResult | undefined)[] = tasks.map(() => undefined)
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < tasks.length && !this.#signal.aborted) {
        const at = next++
        const result = await this.#piscina.run(tasks[at] as SimulationTask, { signal: neverAborts() }).catch(failed)
        // Whoever gave up has gone on without it.
        if (this.#signal.aborted) return
        results[at] = result
        this.#onDone(++this.#done)
      }
    }
    const lanes = Array.from({ length: Math.min(this.#jobs, tasks.length) }, lane)
    await Promise.race([Promise.all(lanes), this.#broken])
    return [...results]
  }

  async close(): Promise<void> {
    await this.#loads.settled()
    await this.#piscina.destroy()
  }
}
