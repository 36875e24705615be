/** rtp_observer: passes packets on and measures the RTP streams among them. */
import { Type } from '@sinclair/typebox'
import { IpHeader, UDP } from '../../codes/ip-header.ts'
import { RtpHeader } from '../../codes/rtp-header.ts'
import { NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, gauge } from '../../engine/metrics.ts'
import { Input, Int32, Optional, Output } from '../../engine/schema.ts'
import { MAX_SENDERS } from '../shared/senders.ts'
import { Interval } from './interval.ts'
import { StreamGauges, streamMetrics } from './rtp-metrics.ts'
import { RtpStreams } from './rtp-streams.ts'

const UDP_BYTES = 8

/** Finds the RTP header of a packet. */
class RtpFinder {
  readonly header = new RtpHeader()
  /** Bytes of the RTP packet found last, its header included. */
  bytes = 0
  /** Bytes in front of the header; -1: it is at 0, behind IPv4 and UDP, or behind IPv6 and UDP. */
  offset = -1
  private readonly ip = new IpHeader()

  /** Whether the packet at `at`, `length` bytes that `view` has, is RTP. */
  find(view: DataView, at: number, length: number): boolean {
    if (this.offset >= 0) return this.read(view, at + this.offset, length - this.offset)
    return this.read(view, at, length) || this.findInUdp(view, at, length)
  }

  private findInUdp(view: DataView, at: number, length: number): boolean {
    const { ip } = this
    if (!ip.read(view, at, length) || ip.protocol !== UDP || ip.portsAt < 0) return false
    const there = at + ip.bytes - ip.portsAt
    if (there < UDP_BYTES) return false
    const told = view.getUint16(ip.portsAt + 4)
    return this.read(view, ip.portsAt + UDP_BYTES, (told < UDP_BYTES ? there : Math.min(told, there)) - UDP_BYTES)
  }

  private read(view: DataView, at: number, length: number): boolean {
    this.bytes = length
    return this.header.read(view, at, length)
  }
}

export const rtpObserver = defineComponent({
  key: 'rtp_observer',
  family: 'trackers',
  summary: 'Passes packets on and measures the RTP streams among them.',
  details:
    'RTP (RFC 3550) is looked for at the start of a packet and behind IPv4 or IPv6 and UDP, or at force_offset only: version 2, no payload type ' +
    'that is one of RTCP (72 to 76), contributing sources and extension within the packet. A source is a stream once it has sent two ' +
    `packets in sequence. Up to ${MAX_SENDERS} streams are followed, each in a place of its own with its SSRC as a gauge. When that many are known, ` +
    'one that has sent nothing while a newcomer sent 8 packets, each next to the one before, gives way to it, the one silent longest; others ' +
    'are not measured (unfollowed_packets).\n\n' +
    'Jitter needs the clock rate of the timestamps. Payload types of RFC 3551 say it; of the others it is taken to be the nearest of 8, 12, ' +
    '16, 24, 32, 44.1, 48 and 90 kHz to the speed of the timestamps in the first 2 s, and there is no jitter before. Packets that come in one ' +
    'breath of the run loop have come at the same time. A jump of the sequence by 3,000 or more counts neither as loss nor otherwise until ' +
    'the next packet confirms it: then the sender has started again.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    force_offset: Optional(
      Int32('Bytes before the RTP header; unset: it is searched for.', { minimum: 0, unit: 'bytes' }),
    ),
  }),
  metrics: {
    rtp_packets: counter('RTP packets, those of unfollowed sources included.', 'packets'),
    other_packets: counter('Packets that are not RTP.', 'packets'),
    unfollowed_packets: counter(
      'RTP packets of sources that had not sent two in sequence, or that there was no place for.',
      'packets',
    ),
    streams: gauge('Streams followed.', 'streams'),
    ...streamMetrics(MAX_SENDERS),
  },
  live: ['force_offset'],
  passes: true,
  create(config, context) {
    const { packets, clock, outlets, metrics } = context
    const finder = new RtpFinder()
    finder.offset = config.force_offset ?? -1
    const streams = new RtpStreams()
    const gauges = streams.streams.map((_, place) => new StreamGauges(metrics, place))

    const second = new Interval(context, NS_PER_S, () => {
      const seconds = (clock.now - second.start) / NS_PER_S
      for (let place = 0; place < streams.length; place++) streams.streams[place].endSecond(seconds)
    })

    return {
      input(batch) {
        const { view, offset } = packets
        const { handles, length } = batch
        const { now } = clock
        let found = 0
        let followed = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (!finder.find(view, offset[packet], packets.length[packet])) continue
          found++
          if (streams.take(finder.header, now, finder.bytes)) followed++
        }
        metrics.rtp_packets.add(found)
        metrics.other_packets.add(length - found)
        metrics.unfollowed_packets.add(found - followed)
        outlets.output.send(batch)
      },
      observe() {
        metrics.streams.set(streams.length)
        for (let place = 0; place < streams.length; place++) gauges[place].show(streams.streams[place])
      },
      reconfigure(next) {
        finder.offset = next.force_offset ?? -1
      },
      stop: () => second.stop(),
    }
  },
})
