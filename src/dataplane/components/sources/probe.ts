/** The probe: a 32-byte header in front of generated payloads by which a sink measures loss, order, damage and delay. */
import { crc32c } from '../../codes/crc32c.ts'
import { asCarried, NS_PER_S, type RunClock } from '../../engine/clock.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Random } from '../../engine/random.ts'
import { native } from '../../native/native.ts'

export const PROBE_BYTES = 32
/** 'PNSK' */
const PROBE_MAGIC = 0x504e534b

/** Offsets of the fields; docs/wire-formats.md has the picture. */
const SOURCE = 4
const SEQUENCE_HIGH = 8
const SEQUENCE_LOW = 12
const SECONDS = 16
const NANOSECONDS = 20
const LENGTH = 24
const CRC = 28

const TWO_32 = 4294967296
/** Sequences of 2^53 and up cannot be told apart as doubles; no source ever gets there. */
const SEQUENCE_HIGH_LIMIT = 1 << 21
/** Payloads start at one of eight places in the pattern, this many bytes apart. */
const WINDOW_STEP = 16

/** Time since the Unix epoch of a clock's zero, split so that nanoseconds stay exact in doubles. */
function epochOf(clock: RunClock): { seconds: number; nanoseconds: number } {
  const seconds = Math.floor(clock.epoch / NS_PER_S)
  return { seconds, nanoseconds: Math.max(0, Math.round(clock.epoch - seconds * NS_PER_S)) }
}

/** Up to here a CRC by table costs less than the call into the addon. */
const SHORT = 64

function checksum(data: Uint8Array, memory: number, at: number, bytes: number): number {
  return bytes <= SHORT ? crc32c(data, at, at + bytes) : native.crc32c(memory, at, bytes)
}

/** What a probe needs of a component's context. */
export interface ProbeContext {
  readonly packets: Packets
  readonly clock: RunClock
  memory(): number
  entropy(bytes: number): Uint8Array
}

/** Makes probes of one source, numbered from 0. Keeps a slot for the pattern that payloads are cut from until `close`. */
export class ProbeWriter {
  /** Sequence of the next probe. */
  sequence = 0
  /** Tells the source's flow from others, also after a restart: drawn, not seeded. */
  readonly source: number
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly memory: number
  private readonly epoch: { seconds: number; nanoseconds: number }
  private pattern: number

  /** `random` gives the payload bytes. */
  constructor({ packets, clock, memory, entropy }: ProbeContext, random: Random) {
    this.packets = packets
    this.clock = clock
    this.memory = memory()
    this.epoch = epochOf(clock)
    const id = entropy(4)
    this.source = ((id[0] << 24) | (id[1] << 16) | (id[2] << 8) | id[3]) >>> 0
    this.pattern = packets.allocate()
    if (this.pattern < 0) throw new Error('no packet slot is free for the payload pattern')
    const at = this.pattern * packets.slotBytes
    random.fill(packets.data, at, at + packets.slotBytes)
  }

  /**
   * A fresh probe of `bytes` bytes (32 to the mtu the packets were made for), sent and arrived now; the caller owns it.
   * -1 when every slot is taken, in which case no sequence number is used up.
   */
  make(bytes: number): number {
    const { packets, clock, sequence } = this
    const packet = packets.allocate()
    if (packet < 0) return -1
    const { view, data } = packets
    const at = packets.append(packet, bytes)
    const from = this.pattern * packets.slotBytes + (sequence & 7) * WINDOW_STEP
    data.copyWithin(at + PROBE_BYTES, from, from + bytes - PROBE_BYTES)
    const now = clock.stamp()
    packets.arrival[packet] = now
    const sent = asCarried(now)
    let seconds = Math.floor(sent / NS_PER_S)
    let nanoseconds = sent - seconds * NS_PER_S + this.epoch.nanoseconds
    seconds += this.epoch.seconds
    if (nanoseconds >= NS_PER_S) {
      nanoseconds -= NS_PER_S
      seconds++
    }
    view.setUint32(at, PROBE_MAGIC)
    view.setUint32(at + SOURCE, this.source)
    view.setUint32(at + SEQUENCE_HIGH, sequence / TWO_32)
    view.setUint32(at + SEQUENCE_LOW, sequence)
    view.setUint32(at + SECONDS, seconds)
    view.setUint32(at + NANOSECONDS, nanoseconds)
    view.setUint32(at + LENGTH, bytes)
    view.setUint32(at + CRC, 0)
    view.setUint32(at + CRC, checksum(packets.data, this.memory, at, bytes))
    this.sequence = sequence + 1
    return packet
  }

  /** Gives the pattern's slot back; no probe can be made afterwards. Safe to call twice. */
  close(): void {
    if (this.pattern >= 0) this.packets.release(this.pattern)
    this.pattern = -1
  }
}

/** `PROBE`: the fields were read; `UNMARKED`: no probe; `CORRUPT`: a probe that was damaged on the way. */
export type ProbeVerdict = 'PROBE' | 'UNMARKED' | 'CORRUPT'

/** Reads probes; its fields hold what the last `PROBE` said. */
export class ProbeReader {
  source = 0
  sequence = 0
  /** From the source's clock to this one, ns; below 0 when the clocks of two hosts disagree. */
  delay = 0
  private readonly packets: Packets
  private readonly clock: RunClock
  private readonly memory: number
  private readonly epoch: { seconds: number; nanoseconds: number }

  constructor({ packets, clock, memory }: Omit<ProbeContext, 'entropy'>) {
    this.packets = packets
    this.clock = clock
    this.memory = memory()
    this.epoch = epochOf(clock)
  }

  /** Reads a packet. Zeroes its CRC field: the packet is at its end. */
  read(packet: number): ProbeVerdict {
    const { packets } = this
    const { view } = packets
    const at = packets.offset[packet]
    const bytes = packets.length[packet]
    if (bytes < PROBE_BYTES || view.getUint32(at) !== PROBE_MAGIC) return 'UNMARKED'
    const crc = view.getUint32(at + CRC)
    view.setUint32(at + CRC, 0)
    const high = view.getUint32(at + SEQUENCE_HIGH)
    if (
      view.getUint32(at + LENGTH) !== bytes ||
      checksum(packets.data, this.memory, at, bytes) !== crc ||
      high >= SEQUENCE_HIGH_LIMIT
    ) {
      return 'CORRUPT'
    }
    this.source = view.getUint32(at + SOURCE)
    this.sequence = high * TWO_32 + view.getUint32(at + SEQUENCE_LOW)
    const seconds = view.getUint32(at + SECONDS) - this.epoch.seconds
    const nanoseconds = view.getUint32(at + NANOSECONDS) - this.epoch.nanoseconds
    this.delay = asCarried(this.clock.now) - (seconds * NS_PER_S + nanoseconds)
    return 'PROBE'
  }
}
