/** What a link under emulation does to the packets of one direction, read from the metrics of its run. */
import { type MetricEntry, type PacketRole, RegionReader } from '../dataplane/engine/metrics.ts'

/** Counts since the run began, but for `heldPackets`, which is now. received = sent + lost + queueFull + dropped + held. */
export interface LinkCounts {
  readonly receivedPackets: number
  readonly receivedBytes: number
  readonly sentPackets: number
  /** Emulated loss. */
  readonly lostPackets: number
  /** Found the emulated queue full. */
  readonly queueFullPackets: number
  /** Any other reason, such as too long for the socket or still under way at the end. */
  readonly droppedPackets: number
  readonly heldPackets: number
}

/** Sums up the time that packets wait in one component, from looks at how many there are (Little, 1961). */
interface Stage {
  readonly held: readonly number[]
  readonly out: readonly number[]
  /** Packets times ms. */
  waited: number
  /** Both as of the last call of `delay`. */
  waitedBefore: number
  outBefore: number
}

export interface LinkComponents {
  /** The socket that packets of this direction come from, and the one that they leave by. */
  readonly from: string
  readonly to: string
  /** What they pass between them. */
  readonly between: readonly string[]
}

/** Reads one direction again and again. */
export class LinkMeter {
  private readonly reader: RegionReader
  private values: Float64Array
  private lookedAt: number
  private readonly places: Readonly<Record<keyof LinkCounts, readonly number[]>>
  private readonly stages: readonly Stage[]

  /** `now` is in ms, as in `look`. */
  constructor(region: SharedArrayBuffer, { from, to, between }: LinkComponents, now: number) {
    const reader = new RegionReader(region)
    this.reader = reader
    this.values = (reader.snapshot() ?? reader.blank).values
    this.lookedAt = now
    const where = (wanted: (entry: MetricEntry) => boolean) => reader.entries.filter(wanted).map(({ index }) => index)
    const named = (path: string, name: string) => where((entry) => entry.path === path && entry.name === name)
    const passes = new Set(between)
    // What a socket ignores of what it hears is none of the packets that it sends.
    const role = (wanted: PacketRole) =>
      where(
        ({ path, name, role }) => role === wanted && (passes.has(path) || (path === to && name !== 'ignored_packets')),
      )
    const port = (path: string, side: 'input' | 'output', unit: string) =>
      where((entry) => entry.path === path && entry.port?.side === side && entry.unit === unit)
    this.places = {
      receivedPackets: port(from, 'output', 'packets'),
      receivedBytes: port(from, 'output', 'bytes'),
      sentPackets: named(to, 'sent_packets'),
      lostPackets: role('intended'),
      queueFullPackets: role('overflow'),
      droppedPackets: role('drop'),
      heldPackets: role('held'),
    }
    this.stages = between.map((path) => ({
      held: where((entry) => entry.path === path && entry.role === 'held'),
      out: port(path, 'output', 'packets'),
      waited: 0,
      waitedBefore: 0,
      outBefore: 0,
    }))
  }

  private sum(places: readonly number[]): number {
    return places.reduce((sum, place) => sum + (this.values[place] as number), 0)
  }

  /** Takes the numbers of now; how often decides how exact `delay` is for traffic that comes in bursts. */
  look(now: number): void {
    const elapsed = now - this.lookedAt
    this.lookedAt = now
    for (const stage of this.stages) stage.waited += this.sum(stage.held) * elapsed
    this.values = this.reader.snapshot()?.values ?? this.values
  }

  /** As of the last look. */
  counts(): LinkCounts {
    const { places } = this
    return {
      receivedPackets: this.sum(places.receivedPackets),
      receivedBytes: this.sum(places.receivedBytes),
      sentPackets: this.sum(places.sentPackets),
      lostPackets: this.sum(places.lostPackets),
      queueFullPackets: this.sum(places.queueFullPackets),
      droppedPackets: this.sum(places.droppedPackets),
      heldPackets: this.sum(places.heldPackets),
    }
  }

  /** Mean time, ms, that packets were held since the last call; since the beginning when `total`. Undefined when none came through. */
  delay(total = false): number | undefined {
    let sum = 0
    let moved = this.stages.length === 0
    for (const stage of this.stages) {
      const out = this.sum(stage.out)
      const packets = total ? out : out - stage.outBefore
      const waited = total ? stage.waited : stage.waited - stage.waitedBefore
      stage.outBefore = out
      stage.waitedBefore = stage.waited
      if (packets === 0) continue
      moved = true
      sum += waited / packets
    }
    return moved ? sum : undefined
  }
}
