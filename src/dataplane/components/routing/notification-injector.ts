/** notification_injector: puts a FLUSH or a RESET into its flows. */
import { Type } from '@sinclair/typebox'
import type { Batch } from '../../engine/batch.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { Enumeration, Milliseconds, Optional } from '../../engine/schema.ts'
import { Flows } from '../emulation/flows.ts'

export const notificationInjector = defineComponent({
  key: 'notification_injector',
  family: 'routing',
  summary: 'Passes packets on and puts a notification between them: FLUSH or RESET.',
  details:
    'At FLUSH encoders send what is pending, at RESET decoders forget what they have. Without interval_ms the notification goes into every ' +
    'flow once, as the run starts; with it every so often, the first time when one interval is over. A change of the notification of a running ' +
    'pipeline injects the new one at once. Without a notification packets are passed on and that is all. A delay or slow link ' +
    'keeps 16,384 notifications at most for later.',
  config: Type.Object({
    flows: Flows(),
    notification: Optional(
      Type.Object(
        {
          type: Enumeration('Encoders send what is pending, or decoders forget.', 'Type', { FLUSH: 0, RESET: 1 }),
          interval_ms: Optional(Milliseconds('Time between two; unset or 0: once.', { maximum: 4_294_967_295 })),
        },
        { description: 'What to inject.' },
      ),
    ),
  }),
  metrics: { injected_notifications: counter('Notifications put into a flow.', 'notifications') },
  live: ['notification'],
  passes: true,
  create(config, { clock, outlets, metrics, timer: makeTimer }) {
    let { notification } = config
    let begun = false
    const timer = makeTimer(() => {
      const interval = (notification?.interval_ms ?? 0) * NS_PER_MS
      if (notification && (begun || interval === 0)) {
        for (const { output } of outlets.flows) output.notify(notification.type)
        metrics.injected_notifications.add(outlets.flows.length)
      }
      const { now } = clock
      // By the time it was due, so that a late breath makes no interval longer; the first begins now, and what was missed is not made up for.
      const next = (begun ? timer.due : now) + interval
      if (interval > 0) timer.at(next > now ? next : now + interval)
      begun = true
    })
    timer.at(clock.now)
    return {
      flows: outlets.flows.map(({ output }) => ({ input: (batch: Batch) => output.send(batch) })),
      reconfigure(next) {
        notification = next.notification
        if (begun) timer.at(clock.now)
      },
      stop: () => timer.cancel(),
    }
  },
})
