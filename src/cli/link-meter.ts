/** What a link under emulation does to the packets of one direction, read from the metrics of its run. */
import { type MetricEntry, type PacketRole, RegionReader } from '../dataplane/engine/metrics.ts'

/** What sockets count of packets that came and had no place, in the run or in their buffer, whoever sent them: the kernel drops what is too long before it tells from where. */
const UNTAKEN = ['received_oversize_packets', 'received_without_slot_packets', 'kernel_dropped_packets']
/** Those of others than the first client are none of the link's. */
const OF_RECEIVING = ['ignored_packets', ...UNTAKEN]

/** Counts since the run began, but for `heldPackets`, which is now. received = sent + lost + queueFull + dropped + held. */
export interface LinkCounts {
  /** Those too that the socket they came to had no place for, which are dropped. */
  readonly receivedPackets: number
  /** Without those that there was no place for. */
  readonly receivedBytes: number
  readonly sentPackets: number
  /** Emulated loss. */
  readonly lostPackets: number
  /** Found the emulated queue full. */
  readonly queueFullPackets: number
  /** Any other reason, such as too long for a socket, no packet slot free, or still under way at the end. */
  readonly droppedPackets: number
  readonly heldPackets: number
}

/** Packets that have come through, and the time that they took together, ns. */
interface Passage {
  readonly packets: number
  readonly time: number
}

export interface LinkComponents {
  /** The socket that packets of this direction come from, and the one that they leave by. */
  readonly from: string
  readonly to: string
  /** What they pass between them. */
  readonly between: readonly string[]
  /** The observer in front of `to`, which knows how long each packet was under way. */
  readonly observer: string
}

/** Reads one direction again and again. */
export class LinkMeter {
  private readonly reader: RegionReader
  private values: Float64Array
  private readonly places: Readonly<Record<keyof LinkCounts, readonly number[]>>
  private readonly residence: Readonly<Record<'count' | 'sum', readonly number[]>>
  /** As of the last call of `delay`. */
  private before: Passage = { packets: 0, time: 0 }

  constructor(region: SharedArrayBuffer, { from, to, between, observer }: LinkComponents) {
    const reader = new RegionReader(region)
    this.reader = reader
    this.values = (reader.snapshot() ?? reader.blank).values
    const where = (wanted: (entry: MetricEntry) => boolean) => reader.entries.filter(wanted).map(({ index }) => index)
    const named = (path: string, name: string) => where((entry) => entry.path === path && entry.name === name)
    const passes = new Set([...between, observer])
    // What a socket does not take of what it hears is none of the packets that it sends.
    const role = (wanted: PacketRole) =>
      where(
        ({ path, name, role }) =>
          role === wanted && (passes.has(path) || (path === to && !OF_RECEIVING.includes(name))),
      )
    const port = (path: string, side: 'input' | 'output', unit: string) =>
      where((entry) => entry.path === path && entry.port?.side === side && entry.unit === unit)
    const counts = reader.entries.filter(
      ({ path, histogram }) => path === observer && histogram?.name === 'residence' && histogram.part === 'count',
    )
    const untaken = UNTAKEN.flatMap((name) => named(from, name))
    this.places = {
      receivedPackets: [...port(from, 'output', 'packets'), ...untaken],
      receivedBytes: port(from, 'output', 'bytes'),
      sentPackets: named(to, 'sent_packets'),
      lostPackets: role('intended'),
      queueFullPackets: role('overflow'),
      droppedPackets: [...role('drop'), ...untaken],
      heldPackets: role('held'),
    }
    // Not from the mean, which is rounded: where nothing is added in an interval, the sum is not to be less than it was.
    const sums = counts.flatMap(({ histogram }) => histogram?.buckets?.sum ?? [])
    this.residence = { count: counts.map(({ index }) => index), sum: sums }
  }

  private sum(places: readonly number[]): number {
    return places.reduce((sum, place) => sum + (this.values[place] as number), 0)
  }

  /** Takes the numbers of now. */
  look(): void {
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

  /**
   * Mean time, ms, that the packets that came through between the last call and the last look took from their arrival; of all packets of
   * the run when `total`. Undefined when none came through.
   */
  delay(total = false): number | undefined {
    const packets = this.sum(this.residence.count)
    const passed: Passage = { packets, time: this.sum(this.residence.sum) }
    const before = total ? { packets: 0, time: 0 } : this.before
    this.before = passed
    return packets === before.packets ? undefined : (passed.time - before.time) / (packets - before.packets) / 1e6
  }
}
