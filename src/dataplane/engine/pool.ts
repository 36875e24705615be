/** Runs in worker threads: a Piscina pool whose tasks are runs, and the main thread's hold on each. */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { native } from '../native/native.ts'
import { type CaptureOptions, CaptureReader, createCapture } from './capture.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { type Answers, HostNames, hasHostNames, type ResolvedConfig } from './host-names.ts'
import { layoutOf } from './layout.ts'
import { createRegion } from './metrics.ts'
import type { NetworkChange } from './network.ts'
import { NetworkRegistry } from './network-registry.ts'
import {
  type Capture,
  cpuProblem,
  type LogLine,
  type RunEnd,
  type RunHandle,
  type RunOptions,
  RunOver,
  type RunPool,
} from './run.ts'
import { LOADER, ThreadLoads } from './thread-loading.ts'
import {
  type CaptureMessage,
  COMMAND_GO,
  COMMAND_MESSAGE,
  COMMAND_STOP,
  type NetworkMessage,
  type ReconfigureMessage,
  type UncaptureMessage,
  type WorkerMessage,
  type WorkerTask,
} from './worker.ts'

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

/** What to do about a start that the system had no means for. */
const LIMITS = "stop other runs, or raise the process's limit of open files (ulimit -n, LimitNOFILE=)"

/** A task with the run it is of, for who hands it to a thread; threads do not see it. */
interface Placeable {
  [Piscina.queueOptionsSymbol]: PooledRun
}

/** The threads, and the runs that wait for one, the longest waiting first. */
interface Threads {
  readonly piscina: Piscina
  readonly waiting: Set<PooledRun>
  readonly networks: NetworkRegistry
  /** Resolves once no thread is loading its module: only then may one be ended. */
  loaded(): Promise<void>
}

/** A run in its thread; see `RunHandle`. */
class PooledRun implements RunHandle {
  readonly id: string
  readonly region: SharedArrayBuffer
  readonly built: Promise<void>
  readonly running: Promise<void>
  readonly ended: Promise<RunEnd>
  private readonly command = new SharedArrayBuffer(4)
  private readonly abort = new AbortController()
  private readonly owner: number
  private readonly event: number
  private readonly port: MessagePort
  private readonly waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>()
  private readonly onLog: (lines: LogLine[]) => void
  private markBuilt!: () => void
  private markRunning!: () => void
  private markFailed!: (error: Error) => void
  private markHeard!: () => void
  private killed: string | null = null
  private over = false
  private serial = 0
  private readonly resolve: (config: PipelineConfig) => Promise<ResolvedConfig>
  /** Ends the wait for the addresses of host names. */
  private cancel!: (error: Error) => void
  /** The changes so far, so that none overtakes another whose names are still asked for. */
  private changes: Promise<unknown> = Promise.resolve()
  private asking: boolean
  private stopped = false
  private readonly networks: NetworkRegistry
  private readonly loaded: () => Promise<void>
  /** Its number in `networks`, 0 before it takes a thread. */
  private member = 0

  /**
   * `turn` is called once the host names have their addresses, and resolves when the run may take a thread. Throws, with nothing left
   * open, when the descriptors are used up.
   */
  constructor(
    { piscina, waiting, networks, loaded }: Threads,
    turn: () => Promise<void>,
    options: RunOptions,
    cpus: number[],
    { registry, hostNames }: { registry: Registry; hostNames: HostNames },
    onLog: (lines: LogLine[]) => void,
  ) {
    this.id = options.runId
    this.onLog = onLog
    this.networks = networks
    this.loaded = loaded
    this.region = createRegion(layoutOf(options.config, registry).metrics)
    this.owner = native.ownerOpen()
    try {
      this.event = native.eventOpen(this.owner)
    } catch (error) {
      native.ownerRelease(this.owner)
      throw new Error(`the run could not be started: ${(error as Error).message}; ${LIMITS}`, { cause: error })
    }
    const { port1, port2 } = new MessageChannel()
    this.port = port1
    port1.on('message', (message: WorkerMessage) => this.hear(message))
    // The task's result does not travel in line with what the run had to say: its last message does.
    const heardOut = new Promise<void>((resolve) => {
      this.markHeard = resolve
    })
    const closed = new Promise<void>((resolve) => {
      port1.once('close', () => {
        resolve()
      })
    })
    this.built = new Promise((resolve) => {
      this.markBuilt = resolve
    })
    this.running = new Promise((resolve, reject) => {
      this.markRunning = resolve
      this.markFailed = reject
    })
    this.running.catch(() => {})
    const known = new Map<string, Answers>()
    this.resolve = (config) => hostNames.resolve(config, registry, known)
    this.asking = hasHostNames(options.config, registry)
    const cancelled = new Promise<never>((_, reject) => {
      this.cancel = reject
    })
    cancelled.catch(() => {})
    const task: Omit<WorkerTask, 'place' | keyof ResolvedConfig> & Placeable = {
      [Piscina.queueOptionsSymbol]: this,
      region: this.region,
      command: this.command,
      owner: this.owner,
      port: port2,
      cpus,
      performanceMode: options.performanceMode,
      level: options.level,
      hold: options.hold ?? false,
    }
    const done = Promise.race([this.resolve(options.config), ...(this.asking ? [cancelled] : [])]).then(
      async (resolved) => {
        this.asking = false
        await turn()
        waiting.add(this)
        const { run, present } = networks.enter((change) => this.tell(change))
        this.member = run
        const place = { run, event: this.event, present }
        return (await piscina.run({ ...task, ...resolved, place } satisfies WorkerTask & Placeable, {
          transferList: [port2],
          signal: this.abort.signal,
        })) as RunEnd
      },
    )
    this.ended = done.then(
      async (end) => {
        await heardOut
        return this.finish(end)
      },
      async (error: Error) => {
        waiting.delete(this)
        port2.close() // still here when the task never reached a thread
        await closed // by the end of the thread, which may be inside of the addon until then
        if (this.stopped && this.asking && this.killed === null) return this.finish({ outcome: 'STOPPED' })
        const cause = this.asking ? error.message : `the run's thread died: ${error.message}`
        return this.finish({ outcome: 'FAILED', error: this.killed ?? cause })
      },
    )
  }

  private hear(message: WorkerMessage): void {
    if (message.type === 'log') this.onLog(message.lines)
    else if (message.type === 'running') {
      this.networks.join(this.member, message.networks, message.members)
      this.markRunning()
    } else if (message.type === 'built') this.markBuilt()
    else if (message.type === 'ended') this.markHeard()
    else {
      const caller = this.waiting.get(message.serial)
      this.waiting.delete(message.serial)
      if (message.error === undefined) caller?.resolve()
      else caller?.reject(new Error(message.error))
    }
  }

  /** Others have come to simulated networks, or gone. */
  private tell(change: NetworkChange): void {
    if (this.over) return
    this.port.postMessage({ type: 'network', ...change } satisfies NetworkMessage)
    this.signal(COMMAND_MESSAGE)
  }

  /** The thread is done with the run and was heard out: close what it left open. */
  private finish(end: RunEnd): RunEnd {
    this.over = true
    this.port.close()
    this.networks.leave(this.member)
    native.ownerRelease(this.owner)
    const gone = new RunOver(end.error ?? 'the run ended')
    this.markFailed(gone)
    for (const { reject } of this.waiting.values()) reject(gone)
    this.waiting.clear()
    return end
  }

  private signal(bit: number): void {
    if (this.over) return
    const command = new Int32Array(this.command)
    Atomics.or(command, 0, bit)
    native.eventSignal(this.event)
    Atomics.notify(command, 0) // a run that waits for COMMAND_GO does so in the word itself
  }

  go(): void {
    this.signal(COMMAND_GO)
  }

  stop(): void {
    this.stopped = true
    this.cancel(new RunOver('the run was stopped'))
    this.signal(COMMAND_STOP)
  }

  capture(options: CaptureOptions): Capture {
    const ring = createCapture()
    const id = ++this.serial
    const tell = (message: CaptureMessage | UncaptureMessage) => {
      if (this.over) return
      this.port.postMessage(message)
      this.signal(COMMAND_MESSAGE)
    }
    tell({ type: 'capture', id, options, ring })
    return { reader: new CaptureReader(ring), close: () => tell({ type: 'uncapture', id }) }
  }

  kill(cause: string): void {
    if (this.over) return
    this.killed ??= cause
    this.cancel(new RunOver(cause))
    void this.loaded().then(() => {
      if (this.over) return
      this.abort.abort()
      native.eventSignal(this.event) // a thread that sleeps in the poller ends once it wakes
    })
  }

  reconfigure(config: PipelineConfig): Promise<void> {
    const resolved = this.changes.then(() => this.resolve(config))
    this.changes = resolved.catch(() => {})
    return resolved.then((change) => this.send(change))
  }

  private send(change: ResolvedConfig): Promise<void> {
    if (this.over) return Promise.reject(new RunOver('the run has ended'))
    const serial = ++this.serial
    return new Promise((resolve, reject) => {
      this.waiting.set(serial, { resolve, reject })
      this.port.postMessage({ type: 'reconfigure', serial, ...change } satisfies ReconfigureMessage)
      this.signal(COMMAND_MESSAGE)
    })
  }
}

/**
 * The threads of a pool. Piscina starts a thread for a run that finds none free, but leaves the run in its queue when that thread
 * dies while it starts (it needs some dozen descriptors), and only emits the error: the run must not wait for ever, nor the process
 * end by an error that nobody listens for.
 */
function createThreads(thread: string, warm: number, maximum: number, onError: (error: Error) => void): Threads {
  const waiting = new Set<PooledRun>()
  const loads = new ThreadLoads()
  const piscina = new Piscina({
    filename: LOADER,
    workerData: { thread, loads: loads.loads },
    minThreads: warm,
    maxThreads: maximum,
    idleTimeout: 10_000,
    concurrentTasksPerWorker: 1,
    loadBalancer: (task, workers) => {
      const free = workers.find((worker) => worker.currentUsage === 0) ?? null
      if (free !== null) waiting.delete((task as unknown as Placeable)[Piscina.queueOptionsSymbol])
      return free
    },
  })
  piscina.on('error', (error: Error) => {
    const [longest] = waiting
    // More tasks in the queue than threads on their way.
    if (longest !== undefined && piscina.queueSize > 0) {
      longest.kill(`no thread could be started for the run: ${error.message}; ${LIMITS}`)
    } else onError(error)
  })
  return { piscina, waiting, networks: new NetworkRegistry(), loaded: () => loads.settled() }
}

/** Opens the pool. Its threads are started at once, so that the first runs find them warm. */
export function createRunPool({
  warm = 2,
  maximum = 256,
  registry,
  hostNames = new HostNames(),
  thread,
  onError,
}: RunPoolOptions): RunPool {
  const cpus = native.affinity()
  const threads = createThreads(
    thread,
    Math.min(warm, maximum),
    maximum,
    onError ?? ((error) => process.emitWarning(error)),
  )
  const runs = new Set<PooledRun>()
  // Threads that load at the same time take as much longer each: a crowd of starts goes a few at a time.
  const launches = Math.max(2, cpus.length * 2)
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
      const run = new PooledRun(threads, turn, options, pins, { registry, hostNames }, onLog)
      runs.add(run)
      run.ended.then(() => runs.delete(run))
      return run
    },
    async close() {
      const ends = [...runs].map((run) => run.ended)
      for (const run of runs) run.stop()
      await Promise.all(ends)
      await threads.loaded()
      await threads.piscina.destroy()
    },
  }
}
