/** What a run is to the rest of the node: what it is started with, what it reports, how it ends. */

import type { CaptureOptions, CaptureReader } from './capture.ts'
import type { PipelineConfig } from './config.ts'
import type { LogLevel } from './log.ts'

/** One line of a run's log. */
export interface LogLine {
  /** Milliseconds since the Unix epoch, with fraction. */
  timestamp: number
  level: LogLevel
  /** The component that speaks, '' for the run itself. */
  component: string
  message: string
  fields: Record<string, string | number | boolean>
}

/** STOPPED on request, COMPLETED by itself (all sources done, all packets out), FAILED with a cause. */
export type Outcome = 'STOPPED' | 'FAILED' | 'COMPLETED'

export interface RunEnd {
  outcome: Outcome
  /** Why it failed: what, where and what to do, for people. */
  error?: string
}

/** What the line that ends a run's log says; no other line of the run itself has a field `outcome`. */
export function lastWords({ outcome, error }: RunEnd): Pick<LogLine, 'message' | 'fields'> {
  return { message: `ended: ${outcome}${error ? `, ${error}` : ''}`, fields: { outcome } }
}

/** Whether a line of a run's log is the one that ends it. */
export function isLastLine({ component, fields }: LogLine): boolean {
  return component === '' && fields.outcome !== undefined
}

export interface RunOptions {
  runId: string
  config: PipelineConfig
  /** CPU thread to pin to, as the kernel numbers it; absent: not pinned. */
  cpu?: number
  /** Never sleep: spin on the sockets. */
  performanceMode: boolean
  /** Lines below this level are not sent. */
  level: LogLevel
  /** Whether the run waits for `go` once its graph stands, sockets and interfaces open, before packets flow. */
  hold?: boolean
  /** Whether somebody waits for its start, which then goes before others (default true). */
  isAwaited?: boolean
  /** Id of the run whose place it takes, if that is kept for it (`RunPool.keep`). */
  follows?: string
  /** Of a rehearsal: keys of components that its thread loads besides its own, for the run that comes after it. */
  preload?: readonly string[]
}

/** Why a run cannot do what it is asked: it has ended. */
export class RunOver extends Error {
  override readonly name = 'RunOver'
}

/** A run in its thread, seen from the main thread. */
export interface RunHandle {
  readonly id: string
  /** Metrics in shared memory, readable at any time with `RegionReader`, also after the end. */
  readonly region: SharedArrayBuffer
  /** Resolves once it is its turn to have a thread: the names in its addresses are known, and not too many others start. */
  readonly turn: Promise<void>
  /** Resolves once the graph of a run with `hold` stands; pending for ever for others, and for one that fails before. */
  readonly built: Promise<void>
  /** Resolves once packets flow; rejects with the cause when the run fails while starting. */
  readonly running: Promise<void>
  /** Resolves when the thread is done and all it held is closed; never rejects. */
  readonly ended: Promise<RunEnd>
  /** Lets a run with `hold` go on; safe at any time. */
  go(): void
  /** Asks the run to stop; safe at any time. */
  stop(): void
  /** Ends the thread by force (outcome FAILED with `cause`) and closes what it left open. */
  kill(cause: string): void
  /**
   * Applies a configuration that differs in live fields only; rejects with RunOver when the run ends first, else with why it was not applied.
   * Whoever waits `timeout` ms for that is told of host names that are not answered while the thread was not asked.
   */
  reconfigure(config: PipelineConfig, timeout?: number): Promise<void>
  /** The last change is not taken back any more, or was: a host name that went with it is looked up again once another change brings it. */
  keepChange(): void
  /** Copies packets on their way, until it is closed or the run ends. */
  capture(options: CaptureOptions): Capture
}

/** Copies of packets of a run, for one who reads them. */
export interface Capture {
  readonly reader: CaptureReader
  /** No more is copied. */
  close(): void
}

/** CPU threads as the kernel writes them: `0-3,8`. */
function cpuList(cpus: readonly number[]): string {
  const parts: string[] = []
  for (let from = 0; from < cpus.length; ) {
    let to = from
    while (cpus[to + 1] === (cpus[to] as number) + 1) to++
    parts.push(to === from ? `${cpus[from]}` : `${cpus[from]}-${cpus[to]}`)
    from = to + 1
  }
  return parts.join(',')
}

/** Why a run cannot be pinned to `cpu` where it may use `cpus`. */
export function cpuProblem(cpu: number, cpus: readonly number[]): string {
  const usable = cpus.length > 0 ? cpuList(cpus) : 'none of those that it began with'
  return `CPU thread ${cpu} cannot be used here: this process may use ${usable}`
}

/** Starts runs, each in a worker thread of its own. */
export interface RunPool {
  /** CPU threads of this process, as the kernel numbers them, rising. */
  readonly cpus: readonly number[]
  /** Those of them that a run can be pinned to now: the others are lost to a cpuset that has been narrowed since. */
  usableCpus(): readonly number[]
  /** Why no further run can be started, if none can: each has a thread, or is to have one, and none is about to be free. */
  full(): string | undefined
  /** Has the end of a run make no room for others, until one that `follows` it is started or the function returned is called: safe at any time. */
  keep(runId: string): () => void
  /** `onLog` gets lines in order, also before `running` resolves. Throws where the pool is full. */
  start(options: RunOptions, onLog: (lines: LogLine[]) => void): RunHandle
  /** Stops every run and ends the threads. */
  close(): Promise<void>
}
