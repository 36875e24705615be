/** What is read from connections and sent over others of the same run: how much of it is on its way, and whether it arrives whole and in order. */
import type { Packets } from '../../engine/packets.ts'

/** Streams that are known at once: those of the connections there are, and former ones of which something may be on its way still. */
const MAX_STREAMS = 4096
/** The part of the run's slots that what is read at one endpoint may have: half of what a link lets wait. */
export const MAX_WINDOWS_SHARE = 1 / 8

/** Whoever reads a stream. */
export interface StreamReader {
  /** More of the stream has been taken. */
  taken(): void
  /** The rest of the stream does not arrive: whoever sends it is to be told. */
  broken(why: string): void
}

/** What comes from one connection, packet after packet, each with its number. Numbers are int32, and wrap. */
export class Stream {
  /** From 1 on. */
  readonly id: number
  /** Without a packet the bytes behind it would pass as something else. */
  readonly isBytes: boolean
  /** Number of the next packet that is read. */
  read = 0
  /** Number of the next packet that is to be taken: those before it have left the run. */
  taken = 0
  /** Nothing more is read. */
  ended = false
  /** Where it goes to and a hole would pass as data: each breaks it off there. */
  readonly ends: ((why: string) => void)[] = []
  private readonly reader: StreamReader

  constructor(id: number, isBytes: boolean, reader: StreamReader) {
    this.id = id
    this.isBytes = isBytes
    this.reader = reader
  }

  /** Packets on their way. */
  get underWay(): number {
    return (this.read - this.taken) | 0
  }

  /** The packets before `number` have left the run, or been lost: what comes later says that these need not be waited for. */
  takenTo(number: number): void {
    if (((number - this.taken) | 0) <= 0) return
    this.taken = number
    if (!this.ended) this.reader.taken()
  }

  break(why: string): void {
    if (!this.ended) this.reader.broken(why)
  }
}

/** The streams of one run. */
export class Streams {
  private readonly byId = new Map<number, Stream>()
  private last = 0

  open(isBytes: boolean, reader: StreamReader): Stream {
    this.last = (this.last % 0x7fffffff) + 1
    const stream = new Stream(this.last, isBytes, reader)
    if (this.byId.size >= MAX_STREAMS) forgetEnded(this.byId, ({ ended }) => ended)
    this.byId.set(stream.id, stream)
    return stream
  }

  of(id: number): Stream | undefined {
    return this.byId.get(id)
  }
}

/** The streams of the run that `shared` belongs to. */
export const runStreams = ({ shared }: { shared<T>(name: string, make: () => T): T }): Streams =>
  shared('streams of connections', () => new Streams())

/** Makes room in a table by removing what is over, the oldest first: half of it. */
export function forgetEnded<T>(table: Map<number, T>, isOver: (entry: T) => boolean): void {
  let left = table.size / 2
  for (const [id, entry] of table) {
    if (left <= 0) return
    left--
    if (isOver(entry)) table.delete(id)
  }
}

/** The streams of which some packet is somewhere in the run. Looks at every slot: not for the packet path. */
export function streamsInSlots(packets: Packets): Set<number> {
  const { slots, free } = packets
  const isFree = new Uint8Array(slots)
  for (let top = free[0]; top > 0; top--) isFree[free[top] + slots - top] = 1
  const found = new Set<number>()
  for (let packet = 0; packet < slots; packet++) {
    if (isFree[packet] !== 0) continue
    const id = packets.streamOf(packet)
    if (id !== 0) found.add(id)
  }
  return found
}
