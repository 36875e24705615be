/** Compiles a checked configuration into component instances whose outlets call each other directly. */
import { native } from '../native/native.ts'
import { Batch } from './batch.ts'
import { type CaptureOptions, CaptureWriter } from './capture.ts'
import { capturedLinks } from './captured-links.ts'
import type { RunClock } from './clock.ts'
import type { AnyComponent, ComponentContext, Instance, Registry } from './component.ts'
import { type Blame, blameOf, blaming, type ComponentError, causeOf } from './component-error.ts'
import type { PipelineConfig } from './config.ts'
import { byEntry, entryDeclarations } from './entry-metrics.ts'
import { readWhole } from './files.ts'
import type { Notification, Receiver } from './flow.ts'
import type { Histogram } from './histogram.ts'
import type { ConnectionEvents, Io, IoEvents } from './io.ts'
import { type Layout, layoutOf } from './layout.ts'
import type { Log, LogLevel } from './log.ts'
import { bindMetrics, type Metrics } from './metrics.ts'
import { Outlet } from './outlet.ts'
import { ENGINE_PATH, engineMetrics } from './own-metrics.ts'
import { Packets } from './packets.ts'
import { type Connection, type Onward, outputsFrom, type Port, portName } from './ports.ts'
import { Random } from './random.ts'
import { growsFrom, largestPacket, longestPackets, roomOf } from './room.ts'
import { takeOver } from './take-over.ts'
import { TimerQueue } from './timers.ts'
import { warningsOf } from './warnings.ts'

/** Slots of a run's slab: enough for 500 ms of delay at 200,000 packets a second. */
const DEFAULT_SLOTS = 131_072
/** Most bytes of address space a slab takes. */
const MAX_SLAB_BYTES = 1 << 30
/** Trains a run can hold, where packets of some socket never grow: 16 MiB. */
const TRAINS = 256

/**
 * The packets of this thread's last graph, for the next: a thread that waits for its next run does not collect garbage, and
 * slabs are large. Their memory is open meanwhile, so that commands which the process starts need no room for it.
 */
let spare: { packets: Packets; memory: number } | null = null

type AnyInstance = Instance<Record<string, never>> & Record<string, unknown>

/** Everything a graph needs from its surroundings. */
export interface GraphEnvironment {
  clock: RunClock
  io: Io
  /** Told before any component is created of the run's packets, and whether they are to carry the kernel's times of arrival. */
  attach(packets: Packets, arrivalTimes: boolean): void
  /** Draws the seed of a component that has none. */
  drawSeed(): number
  entropy(bytes: number): Uint8Array
  /** Descriptor owner of the run; absent: the graph has one of its own, released at its stop. */
  owner?: number
  log(level: LogLevel, component: string, message: string, fields?: Record<string, string | number | boolean>): void
  /** A component ends the run. */
  end(error?: Error): void
}

/** Whether any component asks when the kernel took a packet in. */
function countsFromArrival(config: PipelineConfig, available: Registry): boolean {
  return Object.values(config.components).some(({ key }) => (available.get(key) as AnyComponent).fromArrival === true)
}

/** Slot size follows the largest packet that any component brings in, and what the others write around it. */
function packetsFor(config: PipelineConfig, available: Registry, onward: Onward): Packets {
  const { front: headroom, back, refused } = roomOf(config.components, available, onward)
  if (refused.length > 0) throw new Error(`unchecked configuration: ${refused[0].message}`)
  // In steps, so that slabs are alike more often.
  const tailroom = (back + 63) & ~63
  const mtu = largestPacket(config.components, available)
  const { components } = config
  const isWhole = (name: string) =>
    available.get(components[name].key)?.decoupled && !growsFrom(name, components, available, onward)
  const trains = Object.keys(components).some(isWhole) ? TRAINS : 0
  const slotBytes = headroom + mtu + tailroom + 64
  const slots = Math.min(DEFAULT_SLOTS, Math.floor(MAX_SLAB_BYTES / slotBytes))
  const options = { mtu, trains, slots, headroom, tailroom }
  if (!spare?.packets.fits(options)) return new Packets(options)
  const { packets, memory } = spare
  spare = null
  native.memoryClose(memory)
  packets.reset()
  return packets
}

function at(value: unknown, steps: readonly (string | number)[]): unknown {
  return steps.reduce<unknown>((inner, step) => (inner as Record<string | number, unknown>)?.[step], value)
}

function place(root: Record<string, unknown>, steps: readonly (string | number)[], value: unknown): void {
  let inner = root as Record<string | number, unknown>
  for (let i = 0; i < steps.length - 1; i++) {
    inner[steps[i]] ??= typeof steps[i + 1] === 'number' ? [] : {}
    inner = inner[steps[i]] as Record<string | number, unknown>
  }
  inner[steps[steps.length - 1]] = value
}

/** `io` whose events name the component in what they throw. */
function blamingIo(io: Io, blame: Blame): Io {
  const guarded = ({ readable, writable }: IoEvents): IoEvents => ({
    ...(readable && { readable: blaming(blame, readable) }),
    ...(writable && { writable: blaming(blame, writable) }),
  })
  const guardedAll = ({ readable, writable }: ConnectionEvents): ConnectionEvents => ({
    readable: blaming(blame, readable),
    writable: blaming(blame, writable),
  })
  return {
    simulated: io.simulated,
    remote: (address) => io.remote(address),
    ...(io.rescope && { rescope: (address, record) => io.rescope?.(address, record) }),
    ...(io.routes && { routes: (changed) => io.routes?.(blaming(blame, changed)) }),
    udp: (options, events) => io.udp(options, guarded(events)),
    tun: (options, events) => io.tun(options, guarded(events)),
    listen: (options, acceptable, events) => io.listen(options, blaming(blame, acceptable), guardedAll(events)),
    connect: (options, events) => io.connect(options, guardedAll(events)),
    network: (options, events) => io.network(options, guarded(events)),
  }
}

/** The compiled graph of one run, with its packets, timers and counters. Lives and dies with its thread's loop. */
export class Graph {
  readonly packets: Packets
  readonly timers = new TimerQueue()
  /** The run's private numbers, by `MetricEntry.index`. */
  readonly values: Float64Array
  /** What the loop that drives the graph counts. */
  readonly engine: Metrics<typeof engineMetrics>
  readonly sources: (() => boolean)[] = []
  private readonly layout: Layout
  private readonly environment: GraphEnvironment
  private readonly blames = new Map<string, Blame>()
  /** By the names of connection points; null until a component asks. */
  private longest: ReadonlyMap<string, number> | null = null
  /** By `shared`. */
  private readonly common = new Map<string, unknown>()
  private readonly histograms: Histogram[] = []
  private readonly instances = new Map<string, AnyInstance>()
  /** By the names of connection points. */
  private readonly outlets = new Map<string, Outlet>()
  private readonly flushes: (() => void)[] = []
  private readonly observers: (() => void)[] = []
  private readonly actives: (() => boolean)[] = []
  private readonly keepers: (() => number)[] = []
  private readonly available: Registry
  private config: PipelineConfig
  /** The addon's id of `packets` and the graph's own owner, -1 until a component asks. */
  private memory = -1
  private owner = -1

  /** Creates every component; when one throws, those made before are stopped and the error names the component. */
  constructor(config: PipelineConfig, environment: GraphEnvironment, available: Registry) {
    this.config = config
    this.available = available
    this.environment = environment
    this.layout = layoutOf(config, available)
    const { connections, onward, ports: portsByComponent } = this.layout.wiring
    for (const { component, pointer, message } of warningsOf(config.components, available, onward)) {
      environment.log('WARN', component, message, { pointer })
    }
    this.values = new Float64Array(this.layout.metrics.values)
    const places = this.layout.declared.get(ENGINE_PATH) as Map<string, number>
    this.engine = bindMetrics(engineMetrics, places, this.values, this.histograms) as Metrics<typeof engineMetrics>
    this.packets = packetsFor(config, available, onward)
    environment.attach(this.packets, countsFromArrival(config, available))
    const { outlets: outletsByName } = this
    for (const { name, from } of connections) {
      const counters = this.layout.counters.get(name) as number
      const { passes } = available.get(config.components[from.component].key) as AnyComponent
      outletsByName.set(name, new Outlet(this.packets, this.values, counters, passes))
    }
    try {
      for (const [name, { key, config: own }] of Object.entries(config.components)) {
        const definition = available.get(key) as AnyComponent
        const ports = portsByComponent.get(name) as readonly Port[]
        this.blames.set(name, blameOf(name, key))
        const outlets: Record<string, unknown> = {}
        for (const port of ports) {
          if (port.kind === 'output') place(outlets, port.steps, outletsByName.get(port.name))
        }
        const context = this.context(name, key, definition, own, outlets, environment)
        this.instances.set(name, this.create(name, definition, own, context))
      }
    } catch (error) {
      this.stop()
      throw error
    }
    for (const { name, to } of connections) {
      const target = this.instances.get(to.component) as AnyInstance
      const receiver = at(target, to.steps)
      if (typeof receiver !== 'function') {
        throw new Error(`component "${to.component}" has no receiver for its input ${portName(to)}`)
      }
      const outlet = outletsByName.get(name) as Outlet
      const listener = this.listener(to, target, portsByComponent, outletsByName)
      outlet.connect(receiver as Receiver, listener, this.blameFor(to.component))
    }
    for (const [name, instance] of this.instances) {
      const blame = this.blameFor(name)
      const { active, kept, flush, observe } = instance as Partial<Record<string, () => never>>
      const ports = portsByComponent.get(name) as readonly Port[]
      if (active) this.actives.push(blaming(blame, () => active.call(instance)))
      else if (ports.length > 0 && ports.every(({ kind }) => kind === 'output')) this.actives.push(() => true)
      if (kept) this.keepers.push(blaming(blame, () => kept.call(instance)))
      if (flush) this.flushes.push(blaming(blame, () => flush.call(instance)))
      if (observe) this.observers.push(blaming(blame, () => observe.call(instance)))
    }
  }

  /**
   * Copies into `ring`, from now on, what travels over the links at one side of a component; returns what ends that. A link's number is its
   * place in `capturedLinks`. Throws when there is no such component.
   */
  capture(options: CaptureOptions, ring: SharedArrayBuffer): () => void {
    const writer = new CaptureWriter(ring, options.length, this.packets)
    const { clock } = this.environment
    const ends = capturedLinks(this.config, this.available, options).map((name, link) =>
      (this.outlets.get(name) as Outlet).show((batch) => writer.take(batch, link, clock.epoch + clock.now)),
    )
    return () => {
      for (const end of ends) end()
    }
  }

  private blameFor(component: string): Blame {
    return this.blames.get(component) as Blame
  }

  private context(
    name: string,
    key: string,
    definition: AnyComponent,
    own: Record<string, unknown>,
    outlets: Record<string, unknown>,
    environment: GraphEnvironment,
  ): ComponentContext<unknown, never> {
    const declared = this.layout.declared.get(name) as Map<string, number>
    const blame = this.blameFor(name)
    const declarations = { ...definition.metrics, ...entryDeclarations(definition, own) }
    const metrics = bindMetrics(declarations, declared, this.values, this.histograms)
    const log: Log = (level, message, fields) => {
      environment.log(level, name, message, fields)
      if (level === 'FATAL') environment.end(blame(new Error(message)))
    }
    return {
      name,
      packets: this.packets,
      clock: environment.clock,
      io: blamingIo(environment.io, blame),
      outlets: outlets as never,
      metrics: metrics as never,
      entryMetrics: byEntry(definition, own, metrics) as never,
      log,
      random: (seed) => {
        const used = seed ?? environment.drawSeed()
        if (seed === undefined) log('INFO', `seed ${used} drawn for ${key}`, { seed: used })
        return new Random(used)
      },
      entropy: (bytes) => environment.entropy(bytes),
      file: readWhole,
      memory: () => this.nativeMemory(),
      owner: () => environment.owner ?? this.ownOwner(),
      shared: (common, make) => this.shared(common, make),
      follows: (other) => this.reaches(other, name),
      foreignAddresses: () => this.hasForeignAddresses(name),
      endsAtConnections: (any) => this.endsAtConnections(name, any),
      grows: () => growsFrom(name, this.config.components, this.available, this.layout.wiring.onward),
      longestFrom: (output) => this.longestFrom(output),
      timer: (fire) => this.timers.create(blaming(blame, fire)),
      batch: () => new Batch(this.packets),
      source: (poll) => {
        this.sources.push(blaming(blame, poll))
      },
      end: (error) => environment.end(error && blame(error)),
    }
  }

  private longestFrom(output: string): number {
    this.longest ??= longestPackets(this.config.components, this.available, this.layout.wiring.onward)
    return this.longest.get(output) ?? Number.POSITIVE_INFINITY
  }

  private shared<T>(name: string, make: () => T): T {
    if (!this.common.has(name)) this.common.set(name, make())
    return this.common.get(name) as T
  }

  private definitionOf(component: string): AnyComponent {
    return this.available.get(this.config.components[component].key) as AnyComponent
  }

  /** Whether what another socket has received reaches `component` with the address it came from. */
  private hasForeignAddresses(component: string): boolean {
    return Object.keys(this.config.components).some((other) => {
      if (other === component || !this.definitionOf(other).decoupled) return false
      return this.reaches(other, component, (between) => this.definitionOf(between).addresses === true)
    })
  }

  /** Whether what leaves `component` is altered nowhere and ends at connections; what others swallow on the way does not matter. */
  private endsAtConnections(component: string, any: boolean): boolean {
    const seen = new Set<Connection>()
    const { connections, onward } = this.layout.wiring
    const left = connections.filter((connection) => connection.from.component === component)
    let ends = false
    for (let connection = left.pop(); connection; connection = left.pop()) {
      if (seen.has(connection)) continue
      seen.add(connection)
      const { component: to } = connection.to
      const { connects, decoupled, alters } = this.definitionOf(to)
      const kind = connects?.(this.config.components[to].config)
      if (kind === 'stream' || (any && kind)) ends = true
      else if (decoupled || alters) return false
      else left.push(...(onward.get(connection) ?? []))
    }
    return ends
  }

  /** Whether packets that leave the component `from` reach `to` inside the graph, through no component that `stops` them. */
  private reaches(from: string, to: string, stops: (between: string) => boolean = () => false): boolean {
    const seen = new Set<Connection>()
    const { connections, onward } = this.layout.wiring
    const left = connections.filter((connection) => connection.from.component === from)
    for (let connection = left.pop(); connection; connection = left.pop()) {
      if (seen.has(connection)) continue
      seen.add(connection)
      if (connection.to.component === to) return true
      if (stops(connection.to.component)) continue
      left.push(...(onward.get(connection) ?? []))
    }
    return false
  }

  private nativeMemory(): number {
    if (this.memory < 0) this.memory = native.memoryOpen(this.packets)
    return this.memory
  }

  private ownOwner(): number {
    if (this.owner < 0) this.owner = native.ownerOpen()
    return this.owner
  }

  private create(
    name: string,
    definition: AnyComponent,
    own: Record<string, unknown>,
    context: ComponentContext<unknown, never>,
  ): AnyInstance {
    try {
      return definition.create(own, context) as AnyInstance
    } catch (error) {
      throw this.blameFor(name)(error)
    }
  }

  /** What a notification arriving at an input does: the component's own handler, else on to the outputs beside it. */
  private listener(
    to: Port,
    target: AnyInstance,
    ports: ReadonlyMap<string, readonly Port[]>,
    outlets: Map<string, Outlet>,
  ): (notification: Notification) => void {
    const { notify } = target
    if (notify) return (notification) => notify.call(target, notification, to.steps)
    const definition = this.available.get(this.config.components[to.component].key) as AnyComponent
    if (definition.decoupled) return () => {}
    const onward = outputsFrom(to, ports.get(to.component) as readonly Port[], definition.crosses).map(
      (port) => outlets.get(port.name) as Outlet,
    )
    return (notification) => {
      for (const outlet of onward) outlet.notify(notification)
    }
  }

  /** End of a breath: components send what they gathered. */
  flush(): void {
    const { flushes } = this
    for (let i = 0; i < flushes.length; i++) flushes[i]()
  }

  /** Between two breaths: nothing brings packets any more, and none is on its way. */
  get complete(): boolean {
    const { actives } = this
    for (let i = 0; i < actives.length; i++) if (actives[i]()) return false
    return this.waiting === 0
  }

  /** Packet slots taken, other than by memories of what has passed. */
  get waiting(): number {
    const { keepers, packets } = this
    let kept = 0
    if (packets.held > 0) for (let i = 0; i < keepers.length; i++) kept += keepers[i]()
    return packets.held - kept
  }

  /** Brings computed gauges and histograms up to date, before `values` are published. */
  observe(): void {
    for (const observe of this.observers) observe()
    const { held, slots } = this.packets
    this.engine.held_packets.set(held)
    this.engine.slab_use.set(held / slots)
    for (const made of this.histograms) made.summarise()
  }

  /**
   * Hands changed live fields to the components they belong to. Throws what one of them throws; all have then what they had, or the run
   * ends with why one has not.
   */
  reconfigure(next: PipelineConfig): void {
    const call = (step: 'verify' | 'reconfigure') => (name: string, config: unknown) => {
      try {
        ;(this.instances.get(name)?.[step] as ((config: unknown) => void) | undefined)?.(config)
      } catch (error) {
        throw this.blameFor(name)(error)
      }
    }
    takeOver(this.config.components, next.components, call('verify'), call('reconfigure'), (error) => {
      const { message } = error as Error
      this.environment.end(new Error(`a change was refused, and what was before cannot be had back: ${message}`))
    })
    this.config = next
  }

  /** Stops every component once; a component that throws does not keep the others from stopping. Returns the first error. */
  stop(): ComponentError | null {
    let first: ComponentError | null = null
    for (const [name, instance] of this.instances) {
      try {
        ;(instance.stop as (() => void) | undefined)?.()
      } catch (error) {
        const failure = this.blameFor(name)(error)
        first ??= failure
        this.environment.log('ERROR', failure.component, `stopping failed: ${causeOf(failure)}`)
      }
    }
    this.instances.clear()
    if (this.memory >= 0) native.memoryClose(this.memory)
    if (this.owner >= 0) native.ownerRelease(this.owner)
    this.memory = -1
    this.owner = -1
    if (spare) native.memoryClose(spare.memory)
    spare = { packets: this.packets, memory: native.memoryOpen(this.packets) }
    return first
  }
}
