/** Moves packets between a graph and one socket or device: a batch a breath in, large calls with a bounded queue out. */
import { Batch } from '../../engine/batch.ts'
import type { RunClock } from '../../engine/clock.ts'
import type { IoEvents, PacketIo } from '../../engine/io.ts'
import type { Log } from '../../engine/log.ts'
import { consumed, counter, created, drop, held, heldAtEnd, type Metrics } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { Timer } from '../../engine/timers.ts'
import { IO_COUNTERS } from '../../native/socket-calls.ts'
import { ToldErrors } from './told-errors.ts'
import { UNREAD_METRICS, UnreadPackets } from './unread-packets.ts'
import { oversizeUntaken, slotlessUntaken, UNTAKEN_METRICS, type Untaken } from './untaken.ts'

/** Packets that wait while the kernel's buffer is full; what comes on top is dropped. */
const MAX_QUEUED_PACKETS = 1024

/** What every endpoint counts. */
export const ENDPOINT_METRICS = {
  received_packets: created('Packets that came from the socket or device, those that were not taken among them.'),
  ...UNTAKEN_METRICS,
  ...UNREAD_METRICS,
  sent_packets: consumed('Packets handed to the kernel.'),
  oversize_packets: drop('Packets to send that were longer than the MTU.'),
  refused_packets: drop(
    'Packets that the kernel refused for good: no route, not permitted, too long; the log says why.',
  ),
  send_queue_drops: drop('Packets dropped because the kernel took no more and the send queue was full.'),
  send_blocked: counter('Times the kernel took no more packets for now.'),
  queued_packets: held('Packets waiting to be sent.'),
  held_at_end_packets: heldAtEnd(),
} as const

const OVERSIZE = IO_COUNTERS.indexOf('oversize')
const NO_SLOT = IO_COUNTERS.indexOf('noSlot')
const SEND_ERRORS = IO_COUNTERS.indexOf('sendErrors')
const SEND_BLOCKED = IO_COUNTERS.indexOf('sendBlocked')
const SEND_ERRNO = IO_COUNTERS.indexOf('sendErrno')

export interface EndpointOptions {
  packets: Packets
  clock: RunClock
  timer(fire: () => void): Timer
  log: Log
  metrics: Metrics<typeof ENDPOINT_METRICS>
  /** Where received packets go; absent: `unread` gets them. */
  outlet: Outlet | undefined
  /** Longest packet sent, bytes. */
  mtu: number
  /** What keeps the kernel from dropping packets that the run has not read yet, besides reading them faster. */
  unreadCure: string
}

/** Owns the packets given to `enqueue` until they are sent, and the socket or device until `stop`. */
export class Endpoint {
  readonly io: PacketIo
  protected readonly packets: Packets
  private readonly metrics: Metrics<typeof ENDPOINT_METRICS>
  private readonly outlet: Outlet | undefined
  private readonly mtu: number
  private readonly received: Batch
  private readonly queue = new Int32Array(MAX_QUEUED_PACKETS)
  private queued = 0
  /** The kernel took less than it was given in this breath. */
  private blocked = false
  /** What `io.counters` said when it was last looked at. */
  private readonly seen = new Float64Array(IO_COUNTERS.length)
  protected readonly refusals: ToldErrors
  protected readonly log: Log
  /** Of the first packet that was longer than the MTU, and what that was; 0 without any. */
  private oversize = 0
  private exceeded = 0
  private isOversizeTold = false
  private readonly untakenOversize: Untaken
  private readonly untakenSlotless: Untaken
  private readonly unreadPackets: UnreadPackets
  /** Packets that had been received when last looked. */
  private receivedSoFar = 0

  constructor(options: EndpointOptions, open: (events: IoEvents) => PacketIo) {
    const { packets, clock, timer, log, metrics, outlet, mtu, unreadCure: cure } = options
    this.packets = packets
    this.metrics = metrics
    this.outlet = outlet
    this.mtu = mtu
    this.log = log
    this.refusals = new ToldErrors(clock, log, 'the kernel refuses packets', 'refused_packets')
    this.received = new Batch(packets)
    this.untakenOversize = oversizeUntaken(metrics, log, mtu)
    this.untakenSlotless = slotlessUntaken(metrics, log, packets.slots)
    this.io = open({ readable: () => this.receive(), writable: () => this.flush() })
    this.unreadPackets = new UnreadPackets(this.io, {
      clock,
      timer,
      log,
      counter: metrics.kernel_dropped_packets,
      cure,
    })
  }

  /** What arrives goes into the graph: as long as it is open, packets may come. */
  get active(): boolean {
    return this.outlet !== undefined
  }

  /** How much a counter of the socket has grown since it was last asked for. */
  protected grown(index: number): number {
    const value = this.io.counters[index]
    const by = value - this.seen[index]
    this.seen[index] = value
    return by
  }

  /** One batch, so that every socket gets its turn in a breath. */
  private receive(): void {
    const batch = this.received
    this.io.receive(batch)
    if (batch.length === 0) return
    this.metrics.received_packets.add(batch.length)
    this.accept(batch)
    if (this.outlet) this.outlet.send(batch)
    else this.unread(batch)
  }

  /** Takes out of a received batch what is not to be passed on. */
  protected accept(_batch: Batch): void {}

  /** Received where nobody reads. */
  protected unread(batch: Batch): void {
    this.packets.releaseAll(batch)
  }

  /** Queues a batch's packets; they leave at the end of the breath, or when the queue is full. */
  enqueue(batch: Batch): void {
    const { queue, mtu } = this
    const { handles, length: count } = batch
    const { length } = this.packets
    let { queued } = this
    let i = 0
    // Four at a time, as most go: what V8 loads again in every round it loads once.
    for (const fits = Math.min(count, MAX_QUEUED_PACKETS - queued); i + 4 <= fits; i += 4) {
      const one = handles[i]
      const two = handles[i + 1]
      const three = handles[i + 2]
      const four = handles[i + 3]
      if (length[one] > mtu || length[two] > mtu || length[three] > mtu || length[four] > mtu) break
      queue[queued] = one
      queue[queued + 1] = two
      queue[queued + 2] = three
      queue[queued + 3] = four
      queued += 4
    }
    for (; i < count; i++) {
      const packet = handles[i]
      if (length[packet] <= mtu && queued < MAX_QUEUED_PACKETS) queue[queued++] = packet
      else {
        this.queued = queued
        this.enqueueOrDrop(packet)
        queued = this.queued
      }
    }
    this.queued = queued
    batch.length = 0
  }

  /** A packet that is too long, or for which the queue has no place until it is sent. */
  private enqueueOrDrop(packet: number): void {
    const { packets, queue, metrics } = this
    if (packets.length[packet] > this.mtu) {
      this.dropOversize(packet, this.mtu)
      return
    }
    if (!this.blocked) this.send()
    if (this.queued < MAX_QUEUED_PACKETS) queue[this.queued++] = packet
    else {
      packets.release(packet)
      metrics.send_queue_drops.add(1)
    }
  }

  protected dropOversize(packet: number, mtu: number): void {
    if (this.oversize === 0) {
      this.oversize = this.packets.length[packet]
      this.exceeded = mtu
    }
    this.packets.release(packet)
    this.metrics.oversize_packets.add(1)
  }

  /** End of a breath, or the kernel has room again. */
  flush(): void {
    if (this.queued > 0) this.send()
    this.blocked = false
  }

  private send(): void {
    const { queue, queued, metrics } = this
    const done = this.io.send(queue, 0, queued)
    const refused = this.grown(SEND_ERRORS)
    metrics.sent_packets.add(done - refused)
    if (refused > 0) metrics.refused_packets.add(refused)
    this.queued = queued - done
    this.blocked = this.queued > 0
    if (this.blocked) queue.copyWithin(0, done, queued)
  }

  observe(): void {
    const { metrics } = this
    const { counters } = this.io
    this.refusals.look(counters[SEND_ERRORS], counters[SEND_ERRNO])
    if (this.oversize > 0 && !this.isOversizeTold) this.tellOversize()
    this.untakenOversize.add(this.grown(OVERSIZE))
    this.untakenSlotless.add(this.grown(NO_SLOT))
    metrics.send_blocked.add(this.grown(SEND_BLOCKED))
    metrics.queued_packets.set(this.queued)
    const received = metrics.received_packets.value
    if (received !== this.receivedSoFar) this.unreadPackets.read()
    this.receivedSoFar = received
  }

  /** Once in a run: a path that is too narrow for what goes through it looks like one that loses at random. */
  private tellOversize(): void {
    const { oversize: length, exceeded: mtu } = this
    this.isOversizeTold = true
    const cure = 'make the MTU of what they come from smaller, or the one here longer where the network takes that'
    this.log('WARN', `packets are longer than the MTU and dropped, counted as oversize_packets: ${cure}`, {
      length,
      mtu,
    })
  }

  /** Sends what the kernel still takes, gives the rest back and closes the socket or device. */
  stop(): void {
    this.flush()
    for (let i = 0; i < this.queued; i++) this.packets.release(this.queue[i])
    this.metrics.held_at_end_packets.add(this.queued)
    this.queued = 0
    this.observe()
    this.unreadPackets.ask()
    this.io.close()
  }
}
