/** Runs a configuration on a virtual clock with seeded randomness and no sockets: same seed, same result. */
import { NS_PER_S, VirtualClock } from './clock.ts'
import type { Registry } from './component.ts'
import type { PipelineConfig } from './config.ts'
import { Graph, type GraphEnvironment } from './graph.ts'
import { refuseHostNames } from './host-names.ts'
import { layoutOf } from './layout.ts'
import { byComponent, createRegion, RegionReader, RegionWriter } from './metrics.ts'
import { NetworkRegistry } from './network-registry.ts'
import { Random, seedOfRun } from './random.ts'
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

/** What runs that are simulated together have in common: one clock, and the simulated networks between them. */
export class SimulatedWorld {
  readonly clock = new VirtualClock()
  readonly networks = new NetworkRegistry()
}

/** More breaths at one moment are no traffic any more, but something that waits for a time that does not come. */
const MAX_BREATHS_AT_ONCE = 100_000

/** How far the virtual clock moves in a breath of a source that is never done, nanoseconds. */
const BUSY_BREATH_NS = 100_000

/** A simulation that can be driven step by step. */
export class Simulation {
  readonly clock: VirtualClock
  readonly graph: Graph
  readonly io: SimulatedIo
  /** Breaths taken. */
  breaths = 0
  private readonly region: SharedArrayBuffer
  private readonly writer: RegionWriter
  private readonly reader: RegionReader
  private readonly world: SimulatedWorld
  /** Virtual time at which it ended by itself, ns; null while it has not. */
  endedAt: number | null = null
  private end: RunEnd | null = null
  private stopped: RunEnd | null = null
  /** The metrics are those of its end: time goes on for others, and what a gauge says would with it. */
  private isFinal = false

  /** `world` is the one of the simulations that this is to be one of; absent: it is alone. */
  constructor(
    config: PipelineConfig,
    { seed = 1, onLog, registry }: Omit<SimulateOptions, 'duration'>,
    world = new SimulatedWorld(),
  ) {
    refuseHostNames(config, registry)
    this.world = world
    this.clock = world.clock
    const random = new Random(seed)
    this.region = createRegion(layoutOf(config, registry).metrics)
    this.writer = new RegionWriter(this.region)
    this.reader = new RegionReader(this.region)
    const { run, present } = world.networks.enter((change) => this.io.networks.change(change))
    this.io = new SimulatedIo(this.clock, { run, event: -1, present })
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
        this.finish(error ? { outcome: 'FAILED', error: error.message } : { outcome: 'COMPLETED' })
      },
    }
    try {
      this.graph = new Graph(config, environment, registry)
    } catch (error) {
      world.networks.leave(run)
      throw error
    }
    const { names, own } = this.io.networks
    if (!this.end) world.networks.join(run, names, own)
  }

  /** Moves virtual time on to `until` (nanoseconds), breath by breath. Stands still once a component has ended the run or it is complete. */
  advanceTo(until: number): void {
    advanceTogether([this], until)
  }

  /** One breath at the present time; returns when the next one is due, infinite when nothing is awaited or the run has ended. */
  breathe(): number {
    const { graph, io, clock } = this
    const { timers, sources } = graph
    if (this.end) return Number.POSITIVE_INFINITY
    this.breaths++
    graph.engine.breaths.add(1)
    io.dispatch()
    let busy = false
    for (const source of sources) if (source()) busy = true
    timers.fireDue(clock.now)
    graph.flush()
    if (io.pending && !this.end) return clock.now
    if (graph.complete) this.finish({ outcome: 'COMPLETED' })
    if (this.end) return Number.POSITIVE_INFINITY
    return busy ? Math.min(clock.now + BUSY_BREATH_NS, timers.next) : timers.next
  }

  /** Whether something has come that the next breath takes. */
  get pending(): boolean {
    return this.end === null && this.io.pending
  }

  /** It is over, unless it was before, and on no network any more. */
  private finish(end: RunEnd): void {
    if (this.end) return
    this.end = end
    this.endedAt = this.clock.now
    this.leave()
  }

  /** It has thrown `error`: it is over, and what it held is given back. */
  fail(error: Error): void {
    this.finish({ outcome: 'FAILED', error: error.message })
    this.stop()
  }

  private leave(): void {
    this.world.networks.leave(this.io.networks.number)
  }

  /** Whether it has ended before its time: by a component, or because all is done. */
  get over(): boolean {
    return this.end !== null
  }

  /** Brings `metricsRegion` up to date; once it has stopped, to when it did. */
  publish(): void {
    if (this.isFinal) return
    this.graph.observe()
    this.writer.publish(this.graph.values, this.clock.now)
    this.isFinal = this.stopped !== null
  }

  /** The metrics of now, or of when it stopped: component, then metric name, to number. */
  metrics(): Record<string, Record<string, number>> {
    this.publish()
    const { values } = this.reader.snapshot() ?? this.reader.blank // whole: the writer is this thread
    return byComponent(
      this.reader.entries.map(({ path, name, index }) => ({ path, name, value: values[index] as number })),
    )
  }

  /** Reads metrics as telemetry does. */
  get metricsRegion(): SharedArrayBuffer {
    return this.region
  }

  /** Ends the simulation: every component stops and gives back what it held. */
  stop(): RunEnd {
    if (this.stopped === null) {
      this.stopped = this.stopOnce()
      try {
        this.publish()
      } catch {
        // Whoever asks for the metrics is told.
      }
    }
    return this.stopped
  }

  private stopOnce(): RunEnd {
    this.leave()
    const failure = this.graph.stop()
    if (failure) return { outcome: 'FAILED', error: `stopping failed: ${failure.message}` }
    return this.end ?? { outcome: 'STOPPED' }
  }
}

/**
 * Moves the virtual time that `simulations` of one world share on to `until` (nanoseconds): each takes its breath in turn, and time
 * moves when nothing waits for any. One that has ended is stopped at that moment; time stands still once all have. `caught` gets what a
 * simulation throws; absent: it is thrown on. `observer` sees them between breaths. What keeps time from moving on fails too.
 */
export function advanceTogether(
  simulations: readonly Simulation[],
  until: number,
  caught?: (simulation: Simulation, error: Error) => void,
  observer?: Observer,
): void {
  const [{ clock }] = simulations as [Simulation]
  let moment = clock.now
  for (let breaths = 0; ; breaths++) {
    if (clock.now !== moment) {
      moment = clock.now
      breaths = 0
    }
    if (breaths > MAX_BREATHS_AT_ONCE) {
      const going = simulations.filter(({ pending }) => pending)
      const error = new Error(standstill(moment, going.length > 0))
      if (!caught) throw error
      for (const simulation of going.length > 0 ? going : simulations) if (!simulation.over) caught(simulation, error)
      breaths = 0
    }
    let next = Number.POSITIVE_INFINITY
    for (const simulation of simulations) {
      try {
        next = Math.min(next, simulation.breathe())
      } catch (error) {
        if (!caught) throw error
        caught(simulation, error as Error)
      }
      if (simulation.over) simulation.stop()
    }
    // What one has sent is there for those that have had their turn already.
    if (simulations.some((simulation) => simulation.pending)) continue
    if (simulations.every((simulation) => simulation.over)) return
    if (next > until) break
    observer?.advanceTo(next, clock)
    clock.advanceTo(next)
  }
  // What is to be seen at `until` is the end's.
  observer?.advanceTo(until, clock)
  clock.advanceTo(until)
}

function standstill(moment: number, goesRound: boolean): string {
  const why = goesRound
    ? 'packets go round through sockets or simulated networks without taking any time: put a delay or a bandwidth limit into their circle'
    : 'a component is due again and again, which is a fault of penstock'
  return `the simulated time stands still at ${moment / 1e9} s: ${why}`
}

/** Looks at simulations at regular times, between their breaths, which it does not change: what happens at such a time is seen then. */
class Observer {
  private readonly interval: number
  private readonly look: () => void
  private next = 0

  /** Calls `look` at 0 and every `interval` nanoseconds of virtual time. */
  constructor(interval: number, look: () => void) {
    this.interval = interval
    this.look = look
  }

  /** Nothing happens before `time` any more; at that time something may. */
  advanceTo(time: number, clock: VirtualClock): void {
    for (; this.next < time; this.next += this.interval) {
      clock.advanceTo(this.next)
      this.look()
    }
  }
}

/** How a simulation ended, its metrics and how much virtual time passed, nanoseconds. */
export interface Simulated {
  /** With it alone, the same numbers are drawn again. */
  seed: number
  end: RunEnd
  metrics: Record<string, Record<string, number>>
  elapsed: number
}

/** Runs a whole simulation and gives its end and the metrics of it: what was still held then is counted as such. */
export function simulate(config: PipelineConfig, { onLog, ...options }: SimulateOptions): Simulated {
  return simulateTogether([{ config, ...(onLog && { onLog }) }], options)[0]
}

/** One of several runs. */
export interface SimulatedRun extends Pick<SimulateOptions, 'onLog'> {
  config: PipelineConfig
  /** What it is called where it cannot begin; absent: it is alone. */
  name?: string
  /** Called every second of virtual time and at the end, when `region` has the metrics of `now`, nanoseconds. */
  onSample?: (region: SharedArrayBuffer, now: number) => void
}

/**
 * Runs several at the same time, joined by their simulated networks, each with a seed of its own drawn from `seed`, which the first has. One that
 * fails is over, the others go on; throws what keeps one from beginning.
 */
export function simulateTogether(
  runs: readonly SimulatedRun[],
  { duration, seed = 1, registry }: Omit<SimulateOptions, 'onLog'>,
): Simulated[] {
  const world = new SimulatedWorld()
  const { clock } = world
  const seeds = runs.map((_, i) => seedOfRun(seed, i))
  const simulations = runs.map(({ config, onLog, name }, i) => {
    try {
      return new Simulation(config, { ...(onLog && { onLog }), registry, seed: seeds[i] }, world)
    } catch (error) {
      throw name === undefined ? error : new Error(`${name}: ${(error as Error).message}`, { cause: error })
    }
  })
  const sample = (simulation: Simulation, i: number, now: number) => {
    const { onSample } = runs[i]
    if (onSample === undefined) return
    simulation.publish()
    onSample(simulation.metricsRegion, now)
  }
  const fail = (simulation: Simulation, error: Error) => simulation.fail(error)
  const observer = new Observer(NS_PER_S, () => {
    simulations.forEach((simulation, i) => {
      if (simulation.over) return
      try {
        sample(simulation, i, clock.now)
      } catch (error) {
        fail(simulation, error as Error)
      }
    })
  })
  advanceTogether(simulations, duration, fail, runs.some(({ onSample }) => onSample) ? observer : undefined)
  return simulations.map((simulation, i) => {
    const end = simulation.stop()
    const seed = seeds[i]
    const elapsed = simulation.endedAt ?? clock.now
    try {
      sample(simulation, i, elapsed)
      return { seed, end, metrics: simulation.metrics(), elapsed }
    } catch (error) {
      // A component cannot say its numbers, because of what the run has failed of or by itself.
      const { message } = error as Error
      return { seed, end: end.outcome === 'FAILED' ? end : { outcome: 'FAILED', error: message }, metrics: {}, elapsed }
    }
  })
}
