/** bandwidth_tracker: passes packets on and measures bytes per second over a sliding window. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS, NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, gauge } from '../../engine/metrics.ts'
import { Input, Milliseconds, Output, Uint32, ZERO_UNSET } from '../../engine/schema.ts'
import { GAUGE_NS } from '../../engine/timers.ts'
import { SlidingWindow } from './sliding-window.ts'

/** Most parts of a window. */
const MAX_BUCKETS = 4096

const config = Type.Object({
  input: Input(),
  output: Output(),
  window_ms: Milliseconds('Length of the window.', { default: 1000, minimum: 1, ...ZERO_UNSET }),
  buckets: Uint32('Parts of the window, the steps in which it slides.', {
    default: 10,
    minimum: 1,
    maximum: MAX_BUCKETS,
    ...ZERO_UNSET,
  }),
})

export const bandwidthTracker = defineComponent({
  key: 'bandwidth_tracker',
  family: 'trackers',
  summary: 'Passes packets on and measures bytes per second over a sliding window.',
  details:
    'The window slides by window_ms / buckets at a time and ends where the part at hand begins, so the rate shown is at most that old. ' +
    'It falls to 0 when nothing has passed for window_ms. Until the first window is full the rate is that of the time since the start, ' +
    'or since window_ms or buckets were changed.',
  config,
  metrics: {
    bytes_per_second: gauge('Rate over the window.', 'bytes/s'),
    total_bytes: counter('Bytes that passed.', 'bytes'),
  },
  live: ['window_ms', 'buckets'],
  passes: true,
  create(initial, { clock, outlets, metrics, timer }) {
    const windowOf = ({ window_ms, buckets }: Static<typeof config>) =>
      new SlidingWindow(window_ms * NS_PER_MS, buckets, clock.now)
    const stepOf = ({ window_ms, buckets }: Static<typeof config>) =>
      Math.max((window_ms * NS_PER_MS) / buckets, GAUGE_NS)
    let window = windowOf(initial)
    let step = stepOf(initial)
    // Has the rate shown as it falls where nothing else wakes the run.
    const slide = timer(() => {
      if (!window.isEmpty(clock.now)) slide.at(clock.now + step)
    })
    return {
      input(batch) {
        if (!slide.armed) slide.at(clock.now + step)
        window.add(batch.bytes, clock.now)
        metrics.total_bytes.add(batch.bytes)
        outlets.output.send(batch)
      },
      observe: () => metrics.bytes_per_second.set(window.rate(clock.now) * NS_PER_S),
      reconfigure(next) {
        window = windowOf(next)
        step = stepOf(next)
        if (slide.armed) slide.at(clock.now + step)
      },
      stop: () => slide.cancel(),
    }
  },
})
