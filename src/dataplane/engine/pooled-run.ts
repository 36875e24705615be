/** A run in its thread, seen from the main thread. */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { native } from '../native/native.ts'
import { type CaptureOptions, CaptureReader, createCapture, giveBackCapture } from './capture.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import type { Answers, HostNames, ResolvedConfig, ResolvedHost } from './host-names.ts'
import { layoutOf } from './layout.ts'
import { createRegion } from './metrics.ts'
import type { NetworkChange } from './network.ts'
import type { NetworkRegistry } from './network-registry.ts'
import { type Capture, type LogLine, type RunEnd, type RunHandle, type RunOptions, RunOver } from './run.ts'
import { withCure } from './scarcity.ts'
import { NoThread, type ThreadSource } from './threads.ts'
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

/** A run in its thread; see `RunHandle`. */
export class PooledRun implements RunHandle {
  readonly id: string
  readonly region: SharedArrayBuffer
  readonly turn: Promise<void>
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
  private markTurn!: () => void
  private markBuilt!: () => void
  private markRunning!: () => void
  private markFailed!: (error: Error) => void
  private markHeard!: () => void
  private killed: string | null = null
  private over = false
  private serial = 0
  /** Rings of captures that are over, for the next: the run's thread collects no garbage, and would hold any ring that is left. */
  private readonly spareRings: { readonly ring: SharedArrayBuffer; writers: number }[] = []
  private readonly resolve: (
    config: PipelineConfig,
    known: Map<string, Answers>,
    within?: number,
  ) => Promise<ResolvedConfig>
  /** The host names in what it runs, and the answers to them; until `keepChange` also to those that it had before. */
  private hosts: readonly ResolvedHost[] = []
  private answers: ReadonlyMap<string, Answers> = new Map()
  /** Ends the wait for the addresses of host names, for its turn and for a thread; its reason is a RunOver. */
  private readonly leave = new AbortController()
  /** The changes so far, so that none overtakes another whose names are still asked for. */
  private changes: Promise<unknown> = Promise.resolve()
  /** It has not asked for a thread yet. */
  private isWaiting = true
  /** It was told to end, so that its thread is about to be free. */
  isLeaving = false
  private readonly networks: NetworkRegistry
  private readonly threads: ThreadSource
  /** Its number in `networks`, 0 before it takes a thread. */
  private member = 0

  /**
   * `wait` is called once the host names have their addresses, and resolves when the run may take a thread. Throws, with nothing left
   * open, when the descriptors are used up.
   */
  constructor(
    threads: ThreadSource,
    wait: () => Promise<void>,
    options: RunOptions,
    cpus: number[],
    { registry, hostNames, networks }: { registry: Registry; hostNames: HostNames; networks: NetworkRegistry },
    onLog: (lines: LogLine[]) => void,
  ) {
    this.id = options.runId
    this.onLog = onLog
    this.networks = networks
    this.threads = threads
    this.region = createRegion(layoutOf(options.config, registry).metrics)
    this.owner = native.ownerOpen()
    try {
      this.event = native.eventOpen(this.owner)
    } catch (error) {
      native.ownerRelease(this.owner)
      throw new Error(`the run could not be started: ${withCure(error as Error)}`, { cause: error })
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
    this.turn = new Promise((resolve) => {
      this.markTurn = resolve
    })
    this.built = new Promise((resolve) => {
      this.markBuilt = resolve
    })
    this.running = new Promise((resolve, reject) => {
      this.markRunning = resolve
      this.markFailed = reject
    })
    this.running.catch(() => {})
    this.resolve = (config, known, within) => hostNames.resolve(config, registry, known, within)
    const { signal: left } = this.leave
    const cancelled = new Promise<never>((_, reject) => {
      left.addEventListener('abort', () => reject(left.reason), { once: true })
    })
    cancelled.catch(() => {})
    const task: Omit<WorkerTask, 'place' | keyof ResolvedConfig> = {
      region: this.region,
      command: this.command,
      owner: this.owner,
      port: port2,
      cpus,
      performanceMode: options.performanceMode,
      level: options.level,
      hold: options.hold ?? false,
      ...(options.preload && { preload: options.preload }),
    }
    const ready = async () => {
      const known = new Map<string, Answers>()
      const resolved = await this.resolve(options.config, known)
      this.have(resolved, known)
      await wait()
      this.isWaiting = false
      this.markTurn()
      return resolved
    }
    const done = Promise.race([ready(), cancelled]).then(async (resolved) => {
      const { run, present } = networks.enter((change) => this.tell(change))
      this.member = run
      const place = { run, event: this.event, present }
      const { signal } = this.abort
      const whole = { ...task, ...resolved, place } satisfies WorkerTask
      return (await threads.run(whole, this, { transferList: [port2], signal, left })) as RunEnd
    })
    this.ended = done.then(
      async (end) => {
        await heardOut
        return this.finish(end)
      },
      async (error: Error) => {
        port2.close() // still here when the task never reached a thread
        await closed // by the end of the thread, which may be inside of the addon until then
        if (error instanceof RunOver && this.killed === null) return this.finish({ outcome: 'STOPPED' })
        const isTold = this.isWaiting || error instanceof NoThread
        const cause = isTold ? error.message : `the run's thread died: ${withCure(error)}`
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
    // With what was written after they were closed, before the thread heard of it.
    for (const { ring } of this.spareRings.splice(0)) giveBackCapture(ring)
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
    this.isLeaving = true
    this.leave.abort(new RunOver('the run was stopped'))
    this.signal(COMMAND_STOP)
  }

  capture(options: CaptureOptions): Capture {
    const shared = this.spareRings.pop() ?? { ring: createCapture(), writers: 0 }
    const { ring } = shared
    shared.writers++
    const id = ++this.serial
    const tell = (message: CaptureMessage | UncaptureMessage) => {
      if (this.over) return
      this.port.postMessage(message)
      this.signal(COMMAND_MESSAGE)
    }
    tell({ type: 'capture', id, options, ring })
    const close = () => {
      tell({ type: 'uncapture', id })
      giveBackCapture(ring)
      if (!this.over) this.spareRings.push(shared)
    }
    return { reader: new CaptureReader(ring, shared.writers), close }
  }

  kill(cause: string): void {
    if (this.over) return
    this.killed ??= cause
    this.isLeaving = true
    this.leave.abort(new RunOver(cause))
    void this.threads.loaded().then(() => {
      if (this.over) return
      this.abort.abort()
      native.eventSignal(this.event) // a thread that sleeps in the poller ends once it wakes
    })
  }

  reconfigure(config: PipelineConfig, timeout?: number): Promise<void> {
    // The other half is the thread's.
    const within = timeout === undefined ? undefined : timeout / 2
    const resolved = this.changes.then(async () => {
      const known = new Map(this.answers)
      return { change: await this.resolve(config, known, within), known }
    })
    this.changes = resolved.catch(() => {})
    return resolved.then(async ({ change, known }) => {
      await this.send(change)
      this.have(change, known)
    })
  }

  keepChange(): void {
    const named = new Set(this.hosts.map(({ host }) => host))
    this.answers = new Map([...this.answers].filter(([host]) => named.has(host)))
  }

  private have({ hosts }: ResolvedConfig, answers: ReadonlyMap<string, Answers>): void {
    this.hosts = hosts
    this.answers = answers
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
