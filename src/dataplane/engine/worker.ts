/** The run loop in its worker thread: one Piscina task is one run, from creating the graph to closing everything. */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { INSTALL_AGAIN, messageOf } from '../../text/error-message.ts'
import { native } from '../native/native.ts'
import type { CaptureOptions } from './capture.ts'
import { MonotonicClock } from './clock.ts'
import type { AnyComponent, ComponentLoaders, Registry } from './component.ts'
import { ComponentError, causeOf, refusedBySystem } from './component-error.ts'
import { Graph, type GraphEnvironment } from './graph.ts'
import type { ResolvedConfig, ResolvedHost } from './host-names.ts'
import type { LogLevel } from './log.ts'
import { Loop, type LoopHost } from './loop.ts'
import { LoopMeter } from './loop-meter.ts'
import { RegionWriter } from './metrics.ts'
import { NativeIo } from './native-io.ts'
import type { NetworkChange, NetworkMember, NetworkPlace } from './network.ts'
import { type LogLine, lastWords, type RunEnd } from './run.ts'
import { cureOf, withCure } from './scarcity.ts'

/** What the main thread hands to the worker. */
export interface WorkerTask extends ResolvedConfig {
  region: SharedArrayBuffer
  /** One word of `COMMAND_*` bits, looked at every breath. */
  command: SharedArrayBuffer
  /** Descriptor owner and eventfd, made by the main thread so that it can clean up after a dead worker. */
  owner: number
  /** Its event is the one that the command word is signalled with. */
  place: NetworkPlace
  port: MessagePort
  cpus: number[]
  performanceMode: boolean
  level: LogLevel
  /** Whether the run waits for COMMAND_GO once its graph stands. */
  hold: boolean
  /** Keys of components to be loaded besides those of the configuration; absent but in a rehearsal. */
  preload?: readonly string[]
}

export const COMMAND_STOP = 1
/** A message waits on the port. */
export const COMMAND_MESSAGE = 2
export const COMMAND_GO = 4

/** From the worker to the main thread. */
export type WorkerMessage =
  /** The graph stands, and the run waits for COMMAND_GO. */
  | { type: 'built' }
  /** Packets flow: over these simulated networks, and to these members of them. */
  | { type: 'running'; networks: string[]; members: NetworkMember[] }
  | { type: 'log'; lines: LogLine[] }
  | { type: 'reconfigured'; serial: number; error?: string }
  /** The last one. */
  | { type: 'ended' }

/** From the main thread to the worker. */
export interface ReconfigureMessage extends ResolvedConfig {
  type: 'reconfigure'
  serial: number
}

/** Copies packets into `ring` until an UncaptureMessage with the same id comes. */
export interface CaptureMessage {
  type: 'capture'
  id: number
  options: CaptureOptions
  ring: SharedArrayBuffer
}

export interface UncaptureMessage {
  type: 'uncapture'
  id: number
}

export interface NetworkMessage extends NetworkChange {
  type: 'network'
}

const LEVELS: readonly LogLevel[] = ['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']
/** Log lines a run may send in one second; more are counted and summed up in one line. */
const MAX_LINES_PER_SECOND = 10_000
/** Lines sent in one message, at most: those of one breath go together. */
const MAX_LINES_PER_MESSAGE = 256

/** Loaded where it is needed, which takes 2 ms: most runs draw nothing. */
const crypto = () => process.getBuiltinModule('node:crypto')

class LogLineSender {
  private readonly port: MessagePort
  private readonly threshold: number
  private window = 0
  private sent = 0
  private suppressed = 0
  private lines: LogLine[] = []

  constructor(port: MessagePort, level: LogLevel) {
    this.port = port
    this.threshold = LEVELS.indexOf(level)
  }

  /** Lines go out with `flush`; STATE and FATAL ones, and what came before them, at once. */
  write(level: LogLevel, component: string, message: string, fields: LogLine['fields'] = {}): void {
    // STATE lines tell what the run does; they are never filtered.
    if (level !== 'STATE' && LEVELS.indexOf(level) < this.threshold) return
    const timestamp = this.enterWindow()
    const { lines } = this
    // What the run does, and a line that ends it, is always told.
    if (this.sent++ < MAX_LINES_PER_SECOND || level === 'STATE' || level === 'FATAL')
      lines.push({ timestamp, level, component, message, fields })
    else this.suppressed++
    if (level === 'STATE' || level === 'FATAL' || lines.length >= MAX_LINES_PER_MESSAGE) this.flush()
  }

  /** The time now, milliseconds since the Unix epoch; what was dropped in the second before is told. */
  private enterWindow(): number {
    const timestamp = native.unixTime() / 1e6
    const window = Math.floor(timestamp / 1000)
    if (window === this.window) return timestamp
    this.tellSuppressed(timestamp)
    this.window = window
    this.sent = 0
    return timestamp
  }

  /** Says how many lines were dropped and not told of yet, if any were. */
  tellSuppressed(timestamp = native.unixTime() / 1e6): void {
    const dropped = this.suppressed
    if (dropped === 0) return
    this.suppressed = 0
    const message = `${dropped} log lines were dropped: more than ${MAX_LINES_PER_SECOND} in one second`
    this.lines.push({ timestamp, level: 'WARN', component: '', message, fields: { dropped } })
  }

  /** In how many nanoseconds `flush` has something to tell though no line follows; infinite where it has nothing. */
  get dueIn(): number {
    return this.suppressed === 0 ? Number.POSITIVE_INFINITY : (this.window + 1) * 1e9 - native.unixTime()
  }

  flush(): void {
    // No other line may follow for long.
    if (this.suppressed > 0) this.enterWindow()
    const { lines } = this
    if (lines.length === 0) return
    this.lines = []
    this.port.postMessage({ type: 'log', lines } satisfies WorkerMessage)
  }
}

/** One run in this thread. */
class Run implements LoopHost {
  private readonly task: WorkerTask
  private readonly log: LogLineSender
  private readonly clock = new MonotonicClock()
  private readonly io: NativeIo
  private readonly command: Int32Array
  private readonly writer: RegionWriter
  private readonly graph: Graph
  /** What ends each capture, by its id. */
  private readonly captures = new Map<number, () => void>()
  private readonly meter: LoopMeter
  private readonly breathing: Loop
  ending = false
  private failure: Error | null = null

  constructor(task: WorkerTask, registry: Registry) {
    this.task = task
    this.log = new LogLineSender(task.port, task.level)
    this.command = new Int32Array(task.command)
    this.writer = new RegionWriter(task.region)
    this.tellHosts(task.hosts)
    this.io = new NativeIo(task.owner, task.place, this.clock)
    try {
      this.graph = this.compile(registry)
    } catch (error) {
      this.log.flush()
      this.io.detach()
      throw error
    }
    this.meter = new LoopMeter(this.graph.engine, this.clock.tick())
    this.breathing = new Loop(this, this.graph, this.io, this.clock, this.command, this.meter, task.performanceMode)
  }

  private compile(registry: Registry): Graph {
    const environment: GraphEnvironment = {
      clock: this.clock,
      io: this.io,
      attach: (packets, arrivalTimes) => this.io.attach(packets, arrivalTimes),
      owner: this.task.owner,
      drawSeed: () => crypto().randomInt(0x7fffffff),
      entropy: (bytes) => new Uint8Array(crypto().randomBytes(bytes)),
      log: (level, component, message, fields) => this.log.write(level, component, message, fields),
      end: (error) => {
        this.ending = true
        this.failure ??= error ?? null
      },
    }
    return new Graph(this.task.config, environment, registry)
  }

  /** Says whose addresses the host names in the configuration have become. */
  private tellHosts(hosts: readonly ResolvedHost[]): void {
    for (const { component, ...fields } of hosts) {
      this.log.write('INFO', component, `${fields.field}: ${fields.host} is ${fields.address}`, fields)
    }
  }

  /** Runs until it is stopped, complete, ended by a component, or a component throws. Calls `told` once it has said that packets flow. */
  loop(told?: () => void): RunEnd {
    const isLetGo = !this.task.hold || this.waitForGo()
    if (isLetGo) this.tellRunning()
    told?.()
    let outcome: RunEnd
    try {
      const stopped = !isLetGo || this.breathing.run()
      outcome = this.failure
        ? { outcome: 'FAILED', error: this.failure.message }
        : { outcome: stopped ? 'STOPPED' : 'COMPLETED' }
    } catch (error) {
      const thrown = refusedBySystem(error) ? '' : 'the run threw: '
      outcome = { outcome: 'FAILED', error: `${thrown}${(error as Error).message}` }
      const component = error instanceof ComponentError ? error.component : ''
      this.log.write('ERROR', component, `${thrown}${causeOf(error)}`)
    }
    const failure = this.graph.stop() ?? this.failure
    if (failure && outcome.outcome !== 'FAILED') {
      outcome = { outcome: 'FAILED', error: `stopping failed: ${failure.message}` }
    }
    this.publish()
    this.io.detach()
    this.log.tellSuppressed()
    const { message, fields } = lastWords(outcome)
    this.log.write('STATE', '', message, fields)
    return outcome
  }

  private tellRunning(): void {
    // Whoever waits for the run to be on finds what it has logged until then.
    this.log.flush()
    const { names, own } = this.io.networks
    this.task.port.postMessage({ type: 'running', networks: names, members: own } satisfies WorkerMessage)
    this.log.write('STATE', '', 'running')
  }

  /** Whether the run may go on; false when it is to stop first. */
  private waitForGo(): boolean {
    const { command } = this
    this.log.flush()
    this.task.port.postMessage({ type: 'built' } satisfies WorkerMessage)
    for (;;) {
      const bits = Atomics.load(command, 0)
      if ((bits & COMMAND_STOP) !== 0) return false
      if ((bits & COMMAND_GO) !== 0) {
        Atomics.and(command, 0, ~COMMAND_GO)
        return true
      }
      Atomics.wait(command, 0, bits)
    }
  }

  /** Carries out what the command word asks for; true to stop. */
  obey(): boolean {
    const bits = Atomics.exchange(this.command, 0, 0)
    if ((bits & COMMAND_MESSAGE) !== 0) {
      for (;;) {
        const received = receiveMessageOnPort(this.task.port)
        if (!received) break
        const message = received.message as ReconfigureMessage | NetworkMessage | CaptureMessage | UncaptureMessage
        if (message.type === 'network') this.io.networks.change(message)
        else if (message.type === 'capture')
          this.captures.set(message.id, this.graph.capture(message.options, message.ring))
        else if (message.type === 'uncapture') this.uncapture(message.id)
        else this.reconfigure(message)
      }
    }
    return (bits & COMMAND_STOP) !== 0
  }

  private uncapture(id: number): void {
    this.captures.get(id)?.()
    this.captures.delete(id)
  }

  private reconfigure({ serial, config, hosts }: ReconfigureMessage): void {
    const reply: WorkerMessage = { type: 'reconfigured', serial }
    try {
      this.tellHosts(hosts)
      this.graph.reconfigure(config)
      this.log.write('STATE', '', 'configuration applied')
    } catch (error) {
      reply.error = (error as Error).message
      this.log.flush()
    }
    this.task.port.postMessage(reply)
  }

  flushLog(): void {
    this.log.flush()
  }

  get logDueAt(): number {
    return this.clock.now + this.log.dueIn
  }

  publish(): void {
    this.meter.observe(this.clock.now)
    this.graph.observe()
    this.writer.publish(this.graph.values, this.clock.epoch + this.clock.now)
  }
}

/**
 * What a thread does with a task, for the module that Piscina loads in it. Never rejects: what goes wrong is the run's end. Calls `warm` once the
 * code that a start takes has run: once a run has said that packets flow, and at the end of a rehearsal, which has run the rest as well by then.
 */
export function threadTask(loaders: ComponentLoaders): (task: WorkerTask, warm?: () => void) => Promise<RunEnd> {
  const components = new Map<string, AnyComponent>()
  return async (task, warm) => {
    let pinned = false
    try {
      if (task.cpus.length > 0) {
        pin(task)
        pinned = true
      }
      await loadComponents(task, loaders, components)
      const run = new Run(task, components)
      if (task.preload === undefined) return run.loop(warm)
      const end = run.loop()
      warm?.()
      return end
    } catch (error) {
      return { outcome: 'FAILED', error: withCure(error as Error) }
    } finally {
      if (pinned) unpin(task)
      task.port.postMessage({ type: 'ended' } satisfies WorkerMessage)
      task.port.close()
    }
  }
}

/** Adds the components that the task names to `components`. Rejects with which of them could not be loaded, and why. */
async function loadComponents(
  { config, port, level, preload = [] }: WorkerTask,
  loaders: ComponentLoaders,
  components: Map<string, AnyComponent>,
): Promise<void> {
  for (const [name, { key }] of Object.entries(config.components)) {
    if (components.has(key)) continue
    const load = loaders[key]
    try {
      if (load === undefined) throw new Error('threads do not have it')
      components.set(key, await load())
    } catch (error) {
      const why = cureOf(error) === undefined ? `${messageOf(error)}; ${INSTALL_AGAIN}` : withCure(error as Error)
      const message = `${key} could not be loaded: ${why}`
      const log = new LogLineSender(port, level)
      log.write('ERROR', name, message)
      log.flush()
      // It says what to do: no cause that would have it said again.
      throw new Error(`component "${name}": ${message}`)
    }
  }
  for (const key of preload) {
    // One that cannot be loaded is told of by the run that names it.
    const loaded = components.get(key) ?? (await loaders[key]?.().catch(() => undefined))
    if (loaded !== undefined) components.set(key, loaded)
  }
}

/** What to do where nothing but what the process was started with keeps a thread from choosing among its CPUs. */
const ALLOW_AFFINITY =
  'allow the node to pin its threads: leave ~@resources out of SystemCallFilter= of its systemd unit, or allow sched_setaffinity in the seccomp profile of its container'

/** Keeps the thread on the CPUs of the task. Throws where the system does not let it. */
function pin({ cpus, performanceMode }: WorkerTask): void {
  try {
    // One that never sleeps leaves nothing to the others, and they, the compiler's among them, hold up packets that are due.
    native.setAffinity(cpus, performanceMode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') (error as Error).message += `; ${ALLOW_AFFINITY}`
    throw error
  }
}

/** Lets the thread run on every CPU again; a system that no longer allows it is no fault of the run. */
function unpin({ port, level, cpus }: WorkerTask): void {
  try {
    native.setAffinity([])
  } catch (error) {
    const message = `the thread stays on CPU ${cpus.join(', ')} until a run is pinned elsewhere: ${(error as Error).message}`
    const log = new LogLineSender(port, level)
    log.write('WARN', '', message)
    log.flush()
  }
}
