/** A bulk TCP transfer as a model: CUBIC (RFC 9438) with HyStart, selective acknowledgements, RACK's loss detection (RFC 8985), proportional rate reduction (RFC 6937). */

import { HyStart } from './hystart.ts'

const MS = 1e6
/** Bytes of an IP packet with only an acknowledgement. */
const ACK_BYTES = 52
const BETA = 0.7
const CUBIC_C = 0.4
/** As long as nothing was lost the window grows by a twentieth each round trip at least, as in Linux. */
const MIN_GROWTH = 1 / 20
const MIN_RTO = 200 * MS
/** A segment that came out of order, or the second since, is acknowledged at once; else after this. */
const DELAYED_ACK = 40 * MS

interface Segment {
  sentAt: number
  /** Times sent. */
  count: number
  lost: boolean
  acked: boolean
}

/** Both ends of the connection. Packets carry their number in the first four bytes; time is the caller's. */
export class TcpFlow {
  /** Congestion window, segments. */
  window = 10
  retransmitted = 0
  /** Times at which the window was cut, ns. */
  readonly cuts: number[] = []
  /** Segments that the receiver has in order. */
  received = 0
  private readonly segmentBytes: number
  private threshold = Number.POSITIVE_INFINITY
  private readonly hystart = new HyStart()
  private readonly segments: Segment[] = []
  private first = 0
  private flying = 0
  private readonly lost: number[] = []
  private recoverUntil = -1
  /** Of the recovery that goes on: segments in flight at its begin, delivered and sent since, and by the acknowledgements of this call. */
  private recoverFlying = 0
  private recoverDelivered = 0
  private recoverSent = 0
  private delivered = 0
  private most = 0
  private epoch = -1
  private smoothed = 0
  private least = Number.POSITIVE_INFINITY
  /** Round trip that the last acknowledgement told of; 0: none. */
  private latest = 0
  private reordering = false
  private newestDelivered = 0
  private heardAt = 0
  private readonly arrived: number[] = []
  private readonly has = new Set<number>()
  private unacked = 0
  private ackDue = Number.POSITIVE_INFINITY
  private readonly snapshots: { until: number; duplicate: boolean }[] = []
  private acknowledged = 0

  /** `segmentBytes`: of an IP packet with a full segment. */
  constructor(segmentBytes: number) {
    this.segmentBytes = segmentBytes
  }

  /** Takes the packets that came at the receiver; returns the acknowledgements to send back. */
  receive(packets: readonly Uint8Array[], now: number): Uint8Array[] {
    const acks: Uint8Array[] = []
    for (const packet of packets) {
      const number = numberOf(packet)
      const duplicate = this.has.has(number)
      if (!duplicate) {
        this.has.add(number)
        this.arrived.push(number)
      }
      const inOrder = number === this.received
      while (this.has.has(this.received)) this.received++
      const isHole = this.has.size > this.received
      if (duplicate || !inOrder || isHole || ++this.unacked >= 2) acks.push(this.acknowledge(duplicate))
      else this.ackDue = Math.min(this.ackDue, now + DELAYED_ACK)
    }
    if (this.ackDue <= now) acks.push(this.acknowledge(false))
    return acks
  }

  private acknowledge(duplicate: boolean): Uint8Array {
    this.unacked = 0
    this.ackDue = Number.POSITIVE_INFINITY
    this.snapshots.push({ until: this.arrived.length, duplicate })
    return numbered(ACK_BYTES, this.snapshots.length - 1)
  }

  /** Takes the acknowledgements that came at the sender; returns the packets to send. */
  send(acks: readonly Uint8Array[], now: number): Uint8Array[] {
    this.delivered = 0
    for (const ack of acks) {
      const { until, duplicate } = this.snapshots[numberOf(ack)]
      if (duplicate) this.reordering = true
      let fresh = 0
      this.latest = 0
      for (; this.acknowledged < until; this.acknowledged++) fresh += this.deliver(this.arrived[this.acknowledged], now)
      this.leaveSlowStart(now)
      if (fresh > 0) this.grow(fresh, now)
      this.delivered += fresh
      this.recoverDelivered += fresh
    }
    this.detect(now)
    return this.fill(now)
  }

  private leaveSlowStart(now: number): void {
    if (this.latest === 0 || this.window >= this.threshold) return
    if (this.hystart.isOver(this.latest, this.window, this.first, this.segments.length, now))
      this.threshold = this.window
  }

  private deliver(number: number, now: number): number {
    const segment = this.segments[number]
    this.heardAt = now
    if (!segment.lost) this.flying--
    else if (segment.count === 1) this.reordering = true
    segment.acked = true
    if (segment.count === 1) {
      const rtt = now - segment.sentAt
      this.latest = rtt
      this.smoothed = this.smoothed === 0 ? rtt : this.smoothed + (rtt - this.smoothed) / 8
      this.least = Math.min(this.least, rtt)
      if (segment.sentAt < this.newestDelivered) this.reordering = true
    }
    this.newestDelivered = Math.max(this.newestDelivered, segment.sentAt)
    while (this.segments[this.first]?.acked) this.first++
    return 1
  }

  private grow(fresh: number, now: number): void {
    if (this.first <= this.recoverUntil) return
    if (this.window < this.threshold) {
      this.window += fresh
      return
    }
    if (this.epoch < 0) {
      this.epoch = now
      if (this.most < this.window) this.most = this.window
    }
    const k = Math.cbrt((this.most * (1 - BETA)) / CUBIC_C)
    const t = (now - this.epoch + this.smoothed) / 1e9
    const target = this.most + CUBIC_C * (t - k) ** 3
    const friendly =
      this.most * BETA + ((3 * (1 - BETA)) / (1 + BETA)) * (((t - this.smoothed / 1e9) * 1e9) / this.smoothed)
    const unhurt = this.cuts.length === 0 ? this.window * (1 + MIN_GROWTH) : 0
    const goal = Math.max(target, friendly, unhurt)
    this.window +=
      goal > this.window
        ? (fresh * Math.min(goal - this.window, this.window / 2)) / this.window
        : fresh / (100 * this.window)
  }

  private detect(now: number): void {
    const wait = this.reordering ? this.least / 4 : 0
    let later = 0
    for (let i = this.segments.length - 1; i >= this.first; i--) if (this.segments[i].acked) later++
    let passed = later
    for (let i = this.first; i < this.segments.length && passed > 0; i++) {
      const segment = this.segments[i]
      if (segment.acked) {
        passed--
        continue
      }
      if (segment.lost || segment.sentAt >= this.newestDelivered) continue
      if (!this.reordering && passed < 3) continue
      if (this.reordering && now - segment.sentAt < this.smoothed + wait) continue
      this.lose(i, now)
    }
    if (this.flying > 0 && now - this.heardAt > Math.max(MIN_RTO, 2 * this.smoothed)) {
      for (let i = this.first; i < this.segments.length; i++)
        if (!this.segments[i].acked && !this.segments[i].lost) this.lose(i, now)
      this.window = 1
      this.recoverUntil = -1
      this.heardAt = now
    }
  }

  private lose(number: number, now: number): void {
    this.segments[number].lost = true
    this.flying--
    this.lost.push(number)
    if (number <= this.recoverUntil) return
    this.recoverUntil = this.segments.length - 1
    this.recoverFlying = this.flying + 1
    this.recoverDelivered = 0
    this.recoverSent = 0
    this.cuts.push(now)
    this.most = this.window < this.most ? (this.window * (1 + BETA)) / 2 : this.window
    this.window = Math.max(this.window * BETA, 2)
    this.threshold = this.window
    this.epoch = -1
  }

  /** How many segments may go now. */
  private get allowance(): number {
    const room = Math.floor(this.window) - this.flying
    if (this.first > this.recoverUntil) return room
    const { recoverDelivered, recoverSent, recoverFlying, threshold, delivered } = this
    if (this.flying > threshold) return Math.ceil((recoverDelivered * threshold) / recoverFlying) - recoverSent
    return Math.min(room, Math.max(recoverDelivered - recoverSent, delivered) + 1)
  }

  private fill(now: number): Uint8Array[] {
    const packets: Uint8Array[] = []
    if (this.flying === 0) this.heardAt = now
    for (let left = this.allowance; left > 0; ) {
      const again = this.lost.shift()
      if (again !== undefined && this.segments[again].acked) continue
      const number = again ?? this.segments.length
      if (again === undefined) this.segments.push({ sentAt: now, count: 0, lost: false, acked: false })
      else this.retransmitted++
      left--
      this.recoverSent++
      const segment = this.segments[number]
      segment.sentAt = now
      segment.count++
      segment.lost = false
      this.flying++
      packets.push(numbered(this.segmentBytes, number))
    }
    return packets
  }
}

function numbered(bytes: number, number: number): Uint8Array {
  const packet = new Uint8Array(bytes)
  new DataView(packet.buffer).setUint32(0, number)
  return packet
}

const numberOf = (packet: Uint8Array): number => new DataView(packet.buffer, packet.byteOffset).getUint32(0)
