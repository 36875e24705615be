/** One RTP stream as it comes: loss and order after RFC 3550, appendix A.1 and A.3, jitter after A.8. */
import { NS_PER_S } from '../../engine/clock.ts'
import { RtpClock } from './rtp-clock.ts'

/** Packets that may be missing in a row before a gap needs a second packet to be believed (MAX_DROPOUT). */
const MAX_DROPOUT = 3000
/** Packets that one may come behind the newest (MAX_MISORDER). */
const MAX_MISORDER = 100
/** Sequences of which it is known whether they came: a power of two above MAX_MISORDER. */
const KNOWN = 128
const SEQUENCES = 65_536

export class RtpStream {
  ssrc = 0
  payloadType = 0
  /** Duplicates not counted. */
  packets = 0
  /** Goes down when a missing one comes after all. */
  lost = 0
  duplicates = 0
  reordered = 0
  /** ns; 0 while the clock rate is not known. */
  jitter = 0
  /** Of the last whole second, RTP headers and duplicates included. */
  bitsPerSecond = 0
  readonly clock = new RtpClock()
  private readonly came = new Int32Array(KNOWN / 32)
  private newest = 0
  /** Sequences from the first to the newest, since the stream began or jumped. */
  private span = 0
  private afterJump = -1
  private lastTimestamp = 0
  private lastArrival = 0
  /** Since the last `endSecond`. */
  private bytes = 0

  /** Begins with its first packet: `timestamp` in 32 bits, `arrival` in ns. */
  begin(ssrc: number, sequence: number, timestamp: number, arrival: number, bytes: number): void {
    this.ssrc = ssrc
    this.packets = 1
    this.lost = 0
    this.duplicates = 0
    this.reordered = 0
    this.jitter = 0
    this.bitsPerSecond = 0
    this.bytes = bytes
    this.clock.begin(timestamp, arrival)
    this.startAt(sequence, timestamp, arrival)
  }

  /** A packet of it came. */
  take(sequence: number, payloadType: number, timestamp: number, arrival: number, bytes: number): void {
    this.bytes += bytes
    const ahead = (sequence - this.newest) & (SEQUENCES - 1)
    if (ahead >= MAX_DROPOUT && ahead <= SEQUENCES - MAX_MISORDER) this.jump(sequence, timestamp, arrival)
    else if (!this.place(sequence, ahead)) return
    else {
      this.payloadType = payloadType
      this.clock.take(payloadType, timestamp, arrival)
      this.measureJitter(timestamp, arrival)
    }
  }

  /** A second is over that took `seconds`. */
  endSecond(seconds: number): void {
    this.bitsPerSecond = (this.bytes * 8) / seconds
    this.bytes = 0
  }

  /** Whether it is the first of its sequence, which is `ahead` of the newest, modulo 2^16. */
  private place(sequence: number, ahead: number): boolean {
    const behind = SEQUENCES - ahead
    if (ahead === 0 || (ahead >= MAX_DROPOUT && this.hasCome(sequence))) {
      this.duplicates++
      return false
    }
    if (ahead < MAX_DROPOUT) {
      this.lost += ahead - 1
      this.span += ahead
      this.newest = sequence
      this.forgetBehind(ahead)
    } else {
      this.reordered++
      if (behind < this.span) this.lost--
    }
    this.mark(sequence)
    this.packets++
    return true
  }

  /** A sequence far off is believed when the one after it follows, as where the sender has started again. */
  private jump(sequence: number, timestamp: number, arrival: number): void {
    if (sequence !== this.afterJump) {
      this.afterJump = (sequence + 1) & (SEQUENCES - 1)
      return
    }
    this.packets += 2
    this.clock.jump(timestamp, arrival)
    this.startAt(sequence, timestamp, arrival)
  }

  private startAt(sequence: number, timestamp: number, arrival: number): void {
    this.came.fill(0)
    this.newest = sequence
    this.span = 1
    this.afterJump = -1
    this.mark(sequence)
    this.lastTimestamp = timestamp
    this.lastArrival = arrival
  }

  private measureJitter(timestamp: number, arrival: number): void {
    const { rate } = this.clock
    if (rate > 0) {
      const ticks = (timestamp - this.lastTimestamp) | 0
      const difference = Math.abs(arrival - this.lastArrival - (ticks * NS_PER_S) / rate)
      this.jitter += (difference - this.jitter) / 16
    }
    this.lastTimestamp = timestamp
    this.lastArrival = arrival
  }

  private hasCome(sequence: number): boolean {
    return (this.came[(sequence & (KNOWN - 1)) >>> 5] & (1 << (sequence & 31))) !== 0
  }

  private mark(sequence: number): void {
    this.came[(sequence & (KNOWN - 1)) >>> 5] |= 1 << (sequence & 31)
  }

  /** Of the `ahead` sequences up to the newest nothing has come. */
  private forgetBehind(ahead: number): void {
    const { came } = this
    if (ahead >= KNOWN) came.fill(0)
    else
      for (let i = 0; i < ahead; i++) {
        const sequence = this.newest - i
        came[(sequence & (KNOWN - 1)) >>> 5] &= ~(1 << (sequence & 31))
      }
  }
}
