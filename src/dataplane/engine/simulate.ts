/** Runs a configuration on a virtual clock with seeded randomness and no sockets: same seed, same result. */
import { VirtualClock } from './clock.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { Graph, type GraphEnvironment, layoutOf } from './graph.ts'
import { createRegion, RegionReader, RegionWriter } from './metrics.ts'
import { Random } from './random.ts'
import type { LogLine, RunEnd } from './run.ts'
import { SimulatedIo } from './simulated-io.ts'

export interface SimulateOptions {
  /** Virtual time to run, nanoseconds. */
  duration: number
  /** Seeds every component that has no seed of its own (default 1). */
  seed?: number
  onLog?: (line: LogLine) => void
  /** The components to build with. */
  registry: Registry
}

/** How far the virtual clock moves in a breath of a source that is never done, nanoseconds. */
const BUSY_BREATH_NS = 100_000

/** A simulation that can be driven step by step. */
export class Simulation {
  readonly clock = new VirtualClock()
  readonly graph: Graph
  readonly io: SimulatedIo
  /** Breaths taken. */
  breaths = 0
  private readonly region: SharedArrayBuffer
  private readonly writer: RegionWriter
  private readonly reader: RegionReader
  private end: RunEnd | null = null

  constructor(config: PipelineConfig, { seed = 1, onLog, registry }: Omit<SimulateOptions, 'duration'>) {
    const random = new Random(seed)
    this.region = createRegion(layoutOf(config, registry).metrics)
    this.writer = new RegionWriter(this.region)
    this.reader = new RegionReader(this.region)
    this.io = new SimulatedIo(this.clock)
    const environment: GraphEnvironment = {
      clock: this.clock,
      io: this.io,
      attach: (packets) => this.io.attach(packets),
      drawSeed: () => random.bits() >>> 1,
      entropy: (bytes) => {
        const drawn = new Uint8Array(bytes)
        random.fill(drawn, 0, bytes)
        return drawn
      },
      log: (level, component, message, fields = {}) => {
        onLog?.({ timestamp: this.clock.now / 1e6, level, component, message, fields })
      },
      end: (error) => {
        this.end ??= error ? { outcome: 'FAILED', error: error.message } : { outcome: 'COMPLETED' }
      },
    }
    this.graph = new Graph(config, environment, registry)
  }

  /** Moves virtual time on to `until` (nanoseconds), breath by breath. Stands still once a component has ended the run or it is complete. */
  advanceTo(until: number): void {
    const { graph, io, clock } = this
    const { timers, sources } = graph
    while (!this.end) {
      this.breaths++
      io.dispatch()
      let busy = false
      for (const source of sources) if (source()) busy = true
      timers.fireDue(clock.now)
      graph.flush()
      if (io.pending) continue
      if (graph.complete) {
        this.end ??= { outcome: 'COMPLETED' }
        break
      }
      const next = busy ? Math.min(clock.now + BUSY_BREATH_NS, timers.next) : timers.next
      if (next > until) break
      clock.advanceTo(next)
    }
    if (!this.end) clock.advanceTo(until)
  }

  /** Whether it has ended before its time: by a component, or because all is done. */
  get over(): boolean {
    return this.end !== null
  }

  /** The metrics of now: component, then metric name, to number. */
  metrics(): Record<string, Record<string, number>> {
    this.graph.observe()
    this.writer.publish(this.graph.values, this.clock.now)
    const { values } = this.reader.snapshot() ?? this.reader.blank // whole: the writer is this thread
    const result: Record<string, Record<string, number>> = {}
    for (const { path, name, index } of this.reader.entries) {
      result[path] ??= {}
      result[path][name] = values[index]
    }
    return result
  }

  /** Reads metrics as telemetry does. */
  get metricsRegion(): SharedArrayBuffer {
    return this.region
  }

  /** Ends the simulation: every component stops and gives back what it held. */
  stop(): RunEnd {
    const failure = this.graph.stop()
    if (failure) return { outcome: 'FAILED', error: `stopping failed: ${failure.message}` }
    return this.end ?? { outcome: 'STOPPED' }
  }
}

/** Runs a whole simulation and gives its end and the metrics of it: what was still held then is counted as such. */
export function simulate(
  config: PipelineConfig,
  options: SimulateOptions,
): { end: RunEnd; metrics: Record<string, Record<string, number>>; elapsed: number } {
  const simulation = new Simulation(config, options)
  try {
    simulation.advanceTo(options.duration)
  } catch (error) {
    simulation.stop()
    return { end: { outcome: 'FAILED', error: (error as Error).message }, metrics: {}, elapsed: simulation.clock.now }
  }
  const end = simulation.stop()
  return { end, metrics: simulation.metrics(), elapsed: simulation.clock.now }
}
