/** video_traffic_source: frames as an encoder of video makes them, large I frames and small P frames at a constant frame rate. */
import { Type } from '@sinclair/typebox'
import { NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import type { Random } from '../../engine/random.ts'
import { Optional, Output, Seed, Uint32 } from '../../engine/schema.ts'
import { type BurstSchedule, Bursts } from './bursts.ts'
import { checkSizes, sizeFields, sizesOf, sourceMetrics } from './generator.ts'

/** Packets of a frame, both ends included. */
const I_FRAME = { fewest: 8, most: 16 }
const P_FRAME = { fewest: 1, most: 4 }

/** One I frame, then `pFrames` P frames, and again. Frame n is due n / fps after the first, without drift. */
class Video implements BurstSchedule {
  readonly keepsTime = true
  private readonly random: Random
  private fps: number
  private pFrames: number
  /** P frames that still follow the last I frame. */
  private following = 0
  /** The frames' times count from here, ns; -1 before the first frame. */
  private start = -1
  /** Frames since `start`. */
  private frames = 0

  constructor(random: Random, fps: number, pFrames: number) {
    this.random = random
    this.fps = fps
    this.pFrames = pFrames
  }

  length(): number {
    const isP = this.following > 0
    this.following = isP ? this.following - 1 : this.pFrames
    const { fewest, most } = isP ? P_FRAME : I_FRAME
    return this.random.between(fewest, most)
  }

  next(due: number): number {
    if (this.start < 0) this.start = due
    this.frames++
    return this.due
  }

  restart(due: number): void {
    this.start = due
    this.frames = 0
  }

  /**
   * Takes over a changed frame rate, from the last frame on but from `now` at the latest, and number of P frames; when the next frame is due, ns, or -1
   * before the first.
   */
  change(fps: number, pFrames: number, now: number): number {
    this.pFrames = pFrames
    this.following = Math.min(this.following, pFrames)
    if (this.start >= 0 && fps !== this.fps && this.frames > 0) {
      const last = this.start + ((this.frames - 1) * NS_PER_S) / this.fps
      this.start = Math.max(last, now - NS_PER_S / fps)
      this.frames = 1
    }
    this.fps = fps
    return this.start < 0 ? -1 : this.due
  }

  private get due(): number {
    return this.start + (this.frames * NS_PER_S) / this.fps
  }
}

export const videoTrafficSource = defineComponent({
  key: 'video_traffic_source',
  family: 'sources',
  summary: 'Sends probe packets in frames, as a video encoder does: one I frame, then p_frames P frames, and again.',
  details:
    'Frame n is due n / fps after the first. An I frame is 8 to 16 packets, a P frame 1 to 4, sent back to back; sizes are uniform between ' +
    'the smallest and the largest. Payloads start with a probe header (see wire formats) that traffic_sink measures by.',
  config: Type.Object({
    output: Output(),
    fps: Uint32('Frames in a second.', { minimum: 1, maximum: 1000, unit: 'frames/s' }),
    p_frames: Uint32('P frames after each I frame.', { unit: 'frames' }),
    total_packets: Uint32('How many packets to send; 0: no limit. The last frame may be cut by it.', {
      default: 0,
      unit: 'packets',
    }),
    ...sizeFields,
    seed: Optional(Seed('u32')),
  }),
  metrics: sourceMetrics,
  live: ['fps', 'p_frames', 'total_packets', 'min_packet_size', 'max_packet_size'],
  mtu: (config) => sizesOf(config).largest,
  check: checkSizes,
  create(config, context) {
    const random = context.random(config.seed)
    const schedule = new Video(random, config.fps, config.p_frames)
    const generator = new Bursts(context, random, sizesOf(config), config.total_packets, schedule)
    return {
      active: () => generator.active,
      reconfigure(next) {
        generator.adjust(sizesOf(next), next.total_packets)
        const due = schedule.change(next.fps, next.p_frames, context.clock.now)
        if (due >= 0) generator.reschedule(due)
      },
      stop: () => generator.stop(),
    }
  },
})
