/** latency_tracker_receiver: takes the stamps of a latency_tracker_sender off and measures one-way delay and round trip. */
import { Type } from '@sinclair/typebox'
import { asCarried, NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { Input, Int32Milliseconds, Milliseconds, Output, ZERO_UNSET } from '../../engine/schema.ts'
import { DelayFigures } from './delay-figures.ts'
import { Interval } from './interval.ts'
import { ECHO_AT, Echo, HOLD_AT, LATENCY_HEADER_BYTES, noRoundTrip } from './latency-header.ts'
import { UnixTime } from './unix-time.ts'

export const latencyTrackerReceiver = defineComponent({
  key: 'latency_tracker_receiver',
  family: 'trackers',
  summary: 'Measures one-way delay and round trip since a latency_tracker_sender, and passes its packets on.',
  details:
    'Takes the 24 bytes of the sender off. The one-way delay is the time here less the send time, as it is: where the clocks of two hosts ' +
    'differ it differs by as much, and may be negative. The round trip needs no common clock: it is measured when the pipeline has exactly ' +
    'one sender and one receiver, and so has that of the peer, and leaves out how long the peer held the time before it sent it back. ' +
    'With more senders than one in front the figures are those of all their packets.\n\n' +
    'Figures are those of the last interval in which there was something to measure. A RESET forgets the time to send back.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    sampling_interval_ms: Milliseconds('Interval that the figures are of.', {
      default: 1000,
      minimum: 1,
      ...ZERO_UNSET,
    }),
    latency_budget: Int32Milliseconds('One-way delay above which a packet is late.', { default: 100 }),
  }),
  metrics: {
    delay_min: gauge('Least one-way delay of the interval.', 'ns'),
    delay_mean: gauge('Mean one-way delay of the interval.', 'ns'),
    delay_max: gauge('Greatest one-way delay of the interval.', 'ns'),
    late_share: gauge('Share of the packets of the interval whose one-way delay was over latency_budget.', 'fraction'),
    late_packets: counter('Packets whose one-way delay was over latency_budget.', 'packets'),
    round_trip_min: gauge('Least round trip of the interval.', 'ns'),
    round_trip_mean: gauge('Mean round trip of the interval.', 'ns'),
    round_trip_max: gauge('Greatest round trip of the interval.', 'ns'),
    round_trips: counter('Packets that gave a round trip.', 'packets'),
    malformed_packets: drop('Packets dropped because they are too short for the header.'),
  },
  live: ['sampling_interval_ms', 'latency_budget'],
  alters: true,
  warn(_config, { count }) {
    const message = noRoundTrip(count)
    return message === null ? [] : [{ pointer: '', message }]
  },
  create(config, context) {
    const { packets, clock, outlets, metrics } = context
    const unix = new UnixTime(clock)
    const echo = Echo.of(context)
    echo.receivers++
    const delays = new DelayFigures()
    const roundTrips = new DelayFigures()
    let budget = config.latency_budget * NS_PER_MS
    let late = 0

    const interval = new Interval(context, config.sampling_interval_ms * NS_PER_MS, () => {
      if (delays.count > 0) metrics.late_share.set(late / delays.count)
      late = 0
      delays.show(metrics.delay_min, metrics.delay_mean, metrics.delay_max)
      roundTrips.show(metrics.round_trip_min, metrics.round_trip_mean, metrics.round_trip_max)
    })

    function measureDelay(delay: number): void {
      delays.add(delay)
      if (delay <= budget) return
      late++
      metrics.late_packets.add(1)
    }

    function measureRoundTrip(view: DataView, at: number, now: number): void {
      if (view.getUint32(at + ECHO_AT) === 0 && view.getUint32(at + ECHO_AT + 4) === 0) return
      const sent = unix.read(view, at + ECHO_AT)
      const held = view.getUint32(at + HOLD_AT) * 2 ** 32 + view.getUint32(at + HOLD_AT + 4)
      // What the sender of this run cannot have sent is none of its times.
      if (sent < 0 || sent + held > now) return
      roundTrips.add(now - sent - held)
      metrics.round_trips.add(1)
    }

    return {
      input(batch) {
        const { view } = packets
        const { handles, length } = batch
        const now = asCarried(clock.now)
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] < LATENCY_HEADER_BYTES) {
            packets.release(packet)
            continue
          }
          const at = packets.trimFront(packet, LATENCY_HEADER_BYTES)
          measureDelay(now - unix.read(view, at))
          if (echo.isOfOnePeer) measureRoundTrip(view, at, now)
          echo.high = view.getUint32(at)
          echo.low = view.getUint32(at + 4)
          echo.came = now
          handles[kept++] = packet
        }
        metrics.malformed_packets.add(length - kept)
        batch.length = kept
        outlets.output.send(batch)
      },
      notify(notification) {
        if (notification === 'RESET') echo.came = -1
        outlets.output.notify(notification)
      },
      reconfigure(next) {
        budget = next.latency_budget * NS_PER_MS
        interval.setLength(next.sampling_interval_ms * NS_PER_MS)
      },
      stop: () => interval.stop(),
    }
  },
})
