/** The threads of a run pool: Piscina's, those kept ready, those that have run and give their memory back. */
import type { Transferable } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { native } from '../native/native.ts'
import { type CompiledCode, LOADER, ThreadLoads } from './thread-loading.ts'

/** What to do about a start that the system had no means for. */
export const LIMITS = "stop other runs, or raise the process's limit of open files (ulimit -n, LimitNOFILE=)"

/** How long a thread that has run waits for its next run before it ends, milliseconds. */
const IDLE_MS = 10_000

/** How long after the end of a thread what it had freed goes back to the system, milliseconds. */
const TRIM_MS = 1_000

/** A bound, MiB, for the newly made objects of a thread: while packets flow none is made, and V8 would let them grow to 48. */
const YOUNG_GENERATION_MB = 8

/** Who waits for a thread. */
export interface Waiting {
  /** No thread can be had. */
  kill(cause: string): void
}

/** Which thread a task was given, and what ends that one some time after the task. */
interface Placement {
  readonly who: Waiting
  thread?: number
  timer?: NodeJS.Timeout
}

/** A task for who hands it to a thread; threads do not see how. */
interface Placeable {
  [Piscina.queueOptionsSymbol]: Placement
}

export interface ThreadsOptions {
  /** JavaScript module that each thread loads. */
  thread: string
  /** Threads kept ready. */
  warm: number
  /** Most threads at once. */
  maximum: number
  /** Told when a thread dies that no run is hurt by. */
  onError: (error: Error) => void
}

/**
 * Piscina starts a thread for a task that finds none free, but leaves the task in its queue when that thread dies while it starts (it needs
 * some dozen descriptors), and only emits the error: the task must not wait for ever, nor the process end by an error that nobody listens for.
 *
 * A thread that has run keeps what its runs have made it grow to, and one that waits collects no garbage: unless its next run comes
 * soon it ends, and a fresh one takes its place among those kept ready.
 */
export class Threads {
  private readonly piscina: Piscina
  /** Longest first. */
  private readonly waiting = new Set<Waiting>()
  private readonly loads: ThreadLoads
  /** By the id of a thread that has run, the last time it did. */
  private readonly used = new Map<number, Placement>()
  /** Ids of threads that are told to end. */
  private readonly ending = new Set<number>()

  private readonly trim = setTimeout(() => native.trimHeap(), TRIM_MS).unref()

  constructor({ thread, warm, maximum, onError }: ThreadsOptions) {
    this.loads = new ThreadLoads(thread)
    this.piscina = new Piscina({
      filename: LOADER,
      workerData: this.loads.data,
      minThreads: warm,
      maxThreads: maximum,
      idleTimeout: IDLE_MS,
      concurrentTasksPerWorker: 1,
      recordTiming: false,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      loadBalancer: (task, workers) => {
        const free = workers.filter(({ id, currentUsage }) => currentUsage === 0 && !this.ending.has(id))
        // A thread that has run holds memory; one that has not stays small.
        const chosen = free.find(({ id }) => this.used.has(id)) ?? free[0]
        if (chosen === undefined) return null
        this.place((task as unknown as Placeable)[Piscina.queueOptionsSymbol], chosen.id)
        return chosen
      },
    })
    this.piscina.on('workerDestroy', () => this.trim.refresh())
    this.piscina.on('message', (made: CompiledCode) => this.loads.learn(made))
    this.piscina.on('error', (error: Error) => {
      const [longest] = this.waiting
      // More tasks in the queue than threads on their way.
      if (longest !== undefined && this.piscina.queueSize > 0) {
        longest.kill(`no thread could be started for the run: ${error.message}; ${LIMITS}`)
      } else onError(error)
    })
  }

  /** Gives a task to a thread, as soon as one can be had; resolves with what it returns, rejects when its thread dies. */
  async run<T extends object>(
    task: T,
    who: Waiting,
    options: { transferList: Transferable[]; signal: AbortSignal },
  ): Promise<unknown> {
    const placement: Placement = { who }
    this.waiting.add(who)
    try {
      return await this.piscina.run({ ...task, [Piscina.queueOptionsSymbol]: placement } satisfies Placeable, options)
    } finally {
      this.waiting.delete(who)
      this.rest(placement)
    }
  }

  private place(placement: Placement, thread: number): void {
    clearTimeout(this.used.get(thread)?.timer)
    this.used.set(thread, placement)
    placement.thread = thread
    this.waiting.delete(placement.who)
  }

  /** The thread has no run any more, unless it was given the next one already. */
  private rest(placement: Placement): void {
    const { thread } = placement
    if (thread === undefined || this.used.get(thread) !== placement) return
    placement.timer = setTimeout(() => {
      this.used.delete(thread)
      this.end(thread)
    }, IDLE_MS).unref()
  }

  /** Ends a thread that has no run; Piscina starts another when too few are left. */
  private end(id: number): void {
    const thread = this.piscina.threads.find(({ threadId }) => threadId === id)
    if (thread === undefined) return
    this.ending.add(id)
    thread.once('exit', () => this.ending.delete(id))
    void thread.terminate()
  }

  /** Resolves once no thread is loading its module: only then may one be ended. */
  loaded(): Promise<void> {
    return this.loads.settled()
  }

  /** Ends all threads; there must be no run any more. */
  async close(): Promise<void> {
    clearTimeout(this.trim)
    for (const { timer } of this.used.values()) clearTimeout(timer)
    await this.loaded()
    await this.piscina.destroy()
  }
}
