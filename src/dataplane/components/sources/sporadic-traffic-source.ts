/** sporadic_traffic_source: bursts of random lengths with random silences between them. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import type { Random } from '../../engine/random.ts'
import { Milliseconds, Optional, Output, Seed, Uint32 } from '../../engine/schema.ts'
import { type BurstSchedule, Bursts } from './bursts.ts'
import { checkSizes, sizeFields, sizesOf, sourceMetrics } from './generator.ts'

const Config = Type.Object({
  output: Output(),
  total_packets: Uint32('How many packets to send; 0: no limit. The last burst is cut to it.', {
    default: 0,
    unit: 'packets',
  }),
  min_packets: Uint32('Fewest packets of a burst.', { minimum: 1, unit: 'packets' }),
  max_packets: Uint32('Most packets of a burst.', { minimum: 1, unit: 'packets' }),
  min_idle: Milliseconds('Shortest silence.'),
  max_idle: Milliseconds('Longest silence.'),
  ...sizeFields,
  seed: Optional(Seed('u32')),
})
type SporadicConfig = Static<typeof Config>

/** Lengths of bursts and of silences, each uniform, both ends included. */
class Sporadic implements BurstSchedule {
  readonly keepsTime = false
  private readonly random: Random
  private config: SporadicConfig
  /** When the last burst was over, ns, and the silence drawn for it, ms; -1: none yet. */
  private last = -1
  private idle = -1

  constructor(random: Random, config: SporadicConfig) {
    this.random = random
    this.config = config
  }

  length(): number {
    return this.random.between(this.config.min_packets, this.config.max_packets)
  }

  next(_due: number, last: number): number {
    this.last = last
    this.idle = this.random.between(this.config.min_idle, this.config.max_idle)
    return last + this.idle * NS_PER_MS
  }

  restart(): void {}

  /** Takes over changed bounds; when the next burst is due by them, ns, or -1 before the first. The present silence is bent to them. */
  change(config: SporadicConfig): number {
    this.config = config
    if (this.last < 0) return -1
    this.idle = Math.min(Math.max(this.idle, config.min_idle), config.max_idle)
    return this.last + this.idle * NS_PER_MS
  }
}

function checkBounds(config: SporadicConfig): Fault[] {
  const faults = checkSizes(config)
  if (config.min_packets > config.max_packets) {
    const message = `${config.min_packets} packets are more than max_packets, ${config.max_packets}`
    faults.push({ pointer: '/min_packets', message })
  }
  if (config.min_idle > config.max_idle) {
    faults.push({ pointer: '/min_idle', message: `${config.min_idle} ms are more than max_idle, ${config.max_idle}` })
  }
  return faults
}

export const sporadicTrafficSource = defineComponent({
  key: 'sporadic_traffic_source',
  family: 'sources',
  summary: 'Sends bursts of probe packets with silence between them.',
  details:
    'The packets of a burst leave back to back, up to 256 of them at one time; a silence begins with the last packet of its burst. ' +
    'Payloads start with a probe header (see wire formats) that traffic_sink measures by.',
  config: Config,
  metrics: sourceMetrics,
  live: ['total_packets', 'min_packets', 'max_packets', 'min_idle', 'max_idle', 'min_packet_size', 'max_packet_size'],
  mtu: (config) => sizesOf(config).largest,
  check: checkBounds,
  create(config, context) {
    const random = context.random(config.seed)
    const schedule = new Sporadic(random, config)
    const generator = new Bursts(context, random, sizesOf(config), config.total_packets, schedule)
    return {
      active: () => generator.active,
      reconfigure(next) {
        generator.adjust(sizesOf(next), next.total_packets)
        const due = schedule.change(next)
        if (due >= 0) generator.reschedule(due)
      },
      stop: () => generator.stop(),
    }
  },
})
