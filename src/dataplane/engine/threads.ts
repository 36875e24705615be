/** The threads of a run pool: Piscina's, those kept ready, those that have run and give their memory back. */
import { SHARE_ENV, type Transferable } from 'node:worker_threads'
import type { Piscina as Pool } from 'piscina'
import { INSTALL_AGAIN, lacksDirectory, messageOf } from '../../text/error-message.ts'
import { native } from '../native/native.ts'
import { collectGarbage } from './garbage.ts'
import type { RunEnd } from './run.ts'
import { cureOf, withCure } from './scarcity.ts'
import { type LoadedFiles, Piscina, ThreadLoads } from './thread-loading.ts'

/** Why a thread could not begin and what to do: its files are not what they were, or the system had no means for it. */
function whyNone(error: Error): string {
  if (lacksDirectory(error)) return messageOf(error)
  const { code } = error as NodeJS.ErrnoException
  const isDamaged = code === 'ENOENT' || code === 'MODULE_NOT_FOUND' || error instanceof SyntaxError
  return isDamaged ? `${messageOf(error)}; ${INSTALL_AGAIN}` : withCure(error)
}

function noneStarted(error: Error): string {
  return `no thread could be started for the run: ${whyNone(error)}`
}

/** There is no thread for a task, or for the runs to come: its message says why, and what to do. */
export class NoThread extends Error {}

/** How long a thread that has run waits for its next run before it ends, milliseconds. */
const IDLE_MS = 10_000

/** How long nothing must have been started before a thread is made ready for the next run, milliseconds: those that start have the CPU. */
const QUIET_MS = 100

/** How long after the end of a thread what it has left goes back to the system, milliseconds. */
const TRIM_MS = 1_000

/** A bound, MiB, for the newly made objects of a thread: while packets flow none is made, and V8 would let them grow to 48. */
const YOUNG_GENERATION_MB = 8

/**
 * Address space, bytes, that a thread takes while it begins: 512 MiB for V8's code and 128 for an arena of glibc, of which it gives half back, a stack and a heap. Where
 * V8 finds none it ends the process, and all runs with it.
 */
const THREAD_BYTES = 704 * 1024 * 1024

/** How much of that is written to at once. */
const THREAD_WRITABLE_BYTES = 32 * 1024 * 1024

/** Those that Piscina asks about. */
type Workers = Parameters<NonNullable<NonNullable<ConstructorParameters<typeof Piscina>[0]>['loadBalancer']>>[1]

/** Who waits for a thread. */
export interface Waiting {
  /** No thread can be had. */
  kill(cause: string): void
}

/** How a task is given to a thread. */
export interface TaskOptions {
  readonly transferList: Transferable[]
  /** Ends it by force: its thread, where it has one. */
  readonly signal: AbortSignal
  /** Its place in line is given up: a task that has no thread yet is rejected with the signal's reason. */
  readonly left: AbortSignal
}

/** Where a run gets its thread. */
export interface ThreadSource {
  /** Gives a task to a thread, as soon as one can be had; resolves with what it returns, rejects when its thread dies. */
  run(task: object, who: Waiting, options: TaskOptions): Promise<unknown>
  /** Resolves once no thread is loading its module: only then may one be ended. */
  loaded(): Promise<void>
}

/** A run that makes a thread ready. */
export interface Rehearsal extends Waiting {
  readonly ended: Promise<RunEnd>
}

/** Which thread a task was given, and what ends that one some time after the task. */
interface Placement {
  readonly who: Waiting
  readonly isRehearsal: boolean
  /** No thread can be had for it: none is to take it on its way out of the queue. */
  isRefused?: boolean
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
  /** Threads kept ready beside those that have a run. */
  ready: number
  /** Most threads at once. */
  maximum: number
  /** Does in a thread of the source, once, what every run does. */
  rehearse: (threads: ThreadSource) => Rehearsal
  /** Told when a thread dies that no run is hurt by, or could not be made ready; of a NoThread its message is all that there is to tell. */
  onError: (error: Error) => void
}

/**
 * Piscina starts a thread for a task that finds none free, but leaves the task in its queue when that thread dies while it starts (it needs
 * some dozen descriptors), and only emits the error: the task must not wait for ever, nor the process end by an error that nobody listens for.
 * It starts none at any other time, and none while one is on its way that no task waits for any more (packaging/bundles.js), so that a task which finds all threads taken is not put into its queue before one
 * is free, or is gone and makes room for another.
 *
 * The first run of a thread takes ten times as long to start as its second, so threads are kept ready that have had a rehearsal. They are
 * made one at a time and while nothing else starts.
 *
 * A thread that has run keeps what its runs have made it grow to, and one that waits collects no garbage: unless its next run comes
 * soon it ends, and a fresh one takes its place among those kept ready.
 */
export class Threads implements ThreadSource {
  private readonly piscina: Pool
  private readonly options: ThreadsOptions
  private readonly waiting = new Set<Waiting>()
  /** Those whose task waits for a thread in Piscina's queue, longest first. */
  private readonly queued = new Set<Placement>()
  /** Wakes those that wait until they may get into the queue. */
  private readonly line = new Set<() => void>()
  private readonly loads: ThreadLoads
  /** By the id of a thread that has run, the last time it did. */
  private readonly used = new Map<number, Placement>()
  /** Ids of threads that have had their rehearsal and no run yet. */
  private readonly ready = new Set<number>()
  /** Ids of threads that have a task. */
  private readonly busy = new Set<number>()
  /** Ids of threads that are told to end. */
  private readonly ending = new Set<number>()
  private isRehearsing = false
  /** No thread could be made ready; the next that has a run clears it. */
  private hasFailed = false
  private rehearsal: Rehearsal | undefined
  private isClosing = false
  private trim: NodeJS.Timeout | undefined
  private spare: NodeJS.Timeout | undefined
  private readonly quiet = setTimeout(() => this.prepare(), QUIET_MS).unref()

  constructor(options: ThreadsOptions) {
    this.options = options
    this.loads = new ThreadLoads(options.thread)
    this.piscina = new Piscina({
      filename: options.thread,
      workerData: this.loads.data,
      // No thread changes it: none needs a copy.
      env: SHARE_ENV,
      minThreads: 0,
      maxThreads: options.maximum,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      recordTiming: false,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      loadBalancer: (task, workers) => {
        const placement = (task as unknown as Placeable)[Piscina.queueOptionsSymbol]
        const chosen = placement.isRefused ? undefined : this.choose(workers, placement.isRehearsal)
        if (chosen === undefined) return null
        this.place(placement, chosen.id)
        return chosen
      },
    })
    this.piscina.on('workerDestroy', () => {
      this.letOn()
      if (this.isClosing) return
      clearTimeout(this.trim)
      this.trim = setTimeout(() => this.giveBack(), TRIM_MS).unref()
      this.quiet.refresh()
    })
    this.piscina.on('message', (loaded: LoadedFiles) => this.loads.learn(loaded))
    this.piscina.on('error', (error: Error) => {
      const lacking = this.lacking()
      if (lacking === undefined) {
        options.onError(cureOf(error) === undefined ? error : new NoThread(withCure(error), { cause: error }))
        return
      }
      lacking.isRefused = true
      this.queued.delete(lacking)
      lacking.who.kill(noneStarted(error))
    })
    setImmediate(() => this.prepare())
  }

  run(task: object, who: Waiting, options: TaskOptions): Promise<unknown> {
    return this.give(task, { who, isRehearsal: false }, options)
  }

  private async give(task: object, placement: Placement, options: TaskOptions): Promise<unknown> {
    const { transferList, signal, left } = options
    const over = new AbortController()
    const end = () => over.abort(signal.reason)
    const leave = () => {
      if (placement.thread === undefined) over.abort(left.reason)
    }
    signal.addEventListener('abort', end, { once: true })
    left.addEventListener('abort', leave, { once: true })
    this.waiting.add(placement.who)
    try {
      while (!placement.isRehearsal && this.isFull()) await this.vacancy(left)
      // It may have been told in the same moment in which it was woken.
      left.throwIfAborted()
      this.requireRoom(placement)
      this.queued.add(placement)
      const done = this.piscina.run({ ...task, [Piscina.queueOptionsSymbol]: placement } satisfies Placeable, {
        transferList,
        signal: over.signal,
      })
      this.reconsider()
      return await done
    } catch (error) {
      if (placement.thread === undefined && left.aborted) {
        this.outgrow()
        throw left.reason
      }
      if (placement.thread !== undefined || signal.aborted || !(error instanceof Error)) throw error
      throw new NoThread(noneStarted(error), { cause: error })
    } finally {
      signal.removeEventListener('abort', end)
      left.removeEventListener('abort', leave)
      this.waiting.delete(placement.who)
      this.queued.delete(placement)
      this.rest(placement)
      this.letOn()
    }
  }

  /** Whether a run that comes now has to wait until a thread is free or gone. */
  private isFull(): boolean {
    const { warm, fresh, isRoom } = this.census()
    return !isRoom && warm + fresh <= this.queued.size
  }

  /** Throws where a task that finds no thread free has one begun for which the process may have no memory. */
  private requireRoom({ isRehearsal }: Placement): void {
    const { warm, fresh } = this.census()
    if ((isRehearsal ? 0 : warm) + fresh > this.queued.size) return
    // Those that are on their way may not have theirs yet.
    const threads = fresh + 1
    if (native.hasAddressSpace(threads * THREAD_BYTES, threads * THREAD_WRITABLE_BYTES)) return
    const why = `ENOMEM: the ${THREAD_BYTES / 2 ** 20} MiB of address space that it takes cannot be had`
    throw Object.assign(new Error(why), { code: 'ENOMEM' })
  }

  /** Resolves when a thread is free or gone; rejects with the reason of `left` once the run is not to have one any more. */
  private vacancy(left: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.line.delete(wake)
        reject(left.reason)
      }
      const wake = () => {
        left.removeEventListener('abort', leave)
        resolve()
      }
      this.line.add(wake)
      left.addEventListener('abort', leave, { once: true })
      // Two that are ended at once: one that was woken by the end of the other would hear of its own no more.
      if (left.aborted) leave()
    })
  }

  private letOn(): void {
    const line = [...this.line]
    this.line.clear()
    for (const wake of line) wake()
  }

  /** Whose task waits in the queue without a thread that is to take it: a rehearsal where there is one, since it may come later. */
  private lacking(): Placement | undefined {
    const { warm, fresh } = this.census()
    const queued = [...this.queued]
    const rehearsal = queued.find(({ isRehearsal }) => isRehearsal)
    if (rehearsal !== undefined && fresh === 0) return rehearsal
    return queued.length > warm + fresh ? (rehearsal ?? queued[0]) : undefined
  }

  private place(placement: Placement, thread: number): void {
    clearTimeout(this.used.get(thread)?.timer)
    this.ready.delete(thread)
    this.used.set(thread, placement)
    this.busy.add(thread)
    placement.thread = thread
    this.waiting.delete(placement.who)
    this.queued.delete(placement)
    if (placement.isRehearsal) return
    this.hasFailed = false
    this.quiet.refresh()
    this.reconsider()
  }

  /** A thread without a task. One that has run holds memory, one that has not stays small: a run gets the former, a rehearsal the latter. */
  private choose(workers: Workers, isRehearsal: boolean): Workers[number] | undefined {
    let ready: Workers[number] | undefined
    let fresh: Workers[number] | undefined
    for (const worker of workers) {
      if (worker.currentUsage !== 0) continue
      const { id } = worker
      if (this.ending.has(id)) continue
      if (this.used.has(id)) {
        if (!isRehearsal) return worker
      } else if (this.ready.has(id)) ready ??= worker
      else fresh ??= worker
    }
    return isRehearsal ? fresh : (ready ?? fresh)
  }

  /** The thread has no task any more, unless it was given the next one already. */
  private rest(placement: Placement): void {
    const { thread } = placement
    if (thread === undefined || this.used.get(thread) !== placement) return
    this.busy.delete(thread)
    if (placement.isRehearsal) {
      this.used.delete(thread)
      this.ready.add(thread)
      return
    }
    placement.timer = setTimeout(() => {
      this.used.delete(thread)
      this.end(thread)
    }, IDLE_MS).unref()
    this.quiet.refresh()
  }

  /** A thread that was begun for a run which has left since waits for another no longer than one that has run. */
  private outgrow(): void {
    clearTimeout(this.spare)
    this.spare = setTimeout(async () => {
      await this.loaded()
      if (this.isClosing || this.queued.size > 0 || this.isRehearsing) return
      for (const { threadId } of this.piscina.threads) {
        const isFresh = !this.used.has(threadId) && !this.ready.has(threadId) && !this.ending.has(threadId)
        if (isFresh && !this.busy.has(threadId)) this.end(threadId)
      }
    }, IDLE_MS).unref()
  }

  /** Has one more thread rehearse where fewer than wanted are ready, and then the next. */
  private prepare(): void {
    if (this.isClosing || this.isRehearsing || this.hasFailed || this.waiting.size > 0) return
    const { warm, fresh, isRoom } = this.census()
    if (warm >= this.options.ready || !(isRoom || fresh > 0)) return
    this.isRehearsing = true
    void this.rehearse().then((isReady) => {
      this.isRehearsing = false
      if (isReady) this.prepare()
    })
  }

  /** How many threads without a task have run or rehearsed, and how many have not; and whether there may be one more thread. */
  private census(): { warm: number; fresh: number; isRoom: boolean } {
    const ids = this.piscina.threads.map(({ threadId }) => threadId)
    const free = ids.filter((id) => !this.busy.has(id) && !this.ending.has(id))
    const warm = free.filter((id) => this.used.has(id) || this.ready.has(id)).length
    return { warm, fresh: free.length - warm, isRoom: ids.length < this.options.maximum }
  }

  /** Whether a thread was made ready. */
  private async rehearse(): Promise<boolean> {
    const source: ThreadSource = {
      run: (task, who, options) => this.give(task, { who, isRehearsal: true }, options),
      loaded: () => this.loaded(),
    }
    try {
      const rehearsal = this.options.rehearse(source)
      this.rehearsal = rehearsal
      const { outcome, error } = await rehearsal.ended
      if (outcome !== 'FAILED') return true
      if (this.rehearsal === rehearsal) throw new NoThread(error)
    } catch (error) {
      this.hasFailed = true
      const message = `no thread could be made ready for the next run: ${messageOf(error)}`
      const isTold = error instanceof NoThread || cureOf(error) !== undefined
      this.options.onError(new (isTold ? NoThread : Error)(message, { cause: error }))
    }
    return false
  }

  /** A rehearsal does not wait for a thread where runs have them all: it would wait for ever. */
  private reconsider(): void {
    if (this.rehearsal === undefined || !this.waiting.has(this.rehearsal)) return
    const { fresh, isRoom } = this.census()
    if (!isRoom && fresh === 0) this.callOff()
  }

  private callOff(): void {
    const { rehearsal } = this
    this.rehearsal = undefined
    rehearsal?.kill('no thread is to be made ready')
  }

  /** Ends a thread that has no run. */
  private end(id: number): void {
    const thread = this.piscina.threads.find(({ threadId }) => threadId === id)
    if (thread === undefined) return
    this.ending.add(id)
    thread.once('exit', () => this.ending.delete(id))
    void thread.terminate()
  }

  /** What ended threads have left goes back to the system. */
  private giveBack(): void {
    // While something runs, callers are not made to wait for it.
    if (this.busy.size === 0) collectGarbage()
    native.trimHeap()
  }

  loaded(): Promise<void> {
    return this.loads.settled()
  }

  /** Makes no more threads ready, before the runs are ended. */
  stopPreparing(): void {
    this.isClosing = true
    this.callOff()
    clearTimeout(this.quiet)
    clearTimeout(this.trim)
    clearTimeout(this.spare)
  }

  /** Ends all threads; there must be no run any more. */
  async close(): Promise<void> {
    this.stopPreparing()
    for (const { timer } of this.used.values()) clearTimeout(timer)
    await this.loaded()
    await this.piscina.destroy()
  }
}
