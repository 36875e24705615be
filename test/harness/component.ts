/** Drives components on the virtual clock without sockets: feeds their inputs, collects their outputs, checks conservation. */
import { Type } from '@sinclair/typebox'
import { components } from '../../src/dataplane/components/registry.ts'
import { formatRemote, parseSocketAddress, remoteRecord } from '../../src/dataplane/engine/address.ts'
import { Batch } from '../../src/dataplane/engine/batch.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { type AnyComponent, defineComponent } from '../../src/dataplane/engine/component.ts'
import type { PipelineConfig } from '../../src/dataplane/engine/config.ts'
import { diffConfig } from '../../src/dataplane/engine/diff.ts'
import type { Notification } from '../../src/dataplane/engine/flow.ts'
import { consumed, created, type MetricDeclaration } from '../../src/dataplane/engine/metrics.ts'
import type { Outlet } from '../../src/dataplane/engine/outlet.ts'
import type { Packets } from '../../src/dataplane/engine/packets.ts'
import { portName, portsOf } from '../../src/dataplane/engine/ports.ts'
import type { LogLine, RunEnd } from '../../src/dataplane/engine/run.ts'
import { Input, Output } from '../../src/dataplane/engine/schema.ts'
import { advanceTogether, type SimulatedWorld, Simulation } from '../../src/dataplane/engine/simulate.ts'
import type { Problem } from '../../src/text/pointer.ts'

/** Components by name, each `{ key: config }`, as under `engine_config.pipeline`. Open ends are fed and collected. */
export type Pipeline = Record<string, Record<string, unknown>>

export interface DriveOptions {
  /** Seeds components that have none (default 1). */
  seed?: number
  /** Longest packet that can be fed, bytes (default 2048). */
  mtu?: number
  /** False: outputs are counted but not kept, for long statistics (default true). */
  record?: boolean
  /** The simulations that it is one of (default: it is alone); move them on with `advanceAll`. */
  world?: SimulatedWorld
}

/** Annotations of a packet to feed; absent ones are unset, arrival is the present. */
export interface Annotations {
  /** `ip:port`. */
  remote?: string
  client?: number
  arrival?: number
}

/** A packet that came out. */
export interface Received {
  /** A copy, the collector's own. */
  bytes: Uint8Array
  /** When it came out, ns. */
  time: number
  arrival: number
  /** `ip:port`, '' where there is none. */
  remote: string
  /** -1 where there is none. */
  client: number
}

/** Thrown by `drive` when the configuration is refused. */
export class Refused extends Error {
  readonly problems: Problem[]

  constructor(problems: Problem[]) {
    super(problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('\n'))
    this.problems = problems
  }
}

/** Where packets are not conserved, in words; empty when all is well. `metrics` as `Simulation.metrics()` gives them. */
export function conservation(
  config: PipelineConfig,
  metrics: Record<string, Record<string, number>>,
  registry: ReadonlyMap<string, AnyComponent> = components,
): string[] {
  const faults: string[] = []
  for (const [name, { key, config: own }] of Object.entries(config.components)) {
    const definition = registry.get(key) as AnyComponent
    const sums = { input: 0, output: 0, created: 0, consumed: 0, drop: 0, intended: 0, overflow: 0, held: 0 }
    for (const port of portsOf(name, definition.config, own)) {
      sums[port.kind] += metrics[name][`${portName(port)}_packets`]
    }
    for (const [metric, { role, unread }] of Object.entries<MetricDeclaration>(definition.metrics)) {
      if (role && !unread) sums[role] += metrics[name][metric]
    }
    const entered = sums.input + sums.created
    const accounted = sums.output + sums.drop + sums.intended + sums.overflow + sums.consumed + sums.held
    if (entered !== accounted) {
      faults.push(`"${name}" (${key}): ${entered} packets came in or were created, ${accounted} are accounted for`)
      faults[faults.length - 1] += ` (${JSON.stringify(sums)})`
    }
  }
  return faults
}

export class Bench {
  readonly simulation: Simulation
  readonly config: PipelineConfig
  readonly log: LogLine[] = []
  private readonly registry: ReadonlyMap<string, AnyComponent>
  private readonly feeds = new Map<string, Outlet>()
  private readonly collected = new Map<string, Received[]>()
  private readonly notified = new Map<string, Notification[]>()
  private readonly fedNames: Set<string>
  private feeding = true

  /** Use `drive`. */
  constructor(pipeline: Pipeline, { seed = 1, mtu = 2048, record = true, world }: DriveOptions) {
    const feed = defineComponent({
      key: 'test_feed',
      family: 'sources',
      summary: 'Feeds packets of a test.',
      config: Type.Object({ output: Output() }),
      metrics: { fed_packets: created('Packets fed.') },
      mtu: () => mtu,
      create: (config, { outlets, metrics }) => {
        const count = (batch: { length: number }) => metrics.fed_packets.add(batch.length)
        const outlet = outlets.output
        this.feeds.set(config.output, outlet)
        const send = outlet.send.bind(outlet)
        outlet.send = (batch) => {
          count(batch)
          send(batch)
        }
        return { active: () => this.feeding }
      },
    })
    const collect = defineComponent({
      key: 'test_collect',
      family: 'sources',
      summary: 'Collects packets for a test.',
      config: Type.Object({ input: Input() }),
      metrics: { collected_packets: consumed('Packets collected.') },
      create: (config, { packets, metrics, clock }) => {
        const kept: Received[] = []
        const notified: Notification[] = []
        const record32 = new Int32Array(packets.remote.length / packets.slots / 4)
        this.collected.set(config.input, kept)
        this.notified.set(config.input, notified)
        return {
          input: (batch) => {
            const bytes = packets.bytesOf(batch)
            if (batch.bytes !== bytes) throw new Error(`a batch of ${bytes} bytes says that it has ${batch.bytes}`)
            metrics.collected_packets.add(batch.length)
            for (let i = 0; record && i < batch.length; i++) {
              const packet = batch.handles[i]
              packets.readRemote(packet, record32)
              const at = packets.offset[packet]
              kept.push({
                bytes: packets.data.slice(at, at + packets.length[packet]),
                time: clock.now,
                arrival: packets.arrival[packet],
                remote: formatRemote(record32),
                client: packets.client[packet],
              })
            }
            packets.releaseAll(batch)
          },
          notify: (notification) => notified.push(notification),
        }
      },
    })
    this.registry = new Map<string, AnyComponent>([...components, [feed.key, feed], [collect.key, collect]])
    const ends = openEnds(pipeline)
    this.fedNames = new Set(ends.inputs)
    const whole: Pipeline = { ...pipeline }
    for (const name of ends.inputs) whole[`feed of ${name}`] = { test_feed: { output: name } }
    for (const name of ends.outputs) whole[`collector of ${name}`] = { test_collect: { input: name } }
    const json = JSON.stringify({ version: 1, engine_config: { pipeline: whole } })
    const { config, problems } = checkPipelineConfig(json, this.registry)
    if (!config) throw new Refused(problems)
    this.config = config
    const run = { seed, registry: this.registry, onLog: (line: LogLine) => this.log.push(line) }
    this.simulation = new Simulation(config, run, world)
  }

  /** The run's packets, for tests that look at slots. */
  get packets(): Packets {
    return this.simulation.graph.packets
  }

  /** Present time, ns. */
  get now(): number {
    return this.simulation.clock.now
  }

  /** Names of the open inputs. */
  get inputs(): string[] {
    return [...this.fedNames]
  }

  /** Names of the open outputs. */
  get outputs(): string[] {
    return [...this.collected.keys()]
  }

  /**
   * Feeds payloads into the connection `name` at the present time, in batches of at most 256 packets, and lets the graph take
   * the breath that follows.
   */
  send(name: string, payloads: Uint8Array | readonly Uint8Array[], annotations: Annotations = {}): void {
    const outlet = this.feeds.get(name)
    if (!outlet) throw new Error(`"${name}" is no open input; open are ${this.inputs.join(', ') || 'none'}`)
    const list = payloads instanceof Uint8Array ? [payloads] : payloads
    const { packets } = this
    const remote = annotations.remote === undefined ? null : parseSocketAddress(annotations.remote)
    const batch = new Batch(packets)
    for (const payload of list) {
      const packet = packets.allocate()
      if (packet < 0) throw new Error('no packet slot is free')
      const at = packets.append(packet, payload.length)
      if (at < 0) throw new Error(`${payload.length} bytes do not fit a slot: pass a larger mtu to drive()`)
      packets.data.set(payload, at)
      packets.arrival[packet] = annotations.arrival ?? this.now
      packets.client[packet] = annotations.client ?? -1
      if (remote) packets.setRemote(packet, remoteRecord(remote))
      batch.push(packet)
      if (batch.full) outlet.send(batch)
    }
    outlet.send(batch)
    this.advance(0)
  }

  /** Nothing will be fed any more: as far as the open inputs go, the run may be complete. */
  endFeeds(): void {
    this.feeding = false
    this.advance(0)
  }

  /** Whether the run has ended by itself; time stands still then. */
  get over(): boolean {
    return this.simulation.over
  }

  /** Feeds a notification into the connection `name`. */
  notify(name: string, notification: Notification): void {
    const outlet = this.feeds.get(name)
    if (!outlet) throw new Error(`"${name}" is no open input; open are ${this.inputs.join(', ') || 'none'}`)
    outlet.notify(notification)
    this.advance(0)
  }

  /** Moves time on by `ns`; 0 takes one breath. */
  advance(ns: number): void {
    this.simulation.advanceTo(this.now + ns)
  }

  /** What came out of the connection `name` since the last `take`. */
  received(name: string): readonly Received[] {
    const kept = this.collected.get(name)
    if (!kept) throw new Error(`"${name}" is no open output; open are ${this.outputs.join(', ') || 'none'}`)
    return kept
  }

  /** What came out of the connection `name`, and forgets it. */
  take(name: string): Received[] {
    return (this.received(name) as Received[]).splice(0)
  }

  notifications(name: string): readonly Notification[] {
    return this.notified.get(name) ?? []
  }

  /** Component name to metric name to number. */
  metrics(): Record<string, Record<string, number>> {
    return this.simulation.metrics()
  }

  /** Throws where a component loses or invents packets. */
  check(): void {
    const metrics = this.metrics()
    const faults = conservation(this.config, metrics, this.registry)
    if (faults.length > 0) throw new Error(`packets are not conserved: ${faults.join('; ')}`)
  }

  /**
   * Applies changed configurations of components (by name, whole configurations), as a live update does: through the
   * check, to the running graph. Throws `Refused` when they are wrong or need another run.
   */
  reconfigure(pipeline: Pipeline): void {
    const whole: Pipeline = {}
    for (const [name, { key, config }] of Object.entries(this.config.components)) whole[name] = { [key]: config }
    Object.assign(whole, pipeline)
    const json = JSON.stringify({ version: 1, engine_config: { pipeline: whole } })
    const { config, problems } = checkPipelineConfig(json, this.registry)
    if (!config) throw new Refused(problems)
    const { restart } = diffConfig(this.config, config, this.registry)
    if (restart.length > 0) {
      throw new Refused(restart.map(({ pointer }) => ({ pointer, message: 'a change needs another run' })))
    }
    this.simulation.graph.reconfigure(config)
    this.advance(0)
  }

  /** Checks conservation, stops every component, checks it again and throws when something is held still. */
  stop(): RunEnd {
    this.check()
    const end = this.simulation.stop()
    const { held } = this.packets
    if (held > 0) throw new Error(`${held} packet slots are still taken after stop`)
    this.check()
    for (const [name, { key }] of Object.entries(this.config.components)) {
      const metrics = this.metrics()[name]
      for (const [metric, { role }] of Object.entries<MetricDeclaration>(
        (this.registry.get(key) as AnyComponent).metrics,
      )) {
        if (role !== 'held' || metrics[metric] === 0) continue
        throw new Error(`"${name}" (${key}): ${metric} is ${metrics[metric]} after stop`)
      }
    }
    return end
  }
}

/** A configuration whose keys may be in lowerCamelCase, as schemas have them. */
function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased)
  if (typeof value !== 'object' || value === null) return value
  const snake = (key: string) => key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [snake(key), snakeCased(item)]))
}

function openEnds(pipeline: Pipeline): { inputs: string[]; outputs: string[] } {
  const read = new Set<string>()
  const written = new Set<string>()
  for (const [name, member] of Object.entries(pipeline)) {
    for (const [key, config] of Object.entries(member)) {
      const definition = components.get(key)
      if (!definition) continue
      for (const port of portsOf(name, definition.config, snakeCased(config))) {
        const side = port.kind === 'input' ? read : written
        side.add(port.name)
      }
    }
  }
  return {
    inputs: [...read].filter((name) => !written.has(name)),
    outputs: [...written].filter((name) => !read.has(name)),
  }
}

/**
 * Builds components in a simulation. Every input that nobody writes is fed by `bench.send(name, payloads)`, every output
 * that nobody reads is collected in `bench.received(name)`. Throws `Refused` with the problems of a bad configuration.
 *
 *     const bench = drive({ loss: { uniform_loss: { input: 'in', output: 'out', loss_prob: 0.1, seed: 1 } } })
 *     bench.send('in', payload(100))
 *     bench.advance(5e6)
 *     expect(bench.received('out')).toHaveLength(1)
 *     bench.stop()
 */
export function drive(pipeline: Pipeline, options: DriveOptions = {}): Bench {
  return new Bench(pipeline, options)
}

/** The first problem for which a configuration is refused; fails where it is taken. */
export function refusal(pipeline: Pipeline): Problem {
  try {
    drive(pipeline).stop()
  } catch (error) {
    if (error instanceof Refused) return error.problems[0] as Problem
    throw error
  }
  throw new Error('the configuration is taken')
}

/** Moves the time of benches of one world on by `ns`; 0 takes the breaths that are due now. */
export function advanceAll(benches: readonly Bench[], ns: number): void {
  const simulations = benches.map(({ simulation }) => simulation)
  advanceTogether(simulations, (benches[0] as Bench).now + ns)
}

/** `bytes` bytes that start with the 32-bit number `tag` and go on with a pattern of it. */
export function payload(bytes: number, tag = 0): Uint8Array {
  const made = new Uint8Array(bytes)
  for (let i = 0; i < bytes; i++) made[i] = i < 4 ? tag >>> (24 - i * 8) : (tag * 31 + i * 7) & 255
  return made
}

/** The `tag` of a `payload`. */
export function tagOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
}
