/** latency_tracker_sender: stamps packets with the time for a latency_tracker_receiver. */
import { Type } from '@sinclair/typebox'
import { asCarried } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'
import { ECHO_AT, Echo, HOLD_AT, LATENCY_HEADER_BYTES, noRoundTrip } from './latency-header.ts'
import { UnixTime } from './unix-time.ts'

export const latencyTrackerSender = defineComponent({
  key: 'latency_tracker_sender',
  family: 'trackers',
  summary: 'Stamps packets with their send time, so that a latency_tracker_receiver sees how long they took.',
  details:
    'Packets leave 24 bytes longer. For the round trip put one sender and one receiver into the pipelines of both ends: the sender sends ' +
    'back the newest time that the receiver of its pipeline has got from the peer, and how long ago that was.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {},
  alters: true,
  room: () => ({ front: LATENCY_HEADER_BYTES, back: 0 }),
  warn(_config, { count }) {
    // With receivers in the pipeline it is they that say so.
    const message = count('latency_tracker_receiver') === 0 ? noRoundTrip(count) : null
    return message === null ? [] : [{ pointer: '', message }]
  },
  create(_config, context) {
    const { packets, clock, outlets } = context
    const unix = new UnixTime(clock)
    const echo = Echo.of(context)
    echo.senders++
    return {
      input(batch) {
        const { view } = packets
        const { handles, length } = batch
        const now = asCarried(clock.now)
        const echoes = echo.came >= 0 && echo.isOfOnePeer
        const hold = echoes ? now - echo.came : 0
        for (let i = 0; i < length; i++) {
          const at = packets.prepend(handles[i], LATENCY_HEADER_BYTES)
          unix.write(view, at, now)
          view.setUint32(at + ECHO_AT, echoes ? echo.high : 0)
          view.setUint32(at + ECHO_AT + 4, echoes ? echo.low : 0)
          view.setUint32(at + HOLD_AT, hold / 2 ** 32)
          view.setUint32(at + HOLD_AT + 4, hold % 2 ** 32)
        }
        outlets.output.send(batch)
      },
    }
  },
})
