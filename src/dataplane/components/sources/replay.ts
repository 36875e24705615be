/** Sends the packets of a recording at their times, once or again and again. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import { NS_PER_MS, NS_PER_S } from '../../engine/clock.ts'
import type { Random } from '../../engine/random.ts'
import type { Timer } from '../../engine/timers.ts'
import type { Recording } from './captures/recording.ts'
import { type GeneratorContext, MAX_LAG_NS } from './generator.ts'
import { ProbeWriter } from './probe.ts'

/**
 * Behind schedule it sends at most a batch a breath, and when after that it still is more than 20 ms behind, it takes the schedule up
 * again from now.
 */
export class Replay {
  private readonly context: GeneratorContext
  private readonly recording: Recording
  private readonly probes: ProbeWriter | null
  private readonly view: DataView | null
  private readonly timer: Timer
  private loops: number
  private delay: number
  /** Times played to the end. */
  private played = 0
  /** Next packet. */
  private next = 0
  /** When the first packet was sent; when that of the present time of playing was due; when the last of the time before was due. ns. */
  private started = -1
  private base: number
  private over = 0
  private sent = 0
  private bytes = 0
  private done = false

  /**
   * `random` gives the bytes of probes, for a recording of sizes only; `loops` 0 is for ever; `delay` from the last packet to the first,
   * ns. Throws Error when there would be no end at one moment.
   */
  constructor(context: GeneratorContext, recording: Recording, random: Random | null, loops: number, delay: number) {
    requireProgress(recording, loops, delay)
    this.context = context
    this.recording = recording
    const { content } = recording
    this.view = content && new DataView(content.bytes.buffer, content.bytes.byteOffset, content.bytes.byteLength)
    this.probes = random && new ProbeWriter(context, random)
    this.loops = loops
    this.delay = delay
    this.base = context.clock.now
    this.timer = context.timer(() => this.fire())
    this.timer.at(this.base)
  }

  /** More packets are to come. */
  get active(): boolean {
    return !this.done
  }

  /**
   * Takes over another number of times and another delay, by which there is an end (`requireProgress`); the present time is played to its end. A pause
   * that is over by it ends now.
   */
  adjust(loops: number, delay: number): void {
    this.loops = loops
    this.delay = delay
    if (this.done || this.next > 0 || this.played === 0) return
    if (this.complete) this.finish()
    else {
      this.base = Math.max(this.context.clock.now, this.over + delay)
      this.timer.at(this.base)
    }
  }

  private get complete(): boolean {
    return this.loops > 0 && this.played >= this.loops
  }

  private fire(): void {
    const { recording, context } = this
    const { now } = context.clock
    if (this.started < 0) this.started = now
    const { times, packets } = recording
    for (let room = BATCH_CAPACITY; room > 0 && this.base + times[this.next] <= now; room--) {
      this.one(this.next)
      this.next++
      if (this.next < packets) continue
      this.next = 0
      this.played++
      this.over = this.base + times[packets - 1]
      this.base = this.over + this.delay
      if (this.complete) break
    }
    context.outlets.output.flush()
    if (this.complete && this.next === 0) {
      this.finish()
      return
    }
    const lag = now - (this.base + times[this.next])
    if (lag > MAX_LAG_NS) {
      context.metrics.skipped_ms.add(Math.floor(lag / NS_PER_MS))
      this.base += lag
    }
    this.timer.at(this.base + times[this.next])
  }

  private one(index: number): void {
    const { context, recording, probes } = this
    const length = recording.lengths[index]
    const packet = probes ? probes.make(length) : this.copy(index, length)
    if (packet < 0) {
      context.metrics.starved_packets.add(1)
      return
    }
    context.metrics.generated_packets.add(1)
    context.outlets.output.push(packet)
    this.sent++
    this.bytes += length
  }

  /** The recorded packet in a slot of its own, -1 when none is free. Word by word: a view of its bytes would be made for each. */
  private copy(index: number, length: number): number {
    const { packets, clock } = this.context
    const packet = packets.allocate()
    if (packet < 0) return -1
    const { content } = this.recording
    const from = (content as NonNullable<typeof content>).offsets[index]
    const source = this.view as DataView
    const { view } = packets
    const at = packets.append(packet, length)
    const words = length & ~3
    for (let i = 0; i < words; i += 4) view.setUint32(at + i, source.getUint32(from + i))
    for (let i = words; i < length; i++) view.setUint8(at + i, source.getUint8(from + i))
    packets.arrival[packet] = clock.stamp()
    return packet
  }

  private finish(): void {
    this.done = true
    this.timer.cancel()
    this.context.metrics.finished.set(1)
    const { sent: packets, bytes, played: loops } = this
    const seconds = (this.context.clock.now - this.started) / NS_PER_S
    const times = loops === 1 ? 'once' : `${loops} times`
    const message = `finished: ${packets} packets, ${bytes} bytes in ${seconds.toFixed(3)} s, played ${times}`
    this.context.log('INFO', message, { packets, bytes, seconds, loops })
    this.probes?.close()
  }

  stop(): void {
    this.done = true
    this.timer.cancel()
    this.probes?.close()
  }
}

/** Throws Error when playing `loops` times, 0 for ever, with `delay` ns between them would have no end at one moment. */
export function requireProgress({ times, packets }: Recording, loops: number, delay: number): void {
  if (loops > 0 || delay > 0 || times[packets - 1] > 0) return
  throw new Error(
    'loops 0 plays for ever what takes no time, all packets of the file having one time: set loop_delay to 1 or more, or loops',
  )
}
